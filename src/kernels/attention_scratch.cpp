#include "kernels/kernels.h"

namespace ridge {

// The scores of up to four heads for one chunk of 256 positions, and each head's running maximum and sum.
size_t attention_scratch_floats(size_t group, size_t /*value_dim*/) { return 4 * 256 + 2 * group; }

}  // namespace ridge

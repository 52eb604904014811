// What it costs to have one block ready to run on an executor: the memory it then holds, and the time to get there and
// back. Measured by `ridge ladder`, or published for a device.
//
//   double saved_s = c.load_s + c.init_s + c.release_s;      // per pass, by keeping the block
//   double per_byte = saved_s / double(c.resident_bytes());
#pragma once

#include <cstdint>

namespace ridge {

struct Lifecycle {
  uint64_t weight_bytes = 0;    // as the executor keeps them
  uint64_t overhead_bytes = 0;  // scratch, rounding, page tables: what comes with them
  double load_s = 0;            // storage to memory, rearranged
  double init_s = 0;            // everything else before the first run
  double release_s = 0;

  uint64_t resident_bytes() const { return weight_bytes + overhead_bytes; }
  double seconds() const { return load_s + init_s + release_s; }
};

}  // namespace ridge

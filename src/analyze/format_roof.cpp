#include "analyze/format_roof.h"

#include <algorithm>

#include "model/operators.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

double rate_of(std::span<const FormatPoint> rates, Type type) {
  for (const FormatPoint& p : rates) {
    if (p.type == type_info(type).name) return p.gb_per_s.value;
  }
  return 0;
}

// Bytes of panels, and the time of one core for them; less than nothing once a rate is missing.
struct Sum {
  double bytes = 0, seconds = 0;
  bool known = true;
  void add(double more, double gb_per_s) {
    bytes += more;
    known = known && gb_per_s > 0;
    if (known) seconds += more / (gb_per_s * 1e9);
  }
  double gb_per_s(int threads) const { return known && seconds > 0 ? bytes / seconds * threads * 1e-9 : 0; }
};

}  // namespace

FormatRoofs format_roofs(const Program& program, TensorId head, std::span<const FormatPoint> rates, int threads) {
  Sum whole;
  std::array<Sum, kOperators> sums;
  for (const Visit& visit : program.visits) {
    for (const Piece& piece : program.blocks[visit.block].pieces) {
      const StoredTensor& tensor = program.tensors[piece.tensor];
      const size_t panels = (piece.row_end - piece.row_begin + kPanelRows - 1) / kPanelRows;
      const double bytes = visit.chance * static_cast<double>(panels * panel_bytes(tensor.type, tensor.cols));
      const double rate = rate_of(rates, tensor.type);
      whole.add(bytes, rate);
      sums[static_cast<size_t>(operator_of(program, piece.tensor, head))].add(bytes, rate);
    }
  }
  FormatRoofs roofs{.whole = whole.gb_per_s(threads), .of = {}};
  for (size_t i = 0; i < kOperators; ++i) roofs.of[i] = sums[i].gb_per_s(threads);
  return roofs;
}

std::vector<FormatPoint> upper_rates(std::span<const FormatPoint> rates) {
  constexpr double kLeast = 1.1;
  std::vector<FormatPoint> upper(rates.begin(), rates.end());
  for (FormatPoint& p : upper) {
    p.gb_per_s.value = std::max(kLeast * p.gb_per_s.high, 2 * p.gb_per_s.high - p.gb_per_s.value);
  }
  return upper;
}

}  // namespace ridge

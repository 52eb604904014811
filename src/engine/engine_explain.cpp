// What an engine tells of its choices: --explain.
#include <set>

#include "engine/engine.h"

namespace ridge {

std::vector<std::string> Engine::kernel_reasons() const {
  const bool exact = options_.numerics == Numerics::exact;
  const OpSet used = model_->operations({.tokens = 2}, exact, kv_type_) |
                     model_->operations({.tokens = 1, .role = TokenRole::generated}, exact, kv_type_);
  std::set<std::string> subjects;
  for (size_t op = 0; op < used.size(); ++op) {
    if (used[op]) subjects.insert(describe(static_cast<Op>(op), Type::F32));
  }
  for (const Block& b : plan_.program.blocks) {
    for (const Piece& p : b.pieces) {
      const Type type = plan_.program.tensors[p.tensor].type;
      subjects.insert(describe(uses_int8(type, exact) ? Op::matmul_q8 : Op::matmul_float, type));
      subjects.insert(describe(Op::pack, type));
    }
  }
  std::vector<std::string> lines;
  for (const std::string& line : kernels_.reasons) {
    if (subjects.count(line.substr(0, line.find(':'))) > 0) lines.push_back(line);
  }
  return lines;
}

}  // namespace ridge

// The IR of a program (program/ir.h): under a budget, on a machine of tiers, or all in memory.
//
//   Ir ir = ir_of(program, {.model = "tiny", .files = files, .operators = ops});
//   place(ir, program, placement, budget);   // pins, slots, cache
//   place(ir, work, machine, map);           // SRAM and DRAM
//   RIDGE_TRY(require_same_program(ir, "model.ir", other));
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "program/ir.h"
#include "sim/memory_map.h"

namespace ridge::sim {

struct IrSource {
  std::string model;
  uint64_t fingerprint = 0;
  std::vector<IrFile> files;        // as program.files
  std::vector<Operator> operators;  // of each block
  uint64_t positions = 0;
};

// Everything pinned; keys and values in one share.
Ir ir_of(const Program& program, const IrSource& source);
void place(Ir& ir, const Program& program, const Placement& placement, uint64_t budget);
// `map` is that of `work`, which was made of the same program.
void place(Ir& ir, const NpuWork& work, const NpuMachine& machine, const MemoryMap& map);

// Bad input, naming the line of the IR: a block that `made`, of the model as it is, has not or has otherwise. Places
// are not compared.
Result<void> require_same_program(const Ir& read, const std::string& name, const Ir& made, const std::string& model);

}  // namespace ridge::sim

// One phase of making a picture: the passes of one model over one program, with a plan, a weight source and a workspace
// of its own. Nothing of it remains when it is closed, so that the next phase has the whole budget.
//
//   Phase encode({.name = "encode", .model = qwen, .shape = {.tokens = 64, .outputs = 0}, .outline = …}, shared);
//   RIDGE_TRY(encode.plan(held));          // does_not_fit before anything large
//   RIDGE_TRY(encode.open());
//   Compute pass(*qwen, encode.machinery(), shape, io);
//   encode.close();
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/choose.h"
#include "memory/context_source.h"
#include "memory/streaming_source.h"
#include "model/compute.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "plan/planner.h"

namespace ridge {

// What all phases share; must outlive them.
struct PhaseMachine {
  const KernelChoice* kernels = nullptr;
  ThreadPool* pool = nullptr;
  IoKind io = IoKind::automatic;
  Rates rates;
  uint64_t budget = 0;
  std::string budget_reason;
  std::optional<uint64_t> most_pinned;
  Trace* trace = nullptr;
  StageProfile* profile = nullptr;
  PassTimes* times = nullptr;
};

struct PhaseOptions {
  std::string name;
  Model* model = nullptr;
  PassShape shape;                    // of the largest pass
  std::function<void(Ops&)> outline;  // that pass, without data
  std::vector<TensorId> gathered;     // read by rows
  uint64_t cache_positions = 0;       // of a key/value cache; 0: none
  uint64_t attention_floats = 0;      // scratch of all workers
  bool one_at_a_time = false;         // each block is loaded, run and released by itself (memory/context_source.h)
};

class Phase {
 public:
  // What helps beside a larger budget.
  static constexpr const char* kNeedsLess = "make a smaller picture";

  Phase(PhaseOptions options, const PhaseMachine& machine) : options_(std::move(options)), machine_(machine) {}

  // `held`: what everything else takes while the phase runs. The least that then works, and a plan within the budget.
  Account smallest(const Account& held);
  Result<void> plan(const Account& held);
  Result<void> open();
  void close();

  const std::string& name() const { return options_.name; }
  const PassShape& shape() const { return options_.shape; }
  const Plan& plan() const { return plan_; }
  const Machinery& machinery() const { return machinery_; }
  const WeightSource& source() const { return *source_; }
  Model& model() const { return *options_.model; }

 private:
  // The parts of the workspace slab, in bytes.
  struct Layout {
    uint64_t panels = 0, attention = 0, total = 0;
  };
  Layout layout(const Program& program) const;
  Result<std::unique_ptr<WeightSource>> make_source() const;
  void measure();  // the workspace
  PlanInput plan_input(const Account& held) const;
  Program program(uint64_t slot) const;
  Account account(Account held, const Program& program) const;
  KvOptions cache_options() const;

  PhaseOptions options_;
  const PhaseMachine& machine_;
  uint64_t workspace_floats_ = 0;
  Plan plan_;
  std::unique_ptr<WeightSource> source_;
  KvCache cache_;
  Slab workspace_;
  Machinery machinery_;
};

}  // namespace ridge

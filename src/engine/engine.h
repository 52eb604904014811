// A model ready to run: planned, placed and loaded, with one timeline of tokens.
//
// Not for: choosing tokens (text/sampler.h, generate.h), or printing.
//
//   auto engine = RIDGE_TRY(Engine::open({.path = "model.gguf", .memory = 300 * kMiB}));
//   std::span<const float> logits = RIDGE_TRY(engine->evaluate(ids));     // of the last token
//   engine->position();
//
// One thread uses an engine at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/live_pins.h"
#include "engine/numerics.h"
#include "engine/state_file.h"
#include "kernels/choose.h"
#include "machine/memory_limits.h"
#include "machine/profile.h"
#include "memory/recording_source.h"
#include "memory/task_table.h"
#include "model/compute.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "plan/planner.h"
#include "text/tokenizer.h"

namespace ridge {

constexpr int kMostThreads = 256;

struct EngineOptions {
  std::string path;
  std::vector<LoraFile> adapters = {};  // GGUF, always in memory (model/adapters.h)
  std::string machine = {};        // profile of the machine to plan for; empty: this one, as `ridge probe` measured it
  std::optional<uint64_t> memory;  // a promise of the user's: peak charge ≤ this; none: what the machine offers
  uint64_t context = 0;            // positions, 0: default_context
  uint64_t default_context = 0;    // 0: min(the model's, 4096), less under a budget
  int threads = 0;                 // 0: all usable CPUs
  std::vector<int> cpus = {};      // bind worker i to cpus[i]
  std::optional<Isa> isa;
  Numerics numerics = Numerics::standard;
  std::optional<KvType> kv_type;  // none: f16; f32 with exact numerics and for models whose weights are all F32
  IoKind io = IoKind::automatic;
  std::optional<uint64_t> most_pinned;  // keep at most this much of the weights in memory (to see streaming at work)
  PinRule pins = PinRule::planned;      // how the pinned blocks are chosen, for comparing
  std::optional<ExpertPolicy> expert_policy;  // of a cache of experts or neurons; none: by its size
  // What the cache of experts or neurons is trained by (memory/task_table.h), asked once the model is known:
  // importance.
  std::function<Result<CacheTraining>(const Model&)> training = {};
  std::string task = {};  // of the training: empty: the mean of all, "auto": detected, "predict": and foretold
  // Lossy: a router's scores of experts that are not in memory are multiplied by this before the best are chosen.
  double mask_absent = 1;
  bool all_neurons = false;     // neurons that rest are read and computed on as well (to compare): the same result
  uint32_t logits_rows = 1;     // most rows evaluate_all() asks for at once
  uint32_t verify_tokens = 1;   // most tokens that decode() takes at once: a generated one and its drafts
  std::string draft_path = {};  // a small model that drafts for this one: resident, within the same budget
  // Memory pressure takes pins away while running, and gives them back (live_pins.h): MemAvailable below this is
  // pressure. 0: pins stay. None: default_floor(), and only where the plan streams anyway, so that it costs nothing.
  std::optional<uint64_t> floor;
  LiveOptions live = {};         // the pace of it; floor and step are chosen where they are 0
  PressureReader pressure = {};  // instead of the system's signs (tests)
  bool need_tokenizer = true;
  bool states = false;              // save_state() or load_state() will be called: their buffers are in the account
  bool record = false;              // the order of visited blocks is kept: recording()
  uint64_t text_bytes = 0;          // of text that will be tokenised at once, for the account
  Trace* trace = nullptr;           // its memory is in the account
  StageProfile* profile = nullptr;  // told where the time goes while it listens
  ProductProbe* probe = nullptr;    // told what is multiplied; its memory is nobody's account
};

struct EngineTimes {
  std::chrono::nanoseconds load{0};
  std::chrono::nanoseconds prompt{0}, decode{0};
  std::chrono::nanoseconds draft{0};  // of the two above, spent by a drafter
  uint64_t prompt_tokens = 0, decode_tokens = 0;
  uint64_t decode_passes = 0;                     // fewer than tokens if drafts were right
  uint64_t drafted_tokens = 0, wrong_tokens = 0;  // drafts that were checked; those of them taken back
};

class Engine {
 public:
  // does_not_fit with the table and the smallest budget, before anything large is allocated.
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options);
  // As open(), but nothing large is allocated and no weights are read: for looking at plan() and planning(). Without
  // --memory a plan for another machine has no limit.
  static Result<std::unique_ptr<Engine>> plan_only(const EngineOptions& options);
  ~Engine();

  const Model& model() const { return *model_; }
  const Tokenizer* tokenizer() const { return tokenizer_.get(); }  // nullptr if the file has none
  const Plan& plan() const { return plan_; }
  // What the plan was made from, to plan for other budgets. Calls back into this engine.
  PlanInput planning() const { return plan_input(context_); }
  const std::string& machine_name() const { return machine_name_; }
  const KernelChoice& kernels() const { return kernels_; }
  // Those of its reasons that are about operations and weight types of this model's passes.
  std::vector<std::string> kernel_reasons() const;
  const Rates& rates() const { return rates_; }
  const StreamingSource& source() const { return *source_; }
  // What memory pressure took and gave back; nullptr where no pins may go.
  const LiveStats* live() const { return live_ ? &live_->stats() : nullptr; }
  // What was visited, pass by pass; nullptr unless EngineOptions::record.
  const RecordingSource* recording() const { return recorder_.get(); }
  RecordingSource* recording() { return recorder_.get(); }
  uint64_t budget() const { return budget_; }
  Numerics numerics() const { return options_.numerics; }
  const std::string& budget_reason() const { return budget_reason_; }
  bool budget_is_promise() const { return options_.memory.has_value(); }
  uint64_t context() const { return context_; }
  KvType kv_type() const { return kv_type_; }
  int threads() const { return pool_->size(); }
  // Bytes that a message of a conversation may have: under a promise what the account has room for.
  uint64_t message_room() const;
  const EngineTimes& times() const { return times_; }
  const NeuronUse& neuron_use() const { return neuron_use_; }
  // What a trained cache did about tasks; nullptr: none is trained. Names of task_table().
  const TaskStats* task_stats() const { return source_->task_stats(); }
  const TaskTable* task_table() const { return tasks_ ? &*tasks_ : nullptr; }
  // By hand, between passes; usage error for a task that the training does not have, and where nothing is trained.
  Result<void> name_task(const std::string& task);
  void begin_turn() { source_->begin_turn(); }
  double mask_absent() const { return options_.mask_absent; }
  // The small model that drafts for this one (speculation.h); nullptr without `draft_path`.
  Engine* draft() const { return draft_.get(); }
  uint32_t verify_tokens() const { return options_.verify_tokens; }
  // What the passes run on, for those who measure it.
  const Machinery& machinery() const { return machinery_; }

  // Tokens evaluated so far.
  uint64_t position() const { return history_.size(); }
  std::span<const TokenId> history() const { return history_; }
  // How many of them, from the first on, a prompt that begins with them need not evaluate again. Models with latent
  // attention compute generated tokens in another form, so what follows the first of those counts as not evaluated.
  uint64_t reusable() const;

  // Appends prompt tokens to the timeline; the logits of the last one, valid until the next call. Bad input if they do
  // not fit into the context or an id is outside the vocabulary. If `interrupted` becomes true the rest of the tokens
  // is left out.
  Result<std::span<float>> evaluate(std::span<const TokenId> ids, const std::atomic<bool>* interrupted = nullptr);
  // Appends a token that was generated: models with latent attention compute these in another form than prompt tokens
  // (model/latent_attention.h). The logits of the token, valid until the next call.
  Result<std::span<float>> decode(TokenId id);
  // The same for a generated token and drafts of those after it, at most verify_tokens: the logits of each, [ids,
  // vocabulary], as one by one would give them. What turns out wrong goes back with take_back().
  Result<Matrix<float>> decode(std::span<const TokenId> ids);
  // Drops the last `count` drafts of the last decode(): always possible, the cache's rings are made for it.
  void take_back(size_t count);
  // Time that a drafter spent on reading the prompt, or on guessing.
  void add_draft_time(TokenRole role, std::chrono::nanoseconds time);
  // Prompt tokens, and hands the logits of every one out, row by row.
  Result<void> evaluate_all(std::span<const TokenId> ids,
                            const std::function<Result<void>(std::span<const float>)>& row);
  // Makes the timeline a prefix of itself: true if the cache still holds what that needs; otherwise it is emptied.
  bool rewind(uint64_t position);

  // The timeline with its keys and values to a file, and back (state_file.h). Loading replaces the timeline; generate()
  // then evaluates only what the loaded one does not begin with. After an error the timeline is empty.
  Result<void> save_state(const std::string& path);
  Result<void> load_state(const std::string& path);

  // What open() would settle on, with nothing large allocated or read. Fails as open() would before that.
  struct Preview {
    uint64_t budget = 0, context = 0;
    std::string budget_reason;
    int threads = 1;
    Plan plan;
  };
  static Result<Preview> preview(const EngineOptions& options);

  // What runs with these options would need at these contexts, whatever budget and context they name; loads no weights.
  struct Needs {
    uint64_t context = 0, smallest = 0, resident = 0, kv = 0;  // sums of accounts: named_budget() makes budgets of them
    uint64_t program = 0;  // of them: code and libraries, which two engines of one process share
    KvType kv_type = KvType::f16;
  };
  static Result<std::vector<Needs>> needs(const EngineOptions& options, std::span<const uint64_t> contexts);

 private:
  Engine() = default;
  Result<void> check_options() const;
  Result<void> prepare();
  Result<void> check_vocabulary() const;
  Result<void> prepare_training();
  Result<void> settle_tasks();
  TaskMode first_task(std::optional<size_t>& task) const;
  Result<void> choose_budget();
  Result<Plan> plan_for(uint64_t context) const;
  PlanInput plan_input(uint64_t context) const;
  LiveRoom live_room() const;
  Account fixed_account(const Program& program, uint32_t batch, uint64_t context) const;
  Account own_account(const Program& program, uint32_t batch, uint64_t context) const;
  Result<void> choose_context();
  Result<void> allocate();
  Result<void> prepare_draft();
  Result<void> check_draft_vocabulary() const;
  Result<void> settle_draft(uint64_t context);
  Result<void> pass(std::span<const TokenId> ids, uint32_t outputs, TokenRole role);
  void trace_pass(TraceClock::time_point begin, size_t tokens, TokenRole role);
  Result<void> check_ids(std::span<const TokenId> ids) const;
  KvOptions kv_options(uint64_t context, uint32_t batch) const;
  Result<StateIdentity> state_identity();
  CacheView cache_view();

  EngineOptions options_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  KernelChoice kernels_;
  std::shared_ptr<ThreadPool> pool_;  // a draft model computes on the threads of its engine
  std::unique_ptr<Engine> draft_;
  uint32_t drafts_ = 0;  // this one drafts so many tokens ahead for another, in whose account it stands; 0: it does not
  Rates rates_;
  std::string machine_name_;
  KvType kv_type_ = KvType::f16;
  uint64_t budget_ = 0, context_ = 0;
  std::string budget_reason_;
  Plan plan_;
  std::optional<CacheTraining> training_;
  std::optional<TaskTable> tasks_;  // of it, by block of the plan
  std::unique_ptr<StreamingSource> source_;
  std::unique_ptr<RecordingSource> recorder_;  // around it
  std::optional<LivePins> live_;               // of it
  KvCache cache_;
  Slab workspace_;  // activations, scratch and logits of a pass
  Machinery machinery_;
  Matrix<float> logits_;
  std::vector<TokenId> history_;
  uint64_t written_ = 0;  // positions the cache was ever written to since it was empty
  uint64_t prompts_ = 0;  // leading tokens of the history that were evaluated as prompt tokens
  uint64_t oldest_ = 0;   // sliding layers hold nothing below it, since a state was loaded
  std::optional<uint64_t> fingerprint_;
  ProcessMemory process_;  // measured once, before anything large
  EngineTimes times_;
  NeuronUse neuron_use_;
};

}  // namespace ridge

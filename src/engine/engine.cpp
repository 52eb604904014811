#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/units.h"
#include "engine/budget.h"
#include "engine/workspace.h"
#include "machine/cpu.h"
#include "machine/heap.h"
#include "machine/memory_limits.h"
#include "machine/peak_memory.h"

namespace ridge {
namespace {

constexpr uint64_t kMostContext = uint64_t{1} << 24;

// Whoever stores every weight in F32 asks for precision, not for memory: such a model gets an F32 cache as well. An F16
// one would be its largest error by far (docs/numerics.md).
bool all_f32(const Program& program) {
  for (const Block& b : program.blocks) {
    for (const Piece& p : b.pieces) {
      if (program.tensors[p.tensor].type != Type::F32) return false;
    }
  }
  return true;
}

}  // namespace

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::plan_only(const EngineOptions& options) {
  std::unique_ptr<Engine> engine(new Engine());
  engine->options_ = options;
  RIDGE_TRY(engine->check_options());
  RIDGE_TRY(engine->prepare());
  RIDGE_TRY(engine->choose_budget());
  RIDGE_TRY(engine->choose_context());
  return engine;
}

Result<std::unique_ptr<Engine>> Engine::open(const EngineOptions& options) {
  auto start = std::chrono::steady_clock::now();
  std::unique_ptr<Engine> engine = RIDGE_TRY(plan_only(options));
  RIDGE_TRY(engine->allocate());
  engine->times_.load = std::chrono::steady_clock::now() - start;
  return engine;
}

Result<Engine::Preview> Engine::preview(const EngineOptions& options) {
  std::unique_ptr<Engine> engine = RIDGE_TRY(plan_only(options));
  return Preview{.budget = engine->budget_,
                 .context = engine->context_,
                 .budget_reason = engine->budget_reason_,
                 .threads = engine->pool_->size(),
                 .plan = std::move(engine->plan_)};
}

Result<void> Engine::check_options() const {
  if (options_.threads < 0 || options_.threads > kMostThreads) {
    return usage_error(fmt::format("{} threads are no usable number: give 1 to {}", options_.threads, kMostThreads));
  }
  if (options_.context > kMostContext) {
    return usage_error(
        fmt::format("a context of {} is no usable number: give 1 to {}", options_.context, kMostContext));
  }
  if (options_.numerics == Numerics::exact && options_.kv_type.value_or(KvType::f32) != KvType::f32) {
    return usage_error(
        fmt::format("--kv-type {} contradicts --numerics exact, which keeps keys and values as f32: "
                    "leave one of the two out",
                    name_of(*options_.kv_type)));
  }
  RIDGE_CHECK(options_.logits_rows >= 1 && options_.verify_tokens >= 1, "a pass has at least a row of logits");
  return {};
}

// A token that the embedding has no row for would end the run in the middle; better now.
Result<void> Engine::check_vocabulary() const {
  if (tokenizer_ == nullptr || tokenizer_->size() <= model_->config().vocabulary) return {};
  return bad_input(fmt::format("{}: its tokenizer has {} tokens, but its embedding only {} rows: the file is not whole",
                               model_->file().metadata().where, tokenizer_->size(), model_->config().vocabulary));
}

// Everything small: kernels, the model's description, the tokenizer, what is known of the machine.
Result<void> Engine::prepare() {
  kernels_ = RIDGE_TRY(choose_kernels({.isa = options_.isa, .fast = options_.numerics == Numerics::fast}));
  model_ = RIDGE_TRY(Model::open(options_.path, {.context = options_.context, .adapters = options_.adapters}));
  auto tokenizer = Tokenizer::from_metadata(model_->file().metadata());
  if (tokenizer.ok()) {
    tokenizer_ = std::move(tokenizer).value();
  } else if (options_.need_tokenizer) {
    return tokenizer.error();
  }
  // What is left of the vocabulary's arrays is of no use to a run.
  for (const char* key :
       {"tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"}) {
    model_->file().metadata().erase(key);
  }
  RIDGE_TRY(check_vocabulary());
  RIDGE_TRY(prepare_training());
  auto profile = load_profile(options_.machine.empty() ? default_profile_path() : options_.machine);
  if (!profile.ok() && !options_.machine.empty()) return profile.error();
  if (!profile.ok()) detail(profile.error().message);
  int cpus = static_cast<int>(usable_cpus().size());
  if (!options_.machine.empty()) cpus = std::min(profile.value().most_threads(), kMostThreads);
  int threads = options_.threads > 0 ? options_.threads : std::max(1, cpus);
  if (!pool_) pool_ = std::make_shared<ThreadPool>(ThreadPoolOptions{.threads = threads, .cpus = options_.cpus});
  Program whole = model_->program({}, {});
  if (profile.ok()) {
    rates_ = machine_rates(profile.value(), threads, whole.memory_bytes());
    machine_name_ = profile.value().name;
  }
  bool floats = options_.numerics == Numerics::exact || all_f32(whole);
  kv_type_ = options_.kv_type.value_or(floats ? KvType::f32 : KvType::f16);
  if (drafts_ > 0) return {};
  if (!options_.draft_path.empty()) RIDGE_TRY(prepare_draft());
  trim_heap();
  process_ = process_memory();
  return {};
}

Result<void> Engine::choose_budget() {
  if (!options_.machine.empty()) {
    constexpr uint64_t kNoLimit = uint64_t{1} << 60;
    budget_ = options_.memory.value_or(kNoLimit);
    budget_reason_ = options_.memory ? "--memory" : "no limit was given";
    return {};
  }
  Budget budget = ridge::choose_budget(options_.memory, process_);
  budget_ = budget.bytes;
  budget_reason_ = std::move(budget.reason);
  return {};
}

Result<void> Engine::allocate() {
  if (draft_) RIDGE_TRY(draft_->allocate());
  WorkspaceNeeds needs{.batch = plan_.batch,
                       .logits_rows = options_.logits_rows,
                       .verify_tokens = options_.verify_tokens,
                       .context = context_,
                       .threads = pool_->size(),
                       .exact = options_.numerics == Numerics::exact};
  history_.reserve(context_);
  cache_ = RIDGE_TRY(KvCache::create(model_->kv_layers(), kv_options(context_, plan_.batch)));
  WorkspaceLayout w = workspace_layout(*model_, plan_.program, needs);
  workspace_ = RIDGE_TRY(Slab::allocate(w.total, {.what = "the activations"}));
  uint8_t* base = workspace_.data();
  auto floats = [&](uint64_t begin, uint64_t end) {
    return std::span<float>(reinterpret_cast<float*>(base + begin), (end - begin) / sizeof(float));
  };
  RIDGE_TRY(settle_tasks());
  std::optional<size_t> task;
  const TaskMode task_mode = first_task(task);
  source_ = RIDGE_TRY(StreamingSource::create({.program = &plan_.program,
                                               .placement = plan_.placement,
                                               .pool = pool_.get(),
                                               .pack = kernels_.kernels.pack,
                                               .io = options_.io,
                                               .gathered = model_->gathered(),
                                               .keep_gathered = plan_.keep_gathered,
                                               .trace = options_.trace,
                                               .tasks = tasks_ ? &*tasks_ : nullptr,
                                               .task_mode = task_mode,
                                               .task = task}));
  if (options_.record) {
    recorder_ = std::make_unique<RecordingSource>(*source_, recording_limit(plan_.program, context_));
  }
  if (source_->elastic_state().blocks > 0) {
    LiveOptions live = options_.live;
    live.floor = options_.floor.value_or(live.floor);
    live_.emplace(live, *source_, options_.pressure);
  }
  WeightSource* weights = recorder_ ? static_cast<WeightSource*>(recorder_.get()) : source_.get();
  RIDGE_TRY(model_->load_vectors(*weights));
  if (options_.trace != nullptr) {
    const SourceStats loaded = source_->stats();
    const TraceClock::time_point now = TraceClock::now();
    options_.trace->add({.lane = Lane::init,
                         .block = kNoBlock,
                         .begin = now - loaded.load,
                         .end = now,
                         .bytes = loaded.load_bytes,
                         .name = "loading the pins"});
    options_.trace->add(
        {.lane = Lane::memory, .block = kNoBlock, .begin = now, .end = now, .bytes = resident_memory()});
  }
  machinery_ = {.kernels = &kernels_.kernels,
                .pool = pool_.get(),
                .source = weights,
                .cache = &cache_,
                .workspace = floats(0, w.panels),
                .panels = {base + w.panels, w.attention - w.panels},
                .attention = floats(w.attention, w.latent),
                .latent = floats(w.latent, w.logits),
                .exact = needs.exact,
                .all_neurons = options_.all_neurons,
                .mask_absent = static_cast<float>(options_.mask_absent),
                .neuron_use = &neuron_use_,
                .trace = options_.trace,
                .profile = options_.profile,
                .probe = options_.probe};
  logits_ = Matrix<float>(reinterpret_cast<float*>(base + w.logits), needs.rows(), model_->config().vocabulary);
  return {};
}

Result<void> Engine::check_ids(std::span<const TokenId> ids) const {
  for (TokenId id : ids) {
    if (id < 0 || static_cast<uint32_t>(id) >= model_->config().vocabulary) {
      return bad_input(fmt::format("token {} is outside the vocabulary of {} tokens", id, model_->config().vocabulary));
    }
  }
  if (position() + ids.size() > context_) {
    return bad_input(fmt::format("{} more than the context of {} holds{}: shorten the text or raise --context",
                                 counted(ids.size(), "token is", "tokens are"), context_,
                                 position() == 0 ? "" : fmt::format(", of which {} are used", position())));
  }
  return {};
}

// The pass as a whole, and what memory the process has after it.
void Engine::trace_pass(TraceClock::time_point begin, size_t tokens, TokenRole role) {
  if (options_.trace == nullptr) return;
  const TraceClock::time_point end = TraceClock::now();
  options_.trace->add({.lane = Lane::pass,
                       .block = kNoBlock,
                       .begin = begin,
                       .end = end,
                       .tokens = static_cast<uint32_t>(tokens),
                       .name = role == TokenRole::prompt ? "prefill" : "decode"});
  options_.trace->add({.lane = Lane::memory, .block = kNoBlock, .begin = end, .end = end, .bytes = resident_memory()});
  options_.trace->make_room();
}

Result<void> Engine::pass(std::span<const TokenId> ids, uint32_t outputs, TokenRole role) {
  // No lease lives between passes.
  if (live_) live_->before_pass();
  const TraceClock::time_point begin = options_.trace ? TraceClock::now() : TraceClock::time_point{};
  Matrix<float> logits = logits_.slice_rows(0, outputs);
  written_ = std::max(written_, position() + ids.size());
  Compute compute(
      *model_, machinery_,
      {.tokens = static_cast<uint32_t>(ids.size()), .outputs = outputs, .position = position(), .role = role},
      {.ids = ids, .logits = logits});
  model_->forward(compute);
  RIDGE_TRY(compute.status());
  trace_pass(begin, ids.size(), role);
  if (role == TokenRole::prompt && prompts_ == history_.size()) prompts_ += ids.size();
  history_.insert(history_.end(), ids.begin(), ids.end());
  return {};
}

Result<std::span<float>> Engine::evaluate(std::span<const TokenId> ids, const std::atomic<bool>* interrupted) {
  if (ids.empty()) return bad_input("nothing to evaluate: the prompt has no tokens");
  RIDGE_TRY(check_ids(ids));
  auto start = std::chrono::steady_clock::now();
  for (size_t done = 0; done < ids.size();) {
    if (interrupted != nullptr && interrupted->load()) break;
    size_t n = std::min<size_t>(plan_.batch, ids.size() - done);
    // Only the last token's logits are wanted: earlier batches leave the head out.
    RIDGE_TRY(pass(ids.subspan(done, n), done + n == ids.size() ? 1 : 0, TokenRole::prompt));
    done += n;
  }
  times_.prompt += std::chrono::steady_clock::now() - start;
  times_.prompt_tokens += ids.size();
  return logits_.row_span(0);
}

Result<std::span<float>> Engine::decode(TokenId id) {
  RIDGE_TRY(decode(std::span<const TokenId>(&id, 1)));
  return logits_.row_span(0);
}

Result<Matrix<float>> Engine::decode(std::span<const TokenId> ids) {
  RIDGE_CHECK(!ids.empty() && ids.size() <= options_.verify_tokens, "decode() takes at most verify_tokens");
  RIDGE_TRY(check_ids(ids));
  auto start = std::chrono::steady_clock::now();
  RIDGE_TRY(pass(ids, static_cast<uint32_t>(ids.size()), TokenRole::generated));
  times_.decode += std::chrono::steady_clock::now() - start;
  times_.decode_passes += 1;
  times_.decode_tokens += ids.size();
  times_.drafted_tokens += ids.size() - 1;
  return logits_.slice_rows(0, ids.size());
}

void Engine::take_back(size_t count) {
  if (count == 0) return;
  RIDGE_CHECK(count < options_.verify_tokens && count < position(), "only drafts of one pass are taken back");
  RIDGE_CHECK(rewind(position() - count), "rings hold the window and a pass");
  times_.decode_tokens -= count;
  times_.wrong_tokens += count;
}

uint64_t Engine::reusable() const { return machinery_.latent.empty() ? history_.size() : prompts_; }

Result<void> Engine::evaluate_all(std::span<const TokenId> ids,
                                  const std::function<Result<void>(std::span<const float>)>& row) {
  RIDGE_TRY(check_ids(ids));
  for (size_t done = 0; done < ids.size();) {
    size_t n = std::min<size_t>({plan_.batch, options_.logits_rows, ids.size() - done});
    RIDGE_TRY(pass(ids.subspan(done, n), static_cast<uint32_t>(n), TokenRole::prompt));
    for (size_t r = 0; r < n; ++r) RIDGE_TRY(row(logits_.row_span(r)));
    done += n;
  }
  return {};
}

bool Engine::rewind(uint64_t to) {
  RIDGE_CHECK(to <= position(), "rewind goes back");
  bool kept = true;
  for (uint32_t il = 0; il < model_->kv_layers().size(); ++il) {
    // A ring has overwritten everything older than its capacity.
    uint64_t window = model_->kv_layers()[il].window;
    if (window == 0) continue;
    uint64_t first_needed = to > window ? to - window : 0;
    if (written_ > first_needed + cache_.capacity(il) || first_needed < oldest_) kept = false;
  }
  history_.resize(kept ? to : 0);
  prompts_ = std::min<uint64_t>(prompts_, history_.size());
  if (history_.empty()) written_ = oldest_ = 0;
  return kept;
}

Result<StateIdentity> Engine::state_identity() {
  if (!fingerprint_) fingerprint_ = RIDGE_TRY(model_fingerprint(*model_));
  return StateIdentity{.model = *fingerprint_, .kv_type = kv_type_, .numerics = options_.numerics};
}

CacheView Engine::cache_view() {
  return {.cache = cache_,
          .layers = model_->kv_layers(),
          .written = written_,
          .oldest = oldest_,
          .vocabulary = model_->config().vocabulary};
}

Result<void> Engine::save_state(const std::string& path) {
  if (history_.empty()) return bad_input(fmt::format("{}: there is nothing to save: no token was evaluated", path));
  return write_state(path, RIDGE_TRY(state_identity()), cache_view(), std::span(history_).first(reusable()));
}

Result<void> Engine::load_state(const std::string& path) {
  rewind(0);
  StateIdentity identity = RIDGE_TRY(state_identity());
  FileStream in = RIDGE_TRY(FileStream::open(path));
  LoadedState state = RIDGE_TRY(read_state(in, identity, cache_view()));
  history_.assign(state.ids.begin(), state.ids.end());
  written_ = prompts_ = history_.size();
  oldest_ = state.oldest;
  return {};
}

}  // namespace ridge

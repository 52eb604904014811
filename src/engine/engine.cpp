#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/log.h"
#include "base/units.h"
#include "engine/budget.h"
#include "machine/cpu.h"
#include "machine/heap.h"
#include "machine/memory_limits.h"

namespace ridge {
namespace {

constexpr uint64_t kMostContext = uint64_t{1} << 24;
constexpr uint64_t kDefaultContext = 4096, kSmallestContext = 512;
// A pass of 128 tokens already keeps the integer units busy; longer ones only cost workspace (docs/measurements.md).
constexpr uint32_t kLargestBatch = 128;
// A draft model reads its prompt in smaller passes: their workspace is taken from the pins of the model it drafts for.
constexpr uint32_t kDraftBatch = 32;

// Charged by the kernel for us but not visible in our own sums: page tables (1/512 of what is mapped), kernel stacks,
// rings, the C library's own buffers.
constexpr uint64_t kReserve = 2 * kMiB;

std::vector<uint32_t> batch_candidates(uint64_t context, uint32_t logits_rows, uint32_t largest) {
  uint64_t most = std::min<uint64_t>(context, largest);
  if (logits_rows > 1) most = std::min<uint64_t>(most, logits_rows);
  std::vector<uint32_t> out;
  for (uint32_t batch = largest; batch >= 1; batch /= 2) {
    if (batch <= most) out.push_back(batch);
  }
  return out;
}

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
  model_ = RIDGE_TRY(Model::open(options_.path, {.context = options_.context}));
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

KvOptions Engine::kv_options(uint64_t context, uint32_t batch) const {
  // Under a promise every page is there before the first token; otherwise a context that is not used costs nothing.
  // A draft that is taken back must not have overwritten what the tokens before it see: rings hold all of a pass.
  return {.context = context,
          .batch = std::max({batch, options_.verify_tokens, drafts_}),
          .type = kv_type_,
          .touch = budget_is_promise()};
}

namespace {

// The parts of the workspace slab, each on a page of its own.
struct WorkspaceLayout {
  uint64_t activations = 0, panels = 0, attention = 0, latent = 0, logits = 0;  // offsets
  uint64_t total = 0;
};

// The largest passes there will be.
struct WorkspaceNeeds {
  uint32_t batch = 1, logits_rows = 1;  // prompt tokens, and how many of them get logits
  uint32_t verify_tokens = 1;           // generated ones, all with logits
  uint64_t context = 0;
  int threads = 1;
  bool exact = false;

  uint32_t rows() const { return std::max(std::min(batch, logits_rows), verify_tokens); }
};

WorkspaceLayout workspace_layout(const Model& model, const Program& program, const WorkspaceNeeds& needs) {
  constexpr uint64_t kPage = 4096;
  WorkspaceLayout w;
  const bool exact = needs.exact;
  uint64_t workers = static_cast<uint64_t>(needs.threads);
  // A generated token may need more than a prompt token of the same batch.
  PassShape prompt{.tokens = needs.batch, .outputs = std::min(needs.batch, needs.logits_rows)};
  PassShape generated{.tokens = needs.verify_tokens, .outputs = needs.verify_tokens, .role = TokenRole::generated};
  uint64_t floats = std::max(model.workspace_floats(prompt, exact), model.workspace_floats(generated, exact));
  uint64_t latent = std::max(model.latent_floats(prompt, exact), model.latent_floats(generated, exact));
  w.panels = round_up(floats * sizeof(float), kPage);
  w.attention = w.panels + workers * panel_scratch_bytes(program);
  w.latent = w.attention + round_up(attention_floats(model, needs.context, needs.threads) * sizeof(float), kPage);
  w.logits = w.latent + workers * round_up(latent * sizeof(float), kPage);
  w.total = w.logits + round_up(uint64_t{needs.rows()} * model.config().vocabulary * sizeof(float), kPage);
  return w;
}

}  // namespace

namespace {

// Text of the conversation, its tokens, and what a chat template makes of it on the way.
constexpr uint64_t kTextBase = 512 * kKiB, kTextPerPosition = 48, kCopiesOfText = 32;

}  // namespace

uint64_t Engine::message_room() const {
  // More than prose or code ever has.
  constexpr uint64_t kMostBytesPerToken = 64;
  // The line editor holds wide characters, more than once.
  constexpr uint64_t kCopiesOfMessage = kCopiesOfText + 16;
  const uint64_t whole = context_ * kMostBytesPerToken;
  if (!budget_is_promise()) return whole;
  return std::min(whole, (kTextBase + context_ * kTextPerPosition) / kCopiesOfMessage + options_.text_bytes);
}

// All that is not weights, of this model alone.
Account Engine::own_account(const Program& program, uint32_t batch, uint64_t context) const {
  Account a;
  a.add(fmt::format("KV cache, {}", counted(context, "position")),
        KvCache::bytes(model_->kv_layers(), kv_options(context, batch)));
  WorkspaceNeeds needs{.batch = batch,
                       .logits_rows = options_.logits_rows,
                       .context = context,
                       .threads = pool_->size(),
                       .exact = options_.numerics == Numerics::exact};
  const uint64_t plain = Slab::charge(workspace_layout(*model_, program, needs).total);
  a.add(fmt::format("activations, {} per pass", counted(batch, "token")), plain);
  // A layout walks through the model, and the planner asks for many accounts: a second walk only where there are
  // drafts.
  if (options_.verify_tokens > 1) {
    needs.verify_tokens = options_.verify_tokens;
    const uint64_t all = Slab::charge(workspace_layout(*model_, program, needs).total);
    // The line of tokens that n-grams are looked up in is a copy.
    a.add(fmt::format("checking {} per pass", counted(options_.verify_tokens - 1, "draft")),
          all - plain + context * sizeof(TokenId));
  }
  // One copy is in the plan; what planning freed of others may stay with the heap.
  a.add("parts of the model", 2 * program.heap_bytes());
  if (options_.states) a.add("saving and loading states", state_bytes(context));
  if (options_.record) a.add("recording of visits", recording_limit(program, context).bytes());
  a.add("norms and biases", 2 * model_->vector_bytes());
  const uint64_t text = kTextBase + context * kTextPerPosition + options_.text_bytes * kCopiesOfText;
  const uint64_t sampler = uint64_t{model_->config().vocabulary} * 8;
  // A drafter's sampler may see logits with as many rows as the large model has (draft_model.h): those are copies.
  if (drafts_ > 0) {
    a.add("sampler and logits", 2 * sampler);
  } else {
    a.add("sampler and text", sampler + text);
  }
  return a;
}

Account Engine::fixed_account(const Program& program, uint32_t batch, uint64_t context) const {
  if (drafts_ > 0) return own_account(program, batch, context);
  constexpr uint64_t kThreadStack = 192 * kKiB;
  Account a;
  a.add("program and libraries", process_.mapped_files);
  a.add("tokenizer, metadata and heap", process_.anonymous);
  a.add(own_account(program, batch, context));
  if (draft_) {
    for (const AccountItem& item : draft_->plan_.account.items()) a.add("draft model: " + item.name, item.bytes);
  }
  a.add("threads", static_cast<uint64_t>(pool_->size()) * kThreadStack);
  a.add("page tables and reserve", kReserve + a.total() / 256);
  return a;
}

PlanInput Engine::plan_input(uint64_t context) const {
  PlanInput input;
  if (drafts_ == 0) input.budget = budget_;
  input.budget_reason = budget_reason_;
  input.most_pinned = options_.most_pinned;
  input.program = [this](uint64_t slot) {
    return model_->program({.tokens = 1, .role = TokenRole::generated},
                           {.slot_bytes = slot, .exact = options_.numerics == Numerics::exact, .kv_type = kv_type_});
  };
  input.fixed = [this, context](const Program& program, uint32_t batch) {
    return fixed_account(program, batch, context);
  };
  input.batches = batch_candidates(context, options_.logits_rows, drafts_ > 0 ? kDraftBatch : kLargestBatch);
  input.prompt = [this](uint64_t slot, uint32_t tokens) {
    return model_->program({.tokens = tokens},
                           {.slot_bytes = slot, .exact = options_.numerics == Numerics::exact, .kv_type = kv_type_});
  };
  input.gathered = model_->gathered();
  input.rates = rates_;
  return input;
}

Result<Plan> Engine::plan_for(uint64_t context) const {
  if (draft_) RIDGE_TRY(draft_->settle_draft(context));
  return make_plan(plan_input(context));
}

// The user's context, or the model's up to 4096; under a budget the largest power of two from 512 that leaves room for
// the slots and a quarter of the weights.
Result<void> Engine::choose_context() {
  uint64_t wish = options_.context;
  if (wish == 0) wish = std::min<uint64_t>(model_->config().context, kDefaultContext);
  if (options_.context > model_->config().context) {
    note(fmt::format("the model was trained on {} positions; beyond them its answers get worse",
                     model_->config().context));
  }
  if (options_.context == 0 && options_.default_context != 0) wish = options_.default_context;
  if (options_.context != 0 || options_.default_context != 0) {
    plan_ = RIDGE_TRY(plan_for(wish));
    context_ = wish;
    return {};
  }
  for (uint64_t context = wish; context > kSmallestContext; context = std::bit_floor(context - 1)) {
    auto plan = plan_for(context);
    if (!plan.ok()) continue;
    uint64_t quarter = plan.value().program.memory_bytes() / 4;
    if (plan.value().placement.streams() && plan.value().placement.pinned_bytes(plan.value().program) < quarter)
      continue;
    plan_ = std::move(plan).value();
    context_ = context;
    break;
  }
  if (context_ == 0) {
    context_ = std::min(wish, kSmallestContext);
    plan_ = RIDGE_TRY(plan_for(context_));
  }
  if (context_ < wish) note(fmt::format("context {}, so that weights find room; --context asks for another", context_));
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
  source_ = RIDGE_TRY(StreamingSource::create({.program = &plan_.program,
                                               .placement = plan_.placement,
                                               .pool = pool_.get(),
                                               .pack = kernels_.kernels.pack,
                                               .io = options_.io,
                                               .gathered = model_->gathered(),
                                               .keep_gathered = plan_.keep_gathered,
                                               .trace = options_.trace}));
  if (options_.record) {
    recorder_ = std::make_unique<RecordingSource>(*source_, recording_limit(plan_.program, context_));
  }
  WeightSource* weights = recorder_ ? static_cast<WeightSource*>(recorder_.get()) : source_.get();
  RIDGE_TRY(model_->load_vectors(*weights));
  machinery_ = {.kernels = &kernels_.kernels,
                .pool = pool_.get(),
                .source = weights,
                .cache = &cache_,
                .workspace = floats(0, w.panels),
                .panels = {base + w.panels, w.attention - w.panels},
                .attention = floats(w.attention, w.latent),
                .latent = floats(w.latent, w.logits),
                .exact = needs.exact,
                .trace = options_.trace,
                .profile = options_.profile};
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

Result<void> Engine::pass(std::span<const TokenId> ids, uint32_t outputs, TokenRole role) {
  Matrix<float> logits = logits_.slice_rows(0, outputs);
  written_ = std::max(written_, position() + ids.size());
  Compute compute(
      *model_, machinery_,
      {.tokens = static_cast<uint32_t>(ids.size()), .outputs = outputs, .position = position(), .role = role},
      {.ids = ids, .logits = logits});
  model_->forward(compute);
  RIDGE_TRY(compute.status());
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

Result<std::vector<Engine::Needs>> Engine::needs(const EngineOptions& options, std::span<const uint64_t> contexts) {
  Engine engine;
  engine.options_ = options;
  RIDGE_TRY(engine.prepare());
  std::vector<Needs> out;
  for (uint64_t context : contexts) {
    PlanInput input = engine.plan_input(context);
    input.budget = std::nullopt;
    Needs needs{.context = context, .program = engine.process_.mapped_files, .kv_type = engine.kv_type_};
    needs.smallest = smallest_account(input).total();
    needs.kv = KvCache::bytes(engine.model_->kv_layers(), engine.kv_options(context, 1));
    needs.resident = RIDGE_TRY(make_plan(input)).account.total();
    out.push_back(needs);
  }
  return out;
}

}  // namespace ridge

#include "distill/torch/tuner.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "base/units.h"
#include "format/gguf_writer.h"
#include "format/output_file.h"
#include "machine/memory_limits.h"

namespace ridge::distill {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// What libtorch's threads and its matrix products take for themselves, and page tables.
constexpr uint64_t kReserve = 96 * kMiB;

DistillJob windows_of(const TuneJob& job) {
  DistillJob windows;
  windows.shape.context = job.context;
  windows.optimizer = job.optimizer;
  windows.held_out = job.held_out;
  return windows;
}

std::string_view bytes_of(const std::vector<TokenId>& ids) {
  return {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId)};
}

}  // namespace

Result<std::unique_ptr<Tuner>> Tuner::open(const TuneJob& job) {
  std::unique_ptr<Tuner> tuner(new Tuner(job));
  RIDGE_TRY(tuner->prepare());
  return tuner;
}

Result<void> Tuner::check_files() const {
  const std::string checkpoint = checkpoint_of(job_.adapter);
  const bool there = fs::exists(checkpoint);
  if (there && !job_.resume) {
    return usage_error(fmt::format("{}: a training stopped here: go on with --resume, or remove it", checkpoint));
  }
  if (!there && job_.resume) {
    return bad_input(fmt::format("{}: not there, so nothing to go on with; leave --resume out", checkpoint));
  }
  return {};
}

Result<void> Tuner::prepare() {
  RIDGE_TRY(check_tune_job(job_));
  RIDGE_TRY(check_files());
  model_ = RIDGE_TRY(FrozenModel::open(job_.model));
  vocabulary_ = RIDGE_TRY(vocabulary_of(job_.model));
  const Tokenizer& words = *vocabulary_.tokenizer;
  if (words.size() > model_->config().vocabulary) {
    return bad_input(fmt::format("{}: its tokenizer has {} and its embedding {} rows: the file is broken", job_.model,
                                 counted(words.size(), "token"), model_->config().vocabulary));
  }
  windows_ = windows_of(job_);
  data_ = RIDGE_TRY(read_data(job_.data, words, {.held_out = job_.held_out, .least = uint64_t{job_.context} + 1}));
  RIDGE_TRY(settle_memory());
  RIDGE_TRY(model_->load());
  model_->add_adapters(job_);
  if (model_->parameters().empty()) {
    return bad_input(
        fmt::format("{}: has none of the matrices of --targets {}", job_.model, fmt::join(job_.targets, ",")));
  }
  std::vector<torch::Tensor> values;
  for (const Parameter& p : model_->parameters()) values.push_back(p.value);
  optimizer_ = std::make_unique<AdamW>(values);
  batches_ = std::make_unique<Batches>(windows_, data_, none_);
  held_ = Batches::in_order(data_.held, job_.validation_tokens, windows_);
  state_.shape.vocabulary = model_->config().vocabulary;
  state_.vocabulary = fingerprint_of(words);
  state_.settings = settings();
  if (job_.resume) return resume();
  state_.curve.push_back({.held_out = held_out_loss()});
  return {};
}

Result<void> Tuner::settle_memory() {
  const ProcessMemory now = process_memory();
  const MemoryLimits limits = memory_limits();
  const auto account_of = [&](uint32_t batch) {
    TuneJob job = job_;
    job.optimizer.batch = batch;
    Account a;
    a.add("program and libraries", now.mapped_files);
    a.add("tokenizer, text and heap", now.anonymous);
    a.add(tune_account(model_->sizes(job), job));
    a.add("threads and reserve", kReserve);
    return a;
  };
  const Account account = account_of(job_.optimizer.batch);
  needed_ = account.total();
  const uint64_t budget = job_.memory.value_or(limits.available + now.resident);
  if (needed_ <= budget) return {};
  const uint64_t least = named_budget(needed_), smallest = named_budget(account_of(1).total());
  std::string advice = fmt::format("give --memory {} or more", budget_text(least));
  if (!job_.memory) advice = "free some memory";
  if (job_.optimizer.batch > 1) advice += fmt::format(", or --batch 1, which needs {}", budget_text(smallest));
  return does_not_fit(fmt::format("training does not fit into {} ({}): it needs\n{}{}, or a smaller --context",
                                  format_bytes(budget), job_.memory ? "--memory" : limits.reason, account.table(),
                                  advice));
}

uint64_t Tuner::settings() const {
  const Optimizer& o = job_.optimizer;
  std::error_code error;
  const std::string text = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", job_.rank, job_.alpha,
                                       fmt::join(job_.targets, ","), job_.context, o.steps, o.batch, o.rate, o.warmup,
                                       o.decay, o.clip, o.seed, job_.held_out, job_.evaluate_every,
                                       job_.validation_tokens, fs::file_size(job_.model, error), model_->config().name);
  return fingerprint(bytes_of(data_.train), fingerprint(text));
}

Result<void> Tuner::resume() {
  const std::string path = checkpoint_of(job_.adapter);
  CheckpointState found = RIDGE_TRY(read_checkpoint_state(path));
  if (found.vocabulary != state_.vocabulary || found.settings != state_.settings || found.curve.empty()) {
    return bad_input(
        fmt::format("{}: was trained with another model, other settings or another text: --resume goes on "
                    "with the very command that began",
                    path));
  }
  RIDGE_TRY(read_checkpoint(path, model_->parameters(), optimizer_.get()));
  state_ = std::move(found);
  return {};
}

Result<void> Tuner::advance() {
  const uint64_t step = state_.step + 1;
  const Batch batch = batches_->of_step(step, nullptr);
  const double value = model_->learn(batch.inputs, batch.targets), rate = rate_of(job_.optimizer, step);
  double norm = std::nan("");
  if (std::isfinite(value)) {
    norm = optimizer_->step({.step = step, .rate = rate, .decay = job_.optimizer.decay, .clip = job_.optimizer.clip});
  }
  if (!std::isfinite(norm)) {
    return Error{ErrorCode::refused,
                 fmt::format("step {}: the loss is {} and the norm of its gradient {}, no finite numbers: the last "
                             "checkpoint stays as it is; begin anew with a smaller --rate or --clip",
                             step, value, norm)};
  }
  state_.step = step;
  last_loss_ = value;
  state_.sums.loss += value;
  state_.sums.norm += norm;
  ++state_.pending;
  if (step % job_.evaluate_every != 0 && step != job_.optimizer.steps) return {};
  const auto n = static_cast<double>(state_.pending);
  state_.curve.push_back({.step = step,
                          .loss = state_.sums.loss / n,
                          .cross_entropy = state_.sums.loss / n,
                          .norm = state_.sums.norm / n,
                          .rate = rate,
                          .held_out = held_out_loss()});
  state_.sums = {};
  state_.pending = 0;
  return {};
}

double Tuner::held_out_loss() const {
  double sum = 0, positions = 0;
  for (const Batch& batch : held_) {
    const auto n = static_cast<double>(batch.targets.numel());
    sum += n * model_->loss(batch.inputs, batch.targets);
    positions += n;
  }
  return sum / positions;
}

Result<void> Tuner::save() {
  return write_checkpoint(checkpoint_of(job_.adapter), state_, model_->parameters(), *optimizer_);
}

Result<void> Tuner::write_adapter() const {
  const ModelConfig& c = model_->config();
  Metadata metadata;
  auto& entries = metadata.entries();
  entries["general.architecture"] = c.architecture;
  entries["general.type"] = std::string("adapter");
  entries["general.name"] = fs::path(job_.adapter).stem().string();
  if (!c.name.empty()) entries["general.base_model.0.name"] = c.name;
  if (!c.name.empty()) entries["general.base_model.count"] = int64_t{1};
  entries["adapter.type"] = std::string("lora");
  entries["adapter.lora.alpha"] = double{static_cast<float>(job_.alpha)};
  std::vector<GgufTensor> list;
  for (const Parameter& p : model_->parameters()) {
    GgufTensor entry{.name = p.name, .dims = 2, .type = Type::F32};
    entry.shape = {static_cast<uint64_t>(p.value.size(1)), static_cast<uint64_t>(p.value.size(0)), 1, 1};
    list.push_back(std::move(entry));
  }
  OutputFile out = RIDGE_TRY(OutputFile::create(job_.adapter));
  const std::string header = gguf_header(metadata, list);
  RIDGE_TRY(out.preallocate(gguf_file_bytes(list)));
  RIDGE_TRY(out.write(header));
  for (size_t i = 0; i < list.size(); ++i) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(model_->parameters()[i].value.data_ptr<float>());
    RIDGE_TRY(out.write_at(list[i].offset, {bytes, list[i].bytes}));
  }
  return out.commit();
}

TuneReport Tuner::report() const {
  TuneReport r{.architecture = model_->config().architecture, .steps = state_.step};
  for (const Parameter& p : model_->parameters()) r.parameters += static_cast<uint64_t>(p.value.numel());
  r.tokens = state_.step * job_.optimizer.batch * job_.context;
  r.held_out_before = state_.curve.front().held_out;
  r.held_out = state_.curve.back().held_out;
  r.needed = needed_;
  r.peak = process_memory().peak_resident;
  r.curve = state_.curve;
  return r;
}

Result<TuneReport> tune(const TuneJob& job, const TrainHooks& hooks) {
  return guarded("a smaller --batch, --context or --rank", [&]() -> Result<TuneReport> {
    set_up_torch(job.threads);
    auto tuner = RIDGE_TRY(Tuner::open(job));
    const auto begin = Clock::now();
    RIDGE_TRY(run_steps(*tuner, {.steps = job.optimizer.steps, .checkpoint_every = job.checkpoint_every}, hooks));
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    RIDGE_TRY(tuner->write_adapter());
    std::error_code error;
    fs::remove(checkpoint_of(job.adapter), error);  // what it kept is in the adapter
    TuneReport report = tuner->report();
    report.seconds = seconds;
    return report;
  });
}

}  // namespace ridge::distill

#include "distill/torch/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/units.h"
#include "distill/torch/fisher.h"
#include "distill/torch/losses.h"
#include "format/safetensors.h"

namespace ridge::distill {
namespace {

Result<Vocabulary> vocabulary_for(const DistillJob& job) {
  if (!job.tokenizer.empty() && job.tokenizer != "byte") return vocabulary_of(job.tokenizer);
  const bool gguf_teacher = !job.teacher.empty() && !is_safetensors(job.teacher);
  if (job.tokenizer.empty() && gguf_teacher) return vocabulary_of(job.teacher);
  return byte_vocabulary();
}

torch::Tensor rows_of(const torch::Tensor& t) { return t.flatten(0, 1); }

// Which block of the teacher stands beside a student's run: evenly spread, the last beside the last.
size_t block_beside(size_t run, size_t runs, size_t blocks) { return ((run + 1) * blocks + runs - 1) / runs - 1; }

void add_to(CurvePoint& sums, const CurvePoint& p) {
  sums.loss += p.loss;
  sums.cross_entropy += p.cross_entropy;
  sums.divergence += p.divergence;
  sums.hidden += p.hidden;
  sums.gates += p.gates;
  sums.exit += p.exit;
  sums.norm += p.norm;
}

CurvePoint mean_of(const CurvePoint& sums, double n) {
  return {.loss = sums.loss / n,
          .cross_entropy = sums.cross_entropy / n,
          .divergence = sums.divergence / n,
          .hidden = sums.hidden / n,
          .gates = sums.gates / n,
          .exit = sums.exit / n,
          .norm = sums.norm / n};
}

}  // namespace

std::string checkpoint_path(const std::string& folder) { return folder + "/checkpoint.safetensors"; }

Result<std::unique_ptr<Trainer>> Trainer::open(const DistillJob& job) {
  std::unique_ptr<Trainer> trainer(new Trainer(job));
  RIDGE_TRY(trainer->prepare());
  return trainer;
}

Result<void> Trainer::prepare() {
  vocabulary_ = RIDGE_TRY(vocabulary_for(job_));
  const Tokenizer& words = *vocabulary_.tokenizer;
  job_.shape.vocabulary = static_cast<uint32_t>(words.size());
  RIDGE_TRY(check_job(job_));
  const std::string checkpoint = checkpoint_path(job_.folder);
  const bool there = std::filesystem::exists(checkpoint);
  if (there && !job_.resume) {
    return usage_error(
        fmt::format("{}: holds a training already: go on with --resume, or give another folder", job_.folder));
  }
  if (!there && job_.resume) {
    return bad_input(fmt::format("{}: not there, so nothing to go on with; leave --resume out", checkpoint));
  }
  data_ =
      RIDGE_TRY(read_data(job_.data, words, {.held_out = job_.held_out, .least = uint64_t{job_.shape.context} + 1}));
  if (!job_.rationales.empty()) rationales_ = RIDGE_TRY(read_rationales(job_.rationales, words, job_.shape.context));
  map_ = job_.map.empty() ? flat_map(job_.shape) : RIDGE_TRY(read_importance_map(job_.map, job_.shape));
  teacher_ = RIDGE_TRY(open_teacher(job_, words));
  student_ = std::make_unique<Student>(job_.shape);
  student_->randomise(job_.optimizer.seed);
  trained_ = student_->parameters();
  if (job_.losses.hidden > 0) make_projections();
  std::vector<torch::Tensor> values;
  for (const Parameter& p : trained_) values.push_back(p.value);
  optimizer_ = std::make_unique<AdamW>(values);
  if (!job_.map.empty()) set_learning_factors();
  batches_ = std::make_unique<Batches>(job_, data_, rationales_);
  held_ = Batches::in_order(data_.held, job_.validation_tokens, job_);
  state_.shape = job_.shape;
  state_.vocabulary = fingerprint_of(words);
  state_.settings = settings();
  return there ? resume() : Result<void>();
}

void Trainer::make_projections() {
  Rng rng(job_.optimizer.seed ^ 0x70726F6A);  // another stream than the weights'
  torch::NoGradGuard off;
  for (uint32_t run = 0; run < job_.shape.runs(); ++run) {
    auto value = torch::empty({int64_t{teacher_->dim()}, int64_t{job_.shape.dim}});
    float* out = value.data_ptr<float>();
    const double reach = std::sqrt(3.0 / job_.shape.dim);
    for (int64_t i = 0; i < value.numel(); ++i) out[i] = static_cast<float>((2 * rng.uniform() - 1) * reach);
    trained_.push_back({fmt::format("projection.{}.weight", run), -1, value.set_requires_grad(true)});
  }
}

void Trainer::set_learning_factors() {
  for (size_t i = 0; i < trained_.size(); ++i) {
    const Parameter& p = trained_[i];
    if (p.layer < 0 || p.value.dim() < 2) continue;
    const auto layer = static_cast<size_t>(p.layer);
    torch::Tensor& factor = optimizer_->states()[i].factor;
    factor = torch::full({1, 1}, map_.layers[layer]);
    if (map_.neurons[layer].empty()) continue;
    const auto neurons = torch::tensor(map_.neurons[layer]);
    if (p.name.ends_with("ffn_gate.weight") || p.name.ends_with("ffn_up.weight")) factor = neurons.unsqueeze(1);
    if (p.name.ends_with("ffn_down.weight")) factor = neurons.unsqueeze(0);
  }
}

uint64_t Trainer::settings() const {
  const Losses& l = job_.losses;
  const Optimizer& o = job_.optimizer;
  const std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", job_.teacher, l.kd,
                  name_of(l.divergence), l.skew, l.temperature, l.hidden, l.l1, l.l1_ramp, l.exit, o.steps, o.batch,
                  o.rate, o.warmup, o.decay, o.clip, o.seed, job_.rationale_share, job_.on_policy,
                  job_.on_policy_tokens, job_.held_out, job_.evaluate_every, job_.validation_tokens);
  const auto bytes_of = [](const auto& v) {
    return std::string_view(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(v[0]));
  };
  uint64_t hash = fingerprint(bytes_of(data_.train), fingerprint(text));
  for (const RationaleItem& item : rationales_.train) hash = fingerprint(bytes_of(item.reply), hash);
  hash = fingerprint(bytes_of(map_.layers), hash);
  for (const auto& neurons : map_.neurons) hash = fingerprint(bytes_of(neurons), hash);
  return hash;
}

Result<void> Trainer::resume() {
  const std::string path = checkpoint_path(job_.folder);
  CheckpointState found = RIDGE_TRY(read_checkpoint_state(path));
  const char* other = found.shape != state_.shape             ? "a student of another shape"
                      : found.vocabulary != state_.vocabulary ? "another vocabulary"
                      : found.settings != state_.settings     ? "other settings, or another text"
                                                              : nullptr;
  if (other != nullptr) {
    return bad_input(
        fmt::format("{}: was trained with {}: --resume goes on with the very command that began", path, other));
  }
  RIDGE_TRY(read_checkpoint(path, trained_, optimizer_.get()));
  state_ = std::move(found);
  return {};
}

torch::Tensor Trainer::hidden_loss(const Student::Output& out, const TeacherOutput& teacher,
                                   const torch::Tensor& weight) const {
  torch::Tensor sum;
  const size_t runs = out.hidden.size(), first = student_->parameters().size();
  for (size_t run = 0; run < runs; ++run) {
    const auto& beside = teacher.hidden[block_beside(run, runs, teacher.hidden.size())];
    const double hot = map_.layers[job_.shape.shared ? run / 2 : run];
    auto part = hidden_match(rows_of(out.hidden[run]), trained_[first + run].value, rows_of(beside), weight) * hot;
    sum = sum.defined() ? sum + part : part;
  }
  return sum / static_cast<double>(runs);
}

Result<Trainer::Terms> Trainer::loss_of(const Batch& batch) {
  const Losses& l = job_.losses;
  const bool exit = job_.shape.exit_layer > 0 && l.exit > 0 && !batch.own_text;
  TeacherOutput teacher;
  if (teacher_ && (l.kd > 0 || l.hidden > 0)) teacher = RIDGE_TRY(teacher_->run(batch.inputs));
  const Student::Output out =
      student_->forward(batch.inputs, {.hidden = l.hidden > 0, .gates = l.l1 > 0, .exit = exit});
  const auto logits = rows_of(out.logits), targets = batch.targets.flatten();
  Terms terms;
  terms.total = torch::zeros({});
  const auto add = [&](double factor, const torch::Tensor& term, double& value) {
    value = term.item<double>();
    terms.total = terms.total + term * factor;
  };
  if (!batch.own_text && l.kd < 1) {
    add(1 - l.kd, cross_entropy(logits, targets, batch.weight), terms.values.cross_entropy);
  }
  if (l.kd > 0) add(l.kd, divergence(l, logits, rows_of(teacher.logits), batch.weight), terms.values.divergence);
  if (l.hidden > 0) add(l.hidden, hidden_loss(out, teacher, batch.weight), terms.values.hidden);
  if (l.l1 > 0) {
    const double part = static_cast<double>(state_.step + 1) / static_cast<double>(job_.optimizer.steps);
    add(l.l1 * (l.l1_ramp > 0 ? std::min(1.0, part / l.l1_ramp) : 1), gate_mean(out.gates), terms.values.gates);
  }
  if (exit) add(l.exit, cross_entropy(rows_of(out.exit_logits), targets, batch.weight), terms.values.exit);
  terms.values.loss = terms.total.item<double>();
  return terms;
}

Result<void> Trainer::advance() {
  const uint64_t step = state_.step + 1;
  Terms terms = RIDGE_TRY(loss_of(batches_->of_step(step, student_.get())));
  if (std::isfinite(terms.values.loss)) {
    terms.total.backward();
    terms.values.norm = optimizer_->step({.step = step,
                                          .rate = rate_of(job_.optimizer, step),
                                          .decay = job_.optimizer.decay,
                                          .clip = job_.optimizer.clip});
  }
  if (!std::isfinite(terms.values.loss) || !std::isfinite(terms.values.norm)) {
    return Error{ErrorCode::refused,
                 fmt::format("step {}: the loss is {} and the norm of its gradient {}, no finite numbers: the last "
                             "checkpoint stays as it is; begin anew with a smaller --rate or --clip",
                             step, terms.values.loss, terms.values.norm)};
  }
  state_.step = step;
  last_loss_ = terms.values.loss;
  add_to(state_.sums, terms.values);
  ++state_.pending;
  if (step % job_.evaluate_every == 0 || step == job_.optimizer.steps) note_point();
  return {};
}

void Trainer::note_point() {
  CurvePoint p = mean_of(state_.sums, static_cast<double>(state_.pending));
  p.step = state_.step;
  p.rate = rate_of(job_.optimizer, state_.step);
  p.held_out = held_out_loss();
  state_.curve.push_back(p);
  state_.sums = {};
  state_.pending = 0;
}

double Trainer::held_out_loss() const {
  torch::NoGradGuard off;
  double sum = 0, positions = 0;
  for (const Batch& batch : held_) {
    const auto n = static_cast<double>(batch.targets.numel());
    const auto logits = rows_of(student_->forward(batch.inputs).logits);
    sum += n * cross_entropy(logits, batch.targets.flatten(), batch.weight).item<double>();
    positions += n;
  }
  return sum / positions;
}

Result<void> Trainer::save() { return write_checkpoint(checkpoint_path(job_.folder), state_, trained_, *optimizer_); }

Result<void> Trainer::export_files() const {
  const std::string name = std::filesystem::path(job_.folder).lexically_normal().filename().string();
  const std::vector<NamedTensor> tensors = student_->named();
  RIDGE_TRY(write_gguf(job_.shape, vocabulary_.keys, tensors, {.name = name}, job_.folder + "/student.gguf"));
  if (job_.shape.exit_layer > 0) {
    const GgufOptions draft{.name = name + " (early exit)", .layers = job_.shape.exit_layer};
    RIDGE_TRY(write_gguf(job_.shape, vocabulary_.keys, tensors, draft, job_.folder + "/draft.gguf"));
  }
  return write_transformers(job_.shape, tensors, job_.folder);
}

Result<void> Trainer::write_fisher() {
  const uint64_t tokens = uint64_t{job_.fisher_windows} * job_.shape.context;
  const std::vector<Batch> windows = Batches::in_order(data_.train, tokens, job_);
  std::vector<torch::Tensor> diagonal = fisher_diagonal(*student_, windows, job_.optimizer.seed);
  std::vector<NamedTensor> tensors = student_->named();
  for (size_t i = 0; i < tensors.size(); ++i) {
    diagonal[i] = diagonal[i].to(torch::kFloat32).contiguous();
    tensors[i].values = {diagonal[i].data_ptr<float>(), static_cast<size_t>(diagonal[i].numel())};
  }
  return write_beside(job_.shape, tensors, job_.fisher);
}

GateRecord Trainer::gates_on(const std::vector<TokenId>& text) const {
  torch::NoGradGuard off;
  const int64_t ffn = job_.shape.ffn;
  GateRecord record(job_.shape.runs(), job_.shape.ffn);
  for (const Batch& batch : Batches::in_order(text, job_.validation_tokens, job_)) {
    const Student::Output out = student_->forward(batch.inputs, {.gates = true});
    for (uint32_t run = 0; run < job_.shape.runs(); ++run) {
      const auto on = rows_of(out.gates[run]).gt(0).to(torch::kUInt8).contiguous();
      for (int64_t position = 0; position < on.size(0); ++position) {
        record.add(run, {on.data_ptr<uint8_t>() + position * ffn, static_cast<size_t>(ffn)});
      }
    }
  }
  return record;
}

Result<TouchStats> Trainer::touches() const {
  const GateRecord train = gates_on(data_.train), judge = gates_on(data_.held);
  const NeuronOrder order = sort_neurons(train, job_.shape);
  if (!job_.record.empty()) {
    const NeuronOrder blocks = job_.natural ? natural_order(job_.shape) : order;
    RIDGE_TRY(write_visits(train, job_.shape, blocks, job_.neurons, job_.folder, job_.record + ".train.json"));
    RIDGE_TRY(write_visits(judge, job_.shape, blocks, job_.neurons, job_.folder, job_.record + ".judge.json"));
  }
  return touch_stats(judge, job_.shape, order, job_.neurons);
}

Result<TrainReport> Trainer::report() {
  TrainReport report{.shape = job_.shape, .steps = state_.step, .curve = state_.curve};
  report.tokens = state_.step * job_.optimizer.batch * job_.shape.context;
  report.held_out = held_out_loss();
  report.held_out_per_byte = report.held_out / data_.bytes_per_token;
  if (!rationales_.held.empty()) {
    report.right_answers = share_of_right_answers(*student_, rationales_, *vocabulary_.tokenizer);
  }
  if (job_.shape.ffn_kind != FfnKind::swiglu) report.touches = RIDGE_TRY(touches());
  return report;
}

}  // namespace ridge::distill

#include "engine/image_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "base/log.h"
#include "base/units.h"
#include "engine/budget.h"
#include "machine/cpu.h"
#include "machine/heap.h"
#include "model/attend.h"
#include "model/image_files.h"

namespace ridge {
namespace {

constexpr uint64_t kPage = 4096;
constexpr int kMostImageThreads = 256;
// The grid that the model was trained for has 240 × 240 of the latent's pixels (facts of Cosmos-Predict2: max_size).
constexpr uint32_t kLargestLatent = 512;

std::vector<Segment> segments_of(const std::vector<PromptIds>& prompts, std::vector<int32_t> PromptIds::*ids) {
  std::vector<Segment> out;
  uint32_t begin = 0;
  for (uint32_t p = 0; p < prompts.size(); ++p) {
    const uint32_t count = static_cast<uint32_t>((prompts[p].*ids).size());
    out.push_back({.begin = begin, .count = count, .prompt = p});
    begin += count;
  }
  return out;
}

uint32_t end_of(const std::vector<Segment>& segments) { return segments.back().begin + segments.back().count; }

// Gives rows their place in a slab, one after the other; with a base, their data as well.
class Carver {
 public:
  explicit Carver(uint8_t* base) : base_(base) {}
  void place(Rows& rows) {
    rows.stride = round_up(rows.cols, 16);
    if (base_ != nullptr) rows.data = reinterpret_cast<float*>(base_ + bytes_);
    bytes_ += round_up(rows.rows * rows.stride * sizeof(float), kPage);
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint8_t* base_;
  uint64_t bytes_ = 0;
};

Result<void> check_ids(std::span<const int32_t> ids, uint32_t vocabulary, std::string_view whose) {
  if (ids.empty() || ids.size() > kContextRows) {
    return bad_input(
        fmt::format("a prompt of {} for the {}, expected 1 to {}", counted(ids.size(), "token"), whose, kContextRows));
  }
  for (int32_t id : ids) {
    if (id >= 0 && static_cast<uint32_t>(id) < vocabulary) continue;
    return bad_input(
        fmt::format("token {} is outside the vocabulary of the {}, {} tokens: the tokenizer is another "
                    "model's",
                    id, whose, vocabulary));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ImageModel>> ImageModel::open(const ImageOptions& options, const ImageJob& job) {
  std::unique_ptr<ImageModel> model(new ImageModel());
  model->options_ = options;
  model->watch_.times = options.times;
  model->watch_.interrupted = options.interrupted;
  model->job_ = job;
  model->anima_ = RIDGE_TRY(Anima::open(options.model, options.loras));
  model->qwen_ = RIDGE_TRY(open_text_encoder(options.text_encoder));
  if (!options.vae.empty()) model->vae_ = RIDGE_TRY(Vae::open(options.vae, VaeSide::decoder));
  if (options.picture != nullptr) model->encoder_ = RIDGE_TRY(Vae::open(options.vae, VaeSide::encoder));
  RIDGE_TRY(model->check_job());
  RIDGE_TRY(model->choose_machine());
  model->lay_out();
  RIDGE_TRY(model->plan());
  return model;
}

Result<void> ImageModel::check_job() const {
  RIDGE_CHECK(!job_.prompts.empty() && !job_.segments.empty() && !job_.sigmas.empty(), "a job has something to do");
  if (job_.height < 2 || job_.width < 2 || job_.height % 2 != 0 || job_.width % 2 != 0 ||
      std::max(job_.height, job_.width) > kLargestLatent) {
    return usage_error(
        fmt::format("a latent of {} × {} is no size for this model: each side even, 2 to {} (a picture's "
                    "sides are multiples of 16, up to {})",
                    job_.height, job_.width, kLargestLatent, 8 * kLargestLatent));
  }
  if (qwen_->config().width != shape().text_width) {
    return bad_input(
        fmt::format("{}: its states have {} numbers, but the adapter of {} reads {}: give the text encoder "
                    "that belongs to the model",
                    options_.text_encoder, qwen_->config().width, options_.model, shape().text_width));
  }
  for (const PromptIds& p : job_.prompts) {
    RIDGE_TRY(check_ids(p.qwen, qwen_->config().vocabulary, "text encoder"));
    RIDGE_TRY(check_ids(p.t5, shape().vocabulary, "text adapter"));
    RIDGE_CHECK(p.t5_weights.empty() || p.t5_weights.size() == p.t5.size(), "a weight for each of T5's ids, or none");
  }
  return {};
}

Result<void> ImageModel::choose_machine() {
  if (options_.threads < 0 || options_.threads > kMostImageThreads) {
    return usage_error(
        fmt::format("{} threads are no usable number: give 1 to {}", options_.threads, kMostImageThreads));
  }
  kernels_ = RIDGE_TRY(choose_kernels({.isa = options_.isa}));
  const int threads = options_.threads > 0 ? options_.threads : std::max(1, static_cast<int>(usable_cpus().size()));
  pool_ = std::make_unique<ThreadPool>(ThreadPoolOptions{.threads = threads, .cpus = options_.cpus});
  machine_ = {.kernels = &kernels_,
              .pool = pool_.get(),
              .io = options_.io,
              .most_pinned = options_.most_pinned,
              .trace = options_.trace,
              .profile = options_.profile};
  auto profile = load_profile(default_profile_path());
  if (!profile.ok()) detail(profile.error().message);
  uint64_t weights = 0;
  for (const GgufTensor& t : anima_->file().tensors()) weights += t.bytes;
  if (profile.ok()) machine_.rates = machine_rates(profile.value(), threads, weights);
  trim_heap();
  process_ = process_memory();
  Budget budget = choose_budget(options_.memory, process_);
  machine_.budget = budget.bytes;
  machine_.budget_reason = std::move(budget.reason);
  return {};
}

// Everything that phases hand on, without data: shapes alone decide plans.
void ImageModel::lay_out() {
  const AnimaConfig& c = shape();
  pass_.prompts = segments_of(job_.prompts, &PromptIds::t5);
  pass_.texts = segments_of(job_.prompts, &PromptIds::qwen);
  std::vector<uint32_t> rows;
  size_t longest = 0;
  for (const PromptIds& p : job_.prompts) {
    t5_ids_.insert(t5_ids_.end(), p.t5.begin(), p.t5.end());
    rows.push_back(static_cast<uint32_t>(p.t5.size()));
    longest = std::max({longest, p.t5.size(), p.qwen.size()});
  }
  pass_.keys = TextKeys::of(c, std::move(rows));
  pass_.states = Rows(nullptr, end_of(pass_.texts), c.text_width);
  pass_.angles = Rows(nullptr, longest, c.adapter_head_dim);
  pass_.timesteps = Rows(nullptr, job_.sigmas.size(), c.width);
  pass_.weights = Rows(nullptr, end_of(pass_.prompts), 1);
  pass_.context = Rows(nullptr, end_of(pass_.prompts), c.context_width);
  pass_.modulations = Rows(nullptr, job_.sigmas.size(), c.modulation_floats());
  const size_t tokens = size_t{job_.height / c.patch} * (job_.width / c.patch),
               rows_all = tokens * job_.segments.size();
  grid_ = Rows(nullptr, tokens, c.head_dim);
  patches_ = Rows(nullptr, rows_all, c.patch_inputs());
  velocities_ = Rows(nullptr, rows_all, c.patch_outputs());
  hidden_ = Rows(nullptr, job_.hidden_states ? rows_all : 0, c.width);
}

size_t ImageModel::hidden_floats(const AnimaConfig& config, const ImageJob& job) {
  const size_t tokens = size_t{job.height / config.patch} * (job.width / config.patch);
  return tokens * job.segments.size() * round_up(config.width, 16);
}

namespace {

// Every row that a Carver places, in one order for the account and for the slab.
void place_all(Carver& carver, ConditionPass& pass, std::initializer_list<Rows*> others) {
  for (Rows* rows : {&pass.states, &pass.angles, &pass.timesteps, &pass.weights, &pass.context, &pass.modulations,
                     &pass.keys.layers}) {
    carver.place(*rows);
  }
  for (Rows* rows : others) carver.place(*rows);
}

}  // namespace

DenoisePass ImageModel::denoise_pass(size_t sigma) const {
  DenoisePass pass;
  const uint32_t tokens = static_cast<uint32_t>(grid_.rows);
  for (uint32_t s = 0; s < job_.segments.size(); ++s) {
    pass.segments.push_back({.begin = s * tokens, .count = tokens, .prompt = job_.segments[s].prompt});
  }
  pass.patches = patches_;
  pass.angles = grid_;
  pass.modulation = pass_.modulations.slice_rows(sigma, 1);
  pass.keys = pass_.keys;
  pass.velocity = velocities_;
  pass.hidden = hidden_;
  return pass;
}

void ImageModel::make_denoising_phases() {
  const uint32_t rows = static_cast<uint32_t>(patches_.rows);
  const bool packed = kernels_.kernels.pack_activations != nullptr;
  auto outline = [this](Ops& ops) {
    return job_.hidden_states ? anima_->blocks(ops, denoise_pass(0)) : anima_->denoise(ops, denoise_pass(0));
  };
  denoise_machine_ = machine_;
  denoise_machine_.times = options_.times;
  denoise_ = std::make_unique<Phase>(PhaseOptions{.name = "the diffusion transformer",
                                                  .model = anima_.get(),
                                                  .shape = {.tokens = rows, .packed = packed},
                                                  .outline = outline,
                                                  .attention_floats = attend_floats(shape().head_dim, pool_->size()),
                                                  .one_at_a_time = options_.load_run_release},
                                     denoise_machine_);
  if (!job_.hidden_states) return;
  // It is small (0.5 MiB of the original's 4 GB) and runs in every step: always pinned, whatever the budget.
  last_machine_ = machine_;
  last_machine_.budget = uint64_t{1} << 50;
  last_machine_.most_pinned.reset();
  last_ = std::make_unique<Phase>(PhaseOptions{.name = "the last layer",
                                               .model = anima_.get(),
                                               .shape = {.tokens = rows, .packed = packed},
                                               .outline = [this](Ops& ops) { anima_->finish(ops, denoise_pass(0)); }},
                                  last_machine_);
}

// What the transformer's phase has beside it: `held`, and all that the last layer takes.
Result<Account> ImageModel::plan_last(const Account& held) {
  Account all = held;
  if (!last_) return all;
  RIDGE_TRY(last_->plan(held));
  all.add("the last layer, for forecasts", last_->plan().account.total() - held.total());
  return all;
}

Result<void> ImageModel::plan() {
  Carver carver(nullptr);
  place_all(carver, pass_, {&grid_, &patches_, &velocities_, &hidden_});
  buffer_bytes_ = carver.bytes();
  size_t longest = 0;
  for (const PromptIds& p : job_.prompts) longest = std::max(longest, p.qwen.size());
  const uint32_t tokens = static_cast<uint32_t>(longest);
  encode_ =
      std::make_unique<Phase>(PhaseOptions{.name = "the text encoder",
                                           .model = qwen_.get(),
                                           .shape = {.tokens = tokens, .outputs = 0},
                                           .outline = [this](Ops& ops) { qwen_->forward(ops); },
                                           .gathered = qwen_->gathered(),
                                           .cache_positions = tokens,
                                           .attention_floats = ridge::attention_floats(*qwen_, tokens, pool_->size())},
                              machine_);
  condition_ =
      std::make_unique<Phase>(PhaseOptions{.name = "the text adapter",
                                           .model = anima_.get(),
                                           .shape = {.tokens = static_cast<uint32_t>(t5_ids_.size())},
                                           .outline = [this](Ops& ops) { anima_->condition(ops, pass_); },
                                           .gathered = anima_->gathered(),
                                           .attention_floats = attend_floats(shape().adapter_head_dim, pool_->size())},
                              machine_);
  make_denoising_phases();
  Account held;
  held.add("program and libraries", process_.mapped_files);
  held.add("metadata and heap", process_.anonymous);
  const uint64_t others = options_.other_bytes + (options_.beside ? options_.beside(shape()) : 0) +
                          (encoder_ ? latent_floats() * sizeof(float) : 0);
  held.add("latents, keys and modulations", Slab::charge(buffer_bytes_) + others);
  const Account denoising = RIDGE_TRY(plan_last(held));
  auto planned = plan_phases(held, denoising);
  if (planned.ok() || planned.error().code != ErrorCode::does_not_fit) return planned;
  const Error named = refusal(held, denoising);
  return named.message.empty() ? planned.error() : named;
}

Result<void> ImageModel::plan_phases(const Account& held, const Account& denoising) {
  for (Phase* phase : {encode_.get(), condition_.get()}) RIDGE_TRY(phase->plan(held));
  RIDGE_TRY(denoise_->plan(denoising));
  return plan_bands(held);
}

// One refusal for all phases: the budget that it names is enough for each of them. Empty where that is there.
Error ImageModel::refusal(const Account& held, const Account& denoising) {
  std::string_view name;
  Account most;
  auto consider = [&](std::string_view of, Account least) {
    if (least.total() > most.total()) std::tie(name, most) = std::pair(of, std::move(least));
  };
  for (Phase* phase : {encode_.get(), condition_.get()}) consider(phase->name(), phase->smallest(held));
  consider(denoise_->name(), denoise_->smallest(denoising));
  for (const VaeWork& work : vae_work()) {
    Account least = vae_account(held, work);
    least.add("planes of the VAE, in the thinnest bands",
              work.vae->workspace_bytes(work.size, Vae::most_bands(work.size), pool_->size()));
    least.add("page tables and reserve", kReserve + (least.total() + kReserve) / 255 + 1);
    consider("the VAE", std::move(least));
  }
  if (most.total() <= machine_.budget) return does_not_fit("");
  Error error = refuse_budget(machine_.budget, machine_.budget_reason, most, Phase::kNeedsLess);
  error.message = fmt::format("{}: {}", name, error.message);
  return error;
}

std::vector<ImageModel::VaeWork> ImageModel::vae_work() {
  const LatentSize size{job_.height, job_.width};
  std::vector<VaeWork> all;
  if (vae_) all.push_back({&*vae_, size, &bands_});
  if (options_.previews) all.push_back({&*vae_, kPreviewProbe, &probe_bands_});
  if (encoder_) all.push_back({&*encoder_, size, &encoder_bands_});
  return all;
}

Account ImageModel::vae_account(Account held, const VaeWork& work) const {
  held.add("weights of the VAE", work.vae->weight_bytes());
  const uint64_t pixels = uint64_t{Vae::kScale} * Vae::kScale * work.size.height * work.size.width;
  // Of a picture to encode the bytes are there already. A probe is decoded beside its latent and its patches.
  const uint64_t probe =
      work.bands == &probe_bands_ ? kPreviewChannels * kPreviewProbe.height * kPreviewProbe.width : 0;
  if (work.bands != &encoder_bands_) held.add("the picture", (3 * pixels + probe) * sizeof(float));
  held.add("threads", static_cast<uint64_t>(pool_->size()) * kThreadStack);
  return held;
}

// As few bands as the budget allows: each one more computes the lines between two of them twice.
Result<void> ImageModel::plan_bands(const Account& held) {
  for (const VaeWork& work : vae_work()) {
    const uint64_t taken = vae_account(held, work).total() + kReserve + machine_.budget / 256;
    const auto bands =
        work.vae->bands_within(machine_.budget - std::min(machine_.budget, taken), work.size, pool_->size());
    if (!bands) return does_not_fit("the planes of the VAE do not fit");
    *work.bands = *bands;
  }
  return {};
}

// Only its latent stays.
Result<void> ImageModel::encode_picture() {
  RIDGE_TRY(encoder_->load(kernels_.kernels));
  picture_latent_.resize(latent_floats());
  RIDGE_TRY(
      encoder_->encode(*options_.picture, {job_.height, job_.width}, encoder_bands_, vae_machine(), picture_latent_));
  encoder_.reset();
  return {};
}

// With a VAE of its own: the weights are gone before those of the transformer come.
Result<void> ImageModel::fit_colours() {
  const VaeMachine machine = vae_machine();
  Vae vae = RIDGE_TRY(Vae::open(options_.vae, VaeSide::decoder));
  RIDGE_TRY(vae.load(kernels_.kernels));
  colours_ = RIDGE_TRY(fit_latent_colours([&](std::span<const float> latent, std::span<float> picture) {
    return vae.decode(latent, kPreviewProbe, probe_bands_, machine, picture);
  }));
  return {};
}

Result<void> ImageModel::prepare() {
  buffers_ = RIDGE_TRY(Slab::allocate(buffer_bytes_, {.what = "latents, keys and modulations"}));
  Carver carver(buffers_.data());
  place_all(carver, pass_, {&grid_, &patches_, &velocities_, &hidden_});
  line_angles(pass_.angles);
  grid_angles(job_.height / shape().patch, job_.width / shape().patch, grid_);
  for (size_t i = 0; i < job_.sigmas.size(); ++i) {
    timestep_features(static_cast<double>(job_.sigmas[i]), pass_.timesteps.row_span(i));
  }
  for (size_t p = 0; p < job_.prompts.size(); ++p) {
    const std::vector<float>& weights = job_.prompts[p].t5_weights;
    for (uint32_t i = 0; i < pass_.prompts[p].count; ++i) {
      *pass_.weights.row(pass_.prompts[p].begin + i) = weights.empty() ? 1.0f : weights[i];
    }
  }
  auto start = std::chrono::steady_clock::now();
  auto lap = [&](std::chrono::nanoseconds& time) {
    const auto now = std::chrono::steady_clock::now();
    time += now - start;
    start = now;
  };
  RIDGE_TRY(encode());
  lap(times_.encode);
  RIDGE_TRY(condition());
  lap(times_.condition);
  if (options_.previews) RIDGE_TRY(fit_colours());
  lap(times_.preview);
  if (encoder_) RIDGE_TRY(encode_picture());
  lap(times_.picture);
  if (last_) RIDGE_TRY(last_->open());
  RIDGE_TRY(denoise_->open());
  lap(times_.load);
  return {};
}

Result<void> ImageModel::encode() {
  RIDGE_TRY(encode_->open());
  RIDGE_TRY(qwen_->load_vectors(*encode_->machinery().source));
  for (size_t p = 0; p < job_.prompts.size(); ++p) {
    const std::vector<int32_t>& ids = job_.prompts[p].qwen;
    const Segment& rows = pass_.texts[p];
    Compute pass(*qwen_, encode_->machinery(), {.tokens = rows.count, .outputs = 0},
                 {.ids = ids, .logits = {}, .hidden = pass_.states.slice_rows(rows.begin, rows.count)});
    qwen_->forward(pass);
    RIDGE_TRY(pass.status());
  }
  encode_->close();
  return {};
}

Result<void> ImageModel::condition() {
  RIDGE_TRY(condition_->open());
  RIDGE_TRY(anima_->load_vectors(*condition_->machinery().source));
  {
    // Ends before the phase does: it holds a lease of the source.
    Compute pass(*anima_, condition_->machinery(), {.tokens = static_cast<uint32_t>(t5_ids_.size())},
                 {.ids = t5_ids_, .logits = {}});
    anima_->condition(pass, pass_);
    RIDGE_TRY(pass.status());
  }
  anima_->finish_modulations(pass_.modulations);
  condition_->close();
  return {};
}

Result<void> ImageModel::run(const Phase& phase, size_t sigma, DenoiseFunction function) {
  Compute pass(*anima_, phase.machinery(), phase.shape(), {.ids = {}, .logits = {}});
  DenoisePass job = denoise_pass(sigma);
  job.watch = &watch_;
  watch_.begin(phase.source());
  (*anima_.*function)(pass, job);
  const auto ended = watch_.end();
  RIDGE_TRY(pass.status());
  return ended;
}

Result<void> ImageModel::evaluate(size_t sigma, Matrix<const float> latents, Matrix<float> velocities) {
  RIDGE_CHECK(sigma < job_.sigmas.size() && !job_.hidden_states, "an evaluation is of the job");
  const auto start = std::chrono::steady_clock::now();
  read_latents(latents);
  RIDGE_TRY(run(*denoise_, sigma, &Anima::denoise));
  write_velocities(velocities);
  times_.denoise += std::chrono::steady_clock::now() - start;
  ++times_.evaluations;
  return {};
}

Result<void> ImageModel::evaluate_hidden(size_t sigma, Matrix<const float> latents) {
  RIDGE_CHECK(sigma < job_.sigmas.size() && job_.hidden_states, "an evaluation is of the job");
  const auto start = std::chrono::steady_clock::now();
  read_latents(latents);
  RIDGE_TRY(run(*denoise_, sigma, &Anima::blocks));
  times_.denoise += std::chrono::steady_clock::now() - start;
  ++times_.evaluations;
  return {};
}

Result<void> ImageModel::finish_hidden(size_t sigma, Matrix<float> velocities) {
  RIDGE_CHECK(sigma < job_.sigmas.size() && job_.hidden_states, "an evaluation is of the job");
  const auto start = std::chrono::steady_clock::now();
  Compute pass(*anima_, last_->machinery(), last_->shape(), {.ids = {}, .logits = {}});
  anima_->finish(pass, denoise_pass(sigma));
  RIDGE_TRY(pass.status());
  write_velocities(velocities);
  times_.denoise += std::chrono::steady_clock::now() - start;
  return {};
}

void ImageModel::read_latents(Matrix<const float> latents) {
  RIDGE_CHECK(latents.cols == latent_floats(), "latents are of the job");
  const size_t tokens = grid_.rows;
  for (size_t s = 0; s < job_.segments.size(); ++s) {
    patchify(shape(), latents.row_span(job_.segments[s].image), job_.height / shape().patch, job_.width / shape().patch,
             patches_.slice_rows(s * tokens, tokens));
  }
}

void ImageModel::write_velocities(Matrix<float> velocities) {
  RIDGE_CHECK(velocities.rows == job_.segments.size() && velocities.cols == latent_floats(),
              "velocities are of the job");
  const size_t tokens = grid_.rows;
  for (size_t s = 0; s < job_.segments.size(); ++s) {
    unpatchify(shape(), velocities_.slice_rows(s * tokens, tokens), job_.height / shape().patch,
               job_.width / shape().patch, velocities.row_span(s));
  }
}

Result<void> ImageModel::decode(std::span<const float> latent, std::span<float> picture) {
  RIDGE_CHECK(vae_.has_value(), "decode() needs ImageOptions::vae");
  const auto start = std::chrono::steady_clock::now();
  denoise_->close();
  if (last_) last_->close();
  const VaeMachine machine = vae_machine();
  if (!vae_loaded_) RIDGE_TRY(vae_->load(kernels_.kernels));
  vae_loaded_ = true;
  RIDGE_TRY(vae_->decode(latent, {job_.height, job_.width}, bands_, machine, picture));
  times_.decode += std::chrono::steady_clock::now() - start;
  return {};
}

Matrix<const float> ImageModel::states(size_t prompt) const {
  return pass_.states.slice_rows(pass_.texts[prompt].begin, pass_.texts[prompt].count);
}

Matrix<const float> ImageModel::context(size_t prompt) const {
  return pass_.context.slice_rows(pass_.prompts[prompt].begin, pass_.prompts[prompt].count);
}

}  // namespace ridge

// The part of `ridge image` that other implementations are compared with: token ids and noise in, every stage out.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/progress.h"
#include "base/seconds.h"
#include "base/units.h"
#include "cli/common.h"
#include "cli/image.h"
#include "engine/image_draw.h"
#include "engine/image_model.h"
#include "engine/image_sampler.h"
#include "format/safetensors.h"

namespace ridge::cli {
namespace {

// What a file of inputs holds.
struct Inputs {
  PromptIds cond, uncond;  // the second is empty where no guidance is wanted
  std::vector<float> latents;
  std::vector<float> to_decode;  // vae.latents; empty: what comes out of the last step
  uint32_t height = 0, width = 0;
};

// Sigmas whose velocities are compared beside the steps, and their names.
struct Probe {
  float sigma;
  const char* name;
};
constexpr Probe kProbes[] = {{1.0f, "1.0"}, {0.6f, "0.6"}, {0.05f, "0.05"}};

Result<const SafeTensor*> need(const Safetensors& file, const std::string& name) {
  const SafeTensor* t = file.find(name);
  if (t == nullptr) return bad_input(fmt::format("{}: tensor '{}' is missing", file.where(), name));
  return t;
}

Result<PromptIds> read_prompt(const Safetensors& file, const std::string& prefix) {
  auto ids = [&](const char* which) -> Result<std::vector<int32_t>> {
    const SafeTensor* t = RIDGE_TRY(need(file, prefix + which));
    std::vector<int32_t> all = RIDGE_TRY(read_integers(file, *t, 1 << 20));
    if (all.size() > kContextRows) {
      note(fmt::format("{}{}: of {} ids the first {} are used, as many as the context has rows", prefix, which,
                       all.size(), kContextRows));
      all.resize(kContextRows);
    }
    return all;
  };
  return PromptIds{.qwen = RIDGE_TRY(ids("qwen_ids")), .t5 = RIDGE_TRY(ids("t5_ids"))};
}

Result<Inputs> read_inputs(const std::string& path, bool guided) {
  const Safetensors file = RIDGE_TRY(Safetensors::open(path));
  Inputs in;
  in.cond = RIDGE_TRY(read_prompt(file, "cond."));
  if (guided) in.uncond = RIDGE_TRY(read_prompt(file, "uncond."));
  const SafeTensor* latents = RIDGE_TRY(need(file, "latents"));
  if (latents->dims != 3 || latents->shape[1] > 4096 || latents->shape[2] > 4096) {
    return bad_input(fmt::format("{}: tensor 'latents' has the shape [{}], expected [channels, height / 8, width / 8]",
                                 path, fmt::join(latents->dimensions(), ", ")));
  }
  in.height = static_cast<uint32_t>(latents->shape[1]);
  in.width = static_cast<uint32_t>(latents->shape[2]);
  in.latents = RIDGE_TRY(read_floats(file, *latents, uint64_t{1} << 28));
  if (const SafeTensor* t = file.find("vae.latents"); t != nullptr && t->elements() == in.latents.size()) {
    in.to_decode = RIDGE_TRY(read_floats(file, *t, in.latents.size()));
  }
  return in;
}

// The file of all stages, written as they come.
class Dump {
 public:
  static Result<Dump> create(const std::string& path, const ImageModel& model, const Inputs& in, uint32_t steps,
                             bool decoded) {
    std::vector<SafetensorsWriter::Item> items;
    const uint64_t prompts = in.uncond.qwen.empty() ? 1 : 2;
    auto add = [&](std::string name, std::vector<uint64_t> shape) {
      items.push_back({.name = std::move(name), .type = SafeType::F32, .shape = std::move(shape)});
    };
    const std::vector<uint64_t> latent = {model.shape().channels, in.height, in.width};
    for (uint64_t p = 0; p < prompts; ++p) {
      const PromptIds& ids = p == 0 ? in.cond : in.uncond;
      add(kBranches[p] + std::string(".qwen_hidden"), {ids.qwen.size(), model.shape().text_width});
      add(kBranches[p] + std::string(".context"), {kContextRows, model.shape().context_width});
    }
    add("latents", latent);
    add("sigmas", {steps + uint64_t{1}});
    for (const Probe& probe : kProbes) {
      for (uint64_t p = 0; p < prompts; ++p) add(fmt::format("velocity.{}.{}", kBranches[p], probe.name), latent);
    }
    for (uint32_t i = 0; i < steps; ++i) add(fmt::format("step.{}", i), latent);
    if (decoded) {
      add("vae.latents", latent);
      add("vae.image", {3, uint64_t{Vae::kScale} * in.height, uint64_t{Vae::kScale} * in.width});
    }
    return Dump(RIDGE_TRY(SafetensorsWriter::create(path, std::move(items))));
  }

  Result<void> append(std::span<const float> values) { return out_.append(values); }
  // With rows of zeros behind them.
  Result<void> append(Matrix<const float> values, size_t rows) {
    std::vector<float> all(rows * values.cols);
    for (size_t r = 0; r < values.rows; ++r) std::copy_n(values.row(r), values.cols, all.data() + r * values.cols);
    return out_.append(all);
  }
  Result<void> finish() { return out_.finish(); }

 private:
  static constexpr const char* kBranches[] = {"cond", "uncond"};
  explicit Dump(SafetensorsWriter out) : out_(std::move(out)) {}
  SafetensorsWriter out_;
};

ImageJob job_of(const Inputs& in, const std::vector<float>& sigmas) {
  ImageJob job{.height = in.height, .width = in.width, .prompts = {in.cond}, .segments = {{0, 0}}, .sigmas = {}};
  if (!in.uncond.qwen.empty()) {
    job.prompts.push_back(in.uncond);
    job.segments.push_back({1, 0});
  }
  for (const Probe& probe : kProbes) job.sigmas.push_back(probe.sigma);
  job.sigmas.insert(job.sigmas.end(), sigmas.begin(), sigmas.end() - 1);
  return job;
}

// The velocities of the probes, then every step of Euler's; `guidance` only where there is a second prompt.
Result<void> denoise(ImageModel& model, std::span<const float> sigmas, std::optional<float> guidance,
                     std::span<float> latents, Dump& dump) {
  const size_t each = latents.size(), branches = guidance ? 2 : 1;
  std::vector<float> velocity(branches * each);
  const Matrix<float> velocities(velocity.data(), branches, each);
  Progress bar("denoising", std::size(kProbes) + sigmas.size() - 1, ProgressUnit::items);
  for (size_t i = 0; i < std::size(kProbes); ++i) {
    RIDGE_TRY(model.evaluate(i, Matrix<const float>(latents.data(), 1, each), velocities));
    for (size_t b = 0; b < branches; ++b) RIDGE_TRY(dump.append(velocities.row_span(b)));
    bar.advance(1);
  }
  auto evaluate = [&](const SampleStep& step, std::span<const float> x, std::span<float> v) -> Result<void> {
    RIDGE_TRY(model.evaluate(std::size(kProbes) + step.step, Matrix<const float>(x.data(), 1, each), velocities));
    if (guidance) {
      combine_guidance(velocities.row_span(0), velocities.row_span(1), *guidance, v);
    } else {
      std::copy(velocity.begin(), velocity.end(), v.begin());
    }
    return {};
  };
  auto after_step = [&](const SampleStep&, std::span<const float> x) -> Result<void> {
    bar.advance(1);
    return dump.append(x);
  };
  return sample_latents({.kind = SamplerKind::euler}, sigmas, latents, evaluate, after_step);
}

}  // namespace

Result<void> run_stages(const ImageFlags& flags) {
  const bool guided = flags.cfg != 1;
  ImageOptions options = RIDGE_TRY(image_options(flags));
  options.interrupted = &interrupt_flag();
  RIDGE_TRY(check_output(flags.dump, "--dump"));
  RIDGE_TRY(refuse_overwriting(flags.dump, RIDGE_TRY(input_files(flags)), "--dump"));
  const std::vector<float> sigmas = RIDGE_TRY(draw_sigmas(flags.steps, static_cast<float>(flags.shift)));
  Inputs in = RIDGE_TRY(read_inputs(flags.inputs, guided));
  const ImageJob job = job_of(in, sigmas);
  options.other_bytes = (5 + job.segments.size()) * in.latents.size() * sizeof(float) + kContextRows * 8 * kKiB;
  auto model = RIDGE_TRY(ImageModel::open(options, job));
  if (in.latents.size() != model->latent_floats()) {
    return bad_input(fmt::format("{}: tensor 'latents' has {} values, expected {} channels of {} × {}", flags.inputs,
                                 in.latents.size(), model->shape().channels, in.height, in.width));
  }
  Dump dump = RIDGE_TRY(Dump::create(flags.dump, *model, in, flags.steps, !options.vae.empty()));
  RIDGE_TRY(model->prepare());
  for (size_t p = 0; p < job.prompts.size(); ++p) {
    RIDGE_TRY(dump.append(model->states(p), model->states(p).rows));
    RIDGE_TRY(dump.append(model->context(p), kContextRows));
  }
  RIDGE_TRY(dump.append(in.latents));
  RIDGE_TRY(dump.append(sigmas));
  RIDGE_TRY(
      denoise(*model, sigmas, guided ? std::optional(static_cast<float>(flags.cfg)) : std::nullopt, in.latents, dump));
  if (!options.vae.empty()) {
    const std::vector<float>& latent = in.to_decode.empty() ? in.latents : in.to_decode;
    std::vector<float> picture(model->picture_floats());
    RIDGE_TRY(model->decode(latent, picture));
    RIDGE_TRY(dump.append(latent));
    RIDGE_TRY(dump.append(picture));
  }
  RIDGE_TRY(dump.finish());
  const ImageTimes& t = model->times();
  note(
      fmt::format("{} is written: {} × {}, {} steps; encoding {:.2f} s, conditioning {:.2f} s, {:.2f} s per "
                  "evaluation, decoding {:.2f} s",
                  flags.dump, in.height, in.width, flags.steps, seconds(t.encode), seconds(t.condition),
                  seconds(t.denoise) / static_cast<double>(t.evaluations), seconds(t.decode)));
  return {};
}

}  // namespace ridge::cli

// ridge image: pictures from an image model; here the part that other implementations are compared with: token ids and
// noise in, every stage out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/log.h"
#include "base/number_list.h"
#include "base/progress.h"
#include "base/units.h"
#include "cli/common.h"
#include "engine/image_bundle.h"
#include "engine/image_model.h"
#include "format/safetensors.h"
#include "machine/peak_memory.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge image --bundle anima/ --inputs in.safetensors --dump out.safetensors\n"
    "  ridge image --model anima.safetensors --text-encoder qwen3.safetensors \\\n"
    "    --inputs in.safetensors --dump out.safetensors --steps 8 --memory 2G\n\n"
    "--inputs holds cond.qwen_ids, cond.t5_ids, uncond.qwen_ids, uncond.t5_ids and\n"
    "latents [16, height / 8, width / 8]; --dump gets every stage of the way.";

struct Flags {
  std::string bundle, model, text_encoder, vae, inputs, dump;
  std::optional<std::string> memory, cpus, isa;
  std::optional<int> threads;
  std::string io = "auto";
  uint32_t steps = 28;
  double cfg = 4, shift = 3;
};

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

Result<ImageOptions> image_options(const Flags& flags) {
  EngineFlags common{
      .memory = flags.memory, .threads = flags.threads, .cpus = flags.cpus, .isa = flags.isa, .io = flags.io};
  EngineOptions engine = RIDGE_TRY(machine_options(common));
  ImageOptions options{.model = flags.model,
                       .text_encoder = flags.text_encoder,
                       .vae = flags.vae,
                       .memory = engine.memory,
                       .threads = engine.threads,
                       .cpus = engine.cpus,
                       .isa = engine.isa,
                       .io = engine.io};
  if (!flags.bundle.empty()) {
    ImageBundle bundle = RIDGE_TRY(find_bundle(flags.bundle));
    if (options.model.empty()) options.model = bundle.model;
    if (options.text_encoder.empty()) options.text_encoder = bundle.text_encoder;
    if (options.vae.empty()) options.vae = bundle.vae;
  }
  if (options.model.empty() || options.text_encoder.empty()) {
    return usage_error("give --bundle FOLDER, or --model and --text-encoder");
  }
  return options;
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

// v = unguided + scale · (guided − unguided), fused; out may be either.
void guide(std::span<const float> unguided, std::span<const float> guided, float scale, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = std::fma(scale, guided[i] - unguided[i], unguided[i]);
}

// A step of Euler's from one sigma to the next.
void euler_step(float from, float to, std::span<const float> velocity, std::span<float> x) {
  const float step = to - from;
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::fma(step, velocity[i], x[i]);
}

// steps + 1 sigmas, the last 0: 1 … 1 / steps evenly, each s → shift · s / (1 + (shift − 1) · s).
std::vector<float> schedule(uint32_t steps, double shift) {
  std::vector<float> out;
  for (uint32_t k = 0; k < steps; ++k) {
    const double s = 1.0 - static_cast<double>(k) / static_cast<double>(steps);
    out.push_back(static_cast<float>(shift * s / (1.0 + (shift - 1.0) * s)));
  }
  out.push_back(0.0f);
  return out;
}

Result<void> run(Flags flags) {
  if (flags.steps < 1 || flags.steps > 1000) {
    return usage_error(fmt::format("--steps {}: give 1 to 1000", flags.steps));
  }
  const bool guided = flags.cfg != 1;
  ImageOptions options = RIDGE_TRY(image_options(flags));
  std::vector<GgufFile> sources;
  for (const std::string& path : {flags.inputs, options.model, options.text_encoder, options.vae}) {
    if (!path.empty()) sources.push_back({.path = path, .bytes = 0});
  }
  RIDGE_TRY(refuse_overwriting(flags.dump, sources, "--dump"));
  Inputs in = RIDGE_TRY(read_inputs(flags.inputs, guided));
  const std::vector<float> sigmas = schedule(flags.steps, flags.shift);
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
  std::vector<float> velocity(job.segments.size() * in.latents.size());
  const Matrix<float> velocities(velocity.data(), job.segments.size(), in.latents.size());
  const Matrix<const float> latents(in.latents.data(), 1, in.latents.size());
  Progress bar("denoising", std::size(kProbes) + flags.steps, ProgressUnit::items);
  for (size_t i = 0; i < std::size(kProbes); ++i) {
    RIDGE_TRY(model->evaluate(i, latents, velocities));
    for (size_t s = 0; s < velocities.rows; ++s) RIDGE_TRY(dump.append(velocities.row_span(s)));
    bar.advance(1);
  }
  for (uint32_t i = 0; i < flags.steps; ++i) {
    RIDGE_TRY(model->evaluate(std::size(kProbes) + i, latents, velocities));
    if (guided) {
      guide(velocities.row_span(1), velocities.row_span(0), static_cast<float>(flags.cfg), velocities.row_span(0));
    }
    euler_step(sigmas[i], sigmas[i + 1], velocities.row_span(0), in.latents);
    RIDGE_TRY(dump.append(in.latents));
    bar.advance(1);
  }
  if (!options.vae.empty()) {
    const std::vector<float>& latent = in.to_decode.empty() ? in.latents : in.to_decode;
    std::vector<float> picture(model->picture_floats());
    RIDGE_TRY(model->decode(latent, picture));
    RIDGE_TRY(dump.append(latent));
    RIDGE_TRY(dump.append(picture));
  }
  RIDGE_TRY(dump.finish());
  const ImageTimes& t = model->times();
  auto seconds = [](std::chrono::nanoseconds n) { return std::chrono::duration<double>(n).count(); };
  note(
      fmt::format("{} is written: {} × {}, {} steps; encoding {:.2f} s, conditioning {:.2f} s, {:.2f} s per "
                  "evaluation, decoding {:.2f} s",
                  flags.dump, in.height, in.width, flags.steps, seconds(t.encode), seconds(t.condition),
                  seconds(t.denoise) / static_cast<double>(t.evaluations), seconds(t.decode)));
  return {};
}

}  // namespace

void add_image(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("image", "run an image model (Anima) and write every stage");
  command->add_option("--bundle", flags->bundle, "folder with all parts of the model")->type_name("FOLDER");
  command->add_option("--model", flags->model, "the diffusion model")->type_name("FILE");
  command->add_option("--text-encoder", flags->text_encoder, "its Qwen3")->type_name("FILE");
  command->add_option("--vae", flags->vae, "its VAE; without one there is no picture")->type_name("FILE");
  command->add_option("--inputs", flags->inputs, "token ids and noise (safetensors)")->type_name("FILE")->required();
  command->add_option("--dump", flags->dump, "every stage (safetensors)")->type_name("FILE")->required();
  command->add_option("--steps", flags->steps, "steps (28)")->type_name("N");
  command->add_option("--cfg", flags->cfg, "guidance (4); 1: none, half the work")->type_name("X");
  command->add_option("--shift", flags->shift, "of the schedule towards noise (3)")->type_name("X");
  command->add_option("-m,--memory", flags->memory, "never use more, such as 2G")->type_name("SIZE");
  command->add_option("-t,--threads", flags->threads, "compute threads (all CPUs)")->type_name("N");
  command->add_option("--cpus", flags->cpus, "CPUs to bind them to, such as 0,2-3")->type_name("LIST");
  command->add_option("--isa", flags->isa, "at most these instructions")->type_name("NAME");
  command->add_option("--io", flags->io, "auto, uring, threads or buffered")->type_name("NAME");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli

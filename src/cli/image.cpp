// ridge image: pictures from an image model, from a text or from the picture that it made before.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <tuple>

#include "base/log.h"
#include "base/units.h"
#include "cli/common.h"
#include "cli/image.h"
#include "cli/image_defaults.h"
#include "cli/image_init.h"
#include "cli/image_made.h"
#include "cli/image_recipe.h"
#include "cli/image_reference.h"
#include "cli/image_watch.h"
#include "engine/image_bundle.h"
#include "engine/image_draw.h"
#include "format/gguf.h"
#include "format/png.h"
#include "format/quote.h"
#include "format/safetensors.h"
#include "report/pass_times_report.h"
#include "text/image_prompt.h"
#include "text/tokenizer_file.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge image --bundle anima/ -p \"red apple on a blue background\" -o apple.png\n"
    "  ridge image --bundle anima/ -p \"a (red:1.2) apple\" -n blurry --size 768x512 \\\n"
    "    --sampler dpmpp_2m --steps 20 --seed 1 --memory 2G -o apple.png\n"
    "  ridge image --bundle anima/ -p \"red apple\" --seed 1 --batch 3 -o out.png\n"
    "                                       out-1.png to out-3.png, seeds 1 to 3\n"
    "  ridge image --bundle anima/ -p \"red apple\" --spectrum -o out.png\n"
    "                                       13 of 28 steps are computed\n"
    "  ridge image --bundle anima/ -p \"a pear\" --init apple.png --strength 0.7 \\\n"
    "    --mask white-where-the-apple-is.png -o pear.png\n"
    "  ridge image --repeat apple.png -o again.png     the same bytes again\n"
    "  ridge image --bundle anima/ --inputs in.safetensors --dump out.safetensors\n\n"
    "The PNG holds all that the picture was made from, as a text \"ridge\".\n"
    "--inputs holds cond.qwen_ids, cond.t5_ids, uncond.qwen_ids, uncond.t5_ids and\n"
    "latents [16, height / 8, width / 8]; --dump gets every stage of the way.";

constexpr uint32_t kMostBatch = 1000;

bool is_file(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

struct Size {
  uint32_t width = 0, height = 0;
};

Result<Size> parse_size(const std::string& text) {
  Size size;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, size.width);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == 'x') {
    const auto second = std::from_chars(first.ptr + 1, end, size.height);
    if (second.ec == std::errc() && second.ptr == end) return size;
  }
  return usage_error(
      fmt::format("--size {}: give width and height in pixels, such as 512x512", ridge::in_quotes(text)));
}

// As --size says; or as the picture to begin with has it; or as the bundle does.
Result<Size> size_of(const ImageFlags& flags) {
  if (!flags.size.empty()) return parse_size(flags.size);
  if (!flags.init) return parse_size(RIDGE_TRY(default_size(flags.bundle)));
  const PngSize size = RIDGE_TRY(init_size(*flags.init));
  return Size{size.width, size.height};
}

Result<ImageRecipe> recipe_of(ImageFlags& flags) {
  RIDGE_TRY(require_utf8(*flags.prompt, "the prompt"));
  if (flags.negative) RIDGE_TRY(require_utf8(*flags.negative, "the negative prompt"));
  const Size size = RIDGE_TRY(size_of(flags));
  ImageRecipe r{.prompt = *flags.prompt,
                .negative = flags.negative.value_or(""),
                .width = size.width,
                .height = size.height,
                .steps = flags.steps,
                .cfg = flags.cfg,
                .shift = flags.shift,
                .sampler = RIDGE_TRY(parse_sampler(flags.sampler)),
                .seed = flags.seed ? *flags.seed : std::random_device{}(),
                .parts = {},
                .init = flags.init,
                .mask = flags.mask};
  RIDGE_TRY(check_init_flags(flags));
  if (!flags.loras.empty()) r.loras = flags.loras;
  if (flags.init) r.strength = flags.strength.value_or(kUsualStrength);
  if (flags.spectrum) r.spectrum = RIDGE_TRY(parse_forecast(*flags.spectrum));
  RIDGE_TRY(find_parts(flags));
  r.parts = flags.parts;
  return r;
}

// The recipe of a picture that was made before.
Result<std::string> text_of_picture(const std::string& path) {
  PngFile file = RIDGE_TRY(read_png(path));
  for (PngText& text : file.texts) {
    if (text.key == kRecipeKey) return std::move(text.text);
  }
  return bad_input(fmt::format("{}: no text '{}' in it: it was not made by `ridge image -o`", path, kRecipeKey));
}

Result<PromptIds> ids_of(const Tokenizer& qwen, const Tokenizer& t5, const std::string& prompt, std::string_view what) {
  ImagePrompt ids = RIDGE_TRY(encode_image_prompt(qwen, t5, prompt));
  if (const size_t lost = std::max(ids.qwen_cut, ids.t5_cut); lost > 0) {
    note(fmt::format("{} is longer than {} tokens: the last {} are not used", what, kImagePromptTokens, lost));
  }
  return PromptIds{.qwen = std::move(ids.qwen), .t5 = std::move(ids.t5), .t5_weights = std::move(ids.t5_weights)};
}

// Both prompts in ids; the tokenizers are gone before the model is planned.
Result<DrawRequest> request_of(const ImageFlags& flags, const ImageRecipe& r, std::vector<uint64_t> seeds) {
  const auto qwen = RIDGE_TRY(open_tokenizer_file(flags.parts.tokenizer_qwen));
  const auto t5 = RIDGE_TRY(open_tokenizer_file(flags.parts.tokenizer_t5));
  DrawRequest request{.prompt = RIDGE_TRY(ids_of(*qwen, *t5, r.prompt, "the prompt")),
                      .negative = RIDGE_TRY(ids_of(*qwen, *t5, r.negative, "the negative prompt")),
                      .width = r.width,
                      .height = r.height,
                      .steps = r.steps,
                      .cfg = static_cast<float>(r.cfg),
                      .shift = static_cast<float>(r.shift),
                      .sampler = {.kind = r.sampler, .seeds = std::move(seeds)},
                      .forecast = r.spectrum};
  return request;
}

Error stopped(bool previewed) {
  return io_error(previewed ? "stopped by Ctrl-C: no picture is written; the last preview stays"
                            : "stopped by Ctrl-C: no picture is written");
}

// Before anything is drawn: every file can be written, and replaces neither an input nor another of them.
Result<void> check_outputs(const ImageFlags& flags) {
  std::vector<OutputName> outputs;
  for (std::string& name : picture_names(flags.output, flags.batch)) outputs.push_back({"-o", std::move(name)});
  if (!flags.preview.empty()) {
    for (std::string& name : picture_names(flags.preview, flags.batch)) {
      outputs.push_back({"--preview", std::move(name)});
    }
  }
  const std::vector<GgufFile> inputs = RIDGE_TRY(input_files(flags));
  for (const OutputName& o : outputs) {
    RIDGE_TRY(check_output(o.path, o.flag));
    RIDGE_TRY(refuse_overwriting(o.path, inputs, o.flag));
  }
  if (!flags.capture.empty()) outputs.push_back({"--capture", flags.capture});
  return refuse_twice(outputs);
}

// The pictures to draw from. A budget that is too small says so before one is read that would not fit into it either.
Result<void> add_init(const ImageOptions& options, const ImageRecipe& recipe, DrawRequest& request) {
  if (recipe.init && options.memory) {
    request.init = empty_init(recipe);
    RIDGE_TRY(plan_drawing(options, request));
  }
  request.init = RIDGE_TRY(init_request(recipe, options.memory));
  return {};
}

Result<void> draw(const ImageFlags& flags, const ImageRecipe& recipe, const std::string& text) {
  ImageOptions options = RIDGE_TRY(image_options(flags));
  if (options.vae.empty()) return usage_error("a picture needs a VAE: give --bundle FOLDER or --vae");
  if (flags.parts.tokenizer_qwen.empty() || flags.parts.tokenizer_t5.empty()) {
    return usage_error(
        "a prompt needs both tokenizers: give --tokenizer-qwen and --tokenizer-t5, or put tokenizer.json and "
        "spiece.model into the folder of --bundle");
  }
  RIDGE_TRY(check_outputs(flags));
  const std::vector<MadePicture> made = made_pictures(flags, recipe, text);
  std::vector<uint64_t> seeds;
  for (const MadePicture& m : made) seeds.push_back(m.seed);
  DrawRequest request = RIDGE_TRY(request_of(flags, recipe, std::move(seeds)));
  request.capture = RIDGE_TRY(capture_request(flags, recipe));
  bool previewed = false;
  request.preview = RIDGE_TRY(preview_request(flags, previewed));
  if (flags.reference) options.other_bytes += ImageReference::memory_bytes(request);
  if (recipe.init) request.init = InitRequest{.picture = {}, .strength = strength_of(recipe)};
  const size_t steps = RIDGE_TRY(check_drawing(request)).size() - 1;
  RIDGE_TRY(add_init(options, recipe, request));
  options.interrupted = &interrupt_flag();
  StepBar bar(steps * (flags.reference ? 2 : 1));
  auto after_step = [&](const SampleStep& step, std::span<const float>) { return bar.after(step); };
  std::optional<ImageReference> reference;
  if (flags.reference) {
    // The larger of the two drawings: what does not fit is refused before the other is made.
    RIDGE_TRY(plan_drawing(options, request));
    reference = RIDGE_TRY(ImageReference::draw(options, request, after_step));
  }
  PassTimes times;
  if (flags.stats) options.times = &times;
  auto drawn = draw_pictures(options, request, [&](const SampleStep& step, std::span<const float> x) {
    if (reference) reference->compare(step, x);
    return bar.after(step);
  });
  if (!drawn.ok() && interrupt_flag()) return stopped(previewed);
  const Drawing drawing = RIDGE_TRY(std::move(drawn));
  RIDGE_TRY(write_pictures(made, drawing));
  tell_pictures(recipe, made, drawing);
  std::optional<ReferenceReport> report;
  if (reference) report = RIDGE_TRY(reference->finish(drawing));
  if (flags.stats) note("\n" + pass_times_table(times.passes()));
  if (flags.json) return print(pictures_json(made, drawing, report, times).dump(2) + "\n");
  if (report) return print(reference_table(*report));
  return {};
}

Result<void> check_reference(const ImageFlags& flags, const ImageRecipe& recipe) {
  if (!flags.reference || recipe.spectrum) return {};
  return usage_error("--reference: every step is computed, so this is the exact picture: give --spectrum too");
}

// A recipe that our own hand would not have written.
Error undrawable(const ImageFlags& flags, std::string_view why) {
  return bad_input(fmt::format("{}: its recipe cannot be drawn: {}", flags.repeat, why));
}

// The LoRAs of a recipe, each with its strength; files that have moved are named again, in their order.
Result<void> move_loras(ImageFlags& flags, const ImageRecipe& recipe) {
  std::vector<std::string> loras = recipe.loras.value_or(std::vector<std::string>());
  if (!flags.loras.empty() && flags.loras.size() != loras.size()) {
    return usage_error(fmt::format("--lora with --repeat: {} was drawn with {}: name each file again, or leave it out",
                                   flags.repeat, counted(loras.size(), "LoRA")));
  }
  for (size_t i = 0; i < loras.size(); ++i) {
    const Result<LoraFile> drawn = parse_lora(loras[i]);
    if (!drawn.ok()) return undrawable(flags, drawn.error().message);
    if (flags.loras.empty()) continue;
    const LoraFile now = RIDGE_TRY(parse_lora(flags.loras[i]));
    if (now.path != flags.loras[i] && now.strength != drawn.value().strength) {
      return usage_error(
          fmt::format("--lora {} with --repeat: the picture was drawn with a strength of {}: leave it out",
                      ridge::in_quotes(flags.loras[i]), drawn.value().strength));
    }
    loras[i].replace(0, drawn.value().path.size(), now.path);
  }
  flags.loras = std::move(loras);
  return {};
}

// The pictures that a recipe begins with may have moved as well; outputs replace neither.
Result<void> move_init(ImageFlags& flags, ImageRecipe& recipe) {
  for (auto [flag, of_recipe, name] :
       {std::tuple(&flags.init, &recipe.init, "--init"), std::tuple(&flags.mask, &recipe.mask, "--mask")}) {
    if (*flag && !*of_recipe) {
      return usage_error(fmt::format("{} with --repeat: {} was drawn without one: leave it out", name, flags.repeat));
    }
    if (*flag) *of_recipe = *flag;
    *flag = *of_recipe;
  }
  return {};
}

Result<void> run(ImageFlags flags) {
  if (!flags.inputs.empty() || !flags.dump.empty()) {
    if (flags.inputs.empty() || flags.dump.empty()) return usage_error("--inputs and --dump go together: give both");
    RIDGE_TRY(find_parts(flags));
    return run_stages(flags);
  }
  if (!flags.prompt && flags.repeat.empty()) {
    return usage_error("nothing to draw: give -p PROMPT, --repeat PICTURE, or --inputs and --dump");
  }
  if (flags.output.empty() || flags.output == "-") return check_output(flags.output, "-o");
  if (flags.batch < 1 || flags.batch > kMostBatch) {
    return usage_error(fmt::format("--batch {}: give 1 to {} pictures", flags.batch, kMostBatch));
  }
  if (flags.repeat.empty()) {
    const ImageRecipe recipe = RIDGE_TRY(recipe_of(flags));
    RIDGE_TRY(check_reference(flags, recipe));
    return draw(flags, recipe, recipe_text(recipe));
  }
  const std::string text = RIDGE_TRY(text_of_picture(flags.repeat));
  ImageRecipe recipe = RIDGE_TRY(parse_recipe(text, flags.repeat));
  // Parts that flags name replace those of the recipe: the files may have moved.
  RIDGE_TRY(find_parts(flags));
  flags.parts.fill_from(recipe.parts);
  RIDGE_TRY(move_init(flags, recipe));
  RIDGE_TRY(move_loras(flags, recipe));
  if (!recipe.init && (recipe.mask || recipe.strength))
    return undrawable(flags, "a mask or a strength, but no picture");
  RIDGE_TRY(check_reference(flags, recipe));
  DrawRequest asked{.width = recipe.width,
                    .height = recipe.height,
                    .steps = recipe.steps,
                    .cfg = static_cast<float>(recipe.cfg),
                    .shift = static_cast<float>(recipe.shift)};
  if (recipe.init) {
    asked.init = InitRequest{.picture = {}, .strength = strength_of(recipe)};
  }
  if (const auto drawable = check_drawing(asked); !drawable.ok()) {
    return undrawable(flags, drawable.error().message);
  }
  return draw(flags, recipe, text);
}

// With --repeat the picture says everything: a flag beside it would be ignored or change it. A check of our own, since
// CLI11's excludes() lists all of them in the help.
Result<void> refuse_beside_repeat(const CLI::App& command) {
  if (command.count("--repeat") == 0) return {};
  for (const char* flag : {"--prompt", "--negative", "--size", "--sampler", "--seed", "--steps", "--cfg", "--shift",
                           "--batch", "--spectrum", "--strength", "--inputs", "--dump"}) {
    if (command.count(flag) > 0) {
      return usage_error(fmt::format("{} with --repeat: the picture to repeat says it already: leave it out", flag));
    }
  }
  return {};
}

// Stages are of one plain run.
Result<void> refuse_beside_stages(const CLI::App& command) {
  if (command.count("--inputs") + command.count("--dump") == 0) return {};
  for (const char* flag : {"--batch", "--spectrum", "--reference", "--init", "--strength", "--mask", "--preview",
                           "--capture", "--stats", "--json"}) {
    if (command.count(flag) > 0) {
      return usage_error(fmt::format("{} with --inputs and --dump: stages have none of it: leave it out", flag));
    }
  }
  return {};
}

void add_picture_flags(CLI::App& command, ImageFlags& flags) {
  command.add_option("-p,--prompt", flags.prompt, "what to draw")->type_name("TEXT");
  command.add_option("-n,--negative", flags.negative, "what not")->type_name("TEXT");
  command.add_option("--size", flags.size, "in pixels (the bundle's, or 512x512)")->type_name("WxH");
  command.add_option("--init", flags.init, "draw from this picture, scaled and cut to the size")->type_name("PNG");
  command.add_option("--strength", flags.strength, "how far from it, above 0 to 1 (0.6)")->type_name("X");
  command.add_option("--mask", flags.mask, "redraw only where this is white")->type_name("PNG");
  command.add_option("--sampler", flags.sampler, "euler, euler_a, dpmpp_2m or er_sde")->type_name("NAME");
  command.add_option("--seed", flags.seed, "the same seed, the same picture")->type_name("N");
  command.add_option("--batch", flags.batch, "so many pictures, of seeds N, N + 1, …")->type_name("K");
  command.add_option("--steps", flags.steps, "steps (28)")->type_name("N");
  command.add_option("--cfg", flags.cfg, "guidance (4); 1: none, half the work")->type_name("X");
  command.add_option("--shift", flags.shift, "of the schedule towards noise (3)")->type_name("X");
  command.add_option("--spectrum", flags.spectrum, "predict most steps: latent or hidden, name=value, …")
      ->type_name("[HOW]")
      ->expected(0, 1);
  command.add_flag("--reference", flags.reference, "also without predictions; how far off they are");
  command.add_option("--repeat", flags.repeat, "make this picture of ridge's again")->type_name("PNG");
  command.add_option("--preview", flags.preview, "looks at the picture on its way (PNG)")->type_name("FILE");
  command.add_option("--preview-every", flags.preview_every, "after every so many-th step (5)")->type_name("N");
  command.add_option("--capture", flags.capture, "inputs of the feed-forward matrices, there")->type_name("FOLDER");
  command.add_option("--capture-steps", flags.capture_steps, "of these steps (first, last)")->type_name("LIST");
  command.add_option("--capture-rows", flags.capture_rows, "so many rows each (64); 0: all")->type_name("N");
  command.add_option("-o,--output", flags.output, "the picture (PNG)")->type_name("FILE");
  command.add_flag("--json", flags.json, "what was done as one JSON object");
}

}  // namespace

Result<void> find_parts(ImageFlags& flags) {
  if (flags.bundle.empty()) return {};
  flags.parts.fill_from(RIDGE_TRY(find_bundle(flags.bundle)));
  return {};
}

namespace {

// An index, or one file of a model in several, stands for all of them.
Result<void> add_weights(const std::string& path, std::vector<GgufFile>& files) {
  if (path.ends_with(".safetensors.index.json")) {
    const Safetensors all = RIDGE_TRY(Safetensors::open(path));
    for (const SafeFile& f : all.files()) files.push_back({.path = f.path, .bytes = f.bytes});
  }
  if (path.ends_with(".gguf") && path.find("-of-") != std::string::npos) {
    const Gguf all = RIDGE_TRY(Gguf::open(path));
    files.insert(files.end(), all.files().begin(), all.files().end());
  }
  return {};
}

}  // namespace

Result<std::vector<GgufFile>> input_files(const ImageFlags& flags) {
  const ImageBundle& parts = flags.parts;
  std::vector<GgufFile> files;
  for (const std::string& part :
       {parts.model, parts.text_encoder, parts.vae, parts.tokenizer_qwen, parts.tokenizer_t5, flags.inputs,
        flags.repeat, flags.init.value_or(""), flags.mask.value_or(""), defaults_file(flags.bundle)}) {
    if (!part.empty()) files.push_back({.path = part, .bytes = 0});
  }
  for (const std::string& part : {parts.model, parts.text_encoder, parts.vae}) RIDGE_TRY(add_weights(part, files));
  for (const std::string& lora : flags.loras) files.push_back({.path = RIDGE_TRY(parse_lora(lora)).path, .bytes = 0});
  return files;
}

// The last colon may be part of a name: then no number follows it.
Result<LoraFile> parse_lora(const std::string& text) {
  constexpr double kStrongest = 100;
  LoraFile lora{.path = text};
  const size_t colon = text.rfind(':');
  if (colon != std::string::npos && text.find('/', colon) == std::string::npos && !is_file(text)) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, lora.strength);
    if (error != std::errc() || rest != end || !(std::fabs(lora.strength) <= kStrongest)) {
      return usage_error(fmt::format("--lora {}: expected FILE:STRENGTH, a number from -{} to {}",
                                     ridge::in_quotes(text), kStrongest, kStrongest));
    }
    lora.path.resize(colon);
  }
  if (lora.path.empty()) return usage_error(fmt::format("--lora {}: names no file", ridge::in_quotes(text)));
  return lora;
}

Result<ImageOptions> image_options(const ImageFlags& flags) {
  EngineFlags common{
      .memory = flags.memory, .threads = flags.threads, .cpus = flags.cpus, .isa = flags.isa, .io = flags.io};
  EngineOptions engine = RIDGE_TRY(machine_options(common));
  if (flags.lifecycle != "stream" && flags.lifecycle != "load-run-release") {
    return usage_error(
        fmt::format("--lifecycle {}: give stream or load-run-release", ridge::in_quotes(flags.lifecycle)));
  }
  if (flags.parts.model.empty() || flags.parts.text_encoder.empty()) {
    return usage_error("give --bundle FOLDER, or --model and --text-encoder");
  }
  std::vector<LoraFile> loras;
  for (const std::string& lora : flags.loras) loras.push_back(RIDGE_TRY(parse_lora(lora)));
  return ImageOptions{.model = flags.parts.model,
                      .text_encoder = flags.parts.text_encoder,
                      .vae = flags.parts.vae,
                      .loras = std::move(loras),
                      .memory = engine.memory,
                      .threads = engine.threads,
                      .cpus = engine.cpus,
                      .isa = engine.isa,
                      .io = engine.io,
                      .load_run_release = flags.lifecycle == "load-run-release"};
}

void add_image(CLI::App& app) {
  auto flags = std::make_shared<ImageFlags>();
  auto* command = app.add_subcommand("image", "draw a picture with an image model (Anima)");
  add_picture_flags(*command, *flags);
  command->add_option("--bundle", flags->bundle, "folder with all parts of the model")->type_name("FOLDER");
  command->add_option("--model", flags->parts.model, "the diffusion model")->type_name("FILE");
  command->add_option("--text-encoder", flags->parts.text_encoder, "its Qwen3")->type_name("FILE");
  command->add_option("--lora", flags->loras, "changes the model so; FILE:0.8, may be repeated")
      ->type_name("FILE[:X]")
      ->allow_extra_args(false);
  command->add_option("--vae", flags->parts.vae, "its VAE; without one there is no picture")->type_name("FILE");
  command->add_option("--tokenizer-qwen", flags->parts.tokenizer_qwen, "its tokenizer.json")->type_name("FILE");
  command->add_option("--tokenizer-t5", flags->parts.tokenizer_t5, "its spiece.model")->type_name("FILE");
  command->add_option("--inputs", flags->inputs, "token ids and noise (safetensors)")->type_name("FILE");
  command->add_option("--dump", flags->dump, "every stage (safetensors)")->type_name("FILE");
  command->add_option("-m,--memory", flags->memory, "never use more, such as 2G")->type_name("SIZE");
  command->add_option("-t,--threads", flags->threads, "compute threads (all CPUs)")->type_name("N");
  command->add_option("--cpus", flags->cpus, "CPUs to bind them to, such as 0,2-3")->type_name("LIST");
  command->add_option("--isa", flags->isa, "at most these instructions")->type_name("NAME");
  command->add_option("--lifecycle", flags->lifecycle, "stream (default), or load-run-release")->type_name("NAME");
  command->add_flag("--stats", flags->stats, "load, init, execution and release by step");
  command->add_option("--io", flags->io, "auto, uring, threads or buffered")->type_name("NAME");
  command->footer(kExamples);
  on_run(*command, [flags, command]() -> Result<void> {
    RIDGE_TRY(refuse_beside_repeat(*command));
    RIDGE_TRY(refuse_beside_stages(*command));
    return run(*flags);
  });
}

}  // namespace ridge::cli

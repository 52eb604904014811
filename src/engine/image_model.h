// An image model ready to run: text encoder, adapter and diffusion transformer, planned as phases of one budget
// (docs/image.md).
//
// Not for: tokenizing, sampling or pictures. A sampler asks for velocities; every sigma it will ask for is given first,
// because all modulations are computed once.
//
//   ImageJob job{.height = 64, .width = 64, .prompts = {cond, uncond}, .segments = {{0, 0}, {1, 0}}, .sigmas = sigmas};
//   auto model = RIDGE_TRY(ImageModel::open({.model = "anima.safetensors", .text_encoder = "qwen3.safetensors"}, job));
//   RIDGE_TRY(model->prepare());
//   RIDGE_TRY(model->evaluate(step, latents, velocities));       // one velocity per segment
//
// One thread uses a model at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/image_preview.h"
#include "engine/pass_watch.h"
#include "engine/phase.h"
#include "machine/memory_limits.h"
#include "model/anima.h"
#include "model/vae.h"

namespace ridge {

struct ImageOptions {
  std::string model, text_encoder;
  std::string vae = {};              // empty: decode() is not called
  std::vector<LoraFile> loras = {};  // of the diffusion model
  std::optional<uint64_t> memory;    // a promise of the user's: peak charge ≤ this; none: what the machine offers
  int threads = 0;                   // 0: all usable CPUs
  std::vector<int> cpus = {};
  std::optional<Isa> isa;
  IoKind io = IoKind::automatic;
  std::optional<uint64_t> most_pinned;  // keep at most this much of the weights in memory (to see streaming at work)
  uint64_t other_bytes = 0;             // that the caller holds while the model runs: samplers' histories, …
  // … and what depends on the model's sizes. Called while the model is opened.
  std::function<uint64_t(const AnimaConfig& shape)> beside = {};
  Trace* trace = nullptr;
  StageProfile* profile = nullptr;
  PassTimes* times = nullptr;     // of the transformer's passes
  bool load_run_release = false;  // its blocks come one at a time, without pins or reading ahead
  bool previews = false;          // colours() is called: takes four decodings of 128 × 128 pixels once
  // RGB, eight times the latent's sides: prepare() encodes it with the VAE's encoder, into picture_latent(). It
  // outlives prepare().
  const Image* picture = nullptr;
  const std::atomic<bool>* interrupted = nullptr;  // becomes true: the next block is not begun, an io error says so
};

// A prompt in both tokenizers' ids: 1 … kContextRows of each.
struct PromptIds {
  std::vector<int32_t> qwen, t5;
  std::vector<float> t5_weights = {};  // one for each of t5, or none: all 1
};

// One latent under one prompt: a branch of guidance of an image.
struct ImageSegment {
  uint32_t prompt = 0, image = 0;
};

struct ImageJob {
  uint32_t height = 0, width = 0;  // of the latent, even: an eighth of the picture
  std::vector<PromptIds> prompts;
  std::vector<ImageSegment> segments;  // of every evaluation
  std::vector<float> sigmas;           // evaluate() names them by number
  bool hidden_states = false;          // evaluate_hidden() and finish_hidden() are called instead of evaluate()
};

struct ImageTimes {
  std::chrono::nanoseconds encode{0}, condition{0}, preview{0}, load{0}, denoise{0}, decode{0};
  std::chrono::nanoseconds picture{0};  // encoding ImageOptions::picture
  uint64_t evaluations = 0;
};

class ImageModel {
 public:
  // Plans every phase: does_not_fit with a table before anything large is allocated. Usage error: sizes that are odd
  // or beyond the model's grid; bad input: ids outside the vocabularies.
  static Result<std::unique_ptr<ImageModel>> open(const ImageOptions& options, const ImageJob& job);

  // The encoder and the adapter run, keys, values and modulations are computed, and the transformer is loaded.
  Result<void> prepare();
  // latents: [images, latent_floats]; velocities: [segments, latent_floats], overwritten.
  Result<void> evaluate(size_t sigma, Matrix<const float> latents, Matrix<float> velocities);
  // The two halves of evaluate(), with the state after the last block between them in hidden(): [segments · patches,
  // width], row after row. Whoever forecasts it writes it there. Together they give evaluate()'s bytes.
  Result<void> evaluate_hidden(size_t sigma, Matrix<const float> latents);
  Result<void> finish_hidden(size_t sigma, Matrix<float> velocities);
  std::span<float> hidden() const { return {hidden_.data, hidden_.rows * hidden_.stride}; }  // after prepare()
  // Floats of hidden(), before it is there.
  static size_t hidden_floats(const AnimaConfig& config, const ImageJob& job);

  // Sees the feed-forward parts of evaluations from now on; nullptr: nobody does.
  void watch_ffn(FfnWatch* watch) { watch_.ffn = watch; }

  // Ends the denoising and turns a latent, [latent_floats], into a picture: [3, 8 height, 8 width], −1 … 1. The
  // transformer's weights are gone after it: evaluate() is no longer called.
  Result<void> decode(std::span<const float> latent, std::span<float> picture);

  const AnimaConfig& shape() const { return anima_->shape(); }
  size_t picture_floats() const { return size_t{3} * Vae::kScale * Vae::kScale * job_.height * job_.width; }
  uint32_t decoding_bands() const { return bands_; }  // in which the picture is made, so that they fit into the budget
  size_t latent_floats() const { return size_t{shape().channels} * job_.height * job_.width; }
  // After prepare(): the encoder's states of a prompt, and its context without the zero rows.
  Matrix<const float> states(size_t prompt) const;
  Matrix<const float> context(size_t prompt) const;

  // [latent_floats], in the transformer's scale: after prepare(), with ImageOptions::picture.
  std::span<const float> picture_latent() const { return picture_latent_; }
  const LatentColours& colours() const { return *colours_; }  // after prepare(), with ImageOptions::previews
  const Phase& denoising() const { return *denoise_; }
  const Phase& encoding() const { return *encode_; }
  const Phase& conditioning() const { return *condition_; }
  const KernelChoice& kernels() const { return kernels_; }
  uint64_t budget() const { return machine_.budget; }
  int threads() const { return pool_->size(); }
  const ImageTimes& times() const { return times_; }

 private:
  ImageModel() = default;
  Result<void> check_job() const;
  Result<void> choose_machine();
  void lay_out();
  Result<void> plan();
  Result<void> plan_phases(const Account& held, const Account& denoising);
  Error refusal(const Account& held, const Account& denoising);
  // The VAE's work: one half of it on one size of latent. What it takes beside the planes.
  struct VaeWork {
    const Vae* vae = nullptr;
    LatentSize size;
    uint32_t* bands = nullptr;  // to be planned
  };
  std::vector<VaeWork> vae_work();
  Account vae_account(Account held, const VaeWork& work) const;
  Result<void> plan_bands(const Account& held);
  VaeMachine vae_machine() const {
    return {.kernels = &kernels_.kernels, .pool = pool_.get(), .interrupted = options_.interrupted};
  }
  Result<void> fit_colours();
  Result<void> encode_picture();
  Result<void> encode();
  Result<void> condition();
  DenoisePass denoise_pass(size_t sigma) const;
  using DenoiseFunction = void (Anima::*)(Ops&, const DenoisePass&) const;
  Result<void> run(const Phase& phase, size_t sigma, DenoiseFunction function);
  void make_denoising_phases();
  Result<Account> plan_last(const Account& held);
  void read_latents(Matrix<const float> latents);
  void write_velocities(Matrix<float> velocities);

  ImageOptions options_;
  ImageJob job_;
  KernelChoice kernels_;
  std::unique_ptr<ThreadPool> pool_;
  PhaseMachine machine_;
  ProcessMemory process_;
  std::unique_ptr<Model> qwen_;
  std::unique_ptr<Anima> anima_;
  std::optional<Vae> vae_;
  bool vae_loaded_ = false;
  std::optional<Vae> encoder_;  // gone after prepare()
  uint32_t bands_ = 1, probe_bands_ = 1, encoder_bands_ = 1;
  std::vector<float> picture_latent_;
  std::optional<LatentColours> colours_;
  PhaseMachine denoise_machine_, last_machine_;
  std::unique_ptr<Phase> encode_, condition_, denoise_;
  std::unique_ptr<Phase> last_;  // with ImageJob::hidden_states: the last layer, where denoise_ ends before it
  std::vector<int32_t> t5_ids_;  // of all prompts
  // Without data until prepare().
  ConditionPass pass_;
  Rows grid_, patches_, velocities_, hidden_;
  PassWatch watch_;
  uint64_t buffer_bytes_ = 0;
  Slab buffers_;
  ImageTimes times_;
};

}  // namespace ridge

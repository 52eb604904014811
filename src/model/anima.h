// Anima: a text adapter and a diffusion transformer (Cosmos-Predict2's) that turns noise into the latent of a picture.
// docs/models/anima.md has tensors and formulas.
//
// Two passes use its weights. condition() runs once per picture: the adapter, keys and values of all cross-attentions,
// and the modulations of all steps. denoise() runs once per step, over the rest: 28 × {self, cross, ffn} in the
// original. Numbers go in and out through Rows that the caller owns; on an Outline these have no data.
//
//   auto anima = RIDGE_TRY(Anima::open("anima.safetensors"));
//   anima->condition(ops, pass);       // ops: an Outline, or a Compute
//   anima->denoise(ops, pass);
//
// Not for: sampling (engine/image_model.h), the text encoder (an ordinary Qwen3), the picture (vae.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/lora.h"
#include "model/model.h"

namespace ridge {

struct AnimaConfig {
  uint32_t width = 0, layers = 0, heads = 0, head_dim = 0, ffn = 0, rank = 0;
  uint32_t channels = 16, patch = 2;  // of the latent; pixels of a patch on a side
  uint32_t text_width = 0;            // of the encoder's states
  uint32_t context_width = 0;         // of the adapter
  uint32_t adapter_layers = 0, adapter_heads = 0, adapter_head_dim = 0, adapter_ffn = 0, vocabulary = 0;

  uint32_t patch_inputs() const { return (channels + 1) * patch * patch; }  // with the padding mask, all zeros
  uint32_t patch_outputs() const { return channels * patch * patch; }
  size_t modulation_floats() const { return (3 * size_t{layers} * 3 + 2) * width; }  // of one step
};

// The context has so many rows, of which the adapter fills the first; the others are zeros.
inline constexpr uint32_t kContextRows = 512;

// Rows [begin, begin + count) of a pass.
struct Segment {
  uint32_t begin = 0, count = 0;
  uint32_t prompt = 0;  // of denoise(): whose keys and values it sees
};

// Keys and values of all cross-attentions, prompt after prompt.
struct TextKeys {
  std::vector<uint32_t> rows;   // of the context, by prompt
  std::vector<size_t> offsets;  // of a prompt's keys in a layer's row, floats; one more than prompts
  Rows layers;                  // [layers, offsets.back()]

  static TextKeys of(const AnimaConfig& config, std::vector<uint32_t> rows);      // without data
  Rows packed(const AnimaConfig& config, uint32_t layer, uint32_t prompt) const;  // [heads, packed_floats]
};

struct ConditionPass {
  std::vector<Segment> prompts;  // rows of each prompt in the adapter: its T5 ids, one after the other
  std::vector<Segment> texts;    // rows of each prompt in `states`
  Rows states;                   // [rows, text_width]: the encoder's, after its last norm
  Rows angles;                   // [longest of both, adapter_head_dim]
  Rows timesteps;                // [steps, width]: timestep_features()
  Rows weights;                  // [rows, 1]: of the context's rows, 1 unless the prompt says otherwise
  Rows context;                  // out: [rows, context_width]
  TextKeys keys;                 // out
  Rows modulations;              // out: [steps, modulation_floats], for denoise() after finish_modulations()
};

// Watches a pass over the transformer while it runs.
enum class FfnMatrix : uint8_t { up, down };
class DenoiseWatch {
 public:
  virtual ~DenoiseWatch() = default;
  // A part begins, "blocks.3.ffn"; false: the pass ends here, and its results are worth nothing.
  virtual bool part(const std::string& name) = 0;
  // What the feed-forward matrices are given, layer by layer, the first matrix before the second. x: all rows of the
  // pass, segment after segment; valid during the call.
  virtual void ffn_input(uint32_t layer, FfnMatrix matrix, Matrix<const float> x) = 0;
};

struct DenoisePass {
  std::vector<Segment> segments;  // one per image and branch of guidance, each of angles.rows rows
  Rows patches;                   // [rows, patch_inputs]
  Rows angles;                    // [rows of a segment, head_dim]
  Rows modulation;                // [1, modulation_floats]
  TextKeys keys;
  Rows velocity;  // out: [rows, patch_outputs]
  Rows hidden;    // [rows, width], of blocks() and finish(): the state after the last block
  DenoiseWatch* watch = nullptr;
};

class Anima : public Model {
 public:
  // Safetensors (also in parts), GGUF or a pack of one of these. Bad input names the tensor that is missing or has
  // another shape.
  static Result<std::unique_ptr<Anima>> open(const std::string& path, std::span<const LoraFile> loras = {});
  static Result<std::unique_ptr<Anima>> from_gguf(Gguf file, std::span<const LoraPair> loras = {});

  const AnimaConfig& shape() const { return shape_; }

  // Token ids of all prompts, for the adapter's embedding, come with the pass (PassIo).
  void condition(Ops& ops, const ConditionPass& pass) const;
  void denoise(Ops& ops, const DenoisePass& pass) const;
  // denoise() in two passes, with the state between them in pass.hidden: a forecast of it needs the second alone.
  void blocks(Ops& ops, const DenoisePass& pass) const;
  void finish(Ops& ops, const DenoisePass& pass) const;
  void forward(Ops&) const override;  // there is no pass without its numbers: not called

  // The tensors that a pass multiplies by: what a pack has as panels. The others, gathered(), are rows of a table.
  std::vector<TensorId> multiplied() const;

  // Modulations scale by 1 + what the matrices give.
  void finish_modulations(Rows modulations) const;

 private:
  struct Norms {
    VectorRef q, k;
  };
  struct Modulation {
    Weight down, up;
  };
  enum Part : uint8_t { kSelf, kCross, kFfn };
  struct Layer {
    Weight q, k, v, output, cross_q, cross_k, cross_v, cross_output, up, down;
    Norms norms, cross_norms;
    Modulation modulations[3];
  };
  struct AdapterAttention {
    VectorRef norm;
    Weight q, k, v, output;
    Norms norms;
  };
  struct AdapterLayer {
    AdapterAttention self, cross;
    VectorRef ffn_norm, up_bias, down_bias;
    Weight up, down;
  };

  // What a LoRA adds to a product: scale · up (down x).
  struct Adapter {
    Weight down, up;
    float scale = 1;
  };

  Result<void> load_loras(ModelBuilder& b, std::span<const LoraPair> loras);
  void place_loras(std::span<const LoraPair> loras);
  // Every product of the model: with what LoRAs add to it.
  void linear(Ops& ops, Rows x, std::initializer_list<LinearPart> parts) const;
  Result<void> read_shape(const Gguf& file);
  Result<void> load(ModelBuilder& b);
  Result<void> load_layer(ModelBuilder& b, uint32_t il);
  Result<void> load_adapter(ModelBuilder& b);
  Result<AdapterAttention> load_adapter_attention(ModelBuilder& b, const std::string& prefix, const char* norm,
                                                  uint32_t key_width);
  void adapt(Ops& ops, const ConditionPass& pass) const;
  void adapter_attention(Ops& ops, const AdapterAttention& w, const ConditionPass& pass, Rows x, Rows keys_of,
                         const std::vector<Segment>& key_rows) const;
  void modulate(Ops& ops, const ConditionPass& pass) const;
  void blocks(Ops& ops, const DenoisePass& pass, Rows x) const;
  bool begin_part(Ops& ops, const DenoisePass& pass, const std::string& name) const;
  void finish(Ops& ops, const DenoisePass& pass, Rows x) const;
  void self_part(Ops& ops, const Layer& w, const DenoisePass& pass, Rows modulation, Rows x) const;
  void cross_part(Ops& ops, uint32_t il, const DenoisePass& pass, Rows modulation, Rows x) const;
  void ffn_part(Ops& ops, uint32_t il, const DenoisePass& pass, Rows modulation, Rows x) const;
  // Shift, scale and gate of a part, each [1, width]; the last two rows are those of the end, without a gate.
  Rows modulation_of(Rows modulation, uint32_t layer, Part part) const;
  Rows normed(Ops& ops, Rows x, Rows modulation) const;

  AnimaConfig shape_;
  std::vector<Layer> layers_;
  std::vector<AdapterLayer> adapter_;
  Weight first_, last_, time_1_, time_2_, adapter_out_;
  Modulation last_modulation_;
  VectorRef time_norm_, adapter_out_bias_, adapter_norm_;
  std::vector<Adapter> loras_;                   // in the order of the pairs
  std::vector<std::vector<uint32_t>> loras_of_;  // by tensor; empty where there are none
};

// Sinusoids of a timestep in [0, 1]: cosines, then sines, of t · 10000^(−i / (width / 2)); out: [width].
void timestep_features(double t, std::span<float> out);
// Rotation angles of positions 0 … rows − 1: [rows, head_dim], base 10000.
void line_angles(Rows out);
// Of the patches of an image, row by row: head_dim is shared by time (always 0), row and column (docs/models/anima.md).
void grid_angles(uint32_t height, uint32_t width, Rows out);

// [channels, 2 height, 2 width] of a latent to [height · width, patch_inputs], and velocities back.
void patchify(const AnimaConfig& config, std::span<const float> latent, uint32_t height, uint32_t width, Rows out);
void unpatchify(const AnimaConfig& config, Rows patches, uint32_t height, uint32_t width, std::span<float> latent);

}  // namespace ridge

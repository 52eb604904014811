// The operations a forward pass is written in. Two classes carry them out: Compute (compute.h) on real numbers, and
// Outline (outline.h), which only writes down what would be read and counted. So the program of a model, its costs and
// its workspace come from the same lines that compute it, and cannot differ from them.
//
// Not for: kernels (kernels/), or the order of a particular architecture (one file each beside this one).
//
//   Rows x = ops.embed(w.embedding);
//   Rows h = ops.rms_norm(x, layer.attn_norm);
//   ops.linear(h, {{.weight = layer.q, .out = q}, {.weight = layer.k, .out = k}});
//
// Errors (a failed read) are kept: later operations do nothing, and status() tells at the end, so that a forward pass
// reads like the paper.
#pragma once

#include <bitset>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/result.h"
#include "kernels/kernels.h"
#include "kernels/op.h"
#include "program/program.h"

namespace ridge {

// Activations: [tokens, width], in the workspace of the pass.
using Rows = Matrix<float>;

// A matrix of the model, [rows (outputs), cols (inputs)]: placed and streamed as blocks.
struct Weight {
  TensorId id = 0;
  uint32_t rows = 0, cols = 0;
  Type type = Type::F32;
  bool present = false;
  explicit operator bool() const { return present; }
};

// A vector of the model (norm, bias, rope factors): always resident as floats.
struct VectorRef {
  uint32_t offset = 0, size = 0;  // in floats, into Model::vector()
  explicit operator bool() const { return size != 0; }
};

// What the tokens of a pass are. Only latent attention computes the two in different forms; which one may depend on the
// role but never on how many tokens share a pass.
enum class TokenRole : uint8_t { prompt, generated };

struct PassShape {
  uint32_t tokens = 1;
  uint32_t outputs = 1;   // the last `outputs` tokens get logits; 0: the head is left out
  uint64_t position = 0;  // of the first token
  TokenRole role = TokenRole::prompt;
  // Products of many rows by float weights pack their activations once for all their slices
  // (Kernels::pack_activations), for as much room again. The results are the same.
  bool packed = false;
};

// One output of a linear step: out = x · weightᵀ (+ bias).
struct LinearPart {
  Weight weight;
  VectorRef bias = {};
  Rows out;  // [tokens, weight.rows]
};

enum class RopePairs : uint8_t { neighbours /* (2i, 2i+1) */, halves /* (i, i + rot/2) */ };

struct RopeCall {
  uint32_t heads = 0, head_dim = 0;
  uint32_t table = 0;  // index of the model's rope tables (model.h)
  RopePairs pairs = RopePairs::neighbours;
};

struct AttentionCall {
  uint32_t layer = 0;  // of the KV cache
  uint32_t heads = 0, kv_heads = 0, key_dim = 0, value_dim = 0;
  uint32_t window = 0;  // positions a token sees, itself included; 0: all
  float scale = 1, softcap = 0;
  VectorRef sinks = {};  // [heads]: a score that takes part in the softmax and carries no value
};

// Attention over latents (latent_attention.h has the formulas). Either one matrix kv_b, rows head by head: `nope` rows
// of K, then `value` rows of V, each of `latent` columns; or k_b (per head `latent` rows of `nope` columns) and v_b
// (per head `value` rows of `latent` columns). nope, value and latent are multiples of 16.
struct LatentCall {
  uint32_t layer = 0;  // of the KV cache: one head with keys of latent + rope and values of latent
  uint32_t heads = 0, nope = 0, rope = 0, value = 0, latent = 0;
  Weight kv_b, k_b, v_b;
  float scale = 1;
};

// What latent_attention() takes of the workspace, all threads together.
struct LatentTemps {
  Rows queries, mixed;   // generated: [tokens, heads · (latent + rope)], [tokens, heads · latent]
  Rows latents, ropes;   // prompt: one chunk of the cache, [256, latent], [256, rope]
  Q8Rows latents8 = {};  // and as int8, if a weight takes that
  Rows merged;           // [tokens, 2 · heads], as merge_chunk() keeps them
};

// Attention without order: every row of q sees every key. Keys and values as pack_keys() left them.
struct AttendCall {
  uint32_t heads = 0, head_dim = 0;
  uint32_t keys = 0;  // rows that were packed
  float scale = 1;
  std::optional<float> sink = {};  // a score that takes part in the softmax and carries no value
};

enum class Gate : uint8_t {
  silu,
  gelu_tanh,
  relu,          // max(g, 0) · u
  silu_clamped,  // gpt-oss: g · sigmoid(1.702 g) · (u + 1), with g = min(gate, 7) and u = clamp(up, −7, 7)
};

enum class RouterGating : uint8_t { softmax, sigmoid, softmax_of_chosen /* over the chosen logits alone */ };

struct RouteCall {
  uint32_t experts = 0, used = 0;
  RouterGating gating = RouterGating::softmax;
  bool normalise = false;                // chosen weights are divided by their sum (at least 2^−14)
  float scale = 1;                       // then multiplied by this
  uint32_t groups = 1, groups_used = 1;  // at most 64; experts outside of the best groups are left out
  VectorRef selection_bias = {};         // [experts], added for the choice alone
};

// What a router chose for each token, best first. Expert numbers are whole floats, exact up to 2^24: they live in the
// workspace like everything else.
struct Routing {
  Rows experts, weights;  // [tokens, used]
};

// Matrices of all experts of a layer. Each Weight is that of expert 0, and the tensor of expert e has the id id + e.
// Either gate and up apart, or one fused matrix whose rows are gate, up.
struct ExpertMatrices {
  uint32_t count = 0;
  Weight gate, up, gate_up, down;
  VectorRef gate_bias, up_bias, down_bias;  // [count, rows]
};

// Neurons of a feed-forward part in groups that are read and left out as one. Each Weight is that of group 0, and the
// tensor of group g has the id id + g.
struct NeuronGroups {
  uint32_t count = 0, neurons = 0;       // groups, and neurons of each
  Weight up;                             // [neurons, width]; absent: gates are the hidden values
  Weight down;                           // [width, neurons]
  VectorRef up_bias, down_bias;          // [count · neurons], [width]
  double touched = 0.4;                  // share of groups that a token is expected to touch
  std::vector<double> touched_by_group;  // share of tokens that touch each; empty: all alike
  explicit operator bool() const { return count != 0; }
};

class Ops {
 public:
  explicit Ops(const PassShape& shape) : shape_(shape) {}
  virtual ~Ops() = default;
  Ops(const Ops&) = delete;
  Ops& operator=(const Ops&) = delete;

  const PassShape& shape() const { return shape_; }
  size_t tokens() const { return shape_.tokens; }

  // A new part of the program: blocks do not reach across it ("blk.3.attn").
  virtual void part(const std::string& name) = 0;

  // Space for [tokens, width] until the enclosing Frame ends; not initialised.
  Rows temp(size_t width) { return temp(tokens(), width); }
  Rows temp(size_t rows, size_t width);

  virtual Rows embed(const Weight& table) = 0;                                      // rows of the pass's token ids
  virtual Rows rms_norm(Rows x, VectorRef w, float eps) = 0;                        // new rows
  virtual void rms_norm_heads(Rows x, VectorRef w, float eps, uint32_t heads) = 0;  // each head by itself, in place
  virtual void linear(Rows x, std::initializer_list<LinearPart> parts) = 0;
  virtual void rope(Rows x, const RopeCall& call) = 0;  // in place
  virtual void attention(const AttentionCall& call, Rows q, Rows k, Rows v,
                         Rows out) = 0;  // stores k and v, then attends
  // q: [tokens, heads · (nope + rope)]; kv: [tokens, latent + rope], the normed latent and the shared rotated part;
  // out: [tokens, heads · value]. Stores kv, then attends.
  virtual void latent_attention(const LatentCall& call, Rows q, Rows kv, Rows out) = 0;
  virtual void relu(Rows x) = 0;                     // max(x, 0), in place
  virtual void relu_squared(Rows x) = 0;             // max(x, 0)², in place
  virtual void glu(Gate gate, Rows g, Rows up) = 0;  // g = act(g) · up
  virtual void add(Rows into, Rows x) = 0;
  virtual void scale(Rows x, float factor) = 0;
  virtual void scale_by_sigmoid(Rows x, Rows gate) = 0;  // x[t, :] ·= sigmoid(gate[t, 0])
  // Chooses experts by the router's logits [tokens, experts]; the reads of the chosen begin at once. One experts() of
  // the same layer follows, with other operations in between if there are any to hide the reads behind.
  virtual Routing route(Rows logits, const RouteCall& call) = 0;
  // out[t] = Σ over the chosen, in their order, of weight · down(act(gate·x[t]) ⊙ up·x[t]).
  virtual void experts(Rows x, const Routing& routing, const ExpertMatrices& m, Gate gate, Rows out) = 0;
  // out = down(gates ⊙ up·x) (+ biases), gates: [tokens, count · neurons], not negative. Groups whose gates are all 0
  // are not read; the result is as if they were.
  virtual void neurons(Rows x, Rows gates, const NeuronGroups& m, Rows out) = 0;
  // The last rows of x through the head, capped if softcap > 0: the logits of the pass.
  virtual void logits(Rows x, const Weight& head, float softcap) = 0;

  // What diffusion transformers need beside these. Rows of several images or prompts share a pass; what must not meet
  // is called by slices of rows.
  // (x − mean) / deviation · scale + shift, each row by itself; scale and shift: [1, width]. out may be x.
  virtual void layer_norm(Rows x, Rows scale, Rows shift, float eps, Rows out) = 0;
  virtual void gelu(Rows x) = 0;                                 // the exact form, in place
  virtual void silu(Rows x) = 0;                                 // in place
  virtual void add_scaled(Rows into, Rows factors, Rows x) = 0;  // factors: [1, width]
  virtual void scale_rows(Rows x, Rows factors, Rows out) = 0;   // out[r, :] = factors[r, 0] · x[r, :]
  // Rotates the pairs (i, i + head_dim / 2) of each head of row r by angles row r: [rows, head_dim], cosine and sine of
  // pair i at 2i and 2i + 1.
  virtual void rotate(Rows x, Rows angles, uint32_t heads) = 0;
  // Keys and values [rows, heads · head_dim] for attend(); packed: [heads, packed_floats(rows, head_dim)].
  virtual void pack_keys(Rows k, Rows v, uint32_t heads, Rows packed) = 0;
  virtual void attend(const AttendCall& call, Rows q, Rows packed, Rows out) = 0;

  virtual Result<void> status() const = 0;

  // Workspace, a stack of floats: `top` is what Frame gives back.
  size_t workspace_top() const { return top_; }
  void workspace_release(size_t top) { top_ = top; }

 protected:
  // The address of `floats` floats at `offset` of the workspace.
  virtual float* workspace(size_t offset, size_t floats) = 0;
  size_t take(size_t floats);

  LatentTemps latent_temps(const LatentCall& call, bool exact);

  // Whether a product of so many rows packs its activations (PassShape::packed): where they are read often.
  bool packs_activations(size_t rows, const Weight& weight, bool exact) const;
  // int8 activations for [rows, cols], as quantize() fills them.
  Q8Rows temp_q8(size_t rows, size_t cols);

  // What experts() takes beside the weights. The rows of `outputs` are grouped by expert.
  struct ExpertScratch {
    Q8Rows all8{}, picked8{};  // of x: every token, and those of the expert at work; empty if no weight takes int8
    Rows picked;               // [tokens, width]; empty if no weight takes floats
    Rows first;                // [tokens, rows of gate and up]
    Q8Rows hidden8{};          // [tokens, hidden]
    Rows outputs;              // [tokens · used, width]
  };
  ExpertScratch expert_scratch(size_t tokens, size_t used, const ExpertMatrices& m, bool exact);

  // What neurons() takes beside the weights.
  struct NeuronScratch {
    Q8Rows x8{};       // [tokens, width]; empty if no weight takes int8
    Rows up;           // [tokens, all neurons]; empty without up
    Rows hidden;       // [tokens, all neurons], of which those of groups that fire are used
    Q8Rows hidden8{};  // the same
  };
  NeuronScratch neuron_scratch(size_t tokens, const NeuronGroups& m, bool exact);

 private:
  PassShape shape_;
  size_t top_ = 0;
};

// Gives the workspace taken since its construction back.
class Frame {
 public:
  explicit Frame(Ops& ops) : ops_(ops), top_(ops.workspace_top()) {}
  ~Frame() { ops_.workspace_release(top_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

 private:
  Ops& ops_;
  size_t top_;
};

// Operations of kernels, by their number.
using OpSet = std::bitset<static_cast<size_t>(Op::pack_activations) + 1>;

// Floats that pack_keys() writes for a head: keys in panels of 16 positions, then values.
size_t packed_floats(size_t rows, size_t head_dim);

// Whether a product with this weight takes int8 activations.
bool uses_int8(Type type, bool exact);

}  // namespace ridge

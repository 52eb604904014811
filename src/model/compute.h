// Carries a forward pass out: activations in a workspace, weights from a source, kernels chosen for this CPU.
//
// Not for: the order of operations (the architecture's file), sampling or conversations (engine/).
//
//   Compute pass(model, machinery, {.tokens = n, .position = p}, {.ids = ids, .logits = logits});
//   model.forward(pass);
//   RIDGE_TRY(pass.status());
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "memory/weight_source.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/ops.h"
#include "model/pass_trace.h"
#include "model/product_probe.h"
#include "model/stage_profile.h"

namespace ridge {

struct LatentSlice;  // latent_attention.h

// Below this many floats a parallel region costs more than it saves: two barriers are about 2 µs, and one core moves
// this much in that.
constexpr size_t kWorthSharing = 8192;

// Groups of neurons that passes came by, and those of them that fired.
struct NeuronUse {
  uint64_t groups = 0, touched = 0;
};

// What all passes of a session share; everything must outlive the pass.
struct Machinery {
  const Kernels* kernels = nullptr;
  ThreadPool* pool = nullptr;
  WeightSource* source = nullptr;
  KvCache* cache = nullptr;
  std::span<float> workspace;  // ≥ Model::workspace_floats
  std::span<uint8_t> panels;   // pool->size() × panel_scratch_bytes(program, tokens), 64-byte aligned
  std::span<float> attention;  // attention_floats(model, context, pool->size()); of diffusion: attend_floats (attend.h)
  std::span<float> latent;     // pool->size() × Model::latent_floats
  bool exact = false;          // float activations
  bool all_neurons = false;    // groups that rest are read and computed on as well: the same result
  float mask_absent = 1;       // scores of experts that are not in memory are multiplied by it before the choice: lossy
  NeuronUse* neuron_use = nullptr;
  Trace* trace = nullptr;
  StageProfile* profile = nullptr;
  ProductProbe* probe = nullptr;
};

// Scratch per thread for passes of up to `tokens` tokens: a few panels of the matrices that may stream in file layout,
// at least one of the widest; 0 if all are stored as panels.
uint64_t panel_scratch_bytes(const Program& program, uint64_t tokens);
// Scratch of all workers for attention, and the partial results of a long context's chunks.
uint64_t attention_floats(const Model& model, uint64_t context, int workers);

struct PassIo {
  std::span<const int32_t> ids;  // [tokens]
  Matrix<float> logits;          // [outputs, vocabulary]
  Matrix<float> hidden = {};     // [tokens, width]: not empty: what the head would multiply, of all tokens
};

class Compute : public Ops {
 public:
  Compute(const Model& model, const Machinery& machinery, const PassShape& shape, const PassIo& io);

  void part(const std::string& name) override;
  Rows embed(const Weight& table) override;
  Rows rms_norm(Rows x, VectorRef w, float eps) override;
  void rms_norm_heads(Rows x, VectorRef w, float eps, uint32_t heads) override;
  void linear(Rows x, std::initializer_list<LinearPart> parts) override;
  void rope(Rows x, const RopeCall& call) override;
  void attention(const AttentionCall& call, Rows q, Rows k, Rows v, Rows out) override;
  void latent_attention(const LatentCall& call, Rows q, Rows kv, Rows out) override;
  void relu(Rows x) override;
  void relu_squared(Rows x) override;
  void glu(Gate gate, Rows g, Rows up) override;
  void add(Rows into, Rows x) override;
  void scale(Rows x, float factor) override;
  void scale_by_sigmoid(Rows x, Rows gate) override;
  Routing route(Rows logits, const RouteCall& call) override;
  void experts(Rows x, const Routing& routing, const ExpertMatrices& m, Gate gate, Rows out) override;
  void neurons(Rows x, Rows gates, const NeuronGroups& m, Rows out) override;
  void logits(Rows x, const Weight& head, float softcap) override;
  void layer_norm(Rows x, Rows scale, Rows shift, float eps, Rows out) override;
  void gelu(Rows x) override;
  void silu(Rows x) override;
  void add_scaled(Rows into, Rows factors, Rows x) override;
  void scale_rows(Rows x, Rows factors, Rows out) override;
  void rotate(Rows x, Rows angles, uint32_t heads) override;
  void pack_keys(Rows k, Rows v, uint32_t heads, Rows packed) override;
  void attend(const AttendCall& call, Rows q, Rows packed, Rows out) override;
  Result<void> status() const override;

 protected:
  float* workspace(size_t offset, size_t floats) override;

 private:
  // A piece at work: where its weights are and where its outputs go.
  struct Work {
    Type type;
    Layout layout;
    const uint8_t* weights;
    uint32_t rows, cols;
    float* out;
    size_t out_stride;
  };
  bool failed() const { return error_.has_value(); }
  void fail(Error error);
  void product(Rows x, std::span<const LinearPart> parts);
  void adapt(Rows x, const LinearPart& part);
  Q8Rows quantize(Rows x);
  void quantize(Rows x, const Q8Rows& x8);
  void run_expert(uint32_t expert, Rows x, std::span<const uint32_t> tokens, const ExpertMatrices& m, Gate gate,
                  const ExpertScratch& s, Rows out);
  // Groups of neurons that fire for any token of the pass, their blocks, and the right to use these.
  // What a product multiplies by: rows, and what was made of them for the weights' kernels.
  struct Activations {
    Rows rows;
    Q8Rows int8{};
    const float* packed = nullptr;
  };
  struct FiringGroups {
    std::span<const uint32_t> groups;
    std::span<const BlockId> blocks;
    std::span<Lease> leases;
  };
  std::vector<uint32_t> firing_groups(Rows gates, const NeuronGroups& m);
  void acquire_and_raise(Rows x, const NeuronGroups& m, const FiringGroups& f, const NeuronScratch& s);
  void raise(Rows x, const NeuronGroups& m, const FiringGroups& f, std::span<const uint32_t> places,
             const NeuronScratch& s);
  Rows gather_hidden(Rows gates, const NeuronGroups& m, std::span<const uint32_t> groups, const NeuronScratch& s);
  void lower(Rows hidden, const NeuronGroups& m, const FiringGroups& f, const NeuronScratch& s, Rows out);
  std::vector<float> factors_of_absent(const ExpertGroup& group) const;
  bool run_step(std::span<const Slice> slices, std::span<const LinearPart> parts, const Activations& x);
  void add_bias(Rows x, VectorRef biases, uint32_t expert);
  Result<void> run_slice(const Slice& slice, std::span<const LinearPart> parts, const Activations& x);
  void run_works(std::span<const Work> works, const Activations& x);
  void run_panels(const Work& work, size_t first_panel, size_t last_panel, const Activations& x,
                  std::span<uint8_t> scratch);
  const float* pack_activations(Rows x);
  Result<LatentSlice> latent_slice(const LatentCall& call, const Slice& slice);
  void each_token(size_t tokens, FunctionRef<void(size_t token)> job);

  const Model& model_;
  const Machinery& m_;
  PassIo io_;
  size_t step_ = 0;
  size_t expert_group_ = 0;  // of the next experts()
  Lease lease_;
  std::vector<Rows> rope_;  // [tokens, rot] per table
  PassTrace trace_;
  std::optional<Error> error_;
};

}  // namespace ridge

// Runs a forward pass without numbers: writes down the blocks, their order, the costs and the workspace it would take.
//
//   Outline outline(model, {.tokens = 1}, {.slot_bytes = 4 << 20});
//   model.forward(outline);
//   Program p = std::move(outline).finish();
#pragma once

#include <set>

#include "model/model.h"
#include "model/ops.h"

namespace ridge {

// Operations of one element, as the polynomials in kernels/ count (a fused multiply-add is 2).
inline constexpr uint64_t kExpFlops = 20;

class Outline : public Ops {
 public:
  Outline(const Model& model, const PassShape& shape, const ProgramOptions& options);

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
  Result<void> status() const override { return {}; }

  Program finish() &&;
  size_t workspace_floats() const { return most_; }
  size_t latent_floats() const { return latent_floats_; }
  const OpSet& operations() const { return used_; }
  // Whether the pass multiplies with this matrix in linear() or logits().
  bool is_product(TensorId weight) const { return products_.contains(weight); }

 protected:
  float* workspace(size_t offset, size_t floats) override;

 private:
  struct Step {                 // one linear step of the part
    std::vector<Piece> pieces;  // whole tensors
    uint64_t tokens = 0;
    uint64_t in_floats = 0;
    uint32_t heads = 0;  // not 0: slices hold whole heads, the same ones of each tensor
    Operator op = Operator::other;
  };
  // What is known of the visits to the blocks of a part: an expert's come with a chance, for a share of the tokens.
  struct Demand {
    bool on_demand = false;
    double chance = 1;       // that a pass visits the block
    double token_share = 1;  // of the tokens of the pass, on average over all passes
    bool whole = false;      // its steps share one block, whatever the slots hold
  };
  void close_part() { close_part(Demand{}); }
  void close_part(const Demand& demand);
  static Cost expected(Cost cost, const Demand& demand);
  std::vector<std::vector<Piece>> cut_into(const Step& step, uint64_t count) const;
  std::vector<std::vector<Piece>> cut_by_heads(const Step& step, uint64_t count) const;
  void cut_step(const Step& step, uint64_t most_bytes, std::vector<std::vector<Piece>>& slices) const;
  Cost slice_cost(const std::vector<Piece>& pieces, const Step& step) const;
  uint64_t stored(const std::vector<Piece>& pieces) const;
  void record(const std::vector<Weight>& weights, size_t tokens, size_t in_width, Operator op);
  void adapt(size_t rows, const Weight& weight, Operator op);
  Operator operator_of(const Weight& weight) const;
  void count_other(Operator op, const Cost& cost);
  void elementwise(Operator op, uint64_t floats_moved, uint64_t flops);
  void use(std::initializer_list<Op> ops);
  void use_gate(Gate gate);
  void use_cache();

  const Model& model_;
  ProgramOptions options_;
  Program program_;
  std::string part_name_;
  std::vector<Step> part_steps_;
  size_t most_ = 0, latent_floats_ = 0;
  OpSet used_;
  std::set<TensorId> products_;
};

}  // namespace ridge

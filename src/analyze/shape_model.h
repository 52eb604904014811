// Models of which only the shape is known: no file, no weights, but the same forward pass written on the same
// operations, so that programs and costs come from the counting of real models. Also for architectures that Ridge does
// not run, such as pythia's.
//
// Not for: computing (there are no weights).
//
//   const ModelShape* shape = find_shape("qwen2.5-1.5b");
//   ModelShape own = RIDGE_TRY(parse_shape(json_text, "my.json"));
//   auto model = RIDGE_TRY(make_shape_model(own));
//   Cost c = model->program({.tokens = 1}, {}).cost();
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/model.h"

namespace ridge {

struct ModelShape {
  std::string name;
  uint32_t layers = 0, width = 0, ffn = 0, vocabulary = 0;
  uint32_t heads = 0, kv_heads = 0, head_dim = 0;  // kv_heads = heads: multi-head attention
  uint32_t ffn_matrices = 3;                       // gate, up, down; 2: up, down
  bool tied = true;                                // the head is the embedding's matrix
  bool biases = false;                             // of q, k and v
  uint32_t window = 0;                             // positions that a token sees, 0: all
  uint32_t context = 4096;
  Type type = Type::F16, head_type = Type::F16;  // head_type: of embedding and head
  // Latent attention, where latent is not 0: sizes as in MlaSpec. absorbed: the file holds k_b and v_b, not kv_b.
  uint32_t latent = 0, nope = 0, rope = 0, value = 0, query_rank = 0;
  bool absorbed = false;
  // Experts, where experts is not 0: ffn is then the size of one. shared_ffn: of the shared part, 0: none.
  uint32_t experts = 0, experts_used = 0, shared_ffn = 0;
};

// The same shape with all matrices of a type, or with as much of a "Q4_K_M" as one type can say: Q4_K, and Q6_K for
// embedding and head.
ModelShape with_type(ModelShape shape, Type type, Type head_type);

// Published shapes, by their lower-case names.
std::span<const ModelShape> known_shapes();
const ModelShape* find_shape(std::string_view name);
std::string shape_names();  // for messages: "llama-3.2-1b, …"

// An object with the members of ModelShape by their names; "type" and "head_type" are names of types. `where` stands in
// messages. Bad input names the key.
Result<ModelShape> parse_shape(std::string_view json, const std::string& where);

// Bad input if sizes do not go together.
Result<std::unique_ptr<Model>> make_shape_model(const ModelShape& shape);

}  // namespace ridge

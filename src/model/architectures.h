// What registry.cpp lists, and what several architectures read from a file in the same way.
#pragma once

#include <memory>

#include "model/builder.h"

namespace ridge {

Result<std::unique_ptr<Model>> make_llama(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_reglu_llama(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_arcee(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_qwen2(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_qwen3(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_gemma2(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_gemma3(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_phi3(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_plm(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_deepseek2(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_smollm3(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_granite(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_minicpm(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_llama_with_experts(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_olmoe(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_qwen2moe(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_qwen3moe(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_gpt_oss(ModelBuilder& b);

// The rotary embedding of `rope.dimension_count` dimensions with base `rope.<base_key>`. Bad input if the dimensions
// are odd or more than a head has, or the base is no positive number.
Result<RopeTable> rope_table_of(ModelBuilder& b, const ModelConfig& c, std::string_view base_key, float default_base);

// rope.scaling.type: none (1), linear (its factor); anything else is an error that names it.
Result<double> linear_rope_factor(ModelBuilder& b);

// rope.scaling.type yarn: factor, original context, betas, and attn_factor as the magnitude; "none": nothing changes.
// How the factor enters the magnitude and the softmax scale differs from model to model: yarn_attention() is the
// term. Bad input: another type, or numbers that YaRN cannot use.
Result<void> read_yarn(ModelBuilder& b, const ModelConfig& c, RopeConfig& rope);
// 1 + share · ln(factor)
double yarn_attention(double share, double factor);

}  // namespace ridge

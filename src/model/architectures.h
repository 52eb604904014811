// What registry.cpp lists, and what several architectures read from a file in the same way.
#pragma once

#include <memory>

#include "model/builder.h"

namespace ridge {

Result<std::unique_ptr<Model>> make_llama(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_qwen2(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_qwen3(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_gemma2(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_gemma3(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_phi3(ModelBuilder& b);
Result<std::unique_ptr<Model>> make_plm(ModelBuilder& b);

// The rotary embedding of `rope.dimension_count` dimensions with base `rope.<base_key>`. Bad input if the dimensions
// are odd or more than a head has, or the base is no positive number.
Result<RopeTable> rope_table_of(ModelBuilder& b, const ModelConfig& c, std::string_view base_key, float default_base);

// rope.scaling.type: none (1), linear (its factor); anything else is an error that names it.
Result<double> linear_rope_factor(ModelBuilder& b);

}  // namespace ridge

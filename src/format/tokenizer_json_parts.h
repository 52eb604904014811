// The parts of a tokenizer.json while it is read. Internal to format/; callers use tokenizer_json.h.
//
//   JsonParts parts = RIDGE_TRY(split_tokenizer_json(bytes, "tokenizer.json"));
//   parts.rest["model"]["type"]      // a tree of everything but the large tables
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/gguf.h"

namespace ridge {

struct JsonParts {
  nlohmann::json rest;         // the file without model.vocab and model.merges; an object
  StringPool texts;            // model.vocab in the order of the file
  std::vector<int64_t> ids;    // where vocab is an object: the id of each text
  std::vector<double> scores;  // where vocab is an array of [text, score]: in order of ids
  StringPool merges;           // "left right"
};

// Bad input: no JSON, no object, nested deeper than 32, a vocabulary or merges of another form; with its offset.
Result<JsonParts> split_tokenizer_json(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace ridge

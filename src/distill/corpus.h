// A text to train on without fetching one: simple English stories from templates, and among them small problems with
// their steps and answers. Deterministic: the same seed gives the same bytes on every machine.
//
// Not for: knowledge of the world. It has some 400 words, and grammar that a model of 0.3 million parameters can learn.
//
//   std::string text = make_corpus({.bytes = 3 * kMiB, .seed = 1});
//   std::string lines = make_rationales({.items = 2000, .seed = 2});     // JSON lines for --rationales
#pragma once

#include <cstdint>
#include <string>

namespace ridge::distill {

struct CorpusOptions {
  uint64_t bytes = 3 << 20;  // at least so many: the last story is whole
  uint64_t seed = 1;
};
// Stories and problems, each followed by an empty line.
std::string make_corpus(const CorpusOptions& options);

struct RationaleOptions {
  uint64_t items = 2000;
  uint64_t seed = 1;
};
// One JSON object a line: {"question": …, "steps": …, "answer": …}.
std::string make_rationales(const RationaleOptions& options);

}  // namespace ridge::distill

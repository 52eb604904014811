// Ridge as a library: load a model inside a memory budget, and generate.
//
// This header is all that a program includes; it pulls in nothing of Ridge's own and only the standard library.
//
//   auto model = ridge::api::Model::open({.path = "model.gguf", .memory_bytes = 300 << 20});
//   if (!model) return std::fprintf(stderr, "%s\n", model.error().c_str()), 1;
//   model.value().chat("Why is the sky blue?", {.max_tokens = 64}, [](std::string_view text) { std::cout << text;
//   return true; });
//
// One thread uses a Model at a time. Nothing of Ridge throws; what your own callback throws passes through.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ridge::api {

// A value, or one line that says what was wrong and what to do. `code` is the exit code of the program's own errors:
// 2 usage, 3 bad input, 4 does not fit, 5 device or I/O.
struct Failure {
  int code = 0;
  std::string message;
};

template <class T>
class Expected {
 public:
  Expected(T value) : state_(std::move(value)) {}
  Expected(Failure failure) : state_(std::move(failure)) {}
  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  // Only after a test: value() of a failure and error() of a value are errors of the caller, as with std::get.
  T& value() { return std::get<T>(state_); }
  const std::string& error() const { return std::get<Failure>(state_).message; }
  int code() const { return *this ? 0 : std::get<Failure>(state_).code; }

 private:
  std::variant<T, Failure> state_;
};

struct OpenOptions {
  std::string path;           // GGUF file or .ridge pack
  uint64_t memory_bytes = 0;  // hard limit for the whole process; 0: what the machine offers
  uint64_t context = 0;       // positions; 0: the model's, at most 4096
  int threads = 0;            // 0: all usable CPUs
};

struct GenerateOptions {
  int64_t max_tokens = -1;  // −1: until the model ends
  float temperature = 0;    // 0: greedy
  uint64_t seed = 0;
  std::vector<std::string> stops;
};

// Called with text as it comes, never a cut character; false stops.
using OnText = std::function<bool(std::string_view)>;

class Model {
 public:
  static Expected<Model> open(const OpenOptions& options);

  // One question, by the model's chat template (or as plain text if it has none); the whole answer.
  Expected<std::string> chat(std::string_view question, const GenerateOptions& options, const OnText& on_text = {});
  // Continues a text.
  Expected<std::string> complete(std::string_view text, const GenerateOptions& options, const OnText& on_text = {});
  // Logits [vocabulary] after these tokens, read from scratch.
  Expected<std::vector<float>> logits(std::span<const int32_t> tokens);

  // Token ids of a text, with the special tokens that the model adds.
  std::vector<int32_t> tokenize(std::string_view text) const;
  size_t vocabulary() const;  // tokens

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

 private:
  struct Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ridge::api

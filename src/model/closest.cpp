#include "model/closest.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "model/model.h"

namespace ridge {
namespace {

// A shorter common beginning says nothing: "ge" is in gemma and in many others.
constexpr size_t kFewestLetters = 3;

struct Family {
  std::string_view begins, closest;
};

// Models that share a plan with one that Ridge runs, under another name.
constexpr std::array kFamilies = {
    Family{"ministral", "llama"},  Family{"internlm", "llama"}, Family{"baichuan", "llama"},
    Family{"bailing", "qwen2moe"}, Family{"mixtral", "llama"},  Family{"mistral", "llama"},
    Family{"stablelm", "llama"},   Family{"hunyuan", "llama"},  Family{"exaone", "llama"},
    Family{"falcon", "llama"},     Family{"ernie", "llama"},    Family{"olmo", "llama"},
    Family{"glm4moe", "qwen3moe"}, Family{"dots", "qwen3moe"},  Family{"kimi", "deepseek2"},
    Family{"deci", "llama"},       Family{"glm", "llama"},
};

size_t common_beginning(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// The name's letters before its first digit or mark: "gemma" of "gemma3n".
std::string_view stem(std::string_view name) {
  auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  return name.substr(0, static_cast<size_t>(std::find_if_not(name.begin(), name.end(), letter) - name.begin()));
}

// Of equally long beginnings the name nearest in length: "qwen3next" is nearer to "qwen3moe" than to "qwen3".
std::string_view closest_name(std::string_view name) {
  std::string_view best;
  size_t most = 0;
  auto distance = [&](std::string_view other) {
    return other.size() > name.size() ? other.size() - name.size() : name.size() - other.size();
  };
  for (const Architecture& a : architectures()) {
    size_t common = common_beginning(name, a.name);
    if (common < std::max(kFewestLetters, stem(a.name).size())) continue;
    if (common > most || (common == most && distance(a.name) < distance(best))) best = a.name, most = common;
  }
  return best;
}

}  // namespace

std::string_view closest_architecture(std::string_view name, const Gguf& file) {
  // Latent attention weighs more than a name: MiniCPM3 has it, MiniCPM does not.
  if (file.find("blk.0.attn_kv_a_mqa.weight") != nullptr) return "deepseek2";
  std::string_view named = closest_name(name);
  if (!named.empty()) return named;
  for (const Family& f : kFamilies) {
    if (name.starts_with(f.begins)) return f.closest;
  }
  if (file.find("blk.0.ffn_gate_inp.weight") != nullptr) return "qwen3moe";
  bool decoder = file.find("blk.0.attn_norm.weight") != nullptr && file.find("blk.0.ffn_gate.weight") != nullptr;
  return decoder ? "llama" : "";
}

}  // namespace ridge

#include "format/gguf_magic.h"

#include <fmt/format.h>

#include <string_view>

#include "format/quote.h"

namespace ridge {
namespace {

using std::literals::operator""sv;

struct Signature {
  size_t at;  // offset of `bytes`
  std::string_view bytes;
  std::string_view what;  // what it is, and what to do
};

constexpr Signature kSignatures[] = {
    {0, "PK\x03\x04"sv, "it is a zip archive, perhaps a PyTorch checkpoint; convert it to GGUF first"},
    {0, "\x80\x02"sv, "it is a Python pickle, perhaps an old PyTorch checkpoint; convert it to GGUF first"},
    {0, "\x80\x04"sv, "it is a Python pickle; convert it to GGUF first"},
    {8, "{\""sv, "it is a safetensors file; convert it to GGUF first (`ridge image` takes those of image models)"},
    {8, "{ "sv, "it is a safetensors file; convert it to GGUF first (`ridge image` takes those of image models)"},
    {0, "version https:"sv, "it is a Git LFS pointer, not the file itself; run 'git lfs pull'"},
    {0, "<!"sv, "it is a web page; download the file itself"},
    {0, "<html"sv, "it is a web page; download the file itself"},
    {0, "lmgg"sv, "it is a GGML file from before GGUF; fetch the model as GGUF"},
    {0, "fmgg"sv, "it is a GGMF file from before GGUF; fetch the model as GGUF"},
    {0, "tjgg"sv, "it is a GGJT file from before GGUF; fetch the model as GGUF"},
    {0, "\x1f\x8b"sv, "it is compressed with gzip; decompress it first"},
    {0, "\x28\xb5\x2f\xfd"sv, "it is compressed with zstd; decompress it first"},
    {0,
     "\xfd"
     "7zXZ"sv,
     "it is compressed with xz; decompress it first"},
    {0, "RIDGEPCK"sv, "it is a pack; give the file that was packed"},
    {0, "RIDGESTA"sv, "it is a saved state; name its model, and load it with `ridge run MODEL --load-state`"},
    {0, "\x93NUMPY"sv, "it is a NumPy array; give a model"},
    {0, "\x89PNG"sv, "it is a PNG image; give a model"},
    {0,
     "\x7f"
     "ELF"sv,
     "it is a program; give a model"},
    {0, "{"sv, "it is JSON; give the model it belongs to"},
};

}  // namespace

std::string describe_foreign_file(std::span<const uint8_t> first) {
  std::string_view text(reinterpret_cast<const char*>(first.data()), first.size());
  for (const Signature& s : kSignatures) {
    if (text.size() >= s.at && text.substr(s.at).starts_with(s.bytes)) return std::string(s.what);
  }
  return fmt::format("it begins with {}, expected 'GGUF'; give a .gguf file", in_quotes(text.substr(0, 4)));
}

}  // namespace ridge

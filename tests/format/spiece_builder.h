// Writes spiece.model files, good ones and others.
//
//   SpieceBuilder model;
//   model.piece("<unk>", 0, 2).piece("▁a", -1);
//   parse_spiece(model.build(), "spiece.model");
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace ridge::test {

class ProtobufWriter {
 public:
  ProtobufWriter& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<uint8_t>(value | 0x80));
    bytes.push_back(static_cast<uint8_t>(value));
    return *this;
  }
  ProtobufWriter& tag(uint32_t number, uint32_t wire) { return varint(uint64_t{number} << 3 | wire); }
  ProtobufWriter& number(uint32_t field, uint64_t value) { return tag(field, 0).varint(value); }
  ProtobufWriter& real(uint32_t field, float value) {
    tag(field, 5);
    uint8_t raw[4];
    std::memcpy(raw, &value, 4);
    bytes.insert(bytes.end(), raw, raw + 4);
    return *this;
  }
  ProtobufWriter& string(uint32_t field, std::string_view text) {
    tag(field, 2).varint(text.size());
    bytes.insert(bytes.end(), text.begin(), text.end());
    return *this;
  }
  ProtobufWriter& message(uint32_t field, const ProtobufWriter& inner) {
    return string(field, {reinterpret_cast<const char*>(inner.bytes.data()), inner.bytes.size()});
  }

  std::vector<uint8_t> bytes;
};

struct SpieceBuilder {
  ProtobufWriter pieces, trainer, normalizer;

  SpieceBuilder& piece(std::string_view text, float score, uint64_t type = 1) {
    ProtobufWriter piece;
    piece.string(1, text).real(2, score);
    if (type != 1) piece.number(3, type);
    pieces.message(1, piece);
    return *this;
  }
  std::vector<uint8_t> build() const {
    ProtobufWriter whole = pieces;
    whole.message(2, trainer).message(3, normalizer);
    return whole.bytes;
  }
};

// <pad> </s> <unk>, and pieces for "▁a", "ab", …
inline SpieceBuilder small_spiece() {
  SpieceBuilder model;
  model.piece("<pad>", 0, 3).piece("</s>", 0, 3).piece("<unk>", 0, 2);
  model.piece("▁", -2).piece("▁a", -1.5f).piece("a", -2.5f).piece("b", -2.75f).piece("ab", -3).piece("▁ab", -4);
  model.trainer.number(3, 1).number(40, 2).number(41, ~uint64_t{0}).number(42, 1).number(43, 0);
  model.normalizer.string(1, "identity");
  return model;
}

}  // namespace ridge::test

// The fields of one protobuf message that lies in memory, in the order of the file (the wire format of
// protobuf.dev/programming-guides/encoding): a tag, which is a field number and a wire type, then a varint, four or
// eight bytes, or a length and that many bytes. A message inside is a field of bytes: give them to a reader of their
// own.
//
// Not for groups (obsolete; refused), writing, or schemas: the caller knows its field numbers.
//
//   ProtobufReader in(bytes, "spiece.model", 0);
//   while (!in.done()) {
//     ProtobufField f = RIDGE_TRY(in.next());
//     if (f.number == 2) score = RIDGE_TRY(in.float32(f, "score"));
//   }
//
// Allocates nothing. Bad input: a field that runs past the end, a varint of more than 64 bits, field number 0, a wire
// type that does not exist; each with its offset.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ridge {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct ProtobufField {
  uint32_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;              // of a varint, fixed64 or fixed32
  std::span<const uint8_t> bytes;  // of a string or a message
  uint64_t offset = 0;             // where the tag begins in the file
  uint64_t content = 0;            // where `bytes` begin in the file
};

class ProtobufReader {
 public:
  // `name`, the file's, must outlive the reader; `offset`: where `message` begins in it.
  ProtobufReader(std::span<const uint8_t> message, const std::string& name, uint64_t offset)
      : message_(message), name_(name), offset_(offset) {}

  bool done() const { return at_ == message_.size(); }
  // Only while not done.
  Result<ProtobufField> next();

  // What a field holds, or bad input if its wire type is another. `what` names it in the message.
  Result<int64_t> integer(const ProtobufField& field, std::string_view what) const;  // int32 and enum too
  Result<bool> boolean(const ProtobufField& field, std::string_view what) const;
  Result<float> float32(const ProtobufField& field, std::string_view what) const;
  Result<std::span<const uint8_t>> bytes(const ProtobufField& field, std::string_view what) const;
  Result<std::string_view> string(const ProtobufField& field, std::string_view what) const;

 private:
  Result<uint64_t> varint();
  Result<uint64_t> fixed(size_t bytes);
  Error damaged(std::string_view problem) const;
  Error cut_short() const;
  Result<void> expect(const ProtobufField& field, WireType type, std::string_view what) const;

  std::span<const uint8_t> message_;
  const std::string& name_;
  uint64_t offset_;
  size_t at_ = 0;
};

}  // namespace ridge

// Safetensors files for tests: tensors with any header, right or wrong.
//
//   SafetensorsBuilder b;
//   b.tensor("a", "F32", "[2, 3]", 24);
//   parse_safetensors(b.build(), "m.safetensors");
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ridge::test {

class SafetensorsBuilder {
 public:
  // The next `bytes` bytes of the data.
  SafetensorsBuilder& tensor(const std::string& name, const std::string& type, const std::string& shape,
                             uint64_t bytes) {
    entry(name, type, shape, data_, data_ + bytes);
    data_ += bytes;
    return *this;
  }
  SafetensorsBuilder& entry(const std::string& name, const std::string& type, const std::string& shape, uint64_t begin,
                            uint64_t end) {
    return raw("\"" + name + R"(": {"dtype": ")" + type + R"(", "shape": )" + shape + R"(, "data_offsets": [)" +
               std::to_string(begin) + ", " + std::to_string(end) + "]}");
  }
  SafetensorsBuilder& raw(const std::string& text) {
    header_ += (header_.empty() ? "" : ", ") + text;
    return *this;
  }
  SafetensorsBuilder& data(uint64_t bytes) {
    data_ = bytes;
    return *this;
  }

  std::vector<uint8_t> build() const { return file("{" + header_ + "}   ", data_); }
  static std::vector<uint8_t> file(const std::string& header, uint64_t data) {
    std::vector<uint8_t> out;
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<uint8_t>(uint64_t{header.size()} >> 8 * i));
    out.insert(out.end(), header.begin(), header.end());
    for (uint64_t i = 0; i < data; ++i) out.push_back(static_cast<uint8_t>(i * 37));
    return out;
  }

 private:
  std::string header_;
  uint64_t data_ = 0;
};

}  // namespace ridge::test

#include "format/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::read_file;
using test::TempFolder;
using test::write_file;

void write_array(const std::string& path, uint64_t rows, uint64_t cols, const std::vector<float>& values) {
  NpyWriter out = NpyWriter::create(path, rows, cols).value();
  for (uint64_t r = 0; r < rows; ++r) ASSERT_TRUE(out.append(std::span(values).subspan(r * cols, cols)).ok());
  ASSERT_TRUE(out.finish().ok());
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  TempFolder folder;
  write_array(folder / "a.npy", 2, 3, {0, 1, -2, 0.5f, 1e30f, 3});
  std::vector<uint8_t> bytes = read_file(folder / "a.npy");
  ASSERT_EQ(bytes.size(), 128u + 24);
  std::string text(bytes.begin(), bytes.begin() + 128);
  std::string dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  EXPECT_EQ(text, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + dictionary +
                      std::string(117 - dictionary.size(), ' ') + "\n");
  float third = 0;
  std::memcpy(&third, bytes.data() + 128 + 8, 4);
  EXPECT_EQ(third, -2.0f);
}

TEST(Npy, ReadsWhatItWrote) {
  TempFolder folder;
  std::vector<float> values(7 * 1001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.37f - 5;
  write_array(folder / "a.npy", 7, 1001, values);
  NpyArray array = read_npy(folder / "a.npy").value();
  EXPECT_EQ(array.rows, 7u);
  EXPECT_EQ(array.cols, 1001u);
  EXPECT_EQ(array.values, values);
  EXPECT_EQ(array.view().row(2)[3], values[2 * 1001 + 3]);
  write_array(folder / "none.npy", 0, 5, {});
  EXPECT_EQ(read_npy(folder / "none.npy").value().rows, 0u);
}

TEST(Npy, LeavesNothingWhenUnfinished) {
  TempFolder folder;
  {
    NpyWriter out = NpyWriter::create(folder / "a.npy", 2, 1).value();
    float one = 1;
    ASSERT_TRUE(out.append(std::span(&one, 1)).ok());
  }
  EXPECT_EQ(folder.entries(), 0u);
}

std::vector<uint8_t> npy(const std::string& dictionary, size_t data_bytes) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += {static_cast<char>(dictionary.size()), '\0'};
  text += dictionary;
  text.append(data_bytes, '\0');
  return {text.begin(), text.end()};
}

std::string refusal(const std::vector<uint8_t>& bytes) {
  TempFolder folder;
  write_file(folder / "a.npy", bytes);
  Result<NpyArray> array = read_npy(folder / "a.npy");
  EXPECT_FALSE(array.ok());
  if (array.ok()) return "";
  EXPECT_EQ(array.error().code, ErrorCode::bad_input);
  return array.error().message.substr((folder / "a.npy: ").size());
}

TEST(Npy, RefusesOtherArrays) {
  const std::string expected = ", expected a [rows, cols] array of float32 in C order";
  EXPECT_EQ(refusal({1, 2, 3}), "not a NumPy file" + expected);
  EXPECT_EQ(refusal(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", 8)),
            "elements of type ''<f8', ''" + expected);
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }", 4)),
            "columns stored first" + expected);
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", 16)),
            "the shape '(4,), }'" + expected);
  EXPECT_EQ(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 20)),
            "20 bytes follow the header, expected 2 × 3 float32: the file is cut short or damaged; write it again");
  EXPECT_NE(refusal(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0))
                .find("0 bytes follow"),
            std::string::npos);
  std::vector<uint8_t> cut = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }", 4);
  cut.resize(30);
  EXPECT_EQ(refusal(cut), "a header longer than the file" + expected);
}

}  // namespace
}  // namespace ridge

#include "format/png.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/format/allocation_count.h"
#include "tests/format/png_builder.h"
#include "tests/temp_folder.h"

namespace ridge {
namespace {

using test::RawPng;
using test::striped;
using test::TempFolder;

std::vector<uint8_t> file_of(const Image& image, std::span<const PngText> texts = {}) {
  TempFolder folder;
  Result<void> written = write_png(folder / "a.png", image, texts);
  EXPECT_TRUE(written.ok()) << written.error().message;
  return test::read_file(folder / "a.png");
}

std::string refusal_of_png(std::span<const uint8_t> bytes, const PngLimits& limits = {}) {
  Result<PngFile> file = parse_png(bytes, "a.png", limits);
  if (file.ok()) return "accepted";
  EXPECT_EQ(file.error().code, ErrorCode::bad_input);
  EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(file.error().message.rfind("a.png: ", 0), 0u) << file.error().message;
  return file.error().message;
}

TEST(Png, WhatIsWrittenIsRead) {
  for (uint32_t channels : {1u, 3u}) {
    for (auto [width, height] : {std::pair{1u, 1u}, {7u, 5u}, {64u, 3u}, {200u, 150u}}) {
      const Image image = striped(width, height, channels);
      Result<PngFile> back = parse_png(file_of(image), "a.png");
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(back.value().image.width, width);
      EXPECT_EQ(back.value().image.height, height);
      EXPECT_EQ(back.value().image.channels, channels);
      EXPECT_EQ(back.value().image.pixels, image.pixels);
    }
  }
}

TEST(Png, TheSamePictureIsTheSameFile) { EXPECT_EQ(file_of(striped(65, 33, 3)), file_of(striped(65, 33, 3))); }

TEST(Png, TextsGoBothWays) {
  const std::vector<PngText> texts = {{"parameters", "a (red:1.2) apple, \xE7\xBA\xA2\nsteps 28"},
                                      {"Software", "ridge"},
                                      {"empty", ""},
                                      {"long", std::string(200'000, 'x')}};
  const auto bytes = file_of(striped(8, 8, 3), texts);
  Result<PngFile> back = parse_png(bytes, "a.png");
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back.value().texts.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(back.value().texts[i].key, texts[i].key);
    EXPECT_EQ(back.value().texts[i].text, texts[i].text);
  }
}

TEST(Png, Latin1TextsBecomeUtf8) {
  RawPng png;
  png.header(1, 1, 8, 0).chunk("tEXt", {'k', 0, 'a', 0xE9, 0xFF}).rows({0, 7}).end();
  Result<PngFile> back = parse_png(png.bytes, "a.png");
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back.value().texts.size(), 1u);
  EXPECT_EQ(back.value().texts[0].key, "k");
  EXPECT_EQ(back.value().texts[0].text, "a\xC3\xA9\xC3\xBF");
}

// One pixel or a few in every form a PNG may have.
TEST(Png, EveryFormBecomesEightBits) {
  auto pixels = [](const RawPng& png) {
    Result<PngFile> file = parse_png(png.bytes, "a.png");
    EXPECT_TRUE(file.ok()) << file.error().message;
    return file.value().image;
  };
  RawPng grey16;
  grey16.header(1, 1, 16, 0).rows({0, 0x80, 0xFF}).end();
  EXPECT_EQ(pixels(grey16).pixels, (std::vector<uint8_t>{0x80}));
  RawPng grey2;
  grey2.header(4, 1, 2, 0).rows({0, 0x1B}).end();
  EXPECT_EQ(pixels(grey2).pixels, (std::vector<uint8_t>{0, 85, 170, 255}));
  RawPng palette;
  palette.header(2, 1, 1, 3).chunk("PLTE", {1, 2, 3, 4, 5, 6}).rows({0, 0x40}).end();
  EXPECT_EQ(pixels(palette).channels, 3u);
  EXPECT_EQ(pixels(palette).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6}));
  RawPng clear;
  clear.header(1, 1, 8, 3).chunk("PLTE", {1, 2, 3}).chunk("tRNS", {9}).rows({0, 0}).end();
  EXPECT_EQ(pixels(clear).pixels, (std::vector<uint8_t>{1, 2, 3, 9}));
  RawPng grey_alpha;
  grey_alpha.header(1, 1, 8, 4).rows({0, 10, 20}).end();
  EXPECT_EQ(pixels(grey_alpha).pixels, (std::vector<uint8_t>{10, 20}));
  RawPng rgba;
  rgba.header(1, 2, 8, 6).rows({0, 1, 2, 3, 4, 0, 5, 6, 7, 8}).end();
  EXPECT_EQ(pixels(rgba).pixels, (std::vector<uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(Png, InterlacedRowsComeInTheirPlaces) {
  // 2 × 2: pass 1 holds (0,0), pass 6 (1,0), pass 7 the second row.
  RawPng png;
  png.header(2, 2, 8, 0, 1).rows({0, 1, 0, 2, 0, 3, 4}).end();
  Result<PngFile> file = parse_png(png.bytes, "a.png");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().image.pixels, (std::vector<uint8_t>{1, 2, 3, 4}));
}

TEST(Png, ToRgbLaysTransparencyOnWhite) {
  Image image = make_image(2, 1, 4);
  image.pixels = {10, 20, 30, 255, 10, 20, 30, 0};
  EXPECT_EQ(to_rgb(image).pixels, (std::vector<uint8_t>{10, 20, 30, 255, 255, 255}));
  image = make_image(1, 1, 2);
  image.pixels = {100, 128};
  EXPECT_EQ(to_rgb(image).pixels, (std::vector<uint8_t>{177, 177, 177}));  // (100·128 + 255·127) / 255 = 177.2
  image = make_image(1, 1, 1);
  image.pixels = {9};
  EXPECT_EQ(to_rgb(image).pixels, (std::vector<uint8_t>{9, 9, 9}));
}

TEST(Png, RefusesWhatIsNoPicture) {
  EXPECT_NE(refusal_of_png({}).find("no PNG"), std::string::npos);
  const std::vector<uint8_t> jpeg = {0xFF, 0xD8, 0xFF, 0xE0, 0, 0, 0, 0, 0, 0};
  EXPECT_NE(refusal_of_png(jpeg).find("no PNG"), std::string::npos);
  RawPng no_pixels;
  no_pixels.header(4, 4, 8, 2).end();
  EXPECT_NE(refusal_of_png(no_pixels.bytes).find("damaged"), std::string::npos);
  RawPng bad_depth;
  bad_depth.header(4, 4, 3, 2).rows({0}).end();
  EXPECT_NE(refusal_of_png(bad_depth.bytes).find("damaged"), std::string::npos);
  RawPng few_rows;
  few_rows.header(4, 4, 8, 0).rows({0, 1, 2, 3, 4}).end();
  EXPECT_NE(refusal_of_png(few_rows.bytes).find("damaged"), std::string::npos);
  RawPng no_size;
  no_size.header(0, 4, 8, 0).rows({0}).end();
  EXPECT_NE(refusal_of_png(no_size.bytes).find("damaged"), std::string::npos);
}

TEST(Png, ABadChecksumIsRefused) {
  auto bytes = file_of(striped(16, 16, 3));
  bytes[bytes.size() - 20] ^= 1;  // inside the last bytes of IDAT, before IEND
  EXPECT_NE(refusal_of_png(bytes).find("damaged"), std::string::npos);
}

// A hundred bytes that claim gigabytes: refused before anything is allocated.
TEST(Png, ClaimsAreHeldAgainstTheFile) {
  for (auto [width, height] : {std::pair{65'000u, 65'000u}, {8192u, 8192u}, {4096u, 1024u}}) {
    RawPng png;
    png.header(width, height, 8, 6).rows({0}).end();
    test::AllocationPeak peak;
    const std::string message = refusal_of_png(png.bytes);
    EXPECT_TRUE(message.find("cannot stand in") != message.npos || message.find("at most") != message.npos) << message;
    EXPECT_LT(peak.bytes(), 100'000u);
  }
  RawPng wide;
  wide.header(1'000'000, 1, 1, 0).rows({0}).end();
  EXPECT_NE(refusal_of_png(wide.bytes).find("damaged"), std::string::npos);
  EXPECT_NE(refusal_of_png(file_of(striped(10, 10, 3)), {.most_pixels = 99}).find("at most 99"), std::string::npos);
  EXPECT_EQ(refusal_of_png(file_of(striped(10, 10, 3)), {.most_pixels = 100}), "accepted");
}

TEST(Png, EveryCutIsRefused) {
  const std::vector<PngText> texts = {{"parameters", "seed 1"}};
  const auto bytes = file_of(striped(9, 7, 3), texts);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string message = refusal_of_png(std::span(bytes).subspan(0, length));
    ASSERT_NE(message, "accepted") << "cut at " << length;
    if (length >= 8) {
      ASSERT_NE(message.find("cut short"), std::string::npos) << length << ": " << message;
    }
  }
}

TEST(Png, FlippedBitsAreRefusedOrHarmless) {
  const std::vector<PngText> texts = {{"parameters", "seed 1"}};
  const auto original = file_of(striped(9, 7, 3), texts);
  std::mt19937 random(4);
  for (int i = 0; i < 20'000; ++i) {
    auto bytes = original;
    const size_t at = random() % bytes.size();
    bytes[at] = static_cast<uint8_t>(bytes[at] ^ (1u << random() % 8));
    test::AllocationPeak peak;
    Result<PngFile> file = parse_png(bytes, "a.png");
    ASSERT_LT(peak.bytes(), 1u << 20);
    if (file.ok()) {
      // Only what no checksum covers: the type of a chunk that is then left out, or its length.
      ASSERT_EQ(file.value().image.pixels.size(), file.value().image.row_bytes() * file.value().image.height);
      continue;
    }
    ASSERT_EQ(file.error().code, ErrorCode::bad_input);
  }
}

TEST(Png, FilesThatCannotBeWrittenAreIoErrors) {
  Result<void> written = write_png("/nonexistent/folder/a.png", striped(4, 4, 3));
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code, ErrorCode::io);
  Result<void> full = write_png("/dev/full", striped(300, 300, 3));
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::io);
  EXPECT_FALSE(read_png("/nonexistent/a.png").ok());
}

}  // namespace
}  // namespace ridge

// A made-up program for tests of plans: one pass over equal matrices, cut to the slot.
//
//   Program p = test::layered({.layers = 90, .rows = 64, .cols = 256}, slot);
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "program/program.h"
#include "tensor/types.h"

namespace ridge::test {

struct Layers {
  uint32_t layers = 1, rows = 16, cols = 256;
  Type type = Type::Q4_0;
};

// Each matrix is one step, in as many blocks as slots of so many bytes ask for; 0: in one.
inline Program layered(const Layers& shape, uint64_t slot) {
  Program p;
  p.files = {"model"};
  const uint64_t row = row_bytes(shape.type, shape.cols);
  const uint64_t panels = slot == 0 ? shape.rows / 16 : std::clamp<uint64_t>(slot / (16 * row), 1, shape.rows / 16);
  const auto step = static_cast<uint32_t>(panels * 16);
  for (uint32_t l = 0; l < shape.layers; ++l) {
    p.tensors.push_back(
        {.name = "t", .type = shape.type, .rows = shape.rows, .cols = shape.cols, .offset = l * shape.rows * row});
    std::vector<Slice> slices;
    for (uint32_t begin = 0; begin < shape.rows; begin += step) {
      const uint32_t end = std::min(shape.rows, begin + step);
      Block b{.name = "b", .pieces = {{l, begin, end}}};
      b.storage_bytes = b.memory_bytes = p.tensors[l].stored_bytes(begin, end);
      slices.push_back({static_cast<BlockId>(p.blocks.size()), 0, 1});
      p.visits.push_back({static_cast<BlockId>(p.blocks.size()), {}});
      p.blocks.push_back(b);
    }
    p.steps.push_back(slices);
  }
  return p;
}

}  // namespace ridge::test

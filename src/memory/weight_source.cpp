#include "memory/weight_source.h"

#include <utility>

namespace ridge {

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    release();
    source_ = std::exchange(other.source_, nullptr);
    block_ = other.block_;
    pieces_ = std::exchange(other.pieces_, {});
  }
  return *this;
}

void Lease::release() {
  if (source_ == nullptr) return;
  WeightSource* source = std::exchange(source_, nullptr);
  pieces_ = {};
  source->release(block_);
}

}  // namespace ridge

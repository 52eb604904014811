#include "model/vae.h"

#include <algorithm>

#include "memory/slab.h"
#include "model/vae_decode.h"
#include "model/vae_encode.h"

namespace ridge {
namespace {

// Lines of a picture that a band should have at least: below, most of its work is done for its neighbours as well.
constexpr uint32_t kFewestLines = 16;

std::span<float> floats_of(Slab& slab) { return {reinterpret_cast<float*>(slab.data()), slab.bytes() / sizeof(float)}; }

}  // namespace

Result<Vae> Vae::open(const std::string& path, VaeSide side) {
  Safetensors file = RIDGE_TRY(Safetensors::open(path));
  VaeHalf half = RIDGE_TRY(VaeHalf::describe(file, side));
  return Vae(std::move(file), std::move(half), side);
}

uint64_t Vae::workspace_bytes(LatentSize size, uint32_t bands, int threads) const {
  return Slab::charge(side_ == VaeSide::decoder ? VaeDecode(half_, size, bands, threads).bytes()
                                                : VaeEncode(half_, size, bands, threads).bytes());
}

uint32_t Vae::most_bands(LatentSize size) { return std::max<uint32_t>(1, kScale * size.height / kFewestLines); }

std::optional<uint32_t> Vae::bands_within(uint64_t bytes, LatentSize size, int threads) const {
  const uint32_t most = most_bands(size);
  for (uint32_t bands = 1; bands <= most; ++bands) {
    if (workspace_bytes(size, bands, threads) <= bytes) return bands;
  }
  return std::nullopt;
}

Result<void> Vae::decode(std::span<const float> latent, LatentSize size, uint32_t bands, const VaeMachine& machine,
                         std::span<float> picture) const {
  const size_t pixels = size_t{size.height} * size.width;
  RIDGE_CHECK(latent.size() == kVaeChannels * pixels && picture.size() == 3 * kScale * kScale * pixels,
              "a latent and the picture of it");
  RIDGE_CHECK(half_.loaded() && side_ == VaeSide::decoder, "load() comes before decode()");
  VaeDecode run(half_, size, bands, machine.pool->size());
  Slab slab = RIDGE_TRY(Slab::allocate(run.bytes(), {.what = "the planes of the VAE"}));
  return run.decode(latent, machine, floats_of(slab), picture);
}

Result<void> Vae::encode(const Image& picture, LatentSize size, uint32_t bands, const VaeMachine& machine,
                         std::span<float> latent) const {
  RIDGE_CHECK(picture.channels == 3 && picture.width == kScale * size.width && picture.height == kScale * size.height &&
                  latent.size() == size_t{kVaeChannels} * size.height * size.width,
              "a picture and the latent of it");
  RIDGE_CHECK(half_.loaded() && side_ == VaeSide::encoder, "load() comes before encode()");
  VaeEncode run(half_, size, bands, machine.pool->size());
  Slab slab = RIDGE_TRY(Slab::allocate(run.bytes(), {.what = "the planes of the VAE"}));
  return run.encode(picture, machine, floats_of(slab), latent);
}

}  // namespace ridge

#include "sim/memory_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/units.h"

namespace ridge::sim {
namespace {

size_t index_of(TierKind kind) { return static_cast<size_t>(kind); }

// Passes that visit each object, of all: 0 to 1.
std::vector<double> touches(const NpuWork& work) {
  std::vector<double> out(work.objects.size(), 0);
  std::vector<size_t> last(work.objects.size(), SIZE_MAX);
  for (size_t pass = 0; pass < work.pass_begins.size(); ++pass) {
    for (size_t v = work.pass_begins[pass]; v < work.pass_end(pass); ++v) {
      const uint32_t object = work.visits[v].object;
      if (last[object] == pass) continue;
      last[object] = pass;
      out[object] += 1 / static_cast<double>(work.pass_begins.size());
    }
  }
  return out;
}

class MapMaker {
 public:
  MapMaker(const NpuWork& work, const NpuMachine& machine, const NpuRun& run, const DramImage& image)
      : work_(work),
        machine_(machine),
        run_(run),
        image_(image),
        touch_(touches(work)),
        kept_(work.objects.size(), 0) {}

  MemoryMap make() && {
    if (machine_.registers)
      add({.tier = TierKind::registers, .bytes = machine_.registers->bytes, .what = "operands of the product at hand"});
    const TierKind inner = machine_.local ? TierKind::local_sram : TierKind::shared_sram;
    add({.tier = inner, .bytes = machine_.staging_bytes, .what = counted(machine_.buffers, "DMA buffer")});
    add({.tier = inner, .bytes = machine_.reserved_bytes, .what = "activations, scales, tables"});
    keep(inner, machine_.inner());
    if (machine_.local && machine_.shared) keep(TierKind::shared_sram, *machine_.shared);
    add_image();
    return std::move(map_);
  }

 private:
  void add(MapRange range) {
    if (range.bytes == 0) return;
    uint64_t& end = map_.bytes[index_of(range.tier)];
    range.address = std::max(range.address, end);
    end = range.address + range.bytes;
    map_.reads[index_of(range.tier)] += range.reads;
    map_.ranges.push_back(std::move(range));
  }
  void keep(TierKind tier, const Tier& sram) {
    const bool inner = &sram == &machine_.inner();
    for (const NpuKept& k : run_.kept) {
      uint64_t bytes = inner ? k.inner : k.outer;
      if (bytes == 0) continue;
      const uint64_t address = round_up(map_.bytes[index_of(tier)], sram.burst_bytes);
      if (address >= sram.bytes) continue;
      bytes = std::min(bytes, sram.bytes - address);
      kept_[k.object] += bytes;
      add({.tier = tier,
           .address = address,
           .bytes = bytes,
           .what = work_.objects[k.object].name,
           .object = k.object,
           .offset = k.offset + (inner ? 0 : k.inner),
           .touch = touch_[k.object],
           .reads = static_cast<double>(bytes) * touch_[k.object]});
    }
  }
  double left_to_dram(uint32_t object) const {
    return static_cast<double>(work_.objects[object].bytes - kept_[object]) * touch_[object];
  }
  void add_image() {
    std::vector<MapRange> ranges;
    for (uint32_t object = 0; object < image_.blocks.size(); ++object) {
      uint64_t offset = 0;
      const double bytes = static_cast<double>(std::max<uint64_t>(1, work_.objects[object].bytes));
      for (const MapExtent& e : image_.blocks[object]) {
        ranges.push_back({.address = e.address,
                          .bytes = e.bytes,
                          .what = work_.objects[object].name,
                          .object = object,
                          .offset = offset,
                          .touch = touch_[object],
                          .reads = left_to_dram(object) * static_cast<double>(e.bytes) / bytes});
        offset += e.bytes;
      }
    }
    std::stable_sort(ranges.begin(), ranges.end(),
                     [](const MapRange& a, const MapRange& b) { return a.address < b.address; });
    // Blocks of layers that share weights lie in the same place.
    uint64_t& end = map_.bytes[index_of(TierKind::dram)];
    for (MapRange& r : ranges) {
      end = std::max(end, r.address + r.bytes);
      map_.reads[index_of(TierKind::dram)] += r.reads;
      map_.ranges.push_back(std::move(r));
    }
    add_rest();
  }
  // Embedding rows, norms and biases lie between the blocks, wherever the file has them; keys and values after it.
  void add_rest() {
    double rows = 0, kv_reads = 0;
    uint64_t kv = 0;
    for (uint32_t object = 0; object < work_.objects.size(); ++object) {
      const NpuObject& o = work_.objects[object];
      if (o.kind == NpuObjectKind::rows) rows += static_cast<double>(o.bytes) * touch_[object];
      if (o.kind != NpuObjectKind::kv) continue;
      kv += o.bytes;
      kv_reads += left_to_dram(object);
    }
    map_.reads[index_of(TierKind::dram)] += rows;
    uint64_t& end = map_.bytes[index_of(TierKind::dram)];
    end = std::max(end, image_.bytes);
    const uint64_t step = std::lcm(machine_.dram.burst_bytes, std::max<uint64_t>(1, machine_.dram.row_bytes));
    if (kv > 0) {
      add({.address = round_up(end, step), .bytes = kv, .what = "keys and values", .touch = 1, .reads = kv_reads});
    }
  }

  const NpuWork& work_;
  const NpuMachine& machine_;
  const NpuRun& run_;
  const DramImage& image_;
  const std::vector<double> touch_;
  std::vector<uint64_t> kept_;  // in SRAM, by object
  MemoryMap map_;
};

}  // namespace

double MemoryMap::all_reads() const { return std::accumulate(reads.begin(), reads.end(), 0.0); }

DramImage dram_image(const Program& program, uint64_t file_bytes) {
  DramImage image{.bytes = file_bytes, .blocks = {}};
  for (const Block& block : program.blocks) {
    std::vector<MapExtent>& extents = image.blocks.emplace_back();
    for (const JoinedPieces& j : joined_pieces(program, block)) extents.push_back({j.offset, j.bytes});
  }
  return image;
}

MemoryMap memory_map(const NpuWork& work, const NpuMachine& machine, const NpuRun& run, const DramImage& image) {
  return MapMaker(work, machine, run, image).make();
}

uint64_t pack_alignment(const NpuMachine& machine) {
  constexpr uint64_t kPage = 4 * kKiB, kMost = kMiB;
  const uint64_t burst = std::lcm(kPage, machine.dram.burst_bytes);
  if (burst > kMost) return kPage;
  const uint64_t row = std::lcm(burst, std::max<uint64_t>(1, machine.dram.row_bytes));
  return row > kMost ? burst : row;
}

}  // namespace ridge::sim

// Speed of the attention kernels of the list that this CPU can run. Rates are per second of CPU time; one thread.
//   tile/TYPE/…    48 rows of a long prompt over 1,024 positions in cache: GFLOP/s of the two products alone
//   decode/TYPE/…  one token over caches that lie in DRAM: bytes of keys and values per second
//
//   build/bench/attention_bench --benchmark_filter='q8_0.*avx512'
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "kernels/choose.h"
#include "machine/cpu.h"
#include "memory/slab.h"

namespace ridge {
namespace {

struct Shape {
  const char* name;
  size_t group, key_dim, value_dim;
};
constexpr Shape kShapes[] = {{"g3d64", 3, 64, 64},    {"g8d64", 8, 64, 64},    {"g4d256", 4, 256, 256},
                             {"g4d128", 4, 128, 128}, {"g1d128", 1, 128, 128}, {"g16mla", 16, 576, 512}};
constexpr const char* kTypes[kKvTypes] = {"f16", "f32", "bf16", "q8_0"};

// Keys and values of `heads` heads, all with the same ordinary numbers.
struct Caches {
  size_t positions, heads, key_bytes, value_bytes;
  Slab slab;

  Caches(const Kernels& k, KvType type, const Shape& s, size_t n, size_t count)
      : positions(n),
        heads(count),
        key_bytes(n * kv_bytes(type, s.key_dim)),
        value_bytes(n * kv_bytes(type, s.value_dim)) {
    slab = std::move(Slab::allocate(heads * (key_bytes + value_bytes), {.what = "the benchmark"})).value();
    std::vector<float> x(s.key_dim);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) * 0.1f - 0.6f;
    for (size_t h = 0; h < heads; ++h) {
      for (size_t p = 0; p < positions; ++p) {
        k.store_key[static_cast<size_t>(type)](x.data(), s.key_dim, key(h), p);
        k.store_value[static_cast<size_t>(type)](x.data(), s.value_dim, value(h), p);
      }
    }
  }
  uint8_t* key(size_t head) const { return slab.data() + head * (key_bytes + value_bytes); }
  uint8_t* value(size_t head) const { return key(head) + key_bytes; }
};

void attend(benchmark::State& state, AttentionFn fn, KvType type, const Shape& s, bool decode) {
  const Kernels kernels = choose_kernels({}).value().kernels;
  constexpr size_t kDeep = 4096, kTile = 1024, kDramBytes = 192u << 20, kRows = 48;
  const size_t per_head = kDeep * (kv_bytes(type, s.key_dim) + kv_bytes(type, s.value_dim));
  const Caches caches(kernels, type, s, decode ? kDeep : kTile, decode ? kDramBytes / per_head : 1);
  const size_t tokens = decode ? 1 : std::max<size_t>(1, kRows / s.group), rows = tokens * s.group;
  std::vector<float> q(rows * s.key_dim, 0.1f), out(rows * s.value_dim);
  std::vector<float> scratch(attention_scratch_floats(rows, s.key_dim));
  AttentionArgs a{};
  a.q = q.data();
  a.tokens = tokens;
  a.group = s.group;
  a.q_stride = a.key_dim = s.key_dim;
  a.q_token_stride = s.group * s.key_dim;
  a.value_dim = a.out_stride = s.value_dim;
  a.out_token_stride = s.group * s.value_dim;
  a.kv_type = type;
  a.capacity = caches.positions;
  a.end = caches.positions - tokens + 1;
  a.scale = 0.05f;
  a.out = out.data();
  a.scratch = scratch.data();
  for (auto _ : state) {
    for (size_t h = 0; h < caches.heads; ++h) {
      a.k = caches.key(h);
      a.v = caches.value(h);
      a.next_keys = caches.key((h + 1) % caches.heads);
      a.keys_fetched = decode;
      a.next_keys_bytes = decode ? kAttentionChunk * kv_bytes(type, s.key_dim) : 0;
      fn(a);
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  const double passes = static_cast<double>(state.iterations() * caches.heads);
  const double flops = 2.0 * static_cast<double>(rows * (s.key_dim + s.value_dim) * a.end);
  using benchmark::Counter;
  state.counters["GFLOP/s"] = Counter(flops * passes * 1e-9, Counter::kIsRate);
  state.counters["GB/s"] =
      Counter(static_cast<double>(caches.key_bytes + caches.value_bytes) * passes * 1e-9, Counter::kIsRate);
}

void register_all() {
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.op != Op::attention || kernel.isa == Isa::scalar || !cpu_info().features.has_all({kernel.needs}))
      continue;
    for (const Shape& s : kShapes) {
      for (size_t type = 0; type < kKvTypes; ++type) {
        for (const bool decode : {false, true}) {
          const std::string name =
              std::string(decode ? "decode/" : "tile/") + kTypes[type] + "/" + s.name + "/" + kernel.name;
          const auto fn = reinterpret_cast<AttentionFn>(kernel.function);
          benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
            attend(state, fn, static_cast<KvType>(type), s, decode);
          })->Unit(benchmark::kMillisecond);
        }
      }
    }
  }
}

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  ridge::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

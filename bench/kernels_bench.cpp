// Speed of every kernel of the list that this CPU can run, beside the roofs of the same machine in the same run.
// Rates are per second of CPU time, so that they mean something on a shared machine; one thread.
//   decode/…   one token, weights from DRAM: bytes of weights per second (compare with read/dram)
//   prefill/…  128 tokens: multiply and add counted as two operations
//   pack/…     file layout in DRAM to panels in a slot: bytes of file per second (compare with memcpy/slot)
//
//   build/bench/kernels_bench --benchmark_filter='decode/Q4_K'
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "kernels/choose.h"
#include "machine/cpu.h"
#include "tensor/half.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

constexpr size_t kCols = 4096;
constexpr size_t kTokens = 128;
constexpr size_t kBigBytes = 384u << 20;  // a walk over this leaves no cache a chance to help the next one

// Huge pages where the system offers them, as the engine's slots have.
class Pages {
 public:
  explicit Pages(size_t bytes) : size_(std::max(bytes, size_t{1})) {
    void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RIDGE_CHECK(p != MAP_FAILED, "there is memory for the benchmark");
    madvise(p, size_, MADV_HUGEPAGE);
    data_ = static_cast<uint8_t*>(p);
    std::memset(data_, 1, size_);
  }
  ~Pages() { munmap(data_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  uint8_t* data() const { return data_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_;
};

// Every 16 bits an ordinary f16 number, so that no scale is NaN, infinite or subnormal, wherever a type keeps it.
std::vector<uint8_t> ordinary_rows(Type type, size_t rows) {
  std::mt19937_64 rng(1);
  std::vector<uint8_t> bytes(rows * row_bytes(type, kCols));
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const uint16_t half = f32_to_f16(static_cast<float>(rng() % 1000 + 1) * 1e-3f);
    std::memcpy(&bytes[i], &half, 2);
  }
  if (type == Type::MXFP4) {
    for (size_t i = 0; i < bytes.size(); i += 17) bytes[i] = 127;  // its only scale: 1/2
  }
  return bytes;
}

// Panels of many rows: one packed panel, repeated.
struct Weights {
  size_t panel, count;
  Pages pages;

  Weights(Type type, size_t bytes)
      : panel(panel_bytes(type, kCols)), count(std::max<size_t>(bytes / panel, 1)), pages(count * panel) {
    const std::vector<uint8_t> file = ordinary_rows(type, kPanelRows);
    pack_panel({type, file.data(), row_bytes(type, kCols), kPanelRows, kCols, pages.data()});
    for (size_t p = 1; p < count; ++p) std::memcpy(pages.data() + p * panel, pages.data(), panel);
  }
  size_t rows() const { return count * kPanelRows; }
  size_t bytes() const { return count * panel; }
};

struct Activations {
  std::vector<float> x = std::vector<float>(kTokens * kCols, 0.5f);
  std::vector<int8_t> q = std::vector<int8_t>(kTokens * kCols, 3);
  std::vector<float> d = std::vector<float>(kTokens * kCols / 32, 0.01f);
  std::vector<int32_t> sums = std::vector<int32_t>(kTokens * kCols / 16, 48);
};

void matmul(benchmark::State& state, const Kernel& kernel, size_t tokens, size_t bytes) {
  const Weights w(kernel.type, bytes);
  Activations a;
  std::vector<float> out(tokens * w.rows());
  MatmulArgs args = {};
  args.panels = w.pages.data();
  args.rows = w.rows();
  args.cols = kCols;
  args.tokens = tokens;
  args.x = a.x.data();
  args.x_stride = kCols;
  args.x8 = {a.q.data(), a.d.data(), a.sums.data(), kCols, kCols / 32};
  args.out = out.data();
  args.out_stride = w.rows();
  const auto function = reinterpret_cast<MatmulFn>(kernel.function);
  for (auto _ : state) {
    function(args);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  const double passes = static_cast<double>(state.iterations());
  const double ops = 2.0 * static_cast<double>(w.rows() * kCols * tokens);
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(static_cast<double>(w.bytes()) * passes * 1e-9, Counter::kIsRate);
  state.counters["Gop/s"] = Counter(ops * passes * 1e-9, Counter::kIsRate);
}

// From DRAM into a slot of 8 MiB that is used again and again, as a streamed model's is.
void pack(benchmark::State& state, const Kernel& kernel) {
  const size_t row = row_bytes(kernel.type, kCols), panel = panel_bytes(kernel.type, kCols);
  const size_t panels = kBigBytes / panel, slot_panels = (8u << 20) / panel;
  const std::vector<uint8_t> some = ordinary_rows(kernel.type, kPanelRows);
  const Pages file(panels * kPanelRows * row), slot(slot_panels * panel);
  uint8_t* rows = file.data();
  for (size_t p = 0; p < panels; ++p) std::memcpy(rows + p * some.size(), some.data(), some.size());
  const auto function = reinterpret_cast<PackFn>(kernel.function);
  for (auto _ : state) {
    for (size_t p = 0; p < panels; ++p) {
      uint8_t* out = slot.data() + p % slot_panels * panel;
      function({kernel.type, rows + p * some.size(), row, kPanelRows, kCols, out});
    }
    benchmark::ClobberMemory();
  }
  const double bytes = static_cast<double>(panels * some.size()) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsRate);
}

// memcpy the same way: from DRAM into a slot.
void copy(benchmark::State& state) {
  constexpr size_t kSlot = 8u << 20;
  const Pages from(kBigBytes), slot(kSlot);
  for (auto _ : state) {
    for (size_t i = 0; i < kBigBytes; i += kSlot) std::memcpy(slot.data(), from.data() + i, kSlot);
    benchmark::ClobberMemory();
  }
  const double bytes = static_cast<double>(kBigBytes) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsRate);
}

// The read roof: sums 64-bit words, line by line, fetching 1 KiB ahead as the kernels do.
void read(benchmark::State& state) {
  const Pages from(kBigBytes + 4096);
  std::vector<uint64_t> words(8);
  const uint8_t* bytes = from.data();
  for (auto _ : state) {
    uint64_t sum[8] = {};
    for (size_t i = 0; i < kBigBytes; i += 64) {
      uint64_t line[8];
      __builtin_prefetch(bytes + i + 1024);
      std::memcpy(line, bytes + i, 64);
      for (size_t j = 0; j < 8; ++j) sum[j] += line[j];
    }
    std::copy(sum, sum + 8, words.begin());
    benchmark::DoNotOptimize(words.data());
  }
  const double total = static_cast<double>(kBigBytes) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
}

std::string title(const char* what, const Kernel& kernel) {
  const char* path = kernel.op == Op::matmul_float ? "/float" : "";
  return std::string(what) + "/" + std::string(type_info(kernel.type).name) + path + "/" + name_of(kernel.isa);
}

void add(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMillisecond);
}

void register_all() {
  add("read/dram", read);
  add("memcpy/slot", copy);
  for (const Kernel& kernel : kernel_list()) {
    if (!cpu_info().features.has_all({kernel.needs})) continue;
    // The scalar reference is hundreds of times slower; a small piece says enough.
    const bool slow = kernel.isa == Isa::scalar;
    if (kernel.op == Op::pack && !slow) add(title("pack", kernel), [kernel](auto& s) { pack(s, kernel); });
    if (kernel.op != Op::matmul_q8 && kernel.op != Op::matmul_float) continue;
    const size_t decode_bytes = slow ? 1u << 20 : kBigBytes, prefill_bytes = slow ? 1u << 16 : 64u << 20;
    add(title("decode", kernel), [=](auto& s) { matmul(s, kernel, 1, decode_bytes); });
    add(title("prefill", kernel), [=](auto& s) { matmul(s, kernel, kTokens, prefill_bytes); });
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

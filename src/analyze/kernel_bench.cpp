#include "analyze/kernel_bench.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/float_env.h"
#include "base/units.h"
#include "machine/bandwidth_loop.h"
#include "machine/compute_loop.h"
#include "machine/cpu.h"
#include "machine/cpu_time.h"
#include "machine/memory_limits.h"
#include "machine/probe_rate.h"
#include "memory/slab.h"
#include "tensor/half.h"
#include "tensor/panel.h"
#include "text/rng.h"

namespace ridge {
namespace {

constexpr size_t kCols = 4096, kTokens = 128;
// Prefill weights stay in a cache, as a prompt's passes over one panel do.
constexpr uint64_t kPrefillBytes = 2 * kMiB;
// The scalar reference is hundreds of times slower; a small piece says enough.
constexpr uint64_t kScalarDecodeBytes = 256 * kKiB, kScalarPrefillBytes = 16 * kKiB;
constexpr uint64_t kQuickBytes = 64 * kMiB, kMostBytes = 384 * kMiB;

// Repetitions of `work` per CPU second, over at least five milliseconds.
template <class Work>
double per_second(Work work) {
  constexpr double kLeast = 5e-3;
  double start = thread_cpu_seconds(), now = start;
  uint64_t count = 0;
  do {
    work();
    ++count;
    now = thread_cpu_seconds();
  } while (now - start < kLeast);
  return static_cast<double>(count) / (now - start);
}

// Every 16 bits an ordinary f16 number, so that no scale is NaN, infinite or subnormal, wherever a type keeps it.
std::vector<uint8_t> ordinary_rows(Type type) {
  constexpr uint8_t kHalf = 127;  // 2^(127 − 128), the exponents of MXFP4
  Rng rng(1);
  std::vector<uint8_t> bytes(kPanelRows * row_bytes(type, kCols));
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint16_t half = f32_to_f16(static_cast<float>(rng.next() % 1000 + 1) * 1e-3f);
    std::memcpy(&bytes[i], &half, sizeof half);
  }
  if (type == Type::MXFP4) {
    for (size_t i = 0; i < bytes.size(); i += type_info(type).bytes) bytes[i] = kHalf;
  }
  return bytes;
}

struct Activations {
  std::vector<float> x = std::vector<float>(kTokens * kCols, 0.5f);
  std::vector<int8_t> q = std::vector<int8_t>(kTokens * kCols, 3);
  std::vector<float> d = std::vector<float>(kTokens * kCols / 32, 0.01f);
  std::vector<int32_t> sums = std::vector<int32_t>(kTokens * kCols / 16, 48);
};

class Bench {
 public:
  static Result<Bench> create(uint64_t footprint) {
    Bench bench;
    bench.weights_ = RIDGE_TRY(Slab::allocate(footprint, {.what = "the weights to measure with"}));
    bench.out_.resize(std::max(footprint / row_bytes(Type::Q2_K, kCols), kTokens * kCols));
    return bench;
  }

  // Fills all weights with panels of a type.
  void fill(Type type) {
    if (type == filled_) return;
    std::vector<uint8_t> rows = ordinary_rows(type);
    size_t panel = panel_bytes(type, kCols), count = weights_.bytes() / panel;
    pack_panel({type, rows.data(), row_bytes(type, kCols), kPanelRows, kCols, weights_.data()});
    for (size_t p = 1; p < count; ++p) std::memcpy(weights_.data() + p * panel, weights_.data(), panel);
    filled_ = type;
  }

  // Bytes per CPU second, times 1e-9.
  double read_roof() const {
    const auto* words = static_cast<const uint64_t*>(static_cast<const void*>(weights_.data()));
    size_t count = weights_.bytes() / sizeof(uint64_t) / kReadLoopWords * kReadLoopWords;
    double best = 0;
    for (ReadLoop loop : {best_read_loop(cpu_info().features), fetching_read_loop(cpu_info().features)}) {
      volatile uint64_t sink = 0;
      best = std::max(best, per_second([&] { sink = loop(words, count); }));
    }
    return best * static_cast<double>(count * sizeof(uint64_t)) * 1e-9;
  }

  // A kernel over at most `bytes` of panels: passes per second, and the rows of a pass.
  struct Rate {
    double per_s = 0;
    double bytes = 0, ops = 0;  // of a pass
  };
  Rate run(const KernelRow& row, MatmulFn function, size_t tokens, uint64_t bytes) {
    size_t panel = panel_bytes(row.type, kCols);
    // Outputs are [tokens, rows]: no more rows than there is room for.
    size_t panels = std::clamp<size_t>(std::min(bytes, weights_.bytes()) / panel, 1, out_.size() / tokens / kPanelRows);
    MatmulArgs args{};
    args.panels = weights_.data();
    args.rows = panels * kPanelRows;
    args.cols = kCols;
    args.tokens = tokens;
    args.x = activations_.x.data();
    args.x_stride = kCols;
    args.x8 = {activations_.q.data(), activations_.d.data(), activations_.sums.data(), kCols, kCols / 32};
    args.out = out_.data();
    args.out_stride = args.rows;
    return {.per_s = per_second([&] { function(args); }),
            .bytes = static_cast<double>(panels * panel),
            .ops = 2.0 * static_cast<double>(args.rows * kCols * tokens)};
  }

 private:
  Slab weights_;
  std::optional<Type> filled_;
  Activations activations_;
  std::vector<float> out_;
};

double peak(const ComputeLoop& loop) {
  constexpr uint64_t kRounds = 100000;
  if (loop.run == nullptr) return 0;
  return per_second([&] { loop.run(kRounds); }) * static_cast<double>(kRounds * loop.operations) * 1e-9;
}

uint64_t footprint_of(const KernelBenchOptions& options) {
  uint64_t wish = options.quick ? kQuickBytes : std::clamp(2 * cpu_info().l3_bytes, kQuickBytes, kMostBytes);
  return std::min(wish, memory_limits().available / 4);
}

bool wanted(const KernelRow& row, KernelScope scope) {
  if (row.op != Op::matmul_q8 && row.op != Op::matmul_float) return false;
  if (scope == KernelScope::all) return row.runs_here;
  // Of the two products of a type the one that its models use by default.
  return row.chosen && type_info(row.type).is_float == (row.op == Op::matmul_float);
}

// The entries of the list, by what kernel_rows() made of them.
MatmulFn function_of(const KernelRow& row) {
  for (const Kernel& kernel : kernel_list()) {
    if (kernel.op == row.op && kernel.type == row.type && row.name == kernel.name) {
      return reinterpret_cast<MatmulFn>(kernel.function);
    }
  }
  return nullptr;
}

// Of the widest units that a kernel with these needs can use.
double peak_for(const KernelRow& row) {
  constexpr CpuFeatures kOptional = kAmxInt8 | kAmxBf16 | kAvx512Bf16;
  const CpuFeatures features{cpu_info().features.without(kOptional).bits | (row.needs.bits & kOptional.bits)};
  if (row.op != Op::matmul_float) return peak(best_loop("int8", features));
  return std::max(peak(best_loop("f32", features)), peak(best_loop("bf16", features)));
}

void measure(Bench& bench, KernelRow& row, KernelReport& report, int repetitions) {
  bool scalar = row.isa == Isa::scalar, is_float = row.op == Op::matmul_float;
  MatmulFn function = function_of(row);
  bench.fill(row.type);
  for (int r = 0; r < repetitions; ++r) {
    double read = bench.read_roof();
    const double compute_peak = peak_for(row);
    Bench::Rate decode = bench.run(row, function, 1, scalar ? kScalarDecodeBytes : UINT64_MAX);
    Bench::Rate prefill = bench.run(row, function, kTokens, scalar ? kScalarPrefillBytes : kPrefillBytes);
    double gb_per_s = decode.per_s * decode.bytes * 1e-9, gop_per_s = prefill.per_s * prefill.ops * 1e-9;
    row.decode_gb_per_s = std::max(row.decode_gb_per_s, gb_per_s);
    row.prefill_gop_per_s = std::max(row.prefill_gop_per_s, gop_per_s);
    if (read > 0) row.decode_share = std::max(row.decode_share, gb_per_s / read);
    if (compute_peak > 0) row.prefill_share = std::max(row.prefill_share, gop_per_s / compute_peak);
    report.read_roof_gb_per_s = std::max(report.read_roof_gb_per_s, read);
    double& best = is_float ? report.float_peak_gop_per_s : report.int8_peak_gop_per_s;
    best = std::max(best, compute_peak);
  }
  row.measured = true;
}

}  // namespace

Result<std::vector<KernelRow>> kernel_rows(const std::optional<Isa>& isa) {
  KernelChoice choice = RIDGE_TRY(choose_kernels({.isa = isa}));
  std::vector<KernelRow> rows;
  for (const Kernel& kernel : kernel_list()) {
    KernelRow row{.op = kernel.op, .type = kernel.type, .isa = kernel.isa, .name = kernel.name};
    row.needs = {kernel.needs};
    row.runs_here = cpu_info().features.has_all({kernel.needs});
    // "matmul_q8 Q4_0: avx2 (avx512 vnni: this CPU lacks avx512)"
    std::string chosen = describe(kernel.op, kernel.type) + ": " + kernel.name;
    for (const std::string& reason : choice.reasons) {
      if (!reason.starts_with(chosen)) continue;
      std::string rest = reason.substr(chosen.size());
      if (rest.empty()) row.chosen = true;
      if (rest.starts_with(" (")) {
        row.chosen = true;
        row.refusals = rest.substr(2, rest.size() - 3);
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<FormatPoint>> measure_formats(bool quick) {
  constexpr uint64_t kResident = 256 * kKiB, kFootprint = 2 * kMiB;
  Bench bench = RIDGE_TRY(Bench::create(kFootprint));
  set_float_environment();
  std::vector<KernelRow> rows = RIDGE_TRY(kernel_rows(std::nullopt));
  std::erase_if(rows, [](const KernelRow& row) { return !wanted(row, KernelScope::chosen); });
  Rounds rounds(rows.size(), {.sittings = quick ? 3 : 5, .samples = 1, .more = quick ? 3 : 5});
  while (rounds.next()) {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!rounds.wanted(i)) continue;
      bench.fill(rows[i].type);
      const Bench::Rate rate = bench.run(rows[i], function_of(rows[i]), 1, kResident);
      rounds.add(i, rate.per_s * rate.bytes * 1e-9);
    }
  }
  std::vector<FormatPoint> points;
  for (size_t i = 0; i < rows.size(); ++i) {
    points.push_back({std::string(type_info(rows[i].type).name), rounds.result(i)});
  }
  return points;
}

Result<KernelReport> bench_kernels(const KernelBenchOptions& options) {
  constexpr int kRepetitions = 3;
  KernelReport report;
  report.cpu = cpu_info().model;
  report.features = cpu_info().feature_names;
  report.rows = RIDGE_TRY(kernel_rows(options.isa));
  report.footprint_bytes = footprint_of(options);
  Bench bench = RIDGE_TRY(Bench::create(report.footprint_bytes));
  set_float_environment();
  uint64_t total = 0;
  for (const KernelRow& row : report.rows) total += wanted(row, options.scope) ? 1 : 0;
  for (KernelRow& row : report.rows) {
    if (!wanted(row, options.scope)) continue;
    report.interrupted = options.interrupted != nullptr && options.interrupted->load();
    if (report.interrupted) break;
    measure(bench, row, report, options.quick ? 1 : kRepetitions);
    if (options.progress) options.progress(total);
  }
  return report;
}

}  // namespace ridge

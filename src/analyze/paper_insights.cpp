// The six insights of RooflineBench, each with the figure of its own formulas, the physical one, and what is left of
// it.
#include <fmt/format.h>

#include "analyze/paper_compat.h"
#include "base/check.h"

namespace ridge {
namespace {

enum PaperScenario : size_t { kSiso, kLiso, kSilo, kLilo };

const PaperRow& row_of(std::string_view device, std::string_view model, std::string_view type) {
  const PaperRow* row = find_paper_row(device, model, type);
  RIDGE_CHECK(row != nullptr, "insights speak of rows that the paper has");
  return *row;
}

const PaperRow& m1(std::string_view model, std::string_view type = "F16") { return row_of("M1 Pro", model, type); }

Insight lengths() {
  const PaperRow& row = m1("qwen2.5-1.5b");
  const PhysicalPoint liso = physical_point(row, kLiso), silo = physical_point(row, kSilo);
  return {
      .claim = "1. A long input with a short output (LISO) has the highest intensity, the reverse (SILO) the lowest",
      .compat = fmt::format("OI {:.2g} against {:.2g}", compat_point(row, kLiso).oi, compat_point(row, kSilo).oi),
      .physical = fmt::format("decode OI {:.2f} against {:.2f}; prefill {:.0f} against {:.0f}", liso.decode_oi,
                              silo.decode_oi, liso.prefill_oi, silo.prefill_oi),
      .verdict = "artefact",
      .why =
          "W counts the prompt alone and T the whole process, so the ratio follows the share of time that is "
          "prefill; taken apart, each phase has its own intensity in all four scenarios"};
}

Insight depth() {
  const PaperRow& row = m1("qwen2.5-1.5b");
  return {.claim = "2. Intensity is highest at 2 to 5 layers and falls with depth",
          .compat = fmt::format("peak at {:.1f} (LISO) to {:.1f} layers (SISO)", depth_peak(row, kLiso).layers,
                                depth_peak(row, kSiso).layers),
          .physical = fmt::format("decode OI {:.2f} at 1, {:.2f} at 4, {:.2f} at 28 layers", physical_decode_oi(row, 1),
                                  physical_decode_oi(row, 4), physical_decode_oi(row, 28)),
          .verdict = "artefact",
          .why =
              "L / ((M0 + m L)(t0 + τ L)) has its maximum at sqrt(M0 t0 / (m τ)) for any numbers; bytes and "
              "operations both grow with depth, and their ratio hardly moves"};
}

Insight precision() {
  const PaperRow &f16 = m1("qwen2.5-1.5b"), &q4 = m1("qwen2.5-1.5b", "Q4_K_M");
  auto gain = [&](size_t s) { return compat_point(q4, s).ops_per_s / compat_point(f16, s).ops_per_s; };
  return {.claim = "3. Quantisation helps SILO most",
          .compat = fmt::format("performance × {:.2f} in SILO, × {:.2f} in LISO", gain(kSilo), gain(kLiso)),
          .physical = fmt::format("decode × {:.2f}, prefill × {:.2f}", q4.rates[kSilo].decode / f16.rates[kSilo].decode,
                                  q4.rates[kLiso].prefill / f16.rates[kLiso].prefill),
          .verdict = "holds",
          .why = "decode reads fewer bytes and gains, prefill has more to unpack and loses; SILO is nearly all decode"};
}

// Operations per byte of keys and values in decode, at this depth.
double attention_oi(const ModelShape& shape, uint64_t depth) {
  auto model = make_shape_model(shape);
  RIDGE_CHECK(model.ok(), "the paper's shapes are good ones");
  const Cost c = decode_phase(*model.value(), {.tokens = 1, .depth = depth}, {})[Operator::attention];
  return static_cast<double>(c.flops + c.int_ops) / static_cast<double>(c.kv_bytes);
}

Insight attention() {
  const PaperRow &mla = m1("plm-1.8b"), &mha = m1("smollm2-1.7b"), &gqa = m1("qwen2.5-1.5b");
  auto oi = [&](const PaperRow& row) { return compat_point(row, kLiso).oi; };
  constexpr uint64_t kDepth = 4096;
  return {.claim = "4. MLA has a higher intensity and performance than MHA, and MHA than GQA",
          .compat = fmt::format("OI (LISO) {:.0f}, {:.0f}, {:.0f}", oi(mla), oi(mha), oi(gqa)),
          .physical = fmt::format("decode tok/s (LISO) {:.0f}, {:.0f}, {:.0f}; attention's OI at depth {} {:.0f}, "
                                  "{:.1f}, {:.1f}",
                                  mla.rates[kLiso].decode, mha.rates[kLiso].decode, gqa.rates[kLiso].decode, kDepth,
                                  attention_oi(shape_of(mla), kDepth), attention_oi(shape_of(mha), kDepth),
                                  attention_oi(shape_of(gqa), kDepth)),
          .verdict = "reversed",
          .why = fmt::format("the code counts {:.2f} M multiply-adds for a layer of MLA where there are {:.2f} M, and "
                             "half of GQA's keys and values: more work counted is not more work done per second",
                             compat_layer_ops(shape_of(mla), 1).linear * 1e-6,
                             compat_layer_ops(shape_of(mla), 1, CompatRule::table).linear * 1e-6)};
}

Insight trap() {
  std::string compat, physical;
  for (std::string_view device : {"M1 Pro", "RTX 3070 Ti Laptop", "Jetson Orin Nano Super"}) {
    const PaperRow& row = row_of(device, "qwen2.5-1.5b", "Q8_0");
    const PaperDevice& d = paper_device(device);
    const PhysicalPoint p = physical_point(row, kSiso);
    compat += fmt::format("{}{:.2g}", compat.empty() ? "OI / ridge (SISO) " : ", ",
                          compat_point(row, kSiso).oi / d.ridge_measured);
    physical += fmt::format("{}{:.0f} % of the bandwidth, {:.1f} % of the peak", physical.empty() ? "decode: " : "; ",
                            100 * p.decode_bytes_per_s / (d.memory_gb_per_s * 1e9),
                            100 * p.decode_ops_per_s / (d.f32_tflops * 1e12));
  }
  return {
      .claim = "5. One model has different efficiency on machines with different ridge points (the efficiency trap)",
      .compat = compat,
      .physical = physical,
      .verdict = "holds",
      .why =
          "decode lies left of every ridge, so its share of the peak is OI / ridge whatever the model does; its "
          "share of the bandwidth is what an engine can be judged by"};
}

Insight consistent() {
  const ModelShape plm = shape_of(m1("plm-1.8b"));
  return {.claim = "6. MLA stays efficient on every machine",
          .compat = fmt::format("W of MLA × {:.2f} on every machine",
                                compat_layer_ops(plm, 1).linear / compat_layer_ops(plm, 1, CompatRule::table).linear),
          .physical = fmt::format(
              "attention's OI in decode is {:.0f}: beyond the ridge of the Pi 5 ({:.0f}), below that "
              "of the M1 Pro ({:.0f})",
              attention_oi(plm, 4096), paper_device("Raspberry Pi 5").ridge, paper_device("M1 Pro").ridge_measured),
          .verdict = "not shown",
          .why =
              "the same overcount everywhere looks like consistency; absorbed latents save bytes for operations, "
              "which small machines lack; Ridge's cache keeps latents twice, once would give 30"};
}

}  // namespace

std::vector<Insight> paper_insights() { return {lengths(), depth(), precision(), attention(), trap(), consistent()}; }

}  // namespace ridge

// What ridge quantize prints: types by bytes, size, what the check measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"
#include "cli/quantize.h"

namespace ridge::cli {
namespace {

struct TypeSum {
  uint64_t matrices = 0, elements = 0, bytes = 0;
};

std::map<Type, TypeSum> sums_by_type(const QuantizeOutcome& o) {
  std::map<Type, TypeSum> sums;
  for (size_t i = 0; i < o.types.size(); ++i) {
    TypeSum& s = sums[o.types[i]];
    ++s.matrices;
    s.elements += o.tensors[i].elements();
    s.bytes += o.tensors[i].rows() * row_bytes(o.types[i], o.tensors[i].cols());
  }
  return sums;
}

double bits_per_weight(const QuantizeOutcome& o) {
  uint64_t elements = 0, bytes = 0;
  for (const auto& [type, sum] : sums_by_type(o)) elements += sum.elements, bytes += sum.bytes;
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(std::max<uint64_t>(1, elements));
}

double error_of(const BitMatrix& m, Type type) {
  const auto at = std::find_if(m.choices.begin(), m.choices.end(), [&](const BitChoice& c) { return c.type == type; });
  return at != m.choices.end() ? at->error : 0;
}

}  // namespace

double perplexity_rise_percent(const Divergence& d) { return 100 * std::expm1(d.other_nll - d.reference_nll); }

std::string quantize_table(const QuantizeOutcome& o) {
  std::string out = fmt::format("{:<8} {:>8} {:>16} {:>12}\n", "type", "matrices", "weights", "bytes");
  for (const auto& [type, sum] : sums_by_type(o)) {
    out += fmt::format("{:<8} {:>8} {:>16} {:>12}\n", type_info(type).name, sum.matrices, format_count(sum.elements),
                       format_bytes(sum.bytes));
  }
  out += fmt::format("{}: {}, {:.0f} % of {}; {:.2f} bits per weight of its matrices\n", printable(o.output),
                     format_bytes(o.bytes_after),
                     100.0 * static_cast<double>(o.bytes_after) / static_cast<double>(o.bytes_before),
                     format_bytes(o.bytes_before), bits_per_weight(o));
  if (o.mix && o.calibrated) out += fmt::format("predicted: KL {:.5f} nats per token\n", o.mix->loss);
  if (!o.check) return out;
  return out + fmt::format(
                   "measured: KL {:.5f} ± {:.5f} nats per token, perplexity {:.3f} → {:.3f} ({:+.2f} %), the same "
                   "likeliest token in {:.1f} % of {}\n",
                   o.check->kl, o.check->standard_error, std::exp(o.check->reference_nll), std::exp(o.check->other_nll),
                   perplexity_rise_percent(*o.check), 100 * o.check->same_top, counted(o.check->positions, "position"));
}

std::string quantize_json(const QuantizeOutcome& o) {
  nlohmann::ordered_json j = {{"model", o.model},
                              {"output", o.output},
                              {"bytes_before", o.bytes_before},
                              {"bytes", o.bytes_after},
                              {"bits_per_weight", bits_per_weight(o)}};
  j["types"] = nlohmann::ordered_json::array();
  for (const auto& [type, sum] : sums_by_type(o)) {
    j["types"].push_back({{"type", std::string(type_info(type).name)},
                          {"matrices", sum.matrices},
                          {"weights", sum.elements},
                          {"bytes", sum.bytes}});
  }
  if (o.mix) {
    j["predicted"] = {{o.calibrated ? "kl" : "error", o.mix->loss}, {"bound", o.mix->bound}};
  }
  if (o.check) {
    j["check"] = {{"kl", o.check->kl},
                  {"kl_standard_error", o.check->standard_error},
                  {"same_top", o.check->same_top},
                  {"positions", o.check->positions},
                  {"perplexity_before", std::exp(o.check->reference_nll)},
                  {"perplexity", std::exp(o.check->other_nll)},
                  {"perplexity_rise_percent", perplexity_rise_percent(*o.check)},
                  {"scored", o.check->scored}};
  }
  for (const ScaleGroup& g : o.groups) {
    j["groups"].push_back({{"name", g.name}, {"matrices", g.matrices.size()}, {"kl", g.kl}});
  }
  j["matrices"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < o.types.size(); ++i) {
    nlohmann::ordered_json m = {{"name", o.tensors[i].name},
                                {"from", std::string(type_info(o.tensors[i].type).name)},
                                {"to", std::string(type_info(o.types[i]).name)}};
    if (i < o.matrices.size()) {
      m["error"] = error_of(o.matrices[i], o.types[i]);
      m["scale"] = o.matrices[i].scale;
    }
    j["matrices"].push_back(m);
  }
  return j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string quantize_reasons(const QuantizeOutcome& o) {
  std::string out;
  for (size_t i = 0; i < o.types.size(); ++i) {
    const GgufTensor& t = o.tensors[i];
    const std::string name = printable(t.name);
    if (o.types[i] == t.type) {
      out += fmt::format("{} stays {}\n", name, type_info(t.type).name);
      continue;
    }
    out += fmt::format("{} becomes {} instead of {}", name, type_info(o.types[i]).name, type_info(t.type).name);
    if (i < o.matrices.size()) {
      const double error = error_of(o.matrices[i], o.types[i]);
      out += fmt::format(": {:.3g} % of its output's energy is lost", 100 * error);
      if (o.calibrated) out += fmt::format(", {:.3g} nats per token are expected of it", error * o.matrices[i].scale);
    } else if (o.wish && o.types[i] != *o.wish) {
      out += fmt::format(", not {}: its {} columns are no multiple of {}", type_info(*o.wish).name, t.cols(),
                         type_info(*o.wish).block);
    }
    out += "\n";
  }
  return out;
}

}  // namespace ridge::cli

#include "analyze/paper_compat.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace ridge {
namespace {

// Of a shape, in bytes of its file and of its cache per position.
struct Sizes {
  double weights = 0, layer = 0, position = 0, head = 0;
};

std::unique_ptr<Model> model_of(const ModelShape& shape) {
  auto model = make_shape_model(shape);
  RIDGE_CHECK(model.ok(), "the paper's shapes are good ones");
  return std::move(model).value();
}

Sizes sizes_of(const Model& model, const ModelShape& shape) {
  const Program program = model.program({.tokens = 1, .outputs = 1, .role = TokenRole::generated}, {});
  Sizes s;
  s.weights = static_cast<double>(program.storage_bytes());
  s.head = static_cast<double>(program.cost(Operator::head).storage_bytes);
  s.layer = (s.weights - s.head) / shape.layers;
  if (!shape.tied) s.weights += s.head;  // the embedding is a matrix of its own, of the head's size
  for (const KvLayer& l : model.kv_layers()) s.position += 2.0 * l.kv_heads * (l.key_dim + l.value_dim);
  return s;
}

Sizes sizes_of(const ModelShape& shape) { return sizes_of(*model_of(shape), shape); }

// Seconds of the process: start, a warm-up of each test, then their repetitions.
double process_seconds(const PaperRates& rates, const Scenario& s, const CompatAssumptions& assume) {
  const double prompts = assume.repetitions + 1, answers = assume.repetitions;
  return assume.start_s + prompts * static_cast<double>(s.prompt) / rates.prefill +
         (answers * static_cast<double>(s.answer) + 1) / rates.decode;
}

double peak_bytes(const Sizes& sizes, const Scenario& s, const CompatAssumptions& assume) {
  return sizes.weights + sizes.position * static_cast<double>(std::max(s.prompt, s.answer)) + assume.overhead_bytes;
}

struct CompatRoofs {
  double bytes_per_s = 0, peak = 0;
};

CompatPoint compat_of(const ModelShape& shape, const Sizes& sizes, const Scenario& s, const PaperRates& rates,
                      const CompatRoofs& roofs, const CompatAssumptions& assume) {
  CompatPoint c;
  c.ops = shape.layers * compat_layer_ops(shape, s.prompt).sum();
  c.seconds = process_seconds(rates, s, assume);
  c.peak_bytes = peak_bytes(sizes, s, assume);
  c.oi = c.ops / (c.peak_bytes * c.seconds);
  c.ops_per_s = c.ops / c.seconds;
  c.roof_share = c.peak_bytes / roofs.bytes_per_s;
  const double ridge = roofs.peak / roofs.bytes_per_s;
  c.phi = c.oi < ridge ? std::hypot(ridge - c.oi, roofs.peak - c.ops_per_s) : roofs.peak - c.ops_per_s;
  return c;
}

}  // namespace

ModelShape shape_of(const PaperRow& row) {
  const ModelShape* shape = find_shape(row.model);
  RIDGE_CHECK(shape != nullptr, "every row of the paper has a known shape");
  if (row.type == "Q8_0") return with_type(*shape, Type::Q8_0, Type::Q8_0);
  if (row.type == "Q4_K_M") return with_type(*shape, Type::Q4_K, Type::Q6_K);
  return *shape;
}

Scenario paper_scenario(size_t scenario) { return scenarios({})[scenario]; }

CompatOps compat_layer_ops(const ModelShape& s, uint64_t prompt, CompatRule rule) {
  const double n = static_cast<double>(prompt), h = s.width, nh = s.heads;
  if (s.latent != 0) {
    const double dc = s.latent, dr = s.rope, dn = s.nope;
    const double dl = rule == CompatRule::code ? h : dc;
    return {.cache = (dc + dr) * n,
            .attention = nh * (dr + 2 * dn) * n * n,
            .linear = ((dc + dr) * h + nh * (dr + dn) * h + 2 * nh * dl * dn + h * h) * n};
  }
  const double dh = s.head_dim;
  if (s.kv_heads == s.heads)
    return {.cache = 2 * nh * dh * n, .attention = 2 * nh * dh * n * n, .linear = 4 * n * h * h};
  const double nk = s.kv_heads / (rule == CompatRule::code ? 2.0 : 1.0);
  return {.cache = 2 * nk * dh * n, .attention = 2 * nh * dh * n * n, .linear = 2 * n * h * h + 2 * nk * dh * n * h};
}

CompatPoint compat_point(const PaperRow& row, size_t scenario, const CompatAssumptions& assume) {
  const ModelShape shape = shape_of(row);
  const PaperDevice& device = paper_device(row.device);
  const CompatRoofs roofs{.bytes_per_s = device.memory_measured_gb_per_s * 1e9,
                          .peak = device.f32_measured_tflops * 1e12};
  return compat_of(shape, sizes_of(shape), paper_scenario(scenario), row.rates[scenario], roofs, assume);
}

PhysicalPoint physical_point(const PaperRow& row, size_t scenario) {
  const std::unique_ptr<Model> model = model_of(shape_of(row));
  const Scenario s = paper_scenario(scenario);
  const Work prompt{prefill_phase(*model, {.tokens = s.prompt}, {}).total(), 0};
  const Work answer{decode_phase(*model, {.tokens = s.answer}, {}).total(), 0};
  const double prompt_s = static_cast<double>(s.prompt) / row.rates[scenario].prefill;
  const double answer_s = static_cast<double>(s.answer) / row.rates[scenario].decode;
  return {.prefill_oi = prompt.ops() / prompt.bytes(),
          .prefill_ops_per_s = prompt.ops() / prompt_s,
          .decode_oi = answer.ops() / answer.bytes(),
          .decode_ops_per_s = answer.ops() / answer_s,
          .decode_bytes_per_s = answer.bytes() / answer_s,
          .prefill_ops = prompt.ops()};
}

double DepthPeak::oi_at(double depth, double layer_ops) const {
  return layer_ops * depth / ((fixed_bytes + layer_bytes * depth) * (fixed_s + layer_s * depth));
}

// What does not grow with layers is the head and the start; of the decode's time, the head's share of the bytes.
DepthPeak depth_peak(const PaperRow& row, size_t scenario, const CompatAssumptions& assume) {
  const ModelShape shape = shape_of(row);
  const Sizes sizes = sizes_of(shape);
  const Scenario s = paper_scenario(scenario);
  const double whole = process_seconds(row.rates[scenario], s, assume);
  const double decode_s = (assume.repetitions * static_cast<double>(s.answer) + 1) / row.rates[scenario].decode;
  DepthPeak d;
  d.fixed_bytes = sizes.weights - shape.layers * sizes.layer + assume.overhead_bytes;
  d.layer_bytes = sizes.layer + sizes.position / shape.layers * static_cast<double>(std::max(s.prompt, s.answer));
  d.fixed_s = assume.start_s + decode_s * sizes.head / (sizes.head + shape.layers * sizes.layer);
  d.layer_s = (whole - d.fixed_s) / shape.layers;
  d.layers = std::sqrt(d.fixed_bytes * d.fixed_s / (d.layer_bytes * d.layer_s));
  return d;
}

double physical_decode_oi(const PaperRow& row, uint32_t layers) {
  ModelShape shape = shape_of(row);
  shape.layers = layers;
  const Work work{decode_phase(*model_of(shape), {.tokens = 128}, {}).total(), 0};
  return work.ops() / work.bytes();
}

void add_compat_rows(const Model& model, const ModelShape& shape, size_t first_point, RooflineReport& report) {
  const Sizes sizes = sizes_of(model, shape);
  const std::vector<RooflinePoint>& points = report.points;
  for (size_t i = first_point; i < points.size(); ++i) {
    const RooflinePoint& prompt = points[i];
    if (prompt.op != "all" || prompt.phase != BenchTest::prefill) continue;
    const auto answer = std::find_if(points.begin() + static_cast<ptrdiff_t>(i), points.end(), [&](const auto& p) {
      return p.op == "all" && p.phase == BenchTest::decode && p.scenario == prompt.scenario &&
             p.machine == prompt.machine && p.threads == prompt.threads && p.model == prompt.model;
    });
    if (answer == points.end() || prompt.tokens_per_s() <= 0 || answer->tokens_per_s() <= 0) continue;
    const CompatRoofs roofs{.bytes_per_s = answer->roofs.read_gb_per_s * 1e9,
                            .peak = std::max(answer->roofs.int8_gops, answer->roofs.float_gops) * 1e9};
    const Scenario scenario{prompt.scenario, prompt.prompt, prompt.answer};
    const PaperRates rates{.prefill = prompt.tokens_per_s(), .decode = answer->tokens_per_s()};
    report.compat.push_back({.model = prompt.model,
                             .machine = prompt.machine,
                             .scenario = prompt.scenario,
                             .threads = prompt.threads,
                             .compat = compat_of(shape, sizes, scenario, rates, roofs, {}),
                             .physical = {.prefill_oi = prompt.work.ops() / prompt.work.bytes(),
                                          .prefill_ops_per_s = prompt.work.ops() / prompt.seconds,
                                          .decode_oi = answer->work.ops() / answer->work.bytes(),
                                          .decode_ops_per_s = answer->work.ops() / answer->seconds,
                                          .decode_bytes_per_s = answer->work.bytes() / answer->seconds,
                                          .prefill_ops = prompt.work.ops()}});
  }
}

}  // namespace ridge

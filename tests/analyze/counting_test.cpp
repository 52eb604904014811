// The counting of Cost against values computed by hand, against counted arithmetic, against the tensor tables of files,
// and against what a run visits; and formulas with a known defect, each of which must be noticed.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "analyze/chosen_experts.h"
#include "analyze/phase_cost.h"
#include "analyze/shape_model.h"
#include "model/operators.h"
#include "tests/golden.h"

namespace ridge {
namespace {

// Per score, as outline.cpp declares it: its exponential. Per gate value: its activation and the product.
constexpr double kExp = 20, kGate = 30;

ModelShape small() {
  return {.name = "small",
          .layers = 2,
          .width = 64,
          .ffn = 96,
          .vocabulary = 112,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .type = Type::F16,
          .head_type = Type::F16};
}
ModelShape small_latent(bool absorbed) {
  ModelShape s = small();
  s.ffn_matrices = 2;
  s.latent = 48;
  s.nope = 32;
  s.rope = 16;
  s.value = 32;
  s.absorbed = absorbed;
  return s;
}
ModelShape small_experts() {
  ModelShape s = small();
  s.experts = 8;
  s.experts_used = 2;
  s.ffn = 32;
  s.shared_ffn = 48;
  return s;
}
ModelShape small_window() {
  ModelShape s = small();
  s.window = 5;
  return s;
}
ModelShape small_types(Type type) {
  ModelShape s = with_type(small(), type, type);
  s.width = 256;
  s.ffn = 512;
  s.head_dim = 64;
  return s;
}

std::unique_ptr<Model> made(const ModelShape& shape) {
  auto model = make_shape_model(shape);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return std::move(model).value();
}

double ops(const Cost& c) { return static_cast<double>(c.flops + c.int_ops); }

// Bytes of one element by the table of formats, in bits.
const std::map<Type, double> kBits = {
    {Type::F32, 32},         {Type::F16, 16},        {Type::BF16, 16},      {Type::Q4_0, 4.5},
    {Type::Q4_1, 5},         {Type::Q5_0, 5.5},      {Type::Q5_1, 6},       {Type::Q8_0, 8.5},
    {Type::Q2_K, 2.625},     {Type::Q3_K, 3.4375},   {Type::Q4_K, 4.5},     {Type::Q5_K, 5.5},
    {Type::Q6_K, 6.5625},    {Type::IQ4_NL, 4.5},    {Type::IQ4_XS, 4.25},  {Type::MXFP4, 4.25},
    {Type::IQ2_XXS, 2.0625}, {Type::IQ2_XS, 2.3125}, {Type::IQ2_S, 2.5625}, {Type::IQ3_XXS, 3.0625},
    {Type::IQ3_S, 3.4375},   {Type::IQ1_S, 1.5625},  {Type::IQ1_M, 1.75},   {Type::TQ1_0, 1.6875},
    {Type::TQ2_0, 2.0625}};

// ---- by hand ----

// What is wrong with a formula. Each of these was seen in some tool.
enum class Defect {
  none,
  no_factor_two,          // a multiply-add counted once
  full_attention,         // N² pairs of a prompt instead of N (N + 1) / 2
  no_scales,              // 4 bits for a type of 4.5
  all_experts,            // every expert read, or computed
  query_heads_cached,     // the cache of grouped heads with as many heads as queries
  no_head,                // the output head left out
  head_for_all_tokens,    // logits of every prompt token
  tied_head_twice,        // the embedding's matrix read once more
  no_window,              // a sliding window that sees everything
  materialised_latents,   // absorbed bytes with the operations of expanded keys and values
  latent_of_hidden_size,  // the hidden size in place of the latent's
  two_ffn_matrices,       // gate forgotten
  cache_written_only,     // keys and values not read back
};
constexpr Defect kDefects[] = {Defect::no_factor_two,        Defect::full_attention,        Defect::no_scales,
                               Defect::all_experts,          Defect::query_heads_cached,    Defect::no_head,
                               Defect::head_for_all_tokens,  Defect::tied_head_twice,       Defect::no_window,
                               Defect::materialised_latents, Defect::latent_of_hidden_size, Defect::two_ffn_matrices,
                               Defect::cache_written_only};

struct Pass {
  uint64_t tokens = 1, position = 0;
  bool generated = false;
};

// Written from the shape alone, in other words than outline.cpp.
struct ByHand {
  ModelShape s;
  Pass pass;
  Defect defect = Defect::none;

  bool is(Defect d) const { return defect == d; }
  double mac() const { return is(Defect::no_factor_two) ? 1 : 2; }
  double n() const { return static_cast<double>(pass.tokens); }
  double end() const { return static_cast<double>(pass.position + pass.tokens); }
  double bytes_per_element(Type type) const {
    const double bits = kBits.at(type);
    return (is(Defect::no_scales) && type != Type::F16 ? std::floor(bits) : bits) / 8;
  }
  double latent() const { return is(Defect::latent_of_hidden_size) ? s.width : s.latent; }

  // Pairs of a token and a position that it sees, and positions that any token sees.
  double pairs() const {
    double sum = 0;
    for (uint64_t t = 0; t < pass.tokens; ++t) {
      double sees = static_cast<double>(pass.position + t + 1);
      if (is(Defect::full_attention)) sees = end();
      if (s.window != 0 && !is(Defect::no_window)) sees = std::min<double>(sees, s.window);
      sum += sees;
    }
    return sum;
  }
  double positions() const {
    if (is(Defect::cache_written_only)) return 0;
    if (s.window == 0 || is(Defect::no_window)) return end();
    return std::min(end(), static_cast<double>(pass.tokens + s.window - 1));
  }

  double qkv_elements() const {
    const double h = s.width;
    if (s.latent != 0) return h * s.heads * (s.nope + s.rope) + h * (s.latent + s.rope);
    return h * s.heads * s.head_dim + 2 * h * s.kv_heads * s.head_dim;
  }
  double output_elements() const { return double(s.width) * s.heads * (s.latent != 0 ? s.value : s.head_dim); }
  double head_elements() const { return double(s.vocabulary) * s.width; }
  double matrices() const { return is(Defect::two_ffn_matrices) ? 2 : s.ffn_matrices; }

  double weights(Operator op) const {  // bytes
    const double element = bytes_per_element(s.type), layers = s.layers;
    switch (op) {
      case Operator::qkv:
        return layers * element * qkv_elements();
      case Operator::attention:
        return layers * element * latent() * s.heads * (s.nope + s.value) * (s.latent != 0);
      case Operator::output:
        return layers * element * output_elements();
      case Operator::ffn:
        return layers * element * matrices() * s.width * (s.experts != 0 ? s.shared_ffn : s.ffn);
      case Operator::experts: {
        if (s.experts == 0) return 0;
        const double distinct = is(Defect::all_experts)
                                    ? s.experts
                                    : s.experts * (1 - std::pow(1 - double(s.experts_used) / s.experts, n()));
        return layers * (element * distinct * 3 * s.width * s.ffn + 4.0 * s.experts * s.width);  // a router of floats
      }
      case Operator::head:
        if (is(Defect::no_head)) return 0;
        return bytes_per_element(s.head_type) * head_elements() * (is(Defect::tied_head_twice) ? 2 : 1);
      default:
        return n() * s.width * bytes_per_element(s.head_type);  // embedding rows
    }
  }

  double operations(Operator op) const {
    const double layers = s.layers;
    switch (op) {
      case Operator::qkv:
        return layers * mac() * n() * qkv_elements();
      case Operator::attention: {
        if (s.latent == 0) return layers * pairs() * s.heads * (mac() * 2 * s.head_dim + kExp);
        const double expanded = s.nope + s.rope + s.value, absorbed = 2.0 * s.latent + s.rope;
        const bool wide = pass.generated && !is(Defect::materialised_latents);
        const double rows = pass.generated ? n() : end();  // that a head's matrices multiply
        return layers * (mac() * rows * latent() * s.heads * (s.nope + s.value) +
                         pairs() * s.heads * (mac() * (wide ? absorbed : expanded) + kExp));
      }
      case Operator::output:
        return layers * mac() * n() * output_elements();
      case Operator::ffn: {
        const double width = s.experts != 0 ? s.shared_ffn : s.ffn;
        return layers * n() * width * (mac() * matrices() * s.width + (s.ffn_matrices == 3 ? kGate : 2));
      }
      case Operator::experts: {
        if (s.experts == 0) return 0;
        const double used = is(Defect::all_experts) ? s.experts : s.experts_used;
        return layers * n() *
               (mac() * s.experts * s.width + used * (mac() * 3 * s.width * s.ffn + kGate * s.ffn + 2 * s.width));
      }
      case Operator::head:
        if (is(Defect::no_head)) return 0;
        return mac() * head_elements() * (is(Defect::head_for_all_tokens) ? n() : 1);
      default:
        return 0;
    }
  }

  double cache_bytes() const {
    if (s.latent != 0) {
      const double key = s.latent + s.rope, value = s.latent;
      return 2.0 * s.layers * (positions() * (pass.generated ? key + value : value + s.rope) + n() * (key + value));
    }
    const double heads = is(Defect::query_heads_cached) ? s.heads : s.kv_heads;
    return 2.0 * s.layers * (positions() + n()) * heads * 2 * s.head_dim;
  }

  // How far the counted costs are from this, at most over all figures; 0: equal to the last operation and byte, but for
  // expectations, which are rounded down.
  double distance() const {
    const std::unique_ptr<Model> model = made(s);
    const Program p = model->program({.tokens = static_cast<uint32_t>(pass.tokens),
                                      .outputs = 1,
                                      .position = pass.position,
                                      .role = pass.generated ? TokenRole::generated : TokenRole::prompt},
                                     {});
    double most = std::abs(static_cast<double>(p.cost(Operator::attention).kv_bytes) - cache_bytes());
    for (size_t i = 0; i < kOperators; ++i) {
      const Operator op = static_cast<Operator>(i);
      most = std::max(most, std::abs(static_cast<double>(p.cost(op).storage_bytes) - weights(op)));
      if (op != Operator::other) most = std::max(most, std::abs(ops(p.cost(op)) - operations(op)));
    }
    return most;
  }
};

struct NamedCase {
  const char* name;
  ModelShape shape;
  Pass pass;
};

std::vector<NamedCase> cases() {
  ModelShape mha = small(), untied = small();
  mha.kv_heads = mha.heads;
  untied.tied = false;
  std::vector<NamedCase> all;
  for (const Pass& pass : {Pass{1, 0, true}, Pass{1, 11, true}, Pass{7, 0, false}, Pass{6, 9, false}}) {
    all.push_back({"MHA", mha, pass});
    all.push_back({"GQA", small(), pass});
    all.push_back({"untied", untied, pass});
    all.push_back({"window", small_window(), pass});
    all.push_back({"experts", small_experts(), pass});
    all.push_back({"joint latents", small_latent(false), pass});
    all.push_back({"absorbed latents", small_latent(true), pass});
    for (const TypeInfo& t : all_types()) all.push_back({t.name.data(), small_types(t.type), pass});
  }
  return all;
}

TEST(Counting, EqualsWhatIsComputedByHand) {
  for (const NamedCase& c : cases()) {
    // Of experts each block's expectation is rounded down: three blocks for each of them.
    const double slack = c.shape.experts != 0 ? 3.0 * c.shape.experts * c.shape.layers : 0;
    EXPECT_LE(ByHand({c.shape, c.pass}).distance(), slack)
        << c.name << ": " << c.pass.tokens << " tokens at " << c.pass.position;
  }
}

TEST(Counting, NoticesEveryWrongFormula) {
  for (Defect defect : kDefects) {
    double most = 0;
    for (const NamedCase& c : cases()) most = std::max(most, ByHand({c.shape, c.pass, defect}).distance());
    EXPECT_GT(most, 100) << "defect " << static_cast<int>(defect);
  }
}

TEST(Counting, KnowsTheBitsOfEveryType) {
  for (const TypeInfo& t : all_types()) {
    ASSERT_TRUE(kBits.contains(t.type)) << t.name;
    EXPECT_DOUBLE_EQ(8.0 * t.bytes / t.block, kBits.at(t.type)) << t.name;
  }
}

TEST(Counting, OperatorsAddUpToTheWhole) {
  for (const NamedCase& c : cases()) {
    const Program p = made(c.shape)->program({.tokens = static_cast<uint32_t>(c.pass.tokens)}, {});
    Cost sum;
    for (const Cost& part : p.operators) sum += part;
    const Cost whole = p.cost();
    EXPECT_EQ(sum.storage_bytes, whole.storage_bytes) << c.name;
    EXPECT_EQ(sum.memory_bytes, whole.memory_bytes) << c.name;
    EXPECT_EQ(sum.kv_bytes, whole.kv_bytes) << c.name;
    EXPECT_EQ(sum.activation_bytes, whole.activation_bytes) << c.name;
    EXPECT_EQ(sum.flops, whole.flops) << c.name;
    EXPECT_EQ(sum.int_ops, whole.int_ops) << c.name;
  }
}

TEST(Counting, QuantisedWeightsTakeIntegerOperationsAndFloatsDoNot) {
  for (const TypeInfo& t : all_types()) {
    const Program p = made(small_types(t.type))->program({.tokens = 3}, {});
    EXPECT_EQ(p.cost(Operator::qkv).flops == 0, !t.is_float) << t.name;
    EXPECT_EQ(p.cost(Operator::qkv).int_ops == 0, t.is_float) << t.name;
    const Program exact = made(small_types(t.type))->program({.tokens = 3}, {.exact = true});
    EXPECT_EQ(exact.cost(Operator::qkv).int_ops, 0u) << t.name;
    EXPECT_EQ(ops(exact.cost(Operator::qkv)), ops(p.cost(Operator::qkv))) << t.name;
  }
}

TEST(Counting, APromptInSeveralPassesReadsWeightsOncePerPassAndTheHeadOnce) {
  const auto model = made(small());
  const PhaseCost one = prefill_phase(*model, {.tokens = 12}, {.batch = 12});
  const PhaseCost three = prefill_phase(*model, {.tokens = 12}, {.batch = 4});
  EXPECT_EQ(three.passes, 3u);
  EXPECT_EQ(three[Operator::ffn].storage_bytes, 3 * one[Operator::ffn].storage_bytes);
  EXPECT_EQ(three[Operator::ffn].flops, one[Operator::ffn].flops);
  EXPECT_EQ(three[Operator::head].storage_bytes, one[Operator::head].storage_bytes);
  EXPECT_EQ(three[Operator::attention].flops, one[Operator::attention].flops);
  // Positions are read 4, 8 and 12 at a time, and each is written once: 36 and 24 of them.
  EXPECT_EQ(three[Operator::attention].kv_bytes * 24, one[Operator::attention].kv_bytes * 36);
}

TEST(Counting, AttentionsIntensityIsThatOfItsHeads) {
  // 2 / bytes × query heads for each of keys: 1 for MHA and 6 for 12 over 2 at f16, once nothing but the cache counts.
  for (auto& [name, expected] : {std::pair{"smollm2-1.7b", 1.0}, {"llama-3.2-1b", 4.0}, {"qwen2.5-1.5b", 6.0}}) {
    const ModelShape& s = *find_shape(name);
    const PhaseCost c = decode_phase(*made(s), {.tokens = 1, .depth = 100000}, {});
    const double exponentials = kExp * s.heads * s.layers * 100001;
    const double oi =
        (ops(c[Operator::attention]) - exponentials) / static_cast<double>(c[Operator::attention].kv_bytes);
    EXPECT_NEAR(oi, expected, 1e-4 * expected) << name;
  }
}

// ---- by arithmetic that counts itself ----

// A number that counts what is done with it.
struct Counted {
  double value = 1;
  static inline uint64_t operations = 0;
};
Counted operator*(Counted a, Counted b) {
  ++Counted::operations;
  return {a.value * b.value};
}
Counted operator+(Counted a, Counted b) {
  ++Counted::operations;
  return {a.value + b.value};
}

// Reference kernels, by the definition: an accumulator that starts at 0, so as many sums as products.
template <class T>
void reference_product(size_t rows, size_t cols, size_t tokens, std::vector<T>& out) {
  const T w{}, x{};
  out.assign(rows * tokens, T{0});
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t r = 0; r < rows; ++r) {
      for (size_t c = 0; c < cols; ++c) out[t * rows + r] = out[t * rows + r] + w * x;
    }
  }
}

template <class T>
void reference_attention(const ModelShape& s, size_t position, size_t tokens) {
  const T q{}, k{}, v{}, p{};
  for (size_t t = 0; t < tokens; ++t) {
    const size_t last = position + t;
    for (size_t h = 0; h < s.heads; ++h) {
      for (size_t at = s.window != 0 && last + 1 > s.window ? last + 1 - s.window : 0; at <= last; ++at) {
        T score{0};
        for (size_t i = 0; i < s.head_dim; ++i) score = score + q * k;
        for (size_t i = 0; i < s.head_dim; ++i) score = score + p * v;
      }
    }
  }
}

uint64_t counted(const std::function<void()>& work) {
  Counted::operations = 0;
  work();
  return Counted::operations;
}

TEST(Counting, EqualsReferenceKernelsThatCountTheirArithmetic) {
  for (const ModelShape& s : {small(), small_window()}) {
    constexpr size_t kTokens = 7, kPosition = 9;
    const Program p = made(s)->program({.tokens = kTokens, .position = kPosition}, {});
    std::vector<Counted> out;
    auto product = [&](size_t rows, size_t cols, size_t tokens) {
      return counted([&] { reference_product<Counted>(rows, cols, tokens, out); });
    };
    const size_t q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
    EXPECT_EQ(ops(p.cost(Operator::qkv)),
              s.layers * (product(q, s.width, kTokens) + 2 * product(kv, s.width, kTokens)));
    EXPECT_EQ(ops(p.cost(Operator::output)), s.layers * product(s.width, q, kTokens));
    EXPECT_EQ(ops(p.cost(Operator::head)), product(s.vocabulary, s.width, 1));
    const double gates = kGate * s.ffn * kTokens * s.layers;
    EXPECT_EQ(ops(p.cost(Operator::ffn)) - gates, s.layers * 3 * product(s.ffn, s.width, kTokens));
    const ByHand hand{s, {kTokens, kPosition, false}};
    const double exponentials = kExp * hand.pairs() * s.heads * s.layers;
    EXPECT_EQ(ops(p.cost(Operator::attention)) - exponentials,
              s.layers * counted([&] { reference_attention<Counted>(s, kPosition, kTokens); }));
  }
}

// ---- against files and runs ----

std::vector<std::string> tiny_models() {
  std::vector<std::string> paths;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(golden::folder() + "/tiny", none)) {
    if (file.path().extension() == ".gguf") paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Counting, BytesAreThoseOfTheFilesTensorTable) {
  if (tiny_models().empty()) GTEST_SKIP() << "needs ../shared: golden/tiny";
  for (const std::string& path : tiny_models()) {
    auto model = Model::open(path);
    ASSERT_TRUE(model.ok()) << path;
    std::array<uint64_t, kOperators> table{};
    for (const GgufTensor& t : model.value()->file().tensors()) {
      const uint64_t bytes = t.rows() * row_bytes(t.type, t.cols());
      if (t.name == "token_embd.weight") {
        if (model.value()->tied()) table[static_cast<size_t>(Operator::head)] += bytes;
        continue;
      }
      // Norms, biases and factors are vectors, kept as floats: no blocks.
      const bool vector = t.rows() == 1 || t.name.find("norm") != std::string::npos || t.name.ends_with(".bias");
      if (!vector) table[static_cast<size_t>(operator_of(t.name))] += bytes;
    }
    const Program p = model.value()->program({.tokens = 1, .outputs = 1, .role = TokenRole::generated}, {});
    std::array<uint64_t, kOperators> blocks{};
    for (const Block& b : p.blocks) {
      for (const Piece& piece : b.pieces) {
        blocks[static_cast<size_t>(operator_of(p, piece.tensor, model.value()->head().id))] +=
            p.tensors[piece.tensor].stored_bytes(piece.row_begin, piece.row_end);
      }
    }
    for (size_t i = 0; i < kOperators; ++i) {
      const Operator op = static_cast<Operator>(i);
      EXPECT_EQ(blocks[i], table[i]) << path << ": " << name_of(op);
      if (op == Operator::experts || op == Operator::other) continue;
      EXPECT_EQ(p.cost(op).storage_bytes, table[i]) << path << ": " << name_of(op);
    }
  }
}

TEST(Counting, BytesAreThoseThatARecordedRunVisits) {
  if (tiny_models().empty()) GTEST_SKIP() << "needs ../shared: golden/tiny";
  for (const std::string& path : tiny_models()) {
    auto engine = Engine::open({.path = path, .context = 32, .threads = 1, .need_tokenizer = false, .record = true});
    ASSERT_TRUE(engine.ok()) << path;
    ASSERT_TRUE(engine.value()->evaluate(std::vector<TokenId>{1, 2, 3}).ok());
    ASSERT_TRUE(engine.value()->decode(4).ok());
    const RecordingSource& record = *engine.value()->recording();
    const Program& program = record.program();
    uint64_t storage = 0, memory = 0;
    for (size_t i = record.pass_begins().back(); i < record.order().size(); ++i) {
      storage += program.blocks[record.order()[i]].storage_bytes;
      memory += program.blocks[record.order()[i]].memory_bytes;
    }
    const PhaseCost decode = decode_phase(engine.value()->model(), {.tokens = 1, .depth = 3}, {});
    const Cost whole = decode.total(), other = decode[Operator::other];
    // Of experts each block's share of E / k is rounded down.
    const double slack = program.expert_groups.empty() ? 0 : static_cast<double>(program.blocks.size());
    EXPECT_NEAR(static_cast<double>(whole.storage_bytes - other.storage_bytes), static_cast<double>(storage), slack)
        << path;
    EXPECT_NEAR(static_cast<double>(whole.memory_bytes - other.memory_bytes), static_cast<double>(memory), slack)
        << path;
  }
}

// What a roofline counts of experts is what the router chose in the run, by a recording of it; at the expected bytes a
// prompt of many tokens would read nearly all.
TEST(Counting, ChosenExpertsAreThoseOfTheRun) {
  if (tiny_models().empty()) GTEST_SKIP() << "needs ../shared: golden/tiny";
  int with_experts = 0;
  for (const std::string& path : tiny_models()) {
    auto engine = Engine::open({.path = path, .context = 32, .threads = 1, .need_tokenizer = false, .record = true});
    ASSERT_TRUE(engine.ok()) << path;
    RecordingSource& record = *engine.value()->recording();
    ASSERT_TRUE(engine.value()->evaluate(std::vector<TokenId>{1, 2, 3}).ok());
    record.clear();
    ASSERT_TRUE(engine.value()->decode(4).ok());
    ASSERT_TRUE(engine.value()->decode(5).ok());
    const PhaseCost two = decode_phase(engine.value()->model(), {.tokens = 2, .depth = 3}, {});
    const double chosen = static_cast<double>(chosen_expert_bytes(record));
    if (!has_experts(record.program())) {
      EXPECT_EQ(chosen, 0) << path;
      EXPECT_EQ(two.expert_bytes, 0u) << path;
      continue;
    }
    ++with_experts;
    // One token sends itself to k experts, whichever they are: each token's bytes are those expected, but for rounding.
    EXPECT_NEAR(chosen, static_cast<double>(two.expert_bytes), static_cast<double>(2 * record.program().blocks.size()))
        << path;
    // A batch of the same token chooses the experts of one, however many are expected.
    record.clear();
    ASSERT_TRUE(engine.value()->rewind(0));
    ASSERT_TRUE(engine.value()->evaluate(std::vector<TokenId>{1}).ok());
    const uint64_t one = chosen_expert_bytes(record);
    const PhaseCost eight = prefill_phase(engine.value()->model(), {.tokens = 8}, {});
    EXPECT_GT(eight.expert_bytes, one) << path;
    EXPECT_LE(eight.expert_bytes, eight[Operator::experts].memory_bytes) << path;
  }
  EXPECT_GT(with_experts, 0);
}

}  // namespace
}  // namespace ridge

#include "distill/torch/checkpoint.h"

#include <fmt/format.h>

#include <bit>

#include "format/safetensors.h"
#include "text/tokenizer.h"

namespace ridge::distill {
namespace {

constexpr uint64_t kVersion = 1;
constexpr size_t kPointNumbers = 10;
constexpr const char* kState = "ridge.state";
constexpr const char* kCurve = "ridge.curve";

// 64-bit numbers as pairs of 32-bit words, the low one first.
class Words {
 public:
  void put(uint64_t n) {
    words_.push_back(std::bit_cast<int32_t>(static_cast<uint32_t>(n)));
    words_.push_back(std::bit_cast<int32_t>(static_cast<uint32_t>(n >> 32)));
  }
  void put(double x) { put(std::bit_cast<uint64_t>(x)); }
  const std::vector<int32_t>& words() const { return words_; }

 private:
  std::vector<int32_t> words_;
};

class WordReader {
 public:
  explicit WordReader(std::span<const int32_t> words) : words_(words) {}
  bool done() const { return at_ >= words_.size(); }
  uint64_t number() {
    if (at_ + 2 > words_.size()) {
      at_ = words_.size() + 1;
      return 0;
    }
    const uint64_t low = std::bit_cast<uint32_t>(words_[at_]), high = std::bit_cast<uint32_t>(words_[at_ + 1]);
    at_ += 2;
    return high << 32 | low;
  }
  double real() { return std::bit_cast<double>(number()); }
  bool whole() const { return at_ == words_.size(); }  // all read, and not more

 private:
  std::span<const int32_t> words_;
  size_t at_ = 0;
};

void put(Words& out, const CurvePoint& p) {
  out.put(p.step);
  for (double x : {p.loss, p.cross_entropy, p.divergence, p.hidden, p.gates, p.exit, p.norm, p.rate, p.held_out}) {
    out.put(x);
  }
}

CurvePoint read_point(WordReader& in) {
  CurvePoint p;
  p.step = in.number();
  for (double* x :
       {&p.loss, &p.cross_entropy, &p.divergence, &p.hidden, &p.gates, &p.exit, &p.norm, &p.rate, &p.held_out}) {
    *x = in.real();
  }
  return p;
}

Words words_of(const CheckpointState& state) {
  const StudentShape& s = state.shape;
  Words out;
  for (uint64_t n : {kVersion, state.step, state.vocabulary, state.settings, state.pending}) out.put(n);
  for (uint64_t n : {s.vocabulary, s.layers, s.dim, s.heads, s.kv_heads, s.ffn, s.context, s.exit_layer,
                     static_cast<uint32_t>(s.ffn_kind), uint32_t{s.tied}, uint32_t{s.shared}}) {
    out.put(n);
  }
  put(out, state.sums);
  return out;
}

Error no_checkpoint(const std::string& path, const std::string& what) {
  return bad_input(fmt::format("{}: {}: expected a checkpoint.safetensors that `ridge distill` wrote", path, what));
}

std::vector<uint64_t> dimensions_of(const torch::Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }

std::span<const float> floats_of(const torch::Tensor& t) {
  return {t.data_ptr<float>(), static_cast<size_t>(t.numel())};
}

Result<void> read_into(const Safetensors& file, const std::string& path, const std::string& name, torch::Tensor& to) {
  const SafeTensor* t = file.find(name);
  if (t == nullptr) return no_checkpoint(path, fmt::format("'{}' is missing", name));
  const auto wanted = dimensions_of(to);
  if (!std::equal(wanted.begin(), wanted.end(), t->dimensions().begin(), t->dimensions().end())) {
    return no_checkpoint(path, fmt::format("'{}' is [{}] in place of [{}]", name, fmt::join(t->dimensions(), ", "),
                                           fmt::join(wanted, ", ")));
  }
  std::vector<float> values = RIDGE_TRY(read_floats(file, *t, static_cast<uint64_t>(to.numel())));
  torch::NoGradGuard off;
  to.copy_(torch::from_blob(values.data(), to.sizes(), torch::kFloat32));
  return {};
}

Result<void> read_state(WordReader& in, const std::string& path, CheckpointState& state) {
  StudentShape& s = state.shape;
  if (in.number() != kVersion) return no_checkpoint(path, "its version is not 1");
  for (uint64_t* n : {&state.step, &state.vocabulary, &state.settings, &state.pending}) *n = in.number();
  for (uint32_t* n : {&s.vocabulary, &s.layers, &s.dim, &s.heads, &s.kv_heads, &s.ffn, &s.context, &s.exit_layer}) {
    *n = static_cast<uint32_t>(in.number());
  }
  const uint64_t kind = in.number();
  s.tied = in.number() != 0;
  s.shared = in.number() != 0;
  state.sums = read_point(in);
  if (!in.whole() || kind > 2 || s.vocabulary == 0 || s.heads == 0) return no_checkpoint(path, "its state is broken");
  s.ffn_kind = static_cast<FfnKind>(kind);
  if (const auto good = check_shape(s); !good.ok()) return no_checkpoint(path, good.error().message);
  return {};
}

}  // namespace

uint64_t fingerprint(std::string_view bytes, uint64_t begin) {
  for (const char c : bytes) begin = (begin ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return begin;
}

uint64_t fingerprint_of(const Tokenizer& tokenizer) {
  uint64_t hash = fingerprint("");
  for (size_t i = 0; i < tokenizer.size(); ++i) {
    hash = fingerprint(tokenizer.text(static_cast<TokenId>(i)), hash);
    hash = fingerprint(std::string_view("\0", 1), hash);
  }
  return hash;
}

Result<void> write_checkpoint(const std::string& path, const CheckpointState& state,
                              const std::vector<Parameter>& parameters, const AdamW& optimizer) {
  const Words words = words_of(state);
  Words points;
  for (const CurvePoint& p : state.curve) put(points, p);
  std::vector<SafetensorsWriter::Item> items = {{kState, SafeType::I32, {words.words().size()}},
                                                {kCurve, SafeType::I32, {state.curve.size(), 2 * kPointNumbers}}};
  for (const char* prefix : {"", "mean/", "square/"}) {
    for (const Parameter& p : parameters) items.push_back({prefix + p.name, SafeType::F32, dimensions_of(p.value)});
  }
  auto out = RIDGE_TRY(SafetensorsWriter::create(path, std::move(items)));
  RIDGE_TRY(out.append(words.words()));
  RIDGE_TRY(out.append(points.words()));
  for (const Parameter& p : parameters) RIDGE_TRY(out.append(floats_of(p.value)));
  for (const AdamW::State& s : optimizer.states()) RIDGE_TRY(out.append(floats_of(s.mean)));
  for (const AdamW::State& s : optimizer.states()) RIDGE_TRY(out.append(floats_of(s.square)));
  return out.finish();
}

Result<CheckpointState> read_checkpoint_state(const std::string& path) {
  constexpr uint64_t kMostWords = 1u << 26;
  const Safetensors file = RIDGE_TRY(Safetensors::open(path));
  const SafeTensor* words = file.find(kState);
  const SafeTensor* points = file.find(kCurve);
  if (words == nullptr || points == nullptr) return no_checkpoint(path, "it holds no state of a training");
  CheckpointState state;
  const std::vector<int32_t> numbers = RIDGE_TRY(read_integers(file, *words, kMostWords));
  WordReader in(numbers);
  RIDGE_TRY(read_state(in, path, state));
  const std::vector<int32_t> curve = RIDGE_TRY(read_integers(file, *points, kMostWords));
  for (WordReader in_curve(curve); !in_curve.done();) state.curve.push_back(read_point(in_curve));
  return state;
}

Result<void> read_checkpoint(const std::string& path, std::vector<Parameter>& parameters, AdamW* optimizer) {
  const Safetensors file = RIDGE_TRY(Safetensors::open(path));
  for (size_t i = 0; i < parameters.size(); ++i) {
    Parameter& p = parameters[i];
    RIDGE_TRY(read_into(file, path, p.name, p.value));
    if (optimizer == nullptr) continue;
    RIDGE_TRY(read_into(file, path, "mean/" + p.name, optimizer->states()[i].mean));
    RIDGE_TRY(read_into(file, path, "square/" + p.name, optimizer->states()[i].square));
  }
  return {};
}

}  // namespace ridge::distill

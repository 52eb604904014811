#include "distill/torch/frozen_model.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "distill/torch/losses.h"
#include "format/file_stream.h"
#include "format/quote.h"
#include "tensor/types.h"
#include "text/rng.h"

namespace ridge::distill {
namespace {

// y = x Wᵀ with a W that has no gradient: nothing is kept for the way back but W's place.
class FrozenProduct : public torch::autograd::Function<FrozenProduct> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x,
                               const FrozenMatrix* weight) {
    context->saved_data["weight"] = static_cast<int64_t>(reinterpret_cast<intptr_t>(weight));
    return torch::matmul(x, weight->floats().t());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto place = static_cast<intptr_t>(context->saved_data["weight"].toInt());
    const auto* weight = reinterpret_cast<const FrozenMatrix*>(place);
    return {torch::matmul(gradients[0], weight->floats()), torch::Tensor()};
  }
};

}  // namespace

torch::Tensor FrozenMatrix::floats() const {
  auto* data = const_cast<uint8_t*>(bytes.data());  // from_blob() knows no const; nobody writes
  if (type == Type::F32) return torch::from_blob(data, {rows, cols}, torch::kFloat32);
  torch::Tensor out = torch::empty({rows, cols});
  float* to = out.data_ptr<float>();
  const size_t stride = row_bytes(type, static_cast<size_t>(cols));
  at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      type_info(type).dequantize(bytes.data() + static_cast<size_t>(row) * stride, to + row * cols,
                                 static_cast<size_t>(cols));
    }
  });
  return out;
}

torch::Tensor FrozenMatrix::rows_of(const torch::Tensor& ids) const {
  auto sizes = ids.sizes().vec();
  sizes.push_back(cols);
  torch::Tensor out = torch::empty(sizes);
  const torch::Tensor flat = ids.contiguous();
  const int64_t* id = flat.data_ptr<int64_t>();
  float* to = out.data_ptr<float>();
  const size_t stride = row_bytes(type, static_cast<size_t>(cols));
  for (int64_t i = 0; i < flat.numel(); ++i) {
    type_info(type).dequantize(bytes.data() + static_cast<size_t>(id[i]) * stride, to + i * cols,
                               static_cast<size_t>(cols));
  }
  return out;
}

Result<std::unique_ptr<FrozenModel>> FrozenModel::open(const std::string& path) {
  std::unique_ptr<FrozenModel> own(new FrozenModel);
  own->path_ = path;
  Gguf file = RIDGE_TRY(Gguf::open(path));
  const std::string name = RIDGE_TRY(file.metadata().require_string("general.architecture"));
  const FfnKind kinds[] = {FfnKind::swiglu, FfnKind::reglu, FfnKind::relu2};
  const auto kind =
      std::find_if(std::begin(kinds), std::end(kinds), [&](FfnKind k) { return architecture_of(k) == name; });
  if (kind == std::end(kinds)) {
    return bad_input(
        fmt::format("{}: is of the architecture {}: `ridge tune` trains llama, arcee and reglu-llama alone", path,
                    ridge::in_quotes(name)));
  }
  own->ffn_ = *kind;
  own->model_ = RIDGE_TRY(Model::from_gguf(std::move(file)));
  RIDGE_TRY(own->place_all());
  return own;
}

// Every tensor of the file has a place, or the model would train as another than it is.
Result<void> FrozenModel::place_all() {
  layers_.resize(config().layers);
  std::map<std::string, Place, std::less<>> wanted;
  wanted["token_embd.weight"].matrix = &embedding_;
  wanted["output.weight"].matrix = &head_;
  wanted["output_norm.weight"].vector = &output_norm_;
  wanted["rope_freqs.weight"].vector = &rope_factors_;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& w = layers_[i];
    const auto name = [&](const char* rest) { return fmt::format("blk.{}.{}.weight", i, rest); };
    wanted[name("attn_norm")].vector = &w.attn_norm;
    wanted[name("ffn_norm")].vector = &w.ffn_norm;
    for (const auto& [rest, product] : {std::pair{"attn_q", &w.q},
                                        {"attn_k", &w.k},
                                        {"attn_v", &w.v},
                                        {"attn_output", &w.out},
                                        {"ffn_gate", &w.gate},
                                        {"ffn_up", &w.up},
                                        {"ffn_down", &w.down}}) {
      wanted[name(rest)].matrix = &product->weight;
    }
  }
  tied_ = model_->file().find("output.weight") == nullptr;
  for (const GgufTensor& t : model_->file().tensors()) {
    const auto found = wanted.find(t.name);
    if (found == wanted.end()) {
      return bad_input(
          fmt::format("{}: tensor {} is none that `ridge tune` can train beside: it knows plain matrices and "
                      "norms, no biases and no experts",
                      path_, ridge::in_quotes(t.name)),
          t.offset);
    }
    Place place = found->second;
    place.tensor = &t;
    if (place.matrix != nullptr) {
      place.matrix->type = t.type;
      place.matrix->rows = static_cast<int64_t>(t.rows());
      place.matrix->cols = static_cast<int64_t>(t.cols());
    }
    places_.push_back(place);
  }
  // As the file has them: one pass, front to back.
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return std::tie(a.tensor->file, a.tensor->offset) < std::tie(b.tensor->file, b.tensor->offset);
  });
  return {};
}

TuneSizes FrozenModel::sizes(const TuneJob& job) const {
  const ModelConfig& c = config();
  TuneSizes s{.layers = c.layers,
              .width = c.width,
              .query_width = uint64_t{c.heads} * std::max(c.key_dim, c.value_dim),
              .key_width = uint64_t{c.kv_heads} * std::max(c.key_dim, c.value_dim),
              .ffn = c.ffn,
              .heads = c.heads,
              .vocabulary = c.vocabulary};
  for (const Place& place : places_) {
    const GgufTensor& t = *place.tensor;
    s.weight_bytes += t.bytes;
    if (place.matrix == nullptr) continue;
    s.largest_matrix = std::max(s.largest_matrix, t.elements());
    const std::string_view name = t.name;
    for (const std::string& target : job.targets) {
      if (name.ends_with("." + target + ".weight")) s.adapters += job.rank * (t.rows() + t.cols());
    }
  }
  return s;
}

Result<void> FrozenModel::load() {
  std::optional<FileStream> in;
  uint32_t file = 0;
  for (const Place& place : places_) {
    const GgufTensor& t = *place.tensor;
    if (!in || file != t.file) {
      file = t.file;
      in.emplace(RIDGE_TRY(FileStream::open(model_->file().files()[file].path)));
    }
    RIDGE_TRY(in->skip(t.offset - in->position()));
    if (place.matrix != nullptr) {
      place.matrix->bytes.resize(t.bytes);
      RIDGE_TRY(in->read(place.matrix->bytes.data(), t.bytes));
      continue;
    }
    std::vector<uint8_t> raw(t.bytes);
    RIDGE_TRY(in->read(raw.data(), raw.size()));
    *place.vector = torch::empty({static_cast<int64_t>(t.elements())});
    type_info(t.type).dequantize(raw.data(), place.vector->data_ptr<float>(), t.elements());
  }
  return {};
}

// Layer by layer, in the order of the flags' names.
std::vector<std::pair<std::string, FrozenModel::Product*>> FrozenModel::targets(const TuneJob& job) {
  std::vector<std::pair<std::string, Product*>> out;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& w = layers_[i];
    for (const auto& [rest, product] : {std::pair{"attn_q", &w.q},
                                        {"attn_k", &w.k},
                                        {"attn_v", &w.v},
                                        {"attn_output", &w.out},
                                        {"ffn_gate", &w.gate},
                                        {"ffn_up", &w.up},
                                        {"ffn_down", &w.down}}) {
      const bool wanted = std::find(job.targets.begin(), job.targets.end(), rest) != job.targets.end();
      if (wanted && product->weight.rows > 0) out.emplace_back(fmt::format("blk.{}.{}.weight", i, rest), product);
    }
  }
  return out;
}

void FrozenModel::add_adapters(const TuneJob& job) {
  torch::NoGradGuard off;
  Rng rng(job.optimizer.seed);
  added_ = job.alpha / job.rank;
  int layer = 0;
  for (const auto& [name, product] : targets(job)) {
    const int64_t rank = job.rank;
    product->down = torch::empty({rank, product->weight.cols});
    product->up = torch::zeros({product->weight.rows, rank});
    float* values = product->down.data_ptr<float>();
    const double reach = 1 / std::sqrt(static_cast<double>(product->weight.cols));
    for (int64_t i = 0; i < product->down.numel(); ++i) {
      values[i] = static_cast<float>((2 * rng.uniform() - 1) * reach);
    }
    parameters_.push_back({name + ".lora_a", layer, product->down.set_requires_grad(true)});
    parameters_.push_back({name + ".lora_b", layer, product->up.set_requires_grad(true)});
  }
}

torch::Tensor FrozenModel::times(const torch::Tensor& x, const Product& p) const {
  const torch::Tensor y = FrozenProduct::apply(x, &p.weight);
  if (!p.down.defined()) return y;
  return y + torch::matmul(torch::matmul(x, p.down.t()) * added_, p.up.t());
}

torch::Tensor FrozenModel::norm(const torch::Tensor& x, const torch::Tensor& weight) const {
  return x * torch::rsqrt(x.pow(2).mean(-1, true) + double{config().norm_eps}) * weight;
}

// The engine's own tables.
void FrozenModel::make_rope(int64_t window) const {
  if (cos_.defined() && cos_.size(0) >= window) return;
  RopeConfig rope = model_->rope_tables()[0].config;
  if (rope_factors_.defined()) rope.pair_factors = rope_factors_.data_ptr<float>();
  const auto rot = static_cast<int64_t>(rope.rot);
  torch::Tensor angles = torch::empty({window, rot});
  const std::vector<double> frequencies = rope_frequencies(rope);
  for (int64_t t = 0; t < window; ++t) {
    rope_table(frequencies, rope.magnitude, static_cast<size_t>(t), angles.data_ptr<float>() + t * rot);
  }
  const torch::Tensor pairs = angles.reshape({window, rot / 2, 2});
  cos_ = pairs.select(-1, 0).contiguous();
  sin_ = pairs.select(-1, 1).contiguous();
  mask_ = torch::full({window, window}, -std::numeric_limits<float>::infinity()).triu(1);
}

torch::Tensor FrozenModel::rotate(const torch::Tensor& x) const {  // [batch, heads, window, key_dim]
  const int64_t window = x.size(2), rot = 2 * cos_.size(1);
  const auto cos = cos_.narrow(0, 0, window), sin = sin_.narrow(0, 0, window);
  const auto pairs = x.narrow(-1, 0, rot).reshape({x.size(0), x.size(1), window, rot / 2, 2});
  const auto a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  const auto turned = torch::stack({a * cos - b * sin, a * sin + b * cos}, -1).flatten(-2);
  return rot == x.size(-1) ? turned : torch::cat({turned, x.narrow(-1, rot, x.size(-1) - rot)}, -1);
}

torch::Tensor FrozenModel::attention(const Layer& w, const torch::Tensor& x) const {
  const ModelConfig& c = config();
  const int64_t batch = x.size(0), window = x.size(1), heads = c.heads, kv = c.kv_heads;
  const auto split = [&](const torch::Tensor& t, int64_t n) {
    return t.reshape({batch, window, n, -1}).transpose(1, 2);
  };
  const auto q = rotate(split(times(x, w.q), heads));
  auto k = rotate(split(times(x, w.k), kv));
  auto v = split(times(x, w.v), kv);
  if (kv != heads) {
    k = k.repeat_interleave(heads / kv, 1);
    v = v.repeat_interleave(heads / kv, 1);
  }
  const auto mask = mask_.narrow(0, 0, window).narrow(1, 0, window);
  const double scale = 1 / std::sqrt(static_cast<double>(c.key_dim));
  const auto scores = torch::matmul(q * scale, k.transpose(2, 3)) + mask;
  return times(torch::matmul(scores.softmax(-1), v).transpose(1, 2).reshape({batch, window, -1}), w.out);
}

torch::Tensor FrozenModel::feed_forward(const Layer& w, const torch::Tensor& x) const {
  const auto up = times(x, w.up);
  if (ffn_ == FfnKind::relu2) {
    const auto on = up.relu();
    return times(on * on, w.down);
  }
  const auto in = times(x, w.gate);
  return times((ffn_ == FfnKind::reglu ? in.relu() : torch::silu(in)) * up, w.down);
}

torch::Tensor FrozenModel::block(const Layer& w, const torch::Tensor& x) const {
  const torch::Tensor y = x + attention(w, norm(x, w.attn_norm));
  return y + feed_forward(w, norm(y, w.ffn_norm));
}

torch::Tensor FrozenModel::forward(const torch::Tensor& ids) const {
  make_rope(ids.size(1));
  torch::Tensor x = embedding_.rows_of(ids);
  for (const Layer& w : layers_) x = block(w, x);
  return FrozenProduct::apply(norm(x, output_norm_), tied_ ? &embedding_ : &head_);
}

double FrozenModel::head_loss(const torch::Tensor& x, const torch::Tensor& targets, torch::Tensor* slope) const {
  const torch::Tensor states = x.flatten(0, 1), next = targets.flatten();
  const torch::Tensor head = (tied_ ? embedding_ : head_).floats();
  const int64_t all = states.size(0), at_once = kHeadPositions;
  if (slope != nullptr) *slope = torch::empty_like(states);
  double sum = 0;
  for (int64_t begin = 0; begin < all; begin += at_once) {
    const int64_t count = std::min(at_once, all - begin);
    const auto part = states.narrow(0, begin, count).detach().set_requires_grad(slope != nullptr);
    const auto logits = torch::matmul(norm(part, output_norm_), head.t());
    const auto share = cross_entropy(logits, next.narrow(0, begin, count), torch::ones({count})) *
                       (static_cast<double>(count) / static_cast<double>(all));
    sum += share.item<double>();
    if (slope == nullptr) continue;
    share.backward();
    torch::NoGradGuard off;
    slope->narrow(0, begin, count).copy_(part.grad());
  }
  if (slope != nullptr) *slope = slope->reshape(x.sizes());
  return sum;
}

double FrozenModel::loss(const torch::Tensor& ids, const torch::Tensor& targets) const {
  torch::NoGradGuard off;
  make_rope(ids.size(1));
  torch::Tensor x = embedding_.rows_of(ids);
  for (const Layer& w : layers_) x = block(w, x);
  return head_loss(x, targets, nullptr);
}

double FrozenModel::learn(const torch::Tensor& ids, const torch::Tensor& targets) const {
  make_rope(ids.size(1));
  std::vector<torch::Tensor> states = {embedding_.rows_of(ids)};
  {
    torch::NoGradGuard off;
    for (const Layer& w : layers_) states.push_back(block(w, states.back()));
  }
  torch::Tensor slope;
  const double value = head_loss(states.back(), targets, &slope);
  if (!std::isfinite(value)) return value;
  for (size_t i = layers_.size(); i-- > 0;) {
    states.pop_back();
    const torch::Tensor x = states.back().detach().set_requires_grad(true);
    block(layers_[i], x).backward(slope);
    slope = x.grad();
  }
  return value;
}

}  // namespace ridge::distill

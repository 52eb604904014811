#include "claims/scaled_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace ridge {
namespace {

using sim::NpuObject;
using sim::NpuObjectKind;
using sim::NpuVisit;
using sim::NpuWork;

// "blk.12.ffn_up.weight": 12 and "ffn_up.weight".
struct LayerName {
  uint32_t layer = 0;
  std::string_view rest;
};
std::optional<LayerName> layer_name(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  if (!name.starts_with(kBlock)) return std::nullopt;
  name.remove_prefix(kBlock.size());
  LayerName out;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), out.layer);
  const auto digits = static_cast<size_t>(end - name.data());
  if (error != std::errc{} || digits >= name.size() || name[digits] != '.') return std::nullopt;
  out.rest = name.substr(digits + 1);
  return out;
}

// The student's groups: which of its layers a recorded block belongs to, and its number there.
struct Groups {
  struct Place {
    uint32_t layer = 0, group = 0;
  };
  std::vector<Place> places;  // by recorded block
  uint32_t layers = 0, each = 0;
};
Result<Groups> groups_of(const sim::RecordedTrace& visits) {
  Groups out;
  for (const sim::RecordedBlock& b : visits.blocks) {
    const auto name = layer_name(b.name);
    Groups::Place place;
    constexpr std::string_view kFfn = "ffn.";
    bool good = name && name->rest.starts_with(kFfn);
    if (good) {
      const std::string_view number = name->rest.substr(kFfn.size());
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place.group);
      good = error == std::errc{} && end == number.data() + number.size();
    }
    if (!good) {
      return bad_input(
          fmt::format("visits of {}: '{}' is no block of neurons, such as blk.0.ffn.3: record them with `ridge "
                      "distill --record`",
                      visits.model, b.name));
    }
    place.layer = name->layer;
    out.layers = std::max(out.layers, place.layer + 1);
    out.each = std::max(out.each, place.group + 1);
    out.places.push_back(place);
  }
  if (out.places.size() != uint64_t{out.layers} * out.each) {
    return bad_input(fmt::format("visits of {}: layers do not all have {} blocks of neurons", visits.model, out.each));
  }
  return out;
}

// Of one block of the program: the bytes of up and down, which may rest, and the layer they are of.
struct Resting {
  uint64_t bytes = 0;
  uint32_t layer = 0;
};
Resting resting_part(const Program& program, const Block& block) {
  Resting out;
  for (const Piece& p : block.pieces) {
    const StoredTensor& t = program.tensors[p.tensor];
    const auto name = layer_name(t.name);
    if (!name || !(name->rest.starts_with("ffn_up.") || name->rest.starts_with("ffn_down."))) continue;
    out.bytes += t.stored_bytes(p.row_begin, p.row_end);
    out.layer = name->layer;
  }
  return out;
}

class Scaler {
 public:
  Scaler(const Program& program, const sim::RecordedTrace& visits, Groups groups, uint32_t passes)
      : visits_(visits), groups_(std::move(groups)), dense_(sim::npu_work(program, {.passes = passes})) {
    for (const Block& b : program.blocks) resting_.push_back(resting_part(program, b));
    for (const Resting& r : resting_) {
      if (r.bytes == 0) continue;
      layers_.resize(std::max<size_t>(layers_.size(), r.layer + 1));
      layers_[r.layer].bytes += r.bytes;
    }
  }

  bool has_neurons() const { return !layers_.empty(); }

  NpuWork work() {
    add_objects();
    size_t pass = 0;
    for (; pass < dense_.pass_begins.size(); ++pass) add_pass(pass);
    return std::move(out_);
  }

 private:
  struct Layer {
    uint64_t bytes = 0;  // of up and down
    double macs = 0;     // of these, in one pass
    double floats = 0;
    uint32_t first = 0;  // object of its first group
    size_t last = 0;     // its last visit in a dense pass, counted from the pass's begin
  };

  double share(uint32_t object) const {
    return static_cast<double>(resting_[object].bytes) / static_cast<double>(dense_.objects[object].bytes);
  }
  bool rests(uint32_t object) const { return object < resting_.size() && resting_[object].bytes > 0; }

  void add_objects() {
    for (uint32_t i = 0; i < dense_.objects.size(); ++i) {
      NpuObject object = dense_.objects[i];
      if (rests(i)) object.bytes -= resting_[i].bytes;
      index_.push_back(object.bytes > 0 ? static_cast<uint32_t>(out_.objects.size()) : UINT32_MAX);
      if (object.bytes > 0) out_.objects.push_back(std::move(object));
    }
    for (size_t i = 0; i < dense_.pass_end(0); ++i) {
      const NpuVisit& v = dense_.visits[i];
      if (!rests(v.object)) continue;
      Layer& layer = layers_[resting_[v.object].layer];
      layer.macs += v.macs * share(v.object);
      layer.floats += v.float_macs * share(v.object);
      layer.last = i;
    }
    for (size_t il = 0; il < layers_.size(); ++il) {
      Layer& layer = layers_[il];
      layer.first = static_cast<uint32_t>(out_.objects.size());
      for (uint64_t g = 0; g < groups_.each; ++g) {
        const uint64_t bytes = layer.bytes * (g + 1) / groups_.each - layer.bytes * g / groups_.each;
        out_.objects.push_back({.name = fmt::format("blk.{}.ffn.{}", il, g), .bytes = bytes});
      }
    }
  }

  void add_pass(size_t pass) {
    out_.pass_begins.push_back(out_.visits.size());
    const size_t begin = dense_.pass_begins[pass];
    for (size_t i = begin; i < dense_.pass_end(pass); ++i) {
      NpuVisit v = dense_.visits[i];
      const bool rests_here = rests(v.object);
      const uint32_t source = v.object;
      if (rests_here) {
        const double left = 1 - share(source);
        v.macs *= left;
        v.float_macs *= left;
      }
      if (index_[source] != UINT32_MAX) {
        v.object = index_[source];
        out_.visits.push_back(v);
      }
      if (!rests_here) continue;
      const Layer& layer = layers_[resting_[source].layer];
      if (layer.last == i - begin) add_groups(layer, resting_[source].layer, pass);
    }
  }

  // What the student touched at this token, in its layer that stands for `layer`.
  void add_groups(const Layer& layer, uint32_t number, size_t pass) {
    const auto there = static_cast<uint32_t>(uint64_t{number} * groups_.layers / layers_.size());
    const auto& begins = visits_.trace.pass_begins;
    const size_t end = pass + 1 < begins.size() ? begins[pass + 1] : visits_.trace.accesses.size();
    for (size_t i = begins[pass]; i < end; ++i) {
      const Groups::Place place = groups_.places[visits_.trace.accesses[i].object];
      if (place.layer != there) continue;
      out_.visits.push_back({.object = layer.first + place.group,
                             .on_demand = true,
                             .macs = layer.macs / groups_.each,
                             .float_macs = layer.floats / groups_.each});
    }
  }

  const sim::RecordedTrace& visits_;
  Groups groups_;
  NpuWork dense_, out_;
  std::vector<Resting> resting_;  // by block of the program
  std::vector<Layer> layers_;
  std::vector<uint32_t> index_;  // from objects of dense_ to those of out_; UINT32_MAX: nothing is left of it
};

}  // namespace

Result<NpuWork> scaled_work(const Program& program, const sim::RecordedTrace& visits, const ScaledOptions& options) {
  Groups groups = RIDGE_TRY(groups_of(visits));
  const auto passes = static_cast<uint32_t>(std::min<size_t>(options.passes, visits.trace.pass_begins.size()));
  if (passes < 2) {
    return bad_input(fmt::format("visits of {}: fewer than two tokens: record more of them", visits.model));
  }
  Scaler scaler(program, visits, std::move(groups), passes);
  if (!scaler.has_neurons()) return bad_input("the model has no up and down matrices, whose neurons could rest");
  return scaler.work();
}

}  // namespace ridge

// Where an evaluation of the diffusion transformer spends its time: matrix products of self-attention, cross-attention
// and FFN with their rates, attention, the rest, and waiting for storage; and the bytes that it reads. Prompts of 12
// tokens. Values mean nothing here, shapes do: weights may be random (scripts/make_random_anima.py).
//
//   build/release/bench/image_profile FOLDER SIDE EVALUATIONS [MEMORY [THREADS [BRANCHES]]]
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "base/units.h"
#include "engine/image_bundle.h"
#include "engine/image_model.h"
#include "engine/image_noise.h"
#include "model/stage_profile.h"

namespace ridge {
namespace {

struct Arguments {
  std::string folder;
  uint32_t side = 0, evaluations = 0;
  std::optional<uint64_t> memory;
  int threads = 0;
  uint32_t branches = 2;
};

double seconds(std::chrono::nanoseconds n) { return std::chrono::duration<double>(n).count(); }

// "blocks.3.mlp.layer1.weight": what a product belongs to.
std::string part_of(const std::string& tensor) {
  for (const char* part : {"self_attn", "cross_attn", "mlp"}) {
    if (tensor.find(part) != std::string::npos) return part;
  }
  return "first and last";
}

struct Products {
  std::chrono::nanoseconds time{0};
  double flops = 0;  // of one evaluation
};

std::map<std::string, Products> products_of(const StageProfile& profile, const Program& program, double rows) {
  std::map<std::string, Products> parts;
  for (const auto& [tensor, time] : profile.products()) parts[part_of(program.tensors[tensor].name)].time += time;
  for (const Visit& visit : program.visits) {
    for (const Piece& piece : program.blocks[visit.block].pieces) {
      const StoredTensor& t = program.tensors[piece.tensor];
      parts[part_of(t.name)].flops += 2.0 * rows * (piece.row_end - piece.row_begin) * t.cols;
    }
  }
  return parts;
}

void print_profile(const Arguments& a, const StageProfile& profile, const ImageModel& model) {
  const Phase& phase = model.denoising();
  const double n = a.evaluations, all = seconds(model.times().denoise) / n;
  const double rows = static_cast<double>(a.side / 16) * (a.side / 16) * a.branches;
  fmt::print("{:.0f} rows, {} threads: {:.2f} s per evaluation\n", rows, model.threads(), all);
  auto line = [&](const std::string& what, std::chrono::nanoseconds time) {
    fmt::print("  {:<28}{:8.3f} s  {:5.1f} %", what, seconds(time) / n, 100 * seconds(time) / n / all);
  };
  for (const auto& [part, p] : products_of(profile, phase.plan().program, rows)) {
    line("products of " + part, p.time);
    fmt::print("  {:.1f} GFLOP/s\n", p.flops * n / seconds(p.time) * 1e-9);
  }
  constexpr std::pair<Stage, const char*> kOthers[] = {
      {Stage::attention, "attention"}, {Stage::norm, "norms"},      {Stage::rope, "rotation"}, {Stage::glu, "GELU"},
      {Stage::residual, "residuals"},  {Stage::storage, "storage"}, {Stage::other, "other"}};
  for (const auto& [stage, name] : kOthers) {
    line(name, profile.time(stage));
    fmt::print("\n");
  }
  uint64_t largest = 0;
  for (const Block& block : phase.plan().program.blocks) largest = std::max(largest, block.memory_bytes);
  fmt::print("{} blocks of up to {}\n", phase.plan().program.blocks.size(), format_bytes(largest));
  const SourceStats stats = phase.source().stats();
  fmt::print("read {} per evaluation, {} pinned\n", format_bytes(stats.bytes_read / a.evaluations),
             format_bytes(stats.load_bytes));
}

Result<void> run(const Arguments& a) {
  const ImageBundle bundle = RIDGE_TRY(find_bundle(a.folder));
  StageProfile profile;
  const ImageOptions options{.model = bundle.model,
                             .text_encoder = bundle.text_encoder,
                             .memory = a.memory,
                             .threads = a.threads,
                             .profile = &profile};
  const PromptIds prompt{.qwen = std::vector<int32_t>(12, 5), .t5 = std::vector<int32_t>(12, 5)};
  ImageJob job{.height = a.side / 8, .width = a.side / 8, .prompts = {prompt}, .segments = {}, .sigmas = {}};
  for (uint32_t b = 0; b < a.branches; ++b) job.segments.push_back({0, 0});
  for (uint32_t i = 0; i < a.evaluations; ++i) {
    job.sigmas.push_back(1.0f - static_cast<float>(i) / static_cast<float>(a.evaluations));
  }
  auto model = RIDGE_TRY(ImageModel::open(options, job));
  RIDGE_TRY(model->prepare());
  std::vector<float> latent(model->latent_floats()), velocities(a.branches * latent.size());
  fill_noise(1, kInitialNoise, latent);
  profile.start();
  for (uint32_t i = 0; i < a.evaluations; ++i) {
    RIDGE_TRY(model->evaluate(i, Matrix<const float>(latent.data(), 1, latent.size()),
                              Matrix<float>(velocities.data(), a.branches, latent.size())));
  }
  profile.stop();
  print_profile(a, profile, *model);
  return {};
}

}  // namespace
}  // namespace ridge

int main(int argc, char** argv) {
  if (argc < 4 || argc > 7) {
    std::fputs("usage: image_profile FOLDER SIDE EVALUATIONS [MEMORY [THREADS [BRANCHES]]]\n", stderr);
    return 2;
  }
  auto number = [&](int i, uint32_t otherwise) {
    return argc > i ? static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  ridge::Arguments a{.folder = argv[1],
                     .side = number(2, 0),
                     .evaluations = number(3, 0),
                     .memory = {},
                     .threads = static_cast<int>(number(5, 0)),
                     .branches = number(6, 2)};
  if (argc > 4) {
    auto memory = ridge::parse_bytes(argv[4]);
    if (memory.ok()) a.memory = memory.value();
  }
  if (a.side < 16 || a.side % 16 != 0 || a.evaluations < 1 || a.branches < 1 || (argc > 4 && !a.memory)) {
    std::fputs("image_profile: give a side that is a multiple of 16, and numbers from 1 for the rest\n", stderr);
    return 2;
  }
  const ridge::Result<void> done = ridge::run(a);
  if (done.ok()) return 0;
  fmt::print(stderr, "image_profile: {}\n", done.error().message);
  return static_cast<int>(done.error().code);
}

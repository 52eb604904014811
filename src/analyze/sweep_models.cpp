#include "analyze/sweep_models.h"

#include <fmt/format.h>

#include <filesystem>

namespace ridge {
namespace {

constexpr Type kTypes[] = {Type::F16, Type::Q8_0, Type::Q4_0};

// 1, 2, 4 … and all of them.
std::vector<uint32_t> depths(uint32_t layers) {
  std::vector<uint32_t> all;
  for (uint32_t n = 1; n < layers; n *= 2) all.push_back(n);
  all.push_back(layers);
  return all;
}

std::string depth_name(const std::string& name, uint32_t layers) {
  return fmt::format("{} of {} layer{}", name, layers, layers == 1 ? "" : "s");
}

std::string type_name(const std::string& name, Type type) {
  return fmt::format("{} in {}", name, type_info(type).name);
}

std::vector<ModelShape> shapes_of(const std::optional<Sweep>& sweep, const ModelShape& base) {
  std::vector<ModelShape> all;
  if (sweep == Sweep::attention) return sweep_shapes(*sweep, base);
  if (sweep == Sweep::depth) {
    for (uint32_t n : depths(base.layers)) {
      all.push_back(base);
      all.back().layers = n;
      all.back().name = depth_name(base.name, n);
    }
    return all;
  }
  if (sweep == Sweep::type) {
    for (Type type : kTypes) {
      all.push_back(with_type(base, type, type));
      all.back().name = type_name(base.name, type);
    }
    return all;
  }
  return {base};
}

}  // namespace

Result<std::vector<SweepModel>> sweep_models(const std::optional<Sweep>& sweep, const ModelShape& base) {
  std::vector<SweepModel> models;
  for (const ModelShape& shape : shapes_of(sweep, base)) {
    RIDGE_TRY(check_random_model(shape));
    models.push_back({.name = shape.name,
                      .layers = shape.layers,
                      .make =
                          [shape](const std::atomic<bool>* interrupted) {
                            return random_model(shape, {.name = shape.name, .interrupted = interrupted});
                          },
                      .shape = shape});
  }
  return models;
}

Result<std::vector<SweepModel>> sweep_models(Sweep sweep, const std::string& path) {
  const std::unique_ptr<Model> model = RIDGE_TRY(Model::open(path));
  if (sweep == Sweep::attention) return sweep_models(sweep, RIDGE_TRY(shape_of(*model)));
  const ModelConfig& c = model->config();
  const std::string base = c.name.empty() ? std::filesystem::path(path).filename().string() : c.name;
  std::vector<SweepModel> models;
  auto add = [&](const std::string& name, const ModelChange& change) {
    models.push_back({.name = name,
                      .layers = change.layers != 0 ? change.layers : c.layers,
                      .make = [path, change, name](const std::atomic<bool>* interrupted) {
                        return change_model(path, change, {.name = name, .interrupted = interrupted});
                      }});
  };
  if (sweep == Sweep::depth) {
    for (uint32_t n : depths(c.layers)) add(depth_name(base, n), {.layers = n});
  }
  if (sweep == Sweep::type) {
    for (Type type : kTypes) add(type_name(base, type), {.type = type});
  }
  return models;
}

}  // namespace ridge

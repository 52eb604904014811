#include "engine/image_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace ridge {
namespace {

namespace fs = std::filesystem;

size_t patches_of(const AnimaConfig& shape, const ImageJob& job) {
  return size_t{job.height / shape.patch} * (job.width / shape.patch);
}

size_t rows_of(const CaptureOptions& options, size_t patches) {
  return options.rows == 0 ? patches : std::min<size_t>(options.rows, patches);
}

Result<std::vector<uint32_t>> steps_of(const CaptureOptions& options, size_t all) {
  std::vector<uint32_t> steps = options.steps;
  if (steps.empty()) steps = {0, static_cast<uint32_t>(all - 1)};
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  if (steps.back() >= all) {
    return usage_error(
        fmt::format("--capture-steps: there is no step {}: they count from 0 to {}", steps.back(), all - 1));
  }
  if (steps.size() > kMostCapturedSteps) {
    return usage_error(fmt::format("--capture-steps: {} steps, at most {} are captured at once: name fewer",
                                   steps.size(), kMostCapturedSteps));
  }
  return steps;
}

std::vector<SafetensorsWriter::Item> items_of(const AnimaConfig& shape, const ImageJob& job, size_t rows) {
  std::vector<SafetensorsWriter::Item> items = {{.name = "sigma", .type = SafeType::F32, .shape = {1}}};
  for (uint32_t layer = 0; layer < shape.layers; ++layer) {
    for (const auto& [matrix, cols] : {std::pair("layer1", shape.width), std::pair("layer2", shape.ffn)}) {
      for (const ImageSegment& s : job.segments) {
        items.push_back(
            {.name = fmt::format("blocks.{}.mlp.{}.{}.{}", layer, matrix, s.prompt == 0 ? "cond" : "uncond", s.image),
             .type = SafeType::F32,
             .shape = {rows, cols}});
      }
    }
  }
  return items;
}

}  // namespace

uint64_t ImageCapture::memory_bytes(const CaptureOptions& options, const AnimaConfig& shape, const ImageJob& job) {
  constexpr uint64_t kListed = 256;  // of a tensor: its name, shape and place in a file's list
  const uint64_t tensors = 2 * uint64_t{shape.layers} * job.segments.size() + 1;
  const uint64_t files = options.steps.empty() ? 2 : options.steps.size();
  return rows_of(options, patches_of(shape, job)) * uint64_t{std::max(shape.width, shape.ffn)} * sizeof(float) +
         files * tensors * kListed;
}

Result<std::unique_ptr<ImageCapture>> ImageCapture::create(const CaptureOptions& options, const AnimaConfig& shape,
                                                           const ImageJob& job) {
  std::unique_ptr<ImageCapture> capture(new ImageCapture());
  capture->sigmas_ = job.sigmas;
  capture->segments_ = job.segments.size();
  capture->patches_ = patches_of(shape, job);
  capture->rows_ = rows_of(options, capture->patches_);
  RIDGE_TRY(capture->make_folder(options.folder));
  RIDGE_TRY(capture->make_files(options, shape, job));
  return capture;
}

// What is there already is not mixed with what comes.
Result<void> ImageCapture::make_folder(const std::string& folder) {
  folder_ = folder;
  std::error_code error;
  made_folder_ = fs::create_directory(folder, error);
  if (error) return io_error(fmt::format("{}: the folder cannot be made: {}", folder, error.message()));
  const bool empty = fs::is_empty(folder, error);
  if (error) return io_error(fmt::format("{}: {}: give a folder, or the name of a new one", folder, error.message()));
  if (empty) return {};
  return usage_error(fmt::format("--capture {}: holds files: give an empty folder, or the name of a new one", folder));
}

Result<void> ImageCapture::make_files(const CaptureOptions& options, const AnimaConfig& shape, const ImageJob& job) {
  const std::vector<uint32_t> steps = RIDGE_TRY(steps_of(options, job.sigmas.size()));
  const std::vector<SafetensorsWriter::Item> items = items_of(shape, job, rows_);
  for (uint32_t step : steps) {
    const std::string path = (fs::path(folder_) / fmt::format("step-{:03}.safetensors", step)).string();
    files_.push_back({step, RIDGE_TRY(SafetensorsWriter::create(path, items))});
    for (const SafetensorsWriter::Item& item : items) {
      file_bytes_ += item.shape[0] * (item.shape.size() > 1 ? item.shape[1] : 1) * sizeof(float);
    }
  }
  gathered_.resize(rows_ * std::max(shape.width, shape.ffn));
  return {};
}

// A folder of ours goes with what did not come into it.
ImageCapture::~ImageCapture() {
  files_.clear();
  std::error_code ignored;
  if (made_folder_ && !finished_) fs::remove(folder_, ignored);
}

Result<void> ImageCapture::begin(uint32_t step) {
  current_ = nullptr;
  const auto file = std::find_if(files_.begin(), files_.end(), [&](const File& f) { return f.step == step; });
  if (file == files_.end()) return {};
  current_ = &file->writer;
  return current_->append(std::span<const float>(&sigmas_[step], 1));
}

void ImageCapture::ffn_input(uint32_t, FfnMatrix, Matrix<const float> x) {
  if (current_ == nullptr || error_) return;
  for (size_t s = 0; s < segments_; ++s) {
    for (size_t i = 0; i < rows_; ++i) {
      const std::span<const float> row = x.row_span(s * patches_ + i * patches_ / rows_);
      std::copy(row.begin(), row.end(), gathered_.begin() + static_cast<std::ptrdiff_t>(i * x.cols));
    }
    const auto done = current_->append(std::span<const float>(gathered_).first(rows_ * x.cols));
    if (done.ok()) continue;
    error_ = done.error();
    return;
  }
}

Result<void> ImageCapture::end() {
  current_ = nullptr;
  if (error_) return *error_;
  return {};
}

Result<void> ImageCapture::finish() {
  finished_ = true;
  for (File& file : files_) RIDGE_TRY(file.writer.finish());
  return {};
}

}  // namespace ridge

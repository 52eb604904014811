// Writes what the feed-forward matrices of a diffusion transformer are given, to calibrate their quantisation by: by
// step (noise level), block and branch of guidance.
//
// FOLDER/step-000.safetensors, one file for each captured step, of float32:
//
//   sigma                            [1]            the noise level of the step
//   blocks.B.mlp.layer1.BRANCH.P     [rows, width]  the input of the first matrix: after the norm and its modulation
//   blocks.B.mlp.layer2.BRANCH.P     [rows, ffn]    of the second: after GELU
//
// B counts blocks, BRANCH is cond or uncond, P counts the pictures of a batch. Of a picture's patches `rows` are kept,
// evenly spaced: row i is patch ⌊i · patches / rows⌋, in all tensors alike.
//
//   auto capture = RIDGE_TRY(ImageCapture::create({.folder = "calibration"}, model->shape(), job));
//   model->watch_ffn(capture.get());
//   RIDGE_TRY(capture->begin(step));  … evaluate …  RIDGE_TRY(capture->end());
//   RIDGE_TRY(capture->finish());                     // the files get their names: all of them, or none before
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/image_model.h"
#include "format/safetensors.h"

namespace ridge {

inline constexpr size_t kMostCapturedSteps = 100;

struct CaptureOptions {
  std::string folder;
  std::vector<uint32_t> steps = {};  // which; empty: the first and the last, for high and low noise
  uint32_t rows = 64;                // of each tensor; 0, or more than there are patches: all
};

class ImageCapture : public FfnWatch {
 public:
  // Makes the folder, which must be empty if it is there. Usage error for steps that the job does not have, or too
  // many; io for files that cannot be made, a full disk included: what all files need is claimed before the first step.
  static Result<std::unique_ptr<ImageCapture>> create(const CaptureOptions& options, const AnimaConfig& shape,
                                                      const ImageJob& job);
  ~ImageCapture() override;

  // Of one tensor's rows, while they are gathered.
  static uint64_t memory_bytes(const CaptureOptions& options, const AnimaConfig& shape, const ImageJob& job);
  uint64_t file_bytes() const { return file_bytes_; }  // of all files together
  size_t files() const { return files_.size(); }

  Result<void> begin(uint32_t step);  // what follows is this step's
  void ffn_input(uint32_t layer, FfnMatrix matrix, Matrix<const float> x) override;
  Result<void> end();  // what went wrong since begin()
  Result<void> finish();

 private:
  struct File {
    uint32_t step;
    SafetensorsWriter writer;
  };
  ImageCapture() = default;
  Result<void> make_folder(const std::string& folder);
  Result<void> make_files(const CaptureOptions& options, const AnimaConfig& shape, const ImageJob& job);

  std::string folder_;
  bool made_folder_ = false, finished_ = false;
  size_t segments_ = 0, rows_ = 0, patches_ = 0;
  std::vector<float> sigmas_, gathered_;
  std::vector<File> files_;
  SafetensorsWriter* current_ = nullptr;
  uint64_t file_bytes_ = 0;
  std::optional<Error> error_;
};

}  // namespace ridge

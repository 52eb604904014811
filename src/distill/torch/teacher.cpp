#include "distill/torch/teacher.h"

#include <fmt/format.h>

#include <algorithm>

#include "distill/text_data.h"
#include "distill/torch/checkpoint.h"
#include "distill/torch/student.h"
#include "engine/engine.h"
#include "format/safetensors.h"

namespace ridge::distill {
namespace {

class CheckpointTeacher final : public Teacher {
 public:
  CheckpointTeacher(std::unique_ptr<Student> student, bool hidden) : student_(std::move(student)), hidden_(hidden) {}
  uint32_t dim() const override { return student_->shape().dim; }
  uint32_t blocks() const override { return student_->shape().runs(); }
  Result<TeacherOutput> run(const torch::Tensor& ids) override {
    torch::NoGradGuard off;
    Student::Output out = student_->forward(ids, {.hidden = hidden_});
    return TeacherOutput{std::move(out.logits), std::move(out.hidden)};
  }

 private:
  std::unique_ptr<Student> student_;
  bool hidden_;
};

class EngineTeacher final : public Teacher {
 public:
  explicit EngineTeacher(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}
  uint32_t dim() const override { return engine_->model().config().width; }
  uint32_t blocks() const override { return engine_->model().config().layers; }
  Result<TeacherOutput> run(const torch::Tensor& ids) override {
    const int64_t batch = ids.size(0), window = ids.size(1), vocabulary = engine_->model().config().vocabulary;
    TeacherOutput out{torch::empty({batch, window, vocabulary}), {}};
    float* to = out.logits.data_ptr<float>();
    std::vector<TokenId> row(static_cast<size_t>(window));
    for (int64_t b = 0; b < batch; ++b) {
      const int64_t* from = ids.data_ptr<int64_t>() + b * window;
      std::transform(from, from + window, row.begin(), [](int64_t id) { return static_cast<TokenId>(id); });
      engine_->rewind(0);
      RIDGE_TRY(engine_->evaluate_all(row, [&](std::span<const float> logits) -> Result<void> {
        to = std::copy(logits.begin(), logits.end(), to);
        return {};
      }));
    }
    return out;
  }

 private:
  std::unique_ptr<Engine> engine_;
};

Result<std::unique_ptr<Teacher>> open_checkpoint(const DistillJob& job, const Tokenizer& words) {
  const CheckpointState state = RIDGE_TRY(read_checkpoint_state(job.teacher));
  if (state.vocabulary != fingerprint_of(words)) {
    return bad_input(
        fmt::format("{}: this teacher learned another vocabulary ({} tokens) than the student's ({}): give "
                    "--tokenizer what the teacher was trained with",
                    job.teacher, state.shape.vocabulary, words.size()));
  }
  if (state.shape.context < job.shape.context) {
    return bad_input(fmt::format("{}: this teacher has a context of {}, the student of {}: give --context {}",
                                 job.teacher, state.shape.context, job.shape.context, state.shape.context));
  }
  auto student = std::make_unique<Student>(state.shape);
  RIDGE_TRY(read_checkpoint(job.teacher, student->parameters(), nullptr));
  return std::unique_ptr<Teacher>(std::make_unique<CheckpointTeacher>(std::move(student), job.losses.hidden > 0));
}

Result<std::unique_ptr<Teacher>> open_engine(const DistillJob& job, const Tokenizer& words) {
  constexpr uint32_t kLogitsRows = 16;
  if (job.losses.hidden > 0) {
    return usage_error(
        fmt::format("--hidden needs the teacher's states, and the engine that runs {} gives logits alone: "
                    "use a checkpoint of `ridge distill` as teacher, or leave --hidden out",
                    job.teacher));
  }
  EngineOptions options = job.engine;
  options.path = job.teacher;
  options.context = std::max<uint64_t>(job.shape.context, 16);
  options.logits_rows = kLogitsRows;
  auto engine = RIDGE_TRY(Engine::open(options));
  if (engine->tokenizer() == nullptr) {
    return bad_input(fmt::format("{}: has no tokenizer: a teacher and its student need one vocabulary", job.teacher));
  }
  RIDGE_TRY(check_same_vocabulary(words, *engine->tokenizer(), job.teacher));
  if (engine->model().config().vocabulary != words.size()) {
    return bad_input(fmt::format("{}: its head has {} rows and its vocabulary {} tokens: such a teacher cannot be used",
                                 job.teacher, engine->model().config().vocabulary, words.size()));
  }
  return std::unique_ptr<Teacher>(std::make_unique<EngineTeacher>(std::move(engine)));
}

}  // namespace

Result<std::unique_ptr<Teacher>> open_teacher(const DistillJob& job, const Tokenizer& student) {
  if (job.teacher.empty()) return std::unique_ptr<Teacher>();
  return is_safetensors(job.teacher) ? open_checkpoint(job, student) : open_engine(job, student);
}

}  // namespace ridge::distill

#include "cli/claims_students.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "analyze/made_model.h"
#include "analyze/quality.h"
#include "base/log.h"
#include "base/units.h"
#include "claims/gather.h"
#include "cli/child.h"
#include "cli/common.h"
#include "distill/corpus.h"

namespace ridge::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr double kCaches[] = {0.1, 0.25, 0.5, 0.75};
constexpr uint64_t kCorpusBytes = 3 * kMiB, kReportBytes = 16 * kMiB;
constexpr uint32_t kWindow = 128, kWindows = 64;

// Each training of the plan: its folder's name says all that makes it another one.
struct Training {
  std::string name;
  std::vector<std::string> words;
};

class Trainer {
 public:
  explicit Trainer(const StudentPlan& plan) : plan_(plan), total_(1 + kStudentKinds * plan.seeds) {}

  Result<TrainedStudents> run() {
    RIDGE_TRY(write_corpus());
    RIDGE_TRY(
        report_of({.name = fmt::format("teacher-{}", plan_.teacher_steps),
                   .words = {"--dim", "160", "--ffn-dim", "480", "--steps", std::to_string(plan_.teacher_steps)}}));
    for (uint64_t seed = 1; seed <= plan_.seeds; ++seed) {
      for (size_t kind = 0; kind < kStudentKinds; ++kind) RIDGE_TRY(student(static_cast<StudentKind>(kind), seed));
    }
    return std::move(out_);
  }

 private:
  std::string corpus() const { return plan_.folder + "/stories.txt"; }
  std::string teacher() const { return fmt::format("{}/teacher-{}", plan_.folder, plan_.teacher_steps); }

  Result<void> write_corpus() {
    text_ = distill::make_corpus({.bytes = kCorpusBytes, .seed = 1});
    return fs::exists(corpus()) ? Result<void>() : write_text(corpus(), text_);
  }

  Training training(StudentKind kind, uint64_t seed) const {
    Training out;
    out.words = {"--ffn",     "reglu",
                 "--steps",   std::to_string(plan_.steps),
                 "--seed",    std::to_string(seed),
                 "--teacher", teacher() + "/checkpoint.safetensors"};
    if (kind == StudentKind::ce) out.words.insert(out.words.end(), {"--kd", "0"});
    std::string what = kind == StudentKind::ce ? "ce" : "kd";
    if (kind == StudentKind::kd_l1) {
      out.words.insert(out.words.end(), {"--l1", fmt::format("{}", plan_.l1)});
      what = fmt::format("kd-l1-{}", plan_.l1);
    }
    out.name = fmt::format("{}-{}-of-{}-seed-{}", what, plan_.steps, plan_.teacher_steps, seed);
    out.words.insert(out.words.end(), {"--record", fmt::format("{}/{}/visits", plan_.folder, out.name)});
    return out;
  }

  // What `ridge distill --json` says of a training, from the folder where it is finished.
  Result<Json> report_of(const Training& training) {
    ++begun_;
    const std::string folder = plan_.folder + "/" + training.name, report = folder + "/report.json";
    if (!fs::exists(report)) RIDGE_TRY(train(training, folder, report));
    const std::string text = RIDGE_TRY(read_text(report, {.most_bytes = kReportBytes}));
    Json json = Json::parse(text, nullptr, false);
    if (json.is_object() && json.contains("held_out") && json["held_out"].is_number()) return json;
    return bad_input(fmt::format("{}: no report of `ridge distill --json`: remove the folder {}", report, folder));
  }

  Result<void> train(const Training& training, const std::string& folder, const std::string& report) {
    note(fmt::format("training {} of {}: {}", begun_, total_, training.name));
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return io_error(fmt::format("{}: cannot be created ({})", folder, error.message()));
    std::vector<std::string> words = {"ridge",
                                      "distill",
                                      corpus(),
                                      "-o",
                                      folder,
                                      "--json",
                                      "--validation-tokens",
                                      std::to_string(plan_.validation_tokens)};
    if (plan_.threads > 0) words.insert(words.end(), {"--threads", std::to_string(plan_.threads)});
    if (fs::exists(folder + "/checkpoint.safetensors")) words.emplace_back("--resume");
    words.insert(words.end(), training.words.begin(), training.words.end());
    Child child;
    if (auto refused = child.start(words)) {
      return io_error(
          fmt::format("no process to train in ({}): end others, or raise the limit of processes", *refused));
    }
    const int code = child.finish(interrupt_flag());
    if (interrupt_flag()) return io_error("interrupted; with --folder the same command goes on from there");
    if (code != 0) return io_error(fmt::format("training {} ended with exit code {}", training.name, code));
    return write_text(report, child.text());
  }

  Result<void> student(StudentKind kind, uint64_t seed) {
    const Training made = training(kind, seed);
    const Json report = RIDGE_TRY(report_of(made));
    const std::string folder = plan_.folder + "/" + made.name;
    Student student{.kind = kind, .seed = seed, .held_out = report["held_out"].get<double>()};
    const std::pair<const char*, double*> figures[] = {{"sparsity", &student.sparsity},
                                                       {"busiest_26_percent", &student.busiest},
                                                       {"touched_sorted", &student.touched},
                                                       {"dram_cut", &student.dram_cut}};
    for (const auto& [name, into] : figures) {
      if (!report.contains("gates") || !report["gates"].contains(name) || !report["gates"][name].is_number()) {
        return bad_input(fmt::format("{}/report.json: 'gates' has no number '{}': remove the folder", folder, name));
      }
      *into = report["gates"][name].get<double>();
    }
    out_.students.push_back(student);
    if (kind == StudentKind::kd) {
      const uint64_t weights = report.value("parameters", uint64_t{0});
      out_.bits.push_back(RIDGE_TRY(bits_loss(folder + "/student.gguf", made.name, weights)));
    }
    if (kind != StudentKind::kd_l1) return {};
    const sim::RecordedTrace train = RIDGE_TRY(sim::read_recorded(folder + "/visits.train.json"));
    sim::RecordedTrace judge = RIDGE_TRY(sim::read_recorded(folder + "/visits.judge.json"));
    for (const double cache : kCaches) {
      PolicyHits hits = replay_policies(train, judge, cache);
      hits.kind = kind;
      hits.seed = seed;
      out_.hits.push_back(std::move(hits));
    }
    out_.visits.push_back(std::move(judge));
    return {};
  }

  // On the end of the text, which no student learned from. Float activations: only the weights differ.
  Result<BitsLoss> bits_loss(const std::string& path, const std::string& name, uint64_t weights) {
    BitsLoss out{.model = name, .weights = weights};
    constexpr size_t kScored = size_t{kWindow} * kWindows;
    const std::string end = text_.substr(text_.size() - std::min(text_.size(), kScored));
    std::vector<TokenId> ids;
    auto loss = [&](const std::string& file) -> Result<double> {
      auto engine = RIDGE_TRY(Engine::open({.path = file,
                                            .default_context = kWindow,
                                            .threads = plan_.threads,
                                            .numerics = Numerics::exact,
                                            .logits_rows = kWindow,
                                            .need_tokenizer = ids.empty()}));
      if (ids.empty()) ids = engine->tokenizer()->encode(end, {.add_special = false, .parse_special = false});
      return RIDGE_TRY(likelihood(*engine, ids, {.window = kWindow})).nll;
    };
    out.f32 = RIDGE_TRY(loss(path));
    for (const auto& [type, into] : {std::pair(Type::Q8_0, &out.int8), std::pair(Type::Q4_0, &out.four)}) {
      const MadeModel made = RIDGE_TRY(change_model(path, {.type = type}, {.name = name}));
      *into = RIDGE_TRY(loss(made.path()));
    }
    return out;
  }

  const StudentPlan& plan_;
  TrainedStudents out_;
  std::string text_;
  size_t begun_ = 0, total_;
};

}  // namespace

Result<TrainedStudents> train_students(const StudentPlan& plan) { return Trainer(plan).run(); }

}  // namespace ridge::cli

// ridge claims: what a document promises of weight caching on mobile NPUs, each promise with a measured verdict
// (docs/claims.md).
#include <fmt/format.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "claims/claims_report.h"
#include "claims/gather.h"
#include "cli/claims_students.h"
#include "cli/common.h"
#include "cli/distill.h"
#include "cli/sim.h"
#include "sim/npu_machine.h"

namespace ridge::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge claims                               (some minutes; needs libtorch)\n"
    "  ridge claims --folder students -o claims.html\n"
    "  ridge claims --no-training --machine hexagon-v75 --machine ethos-u85\n"
    "  ridge claims --full --folder students      (an hour and more)";

struct Flags {
  std::vector<std::string> machines;
  std::optional<std::string> folder, output;
  std::optional<int64_t> seeds, steps, teacher_steps, validation, threads;
  double l1 = 1.5;
  bool full = false, no_training = false, json = false;
};

// A folder that goes with the object.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create() {
    std::string name = (fs::temp_directory_path() / "ridge-claims-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      return io_error(
          fmt::format("{}: no folder can be made there ({}): name one with --folder", name, std::strerror(errno)));
    }
    return ScratchFolder(std::move(name));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

Result<uint32_t> number(const std::optional<int64_t>& value, int64_t otherwise, int64_t least, int64_t most,
                        const char* flag) {
  const int64_t n = value.value_or(otherwise);
  if (n < least || n > most)
    return usage_error(fmt::format("{} {} cannot be used: give {} to {}", flag, n, least, most));
  return static_cast<uint32_t>(n);
}

Result<StudentPlan> student_plan(const Flags& f) {
  constexpr int64_t kMostSteps = 1'000'000, kMostSeeds = 100;
  StudentPlan plan;
  plan.seeds = RIDGE_TRY(number(f.seeds, f.full ? 5 : 3, 2, kMostSeeds, "--seeds"));
  plan.steps = RIDGE_TRY(number(f.steps, f.full ? 1400 : 150, 1, kMostSteps, "--steps"));
  plan.teacher_steps = RIDGE_TRY(number(f.teacher_steps, f.full ? 2000 : 300, 1, kMostSteps, "--teacher-steps"));
  plan.validation_tokens =
      RIDGE_TRY(number(f.validation, plan.validation_tokens, 256, kMostSteps, "--validation-tokens"));
  if (!(f.l1 > 0 && f.l1 <= 1000)) return usage_error(fmt::format("--l1 {} cannot be used: give 0.001 to 1000", f.l1));
  plan.l1 = f.l1;
  if (f.threads) plan.threads = RIDGE_TRY(thread_count(*f.threads));
  return plan;
}

// Those that are named, or every one that is installed and has tiers.
Result<std::vector<sim::NpuMachine>> machines_of(const Flags& f) {
  std::vector<std::string> paths;
  for (const std::string& name : f.machines) paths.push_back(RIDGE_TRY(resolve_profile(name)));
  if (paths.empty()) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(installed_profiles(), error)) {
      const std::string path = entry.path().string();
      if (path.ends_with(".toml") && RIDGE_TRY(sim::has_tiers(path))) paths.push_back(path);
    }
    if (paths.empty()) {
      return bad_input(fmt::format("{}: no profiles of machines with tiers are there: name one with --machine",
                                   installed_profiles()));
    }
    std::sort(paths.begin(), paths.end());
  }
  std::vector<sim::NpuMachine> out;
  for (const std::string& path : paths) {
    if (!RIDGE_TRY(sim::has_tiers(path))) {
      return bad_input(fmt::format("{}: a machine without [[tiers]]: name one that has them, such as ethos-u85", path));
    }
    out.push_back(RIDGE_TRY(sim::load_npu_machine(path)));
  }
  return out;
}

Result<TrainedStudents> students_of(const Flags& f, StudentPlan plan) {
  std::optional<ScratchFolder> scratch;
  if (!f.folder) scratch.emplace(RIDGE_TRY(ScratchFolder::create()));
  plan.folder = f.folder ? *f.folder : scratch->path();
  std::error_code error;
  fs::create_directories(plan.folder, error);
  if (error) return io_error(fmt::format("{}: cannot be created ({})", plan.folder, error.message()));
  return train_students(plan);
}

std::string command_of(const Flags& f, const StudentPlan& plan) {
  std::string text = "ridge claims";
  for (const std::string& m : f.machines) text += " --machine " + m;
  if (f.no_training) return text + " --no-training";
  return text + fmt::format(" --seeds {} --steps {} --teacher-steps {} --validation-tokens {} --l1 {}", plan.seeds,
                            plan.steps, plan.teacher_steps, plan.validation_tokens, plan.l1);
}

Result<void> run(const Flags& f) {
  if (f.output) RIDGE_TRY(check_output(*f.output, "-o"));
  const StudentPlan plan = RIDGE_TRY(student_plan(f));
  const std::vector<sim::NpuMachine> machines = RIDGE_TRY(machines_of(f));
  Evidence evidence;
  TrainedStudents trained;
  if (f.no_training) {
    if (f.folder) return usage_error("--folder is for students, and --no-training makes none: leave one of them out");
    evidence.missing = "no students were trained (--no-training)";
  } else if (!find_trainer()) {
    evidence.missing = "training needs libtorch (scripts/setup --distill)";
    note(evidence.missing + ": claims about students stay open");
  } else {
    trained = RIDGE_TRY(students_of(f, plan));
  }
  for (const sim::NpuMachine& machine : machines) {
    for (MachineCase& c : RIDGE_TRY(machine_cases(machine, trained.visits))) evidence.cases.push_back(std::move(c));
    for (TierRatio& r : tier_ratios(machine)) evidence.ratios.push_back(std::move(r));
  }
  evidence.students = std::move(trained.students);
  evidence.bits = std::move(trained.bits);
  evidence.hits = std::move(trained.hits);
  evidence.policies = replayed_policies();
  if (f.output) {
    RIDGE_TRY(write_text(*f.output, claims_html(evidence, {.version = RIDGE_VERSION, .command = command_of(f, plan)})));
    note(fmt::format("{} is written", *f.output));
  }
  return print(f.json ? claims_json(evidence).dump(2) + "\n" : claims_text(evidence));
}

}  // namespace

void add_claims(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* c = app.add_subcommand("claims", "judge what is promised of weight caching");
  c->add_option("--machine", flags->machines, "with tiers; may be repeated (default: all)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  c->add_option("--folder", flags->folder, "keep the students here; finished ones stay")->type_name("DIR");
  c->add_option("-o,--output", flags->output, "write a page, as HTML")->type_name("FILE");
  c->add_option("--seeds", flags->seeds, "students of each kind (3; --full: 5)")->type_name("N");
  c->add_option("--steps", flags->steps, "of a student (150; --full: 1400)")->type_name("N");
  c->add_option("--teacher-steps", flags->teacher_steps, "(300; --full: 2000)")->type_name("N");
  c->add_option("--validation-tokens", flags->validation, "that judge a student (8192)")->type_name("N");
  c->add_option("--l1", flags->l1, "on the gates of sparse students")->type_name("X")->capture_default_str();
  c->add_option("-t,--threads", flags->threads, "that train (default: all)")->type_name("N");
  c->add_flag("--full", flags->full, "train for longer, with more seeds");
  c->add_flag("--no-training", flags->no_training, "only what needs no students");
  c->add_flag("--json", flags->json, "print one JSON object");
  c->footer(kExamples);
  on_run(*c, [flags] { return run(*flags); });
}

}  // namespace ridge::cli

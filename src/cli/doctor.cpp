// ridge doctor: what on this machine helps or hinders a run, and what Ridge would choose.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/doctor.h"
#include "base/log.h"
#include "cli/common.h"
#include "machine/storage_file.h"
#include "machine/storage_probe.h"
#include "report/doctor_report.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge doctor\n"
    "  ridge doctor model.gguf --memory 300M\n"
    "  ridge doctor --json\n\n"
    "Nothing is changed. The exit code is the one that a run would end with.";

struct Flags {
  std::optional<std::string> model, memory;
  std::optional<int64_t> context;
  bool json = false;
};

// A file of one page in the current folder, for as long as this object lives: to try reads with where no model is
// named.
class TrialFile {
 public:
  TrialFile() {
    int fd = ::mkostemp(name_.data(), O_CLOEXEC);
    if (fd < 0) {
      error_ = fmt::format("the current folder cannot be written ({})", std::strerror(errno));
      name_.clear();
      return;
    }
    const std::string page(4096, 'x');
    if (::write(fd, page.data(), page.size()) != static_cast<ssize_t>(page.size()) || ::fsync(fd) != 0) {
      error_ = fmt::format("the current folder cannot be written ({})", std::strerror(errno));
    }
    ::close(fd);
  }
  ~TrialFile() {
    if (!name_.empty()) (void)::unlink(name_.c_str());
  }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;

  const std::string& name() const { return name_; }
  const std::string& error() const { return error_; }

 private:
  std::string name_ = "ridge-doctor-XXXXXX", error_;
};

void examine_reading(const std::string& path, DoctorFacts& facts) {
  auto io = io_facts(path);
  if (io.ok()) {
    facts.io = std::move(io).value();
  } else {
    facts.io_error = io.error().message;
  }
}

void examine_reading_here(DoctorFacts& facts) {
  TrialFile trial;
  facts.io_error = trial.error();
  if (!trial.error().empty()) return;
  examine_reading(trial.name(), facts);
  if (facts.io) facts.io->path = "this folder";
}

// A third of a second; a file that is too small for it is left out.
std::optional<double> quick_storage(const std::string& path) {
  auto file = StorageFile::open(path);
  if (!file.ok()) return std::nullopt;
  const StoragePlan plan =
      storage_plan({.quick = true, .file_bytes = file.value().bytes(), .most_bytes = 64 * 1024 * 1024});
  Progress bar("reading", point_count(plan), ProgressUnit::items);
  MachineProfile profile;
  auto points = measure_storage(file.value(), plan, bar);
  if (!points.ok()) return std::nullopt;
  profile.storage = std::move(points).value();
  return profile.storage_gb_per_s();
}

Result<DoctorFacts> facts_of(const Flags& flags) {
  DoctorFacts facts;
  facts.system = system_facts();
  facts.limits = memory_limits();
  facts.memory = memory_state();
  facts.cpu = cpu_info();
  facts.usable_cpus = static_cast<uint32_t>(usable_cpus().size());
  facts.cpu_quota = cgroup_cpu_quota();
  if (auto profile = load_profile(default_profile_path()); profile.ok()) facts.profile = std::move(profile).value();
  if (auto kernels = choose_kernels({}); kernels.ok()) facts.kernels = std::move(kernels).value();
  if (!flags.model) {
    examine_reading_here(facts);
    return facts;
  }
  EngineFlags engine;
  engine.model = *flags.model;
  engine.memory = flags.memory;
  engine.context = flags.context;
  const EngineOptions options = RIDGE_TRY(engine_options(engine));
  facts.model = ModelFacts{.path = options.path, .preview = {}, .error = {}};
  auto preview = Engine::preview(options);
  if (preview.ok()) {
    facts.model->preview = std::move(preview).value();
  } else {
    facts.model->error = preview.error();
  }
  examine_reading(options.path, facts);
  if (!facts.profile) facts.storage_gb_per_s = quick_storage(options.path);
  return facts;
}

Result<void> run(const Flags& flags) {
  if (!flags.model && (flags.memory || flags.context)) {
    return usage_error("--memory and --context are about a run: name a MODEL, too");
  }
  // What would be said on the way stands in the findings.
  const Verbosity before = verbosity();
  set_verbosity(Verbosity::quiet);
  auto facts = facts_of(flags);
  set_verbosity(before);
  if (!facts.ok()) return facts.error();
  const std::vector<Finding> findings = examine(facts.value());
  const std::optional<Error> error = impossible(facts.value());
  RIDGE_TRY(print(
      flags.json
          ? doctor_json(findings, error).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
          : doctor_table(findings)));
  if (error) return *error;
  return {};
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("doctor", "what on this machine helps or hinders a run");
  command->add_option("MODEL", flags->model, "GGUF file, .ridge pack, or a name from `ridge models`")->type_name("");
  command->add_option("-m,--memory", flags->memory, "the budget that a run would get: 300M")->type_name("SIZE");
  command->add_option("-c,--context", flags->context, "the context that it would get")->type_name("N");
  command->add_flag("--json", flags->json, "print one JSON object");
  command->footer(with_pointers(kExamples));
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli

#include "analyze/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/units.h"
#include "memory/slab.h"
#include "memory/source_layout.h"

namespace ridge {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

class Examination {
 public:
  explicit Examination(const DoctorFacts& facts) : f_(facts) {}

  std::vector<Finding> run() {
    memory();
    cgroup();
    swap();
    pressure();
    address_space();
    locked_memory();
    huge_pages();
    cpu();
    cpus();
    governor();
    scheduler();
    file();
    uring();
    storage();
    system();
    choice();
    return std::move(findings_);
  }

 private:
  void add(Severity verdict, std::string topic, std::string fact, std::string advice = "") {
    findings_.push_back({std::move(topic), std::move(fact), verdict, std::move(advice)});
  }
  void ok(std::string topic, std::string fact) { add(Severity::ok, std::move(topic), std::move(fact)); }
  void note(std::string topic, std::string fact, std::string advice) {
    add(Severity::note, std::move(topic), std::move(fact), std::move(advice));
  }
  void problem(std::string topic, std::string fact, std::string advice) {
    add(Severity::problem, std::move(topic), std::move(fact), std::move(advice));
  }

  void memory();
  void cgroup();
  void swap();
  void pressure();
  void address_space();
  void locked_memory();
  void huge_pages();
  void cpu();
  void cpus();
  void governor();
  void scheduler();
  void file();
  void uring();
  void storage();
  void system();
  void choice();
  void plan(const Engine::Preview& p);

  const DoctorFacts& f_;
  std::vector<Finding> findings_;
};

// ---- Memory ---------------------------------------------------------------------------------------------------------

void Examination::memory() {
  constexpr uint64_t kLittle = 64 * kMiB;
  if (f_.limits.available == 0) {
    problem("memory", f_.limits.reason, "give --memory, or make /proc and the cgroup readable");
  } else if (f_.limits.available < kLittle) {
    note("memory", fmt::format("{} can be used ({})", format_bytes(f_.limits.available), f_.limits.reason),
         "end other programs, or raise the limit: the smallest models need about 40 MiB");
  } else {
    ok("memory", fmt::format("{} can be used ({})", format_bytes(f_.limits.available), f_.limits.reason));
  }
}

void Examination::cgroup() {
  const CgroupMemory& g = f_.memory.cgroup;
  if (!g.charged)
    return note("cgroup", "no memory cgroup can be seen", "limits of one would not be known: give --memory");
  if (!g.left) return ok("cgroup", fmt::format("{} charged, no limit", format_bytes(*g.charged)));
  const bool tightest = !f_.memory.available || *g.left < *f_.memory.available;
  ok("cgroup", fmt::format("{} charged; {}{}", format_bytes(*g.charged), g.reason,
                           tightest ? ": this limit counts, not the system's memory" : ""));
}

void Examination::swap() {
  const auto& total = f_.system.swap_total;
  if (!total) return;
  const uint64_t used = f_.system.swap_used.value_or(0);
  const std::string fact =
      *total == 0 ? "none" : fmt::format("{} of {} in use", format_bytes(used), format_bytes(*total));
  if (*total > 0 && used > *total / 2) {
    return note("swap", fact, "the system is short of memory: end other programs before measuring");
  }
  ok("swap", fact);
}

void Examination::pressure() {
  struct Kind {
    const char* topic;
    std::optional<double> value;
    double busy;
    const char* advice;
  };
  const Pressure& p = f_.system.pressure;
  const Kind kinds[] = {{"memory pressure", p.memory, 1, "others are being swapped or reclaimed: a budget may shrink"},
                        {"CPU pressure", p.cpu, 20, "others compute, too: times will be longer, and vary"},
                        {"I/O pressure", p.io, 20, "others read or write: streaming will be slower"}};
  bool known = false;
  for (const Kind& k : kinds) {
    if (!k.value) continue;
    known = true;
    if (*k.value >= k.busy) note(k.topic, fmt::format("{:.1f} % of the last 10 s", *k.value), k.advice);
  }
  if (!known)
    return note("pressure", "/proc/pressure is not there", "pressure stalls cannot be seen (Linux 4.20, psi=1)");
  if (p.memory && *p.memory < kinds[0].busy) ok("pressure", fmt::format("memory {:.1f} % of the last 10 s", *p.memory));
}

void Examination::address_space() {
  const SystemFacts& s = f_.system;
  if (s.address_limit) {
    // The program, its threads' stacks, and slabs cut out of longer mappings.
    note("address space", fmt::format("RLIMIT_AS is {}", format_bytes(*s.address_limit)),
         "an allocation past it fails: `ulimit -v unlimited`, or a --memory well below it");
  }
  if (s.overcommit.value_or(0) == 2) {
    const uint64_t left = s.commit_limit.value_or(0) - std::min(s.commit_limit.value_or(0), s.committed.value_or(0));
    note("overcommit", fmt::format("vm.overcommit_memory is 2: {} may still be promised", format_bytes(left)),
         "what is reserved counts, not what is used: keep --memory below that");
  } else if (s.overcommit) {
    ok("overcommit", fmt::format("vm.overcommit_memory is {}", *s.overcommit));
  }
  constexpr uint64_t kFewMappings = 4096;
  if (s.most_mappings && *s.most_mappings < kFewMappings) {
    note("mappings", fmt::format("vm.max_map_count is {}", *s.most_mappings),
         "`ridge ladder` needs two for each context");
  }
}

// Ridge locks nothing; kernels up to 5.11 count io_uring's rings and registered buffers against the limit.
void Examination::locked_memory() {
  const uint64_t limit = f_.limits.locked_limit;
  const std::string fact =
      limit == kUnlimited ? "RLIMIT_MEMLOCK is unlimited" : fmt::format("RLIMIT_MEMLOCK is {}", format_bytes(limit));
  constexpr uint64_t kRings = 256 * kKiB;
  if (limit < kRings) {
    return note("locked memory", fact,
                "Ridge locks nothing, but kernels up to 5.11 need it for io_uring: `ulimit -l 8192`");
  }
  ok("locked memory", fact + ": Ridge locks nothing");
}

void Examination::huge_pages() {
  const auto& mode = f_.system.huge_pages;
  if (!mode) return note("huge pages", "the kernel offers none", "reads into small pages cost more CPU time");
  if (*mode == "never") {
    return note("huge pages", "transparent huge pages are off (never)",
                "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, as root, makes reads cheaper");
  }
  ok("huge pages", fmt::format("transparent huge pages: {}; slots and pins ask for them", *mode));
}

// ---- CPU ------------------------------------------------------------------------------------------------------------

void Examination::cpu() {
  const CpuInfo& c = f_.cpu;
  ok("CPU", fmt::format("{}; {}", c.model.empty() ? "unknown model" : c.model,
                        c.feature_names.empty() ? "no vector extensions"
                                                : fmt::format("{}", fmt::join(c.feature_names, ", "))));
  if (f_.system.cpu_has_amx && !c.features.has_all(kAmxInt8)) {
    note("AMX", "the CPU has it, but the system does not grant its use",
         "`--numerics fast` runs without it; a kernel from 5.16 on, or another seccomp profile, would grant it");
  }
}

void Examination::cpus() {
  const auto affinity = static_cast<uint32_t>(std::max(1, f_.cpu.logical_cpus));
  std::string fact = fmt::format("{} usable", f_.usable_cpus);
  if (f_.system.online_cpus) fact += fmt::format(" of {} online", *f_.system.online_cpus);
  if (f_.system.online_cpus && affinity < *f_.system.online_cpus) fact += fmt::format("; affinity allows {}", affinity);
  if (f_.cpu_quota > 0) fact += fmt::format("; the cgroup's quota is {:.2g} CPUs", f_.cpu_quota);
  if (f_.cpu_quota > 0 && f_.cpu_quota < affinity) {
    return note("CPUs", fact,
                "more threads than the quota would be stopped in the middle of their work: leave -t alone");
  }
  ok("CPUs", fact);
}

void Examination::governor() {
  const auto& g = f_.system.governors;
  if (g.empty()) return;
  std::vector<std::string> names;
  bool slow = false;
  for (const Governor& one : g) {
    names.push_back(fmt::format("{} ({})", one.name, counted(one.cpus, "CPU")));
    slow = slow || one.name == "powersave" || one.name == "conservative";
  }
  const std::string fact = fmt::format("{}", fmt::join(names, ", "));
  if (slow)
    return note("governor", fact, "clocks may rise late: `cpupower frequency-set -g performance` before measuring");
  ok("governor", fact);
}

void Examination::scheduler() {
  if (f_.system.autogroup.value_or(0) == 0) return;
  ok("scheduler", "kernel.sched_autogroup_enabled is 1: `nice` counts only within one terminal session");
}

// ---- Storage --------------------------------------------------------------------------------------------------------

void Examination::file() {
  if (!f_.io)
    return note("O_DIRECT", "not tried: " + f_.io_error, "name a model, or run in a folder that can be written");
  const IoFacts& io = *f_.io;
  if (!io.read_works) return problem("reading", io.read_error, "mend the file or the device first");
  std::string alignment = "alignment unknown (before Linux 6.1)";
  if (io.alignment.known && io.alignment.offset > 0) {
    alignment = fmt::format("memory aligned to {}, offsets to {} bytes", io.alignment.memory, io.alignment.offset);
  } else if (io.alignment.known) {
    alignment = "the file system offers none";
  }
  if (io.direct) return ok("O_DIRECT", fmt::format("{}: a real read works; {}", io.path, alignment));
  note("O_DIRECT", fmt::format("{}; {}", io.refusal, alignment),
       fmt::format("read {} instead, with copies; another file system (ext4, xfs, btrfs) reads faster", io.mode));
}

void Examination::uring() {
  if (!f_.io) return;
  const IoFacts& io = *f_.io;
  const auto disabled = f_.system.io_uring_disabled.value_or(0);
  if (!io.uring_tried) {
    return note("io_uring", "not used where O_DIRECT is refused, or not part of this build",
                "reading threads serve as well");
  }
  if (io.uring_error == 0) return ok("io_uring", io.engine);
  const std::string fact = fmt::format("refused ({})", std::strerror(io.uring_error));
  if (disabled != 0) {
    return note("io_uring", fmt::format("{}: kernel.io_uring_disabled is {}", fact, disabled),
                "reading threads are used; `sysctl kernel.io_uring_disabled=0`, as root, permits it");
  }
  if (io.uring_error == EPERM || io.uring_error == EACCES) {
    return note("io_uring", fact + (f_.system.container.empty() ? "" : fmt::format(" in {}", f_.system.container)),
                "reading threads are used; a seccomp profile that permits io_uring_setup saves CPU time");
  }
  note("io_uring", fact,
       io.uring_error == ENOSYS ? "reading threads are used; Linux 5.1 brought it" : "reading threads are used");
}

void Examination::storage() {
  if (f_.profile && f_.profile->storage_gb_per_s()) {
    const MachineProfile& p = *f_.profile;
    const std::string fact = fmt::format("{:.2f} GB/s, {}, measured {} by `ridge probe`", *p.storage_gb_per_s(),
                                         p.storage_path, p.measured_at);
    if (p.contended) return note("storage", fact, "others used the machine then (" + p.contention + "): probe again");
    return ok("storage", fact);
  }
  if (f_.storage_gb_per_s) {
    return note("storage", fmt::format("about {:.2f} GB/s, measured just now", *f_.storage_gb_per_s),
                "`ridge probe` measures it well, and plans then use it");
  }
  note("storage", "not measured", "`ridge probe`, so that plans need not assume 1 GB/s");
}

void Examination::system() {
  std::string fact = "Linux " + f_.system.kernel.value_or("of unknown version");
  fact +=
      f_.system.container.empty() ? "; no container seen" : fmt::format("; in a container ({})", f_.system.container);
  ok("system", fact);
}

// ---- What Ridge would choose ----------------------------------------------------------------------------------------

// Lines of the kernels' reasons about a weight type that the model has: "matmul_q8 Q4_0: avx512 (…)".
std::vector<std::string> kernel_lines(const KernelChoice& kernels, const Program& program) {
  std::vector<std::string> lines;
  for (const std::string& reason : kernels.reasons) {
    const std::string subject = reason.substr(0, reason.find(':'));
    const size_t space = subject.find(' ');
    if (space == std::string::npos || subject.compare(0, space, "matmul_q8") != 0) continue;
    const bool used = std::any_of(program.blocks.begin(), program.blocks.end(), [&](const Block& b) {
      return std::any_of(b.pieces.begin(), b.pieces.end(), [&](const Piece& p) {
        return type_info(program.tensors[p.tensor].type).name == subject.substr(space + 1);
      });
    });
    if (used) lines.push_back(reason);
  }
  return lines;
}

void Examination::choice() {
  if (f_.kernels) {
    const Isa isa = f_.kernels->kernels.isa;
    const std::string fact = fmt::format("{} kernels, {}", name_of(isa), counted(f_.usable_cpus, "thread"));
    if (isa == Isa::scalar) {
      note("choice", fact, "this CPU has none of the vector extensions that Ridge uses: expect a tenth of the speed");
    } else {
      ok("choice", fact);
    }
  }
  if (f_.io) ok("choice", "reading: " + f_.io->engine);
  if (!f_.model) return;
  if (f_.model->error) {
    // Its table, where it has one, is for whoever runs the model.
    const std::string& message = f_.model->error->message;
    return problem("model", message,
                   "a run would end with this, exit code " + std::to_string(static_cast<int>(f_.model->error->code)));
  }
  if (f_.model->preview) plan(*f_.model->preview);
}

void Examination::plan(const Engine::Preview& p) {
  if (f_.kernels) {
    for (const std::string& line : kernel_lines(*f_.kernels, p.plan.program)) ok("kernel", line);
  }
  ok("budget", fmt::format("{} ({})", format_bytes(p.budget), p.budget_reason));
  ok("context",
     fmt::format("{}; {} needed in all", counted(p.context, "position"), format_bytes(p.plan.account.total())));
  for (const std::string& reason : p.plan.reasons) {
    const bool streams = p.plan.placement.streams() && &reason == &p.plan.reasons.front();
    if (streams) {
      note("plan", reason, "the model streams: more memory, a faster disk or fewer bits per weight make it faster");
    } else {
      ok("plan", reason);
    }
  }
}

}  // namespace

std::vector<Finding> examine(const DoctorFacts& facts) { return Examination(facts).run(); }

std::optional<Error> impossible(const DoctorFacts& facts) {
  if (facts.model && facts.model->error) return facts.model->error;
  if (facts.io && !facts.io->read_works) return io_error(facts.io->read_error);
  return std::nullopt;
}

}  // namespace ridge

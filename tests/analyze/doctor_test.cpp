// Every verdict, from made-up facts.
#include "analyze/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "base/units.h"

namespace ridge {
namespace {

// A machine on which nothing is to be said.
DoctorFacts healthy() {
  DoctorFacts f;
  f.system.kernel = "6.12.0";
  f.system.swap_total = kGiB;
  f.system.swap_used = 0;
  f.system.overcommit = 0;
  f.system.huge_pages = "madvise";
  f.system.pressure = {0.0, 0.0, 0.0};
  f.system.online_cpus = 4;
  f.limits = {.available = 8 * kGiB, .reason = "MemAvailable of the system: 8 GiB", .locked_limit = 8 * kMiB};
  f.memory.available = 8 * kGiB;
  f.memory.cgroup.charged = 50 * kMiB;
  f.cpu.model = "A CPU";
  f.cpu.logical_cpus = 4;
  f.usable_cpus = 4;
  f.io = IoFacts{.path = "model.gguf",
                 .direct = true,
                 .refusal = {},
                 .mode = "O_DIRECT",
                 .alignment = {true, 4, 512},
                 .uring_tried = true,
                 .uring_error = 0,
                 .engine = "io_uring, O_DIRECT",
                 .read_works = true,
                 .read_error = {}};
  f.profile = MachineProfile{};
  f.profile->storage.push_back(
      {.request_bytes = kMiB, .depth = 8, .direct = true, .gb_per_s = {.value = 2, .low = 2, .high = 2, .runs = 3}});
  return f;
}

const Finding* find(const std::vector<Finding>& findings, std::string_view topic) {
  auto at = std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.topic == topic; });
  return at == findings.end() ? nullptr : &*at;
}

// The one finding of this topic has this verdict and says `part`, and whatever is no "ok" says what to do.
void expect(const DoctorFacts& facts, std::string_view topic, Severity verdict, std::string_view part) {
  const std::vector<Finding> findings = examine(facts);
  const Finding* f = find(findings, topic);
  ASSERT_NE(f, nullptr) << topic;
  EXPECT_EQ(f->verdict, verdict) << topic << ": " << f->fact;
  EXPECT_NE((f->fact + " → " + f->advice).find(part), std::string::npos) << f->fact << " → " << f->advice;
  for (const Finding& one : findings) EXPECT_EQ(one.verdict == Severity::ok, one.advice.empty()) << one.topic;
}

TEST(Doctor, AHealthyMachineHasNoNotes) {
  for (const Finding& f : examine(healthy())) EXPECT_EQ(f.verdict, Severity::ok) << f.topic << ": " << f.fact;
  EXPECT_FALSE(impossible(healthy()).has_value());
}

TEST(Doctor, NoFactsAtAllStillMakeAReport) {
  const std::vector<Finding> findings = examine(DoctorFacts{});
  EXPECT_GT(findings.size(), 5u);
  EXPECT_EQ(find(findings, "memory")->verdict, Severity::problem);
}

TEST(Doctor, Memory) {
  DoctorFacts f = healthy();
  f.limits.available = 30 * kMiB;
  expect(f, "memory", Severity::note, "40 MiB");
  f = healthy();
  f.memory.cgroup.left = 500 * kMiB;
  f.memory.cgroup.reason = "cgroup /box: 512 MiB limit, 12 MiB of it in use";
  expect(f, "cgroup", Severity::ok, "this limit counts, not the system's memory");
  f.memory.cgroup = {};
  expect(f, "cgroup", Severity::note, "--memory");
  f = healthy();
  f.system.swap_used = 700 * kMiB;
  expect(f, "swap", Severity::note, "700 MiB of 1.00 GiB");
}

TEST(Doctor, Pressure) {
  DoctorFacts f = healthy();
  f.system.pressure.memory = 4;
  expect(f, "memory pressure", Severity::note, "4.0 %");
  f = healthy();
  f.system.pressure.io = 50;
  expect(f, "I/O pressure", Severity::note, "slower");
  f.system.pressure = {};
  expect(f, "pressure", Severity::note, "psi=1");
}

TEST(Doctor, AddressSpaceAndLockedMemory) {
  DoctorFacts f = healthy();
  f.system.address_limit = 2 * kGiB;
  expect(f, "address space", Severity::note, "ulimit -v");
  f.system.overcommit = 2;
  f.system.commit_limit = 3 * kGiB;
  f.system.committed = 4 * kGiB;
  expect(f, "overcommit", Severity::note, "0 B");
  f.limits.locked_limit = 64 * kKiB;
  expect(f, "locked memory", Severity::note, "ulimit -l");
  f.limits.locked_limit = UINT64_MAX;
  expect(f, "locked memory", Severity::ok, "unlimited");
  f.system.huge_pages = "never";
  expect(f, "huge pages", Severity::note, "madvise");
  f.system.huge_pages.reset();
  expect(f, "huge pages", Severity::note, "none");
  f.system.most_mappings = 1000;
  expect(f, "mappings", Severity::note, "1000");
}

TEST(Doctor, Cpus) {
  DoctorFacts f = healthy();
  f.cpu_quota = 1.5;
  f.usable_cpus = 2;
  expect(f, "CPUs", Severity::note, "quota is 1.5");
  f = healthy();
  f.system.online_cpus = 64;
  expect(f, "CPUs", Severity::ok, "affinity allows 4");
  f.system.cpu_has_amx = true;
  expect(f, "AMX", Severity::note, "does not grant");
  f.system.governors = {{"powersave", 64}};
  expect(f, "governor", Severity::note, "cpupower");
  f.system.governors = {{"performance", 64}};
  expect(f, "governor", Severity::ok, "64");
  f.system.autogroup = 1;
  expect(f, "scheduler", Severity::ok, "nice");
}

TEST(Doctor, Reading) {
  DoctorFacts f = healthy();
  f.io->direct = false;
  f.io->uring_tried = false;
  f.io->refusal = "O_DIRECT is refused for x (Invalid argument when opened)";
  expect(f, "O_DIRECT", Severity::note, "Invalid argument");
  expect(f, "io_uring", Severity::note, "threads");
  f = healthy();
  f.io->uring_error = EPERM;
  f.system.container = "docker";
  expect(f, "io_uring", Severity::note, "in docker");
  f.system.io_uring_disabled = 2;
  expect(f, "io_uring", Severity::note, "kernel.io_uring_disabled is 2");
  f.system.io_uring_disabled = 0;
  f.io->uring_error = ENOSYS;
  expect(f, "io_uring", Severity::note, "5.1");
  f.io.reset();
  f.io_error = "the current folder cannot be written (Read-only file system)";
  expect(f, "O_DIRECT", Severity::note, "Read-only");
  EXPECT_FALSE(impossible(f).has_value());
}

TEST(Doctor, AReadThatFailsMakesRunsImpossible) {
  DoctorFacts f = healthy();
  f.io->read_works = false;
  f.io->read_error = "model.gguf: Input/output error";
  expect(f, "reading", Severity::problem, "Input/output");
  ASSERT_TRUE(impossible(f).has_value());
  EXPECT_EQ(impossible(f)->code, ErrorCode::io);
}

TEST(Doctor, Storage) {
  DoctorFacts f = healthy();
  f.profile->contended = true;
  f.profile->contention = "40 % of a CPU went to others";
  expect(f, "storage", Severity::note, "probe again");
  f.profile.reset();
  f.storage_gb_per_s = 1.25;
  expect(f, "storage", Severity::note, "about 1.25 GB/s");
  f.storage_gb_per_s.reset();
  expect(f, "storage", Severity::note, "ridge probe");
}

TEST(Doctor, TheModelsErrorIsTheExitCode) {
  DoctorFacts f = healthy();
  f.model = ModelFacts{.path = "model.gguf", .preview = {}, .error = does_not_fit("the model does not fit into 1 MiB")};
  expect(f, "model", Severity::problem, "exit code 4");
  EXPECT_EQ(impossible(f)->code, ErrorCode::does_not_fit);
}

}  // namespace
}  // namespace ridge

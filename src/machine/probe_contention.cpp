#include "machine/probe_contention.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>

namespace ridge {
namespace {

// Others may use this part of one CPU before it is called contention: shells, timers and kernel threads use about 0.02.
constexpr double kOthersAllowed = 0.10;
constexpr double kStolenAllowed = 0.01;

std::optional<CpuTimes> read_system() {
  std::ifstream file("/proc/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return parse_proc_stat(line, static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

std::optional<CpuTimes> parse_proc_stat(std::string_view text, double ticks_per_s) {
  constexpr std::string_view kPrefix = "cpu ";
  if (!text.starts_with(kPrefix) || ticks_per_s <= 0) return std::nullopt;
  // user nice system idle iowait irq softirq steal (proc(5)); guest time is part of user already.
  std::array<uint64_t, 8> ticks{};
  const char* at = text.data() + kPrefix.size();
  const char* end = text.data() + text.size();
  for (uint64_t& tick : ticks) {
    while (at != end && *at == ' ') ++at;
    auto [rest, error] = std::from_chars(at, end, tick);
    if (error != std::errc()) return std::nullopt;
    at = rest;
  }
  auto seconds = [&](uint64_t n) { return static_cast<double>(n) / ticks_per_s; };
  return CpuTimes{.busy_s = seconds(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]),
                  .stolen_s = seconds(ticks[7])};
}

std::string describe_contention(double elapsed_s, double others_s, double stolen_s) {
  if (elapsed_s <= 0) return {};
  if (stolen_s / elapsed_s > kStolenAllowed) {
    return fmt::format("the hypervisor gave {:.2f} CPU seconds of {:.1f} s to other machines", stolen_s, elapsed_s);
  }
  if (others_s / elapsed_s > kOthersAllowed) {
    return fmt::format("other processes used {:.2f} of a CPU", others_s / elapsed_s);
  }
  return {};
}

CpuWatch::CpuWatch() : system_(read_system()), own_s_(own_cpu_seconds()), start_(std::chrono::steady_clock::now()) {}

std::string CpuWatch::contention() const {
  std::optional<CpuTimes> now = read_system();
  if (!now || !system_) return {};
  double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  double own = own_cpu_seconds() - own_s_;
  double others = std::max(0.0, now->busy_s - system_->busy_s - own);
  return describe_contention(elapsed, others, now->stolen_s - system_->stolen_s);
}

}  // namespace ridge

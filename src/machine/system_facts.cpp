#include "machine/system_facts.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/units.h"
#include "machine/small_file.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> number(const std::string& path) {
  auto word = read_word(path);
  return word ? number_at(*word) : std::nullopt;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// "some avg10=1.23 avg60=…" of /proc/pressure.
std::optional<double> some_avg10(const std::string& path) {
  constexpr std::string_view kBegin = "some avg10=";
  const std::string text = read_small_file(path).value_or("");
  if (text.compare(0, kBegin.size(), kBegin) != 0) return std::nullopt;
  double value = 0;
  auto [rest, error] = std::from_chars(text.data() + kBegin.size(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// "always [madvise] never": the word in brackets.
std::optional<std::string> chosen(const std::string& path) {
  const std::string text = read_small_file(path).value_or("");
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  return text.substr(open + 1, close - open - 1);
}

std::vector<Governor> governors(const std::string& root) {
  std::vector<Governor> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root + "/sys/devices/system/cpu", ignored)) {
    auto name = read_word(entry.path().string() + "/cpufreq/scaling_governor");
    if (!name) continue;
    auto known = std::find_if(found.begin(), found.end(), [&](const Governor& g) { return g.name == *name; });
    if (known == found.end()) known = found.insert(found.end(), {*name, 0});
    ++known->cpus;
  }
  std::sort(found.begin(), found.end(),
            [](const Governor& a, const Governor& b) { return a.cpus != b.cpus ? a.cpus > b.cpus : a.name < b.name; });
  return found;
}

// By the traces that each kind leaves; the first that is found.
std::string container(const std::string& root) {
  if (exists(root + "/.dockerenv")) return "docker";
  if (exists(root + "/run/.containerenv")) return "podman";
  if (exists(root + "/var/run/secrets/kubernetes.io")) return "kubernetes";
  if (auto named = read_word(root + "/run/systemd/container")) return *named;
  const std::string version = read_small_file(root + "/proc/version").value_or("");
  if (version.find("gVisor") != std::string::npos) return "gVisor";
  if (version.find("microsoft") != std::string::npos || version.find("Microsoft") != std::string::npos) return "wsl";
  const std::string groups =
      read_small_file(root + "/proc/1/cgroup").value_or("") + read_small_file(root + "/proc/self/cgroup").value_or("");
  for (const char* name : {"kubepods", "docker", "libpod", "lxc", "containerd"}) {
    if (groups.find(name) != std::string::npos) return name == std::string_view("kubepods") ? "kubernetes" : name;
  }
  return "";
}

std::optional<uint64_t> limit_of(const std::string& limits, std::string_view key) {
  const size_t at = limits.find(key);
  return at == std::string::npos ? std::nullopt : number_at(std::string_view(limits).substr(at + key.size()));
}

// A word of the "flags" line, which names all that the CPU has.
bool cpu_flag(const std::string& cpuinfo, std::string_view name) {
  const size_t begin = cpuinfo.find("\nflags");
  if (begin == std::string::npos) return false;
  const std::string line = cpuinfo.substr(begin, cpuinfo.find('\n', begin + 1) - begin) + " ";
  return line.find(" " + std::string(name) + " ") != std::string::npos;
}

}  // namespace

std::optional<uint32_t> cpus_in_list(const std::string& list) {
  uint32_t count = 0;
  const char *at = list.data(), *end = at + list.size();
  while (at < end) {
    uint32_t first = 0;
    auto head = std::from_chars(at, end, first);
    if (head.ec != std::errc()) return std::nullopt;
    uint32_t last = first;
    at = head.ptr;
    if (at < end && *at == '-') {
      auto tail = std::from_chars(at + 1, end, last);
      if (tail.ec != std::errc() || last < first) return std::nullopt;
      at = tail.ptr;
    }
    count += last - first + 1;
    if (at < end && *at++ != ',') return std::nullopt;
  }
  return count == 0 ? std::nullopt : std::optional(count);
}

SystemFacts system_facts(const std::string& root) {
  SystemFacts f;
  f.kernel = read_word(root + "/proc/sys/kernel/osrelease");
  f.container = container(root);
  const std::string meminfo = read_small_file(root + "/proc/meminfo").value_or("");
  auto bytes = [&](std::string_view key) -> std::optional<uint64_t> {
    auto kib = field_of(meminfo, key);
    if (!kib) return std::nullopt;
    return *kib * kKiB;
  };
  f.swap_total = bytes("SwapTotal:");
  if (auto free = bytes("SwapFree:"); free && f.swap_total)
    f.swap_used = *f.swap_total - std::min(*f.swap_total, *free);
  f.commit_limit = bytes("CommitLimit:");
  f.committed = bytes("Committed_AS:");
  f.overcommit = number(root + "/proc/sys/vm/overcommit_memory");
  f.most_mappings = number(root + "/proc/sys/vm/max_map_count");
  f.io_uring_disabled = number(root + "/proc/sys/kernel/io_uring_disabled");
  f.autogroup = number(root + "/proc/sys/kernel/sched_autogroup_enabled");
  f.address_limit = limit_of(read_small_file(root + "/proc/self/limits").value_or(""), "Max address space");
  f.huge_pages = chosen(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  f.pressure = {some_avg10(root + "/proc/pressure/memory"), some_avg10(root + "/proc/pressure/cpu"),
                some_avg10(root + "/proc/pressure/io")};
  f.governors = governors(root);
  f.online_cpus = cpus_in_list(read_word(root + "/sys/devices/system/cpu/online").value_or(""));
  f.cpu_has_amx = cpu_flag(read_small_file(root + "/proc/cpuinfo").value_or(""), "amx_tile");
  return f;
}

}  // namespace ridge

#include "machine/memory_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "machine/small_file.h"

namespace ridge {
namespace {

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
// cgroup v1 writes "no limit" as the largest multiple of a page below 2^63.
constexpr uint64_t kAbsurd = uint64_t{1} << 60;

std::optional<uint64_t> read_number(const std::string& path) {
  auto text = read_small_file(path);
  return text ? number_at(*text) : std::nullopt;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

bool names(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    size_t comma = std::min(list.find(','), list.size());
    if (list.substr(0, comma) == name) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

// mountinfo writes blanks and backslashes as \040 and the like.
std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto octal = [&](size_t k) { return i + k < text.size() && text[i + k] >= '0' && text[i + k] <= '7'; };
    if (text[i] == '\\' && octal(1) && octal(2) && octal(3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

enum class Version { v1, v2 };

// The names of one version's files.
struct Names {
  std::array<const char*, 2> limits;  // the smaller one counts
  const char* usage;
  const char* peak;
  std::array<const char*, 2> reclaimable;  // keys of memory.stat
};
constexpr Names kNames[] = {
    {{"memory.limit_in_bytes", nullptr},
     "memory.usage_in_bytes",
     "memory.max_usage_in_bytes",
     {"total_inactive_file ", nullptr}},
    {{"memory.max", "memory.high"}, "memory.current", "memory.peak", {"inactive_file ", "slab_reclaimable "}},
};
const Names& names_of(Version version) { return kNames[version == Version::v1 ? 0 : 1]; }

// A memory hierarchy as this process sees it: where it is mounted, and which of its folders is ours.
struct Hierarchy {
  Version version = Version::v2;
  std::string mount;  // "/sys/fs/cgroup"
  std::string own;    // below it, "" or "/user.slice/box"
};

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Our path below a mount that shows the hierarchy from `mount_root` on. A container often sees its own cgroup at the
// mount point, while /proc/self/cgroup gives the host's path: then the mount point is ours.
std::string below(const std::string& root, const std::string& mount, const std::string& mount_root, std::string path) {
  if (mount_root != "/") {
    bool inside = path.compare(0, mount_root.size(), mount_root) == 0 &&
                  (path.size() == mount_root.size() || path[mount_root.size()] == '/');
    path = inside ? path.substr(mount_root.size()) : "";
  }
  if (path.size() < 2 || path[0] != '/' || path.find("/..") != std::string::npos) path.clear();
  return is_folder(root + mount + path) ? path : "";
}

std::vector<Hierarchy> hierarchies(const std::string& root) {
  std::optional<std::string> v1_path, v2_path;
  std::istringstream cgroups(read_small_file(root + "/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(cgroups, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
    if (controllers.empty()) v2_path = path;
    if (names(controllers, "memory")) v1_path = path;
  }

  std::vector<Hierarchy> found;
  std::istringstream mounts(read_small_file(root + "/proc/self/mountinfo").value_or(""));
  for (std::string line; std::getline(mounts, line);) {
    std::vector<std::string> w = words(line);
    auto dash = std::find(w.begin(), w.end(), "-");
    if (w.size() < 6 || w.end() - dash < 4) continue;
    const std::string &type = dash[1], &options = dash[3];
    const std::string mount_root = unescape(w[3]), mount = unescape(w[4]);
    if (type == "cgroup2") {
      found.push_back({Version::v2, mount, below(root, mount, mount_root, v2_path.value_or(""))});
    } else if (type == "cgroup" && names(options, "memory")) {
      found.push_back({Version::v1, mount, below(root, mount, mount_root, v1_path.value_or(""))});
    }
  }
  if (!found.empty()) return found;
  // /proc/self/mountinfo is hidden or shows no cgroups: the places where systems put them.
  for (auto [version, mount] :
       {std::pair{Version::v2, "/sys/fs/cgroup"}, std::pair{Version::v2, "/sys/fs/cgroup/unified"},
        std::pair{Version::v1, "/sys/fs/cgroup/memory"}}) {
    if (!is_folder(root + mount)) continue;
    found.push_back(
        {version, mount, below(root, mount, "/", (version == Version::v1 ? v1_path : v2_path).value_or(""))});
  }
  return found;
}

// What one cgroup still grants, or nothing if it sets no limit.
struct Grant {
  uint64_t available = 0;
  std::string reason;
};

std::optional<Grant> grant_of(const std::string& root, const std::string& folder, Version version) {
  const Names& n = names_of(version);
  const std::string stat = read_small_file(root + folder + "/memory.stat").value_or("");
  uint64_t limit = kUnlimited;
  const char* kind = "limit";
  for (const char* name : n.limits) {
    if (name == nullptr) continue;
    auto value = read_number(root + folder + "/" + name);  // "max" is no number
    if (!value || *value >= limit) continue;
    limit = *value;
    kind = std::string_view(name) == "memory.high" ? "high mark" : "limit";
  }
  // Ancestors that a container cannot see limit it, too; v1 says by how much.
  if (version == Version::v1)
    limit = std::min(limit, field_of(stat, "hierarchical_memory_limit ").value_or(kUnlimited));
  if (limit >= kAbsurd) return std::nullopt;

  // What the kernel gives back before it refuses: file pages not used lately, and caches of its own.
  uint64_t usage = read_number(root + folder + "/" + n.usage).value_or(0), reclaimable = 0;
  for (const char* key : n.reclaimable) {
    if (key != nullptr) reclaimable += field_of(stat, key).value_or(0);
  }
  const uint64_t used = usage - std::min(usage, reclaimable);
  return Grant{limit - std::min(limit, used),
               fmt::format("cgroup {}: {} {}, {} of it in use", folder, format_bytes(limit), kind, format_bytes(used))};
}

// With memory.use_hierarchy 0 (v1, old systems) a cgroup does not count what its children use.
bool counts_children(const std::string& root, const std::string& folder, Version version) {
  return version == Version::v2 || read_number(root + folder + "/memory.use_hierarchy").value_or(1) != 0;
}

void tighten(MemoryLimits& limits, const Grant& grant) {
  if (grant.available >= limits.available) return;
  limits.available = grant.available;
  limits.reason = grant.reason;
}

void walk(const std::string& root, const Hierarchy& h, MemoryLimits& limits) {
  std::string path = h.own;
  for (;;) {
    if (auto grant = grant_of(root, h.mount + path, h.version)) tighten(limits, *grant);
    if (path.empty()) return;
    path.erase(path.rfind('/'));
    if (!counts_children(root, h.mount + path, h.version)) return;
  }
}

uint64_t locked_limit(const std::string& root) {
  constexpr std::string_view kKey = "Max locked memory";
  if (auto text = read_small_file(root + "/proc/self/limits")) {
    size_t at = text->find(kKey);
    if (at != std::string::npos)
      return number_at(std::string_view(*text).substr(at + kKey.size())).value_or(kUnlimited);
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? kUnlimited : limit.rlim_cur;
}

// The whole size of every distinct file mapped; of one that is gone, as far as it is mapped.
uint64_t mapped_files(const std::string& root) {
  struct Mapped {
    std::string path;
    uint64_t bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Mapped> files;  // by device and inode
  std::ifstream maps(root + "/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::vector<std::string> w = words(line);
    if (w.size() < 6 || w[4] == "0" || w[5][0] != '/') continue;
    uint64_t begin = 0, end = 0;
    const char* last = w[0].data() + w[0].size();
    auto dash = std::from_chars(w[0].data(), last, begin, 16);
    if (dash.ptr != last) std::from_chars(dash.ptr + 1, last, end, 16);
    Mapped& file = files[{w[3], w[4]}];
    file.path = line.substr(line.find('/'));  // the rest of the line: a path may hold blanks
    file.bytes += end > begin ? end - begin : 0;
  }
  uint64_t total = 0;
  for (const auto& [key, file] : files) {
    struct stat info {};
    total += ::stat((root + file.path).c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : file.bytes;
  }
  return total;
}

}  // namespace

MemoryLimits memory_limits(const std::string& root) {
  MemoryLimits limits;
  limits.available = kUnlimited;
  const std::string meminfo = read_small_file(root + "/proc/meminfo").value_or("");
  // MemAvailable came with Linux 3.14; MemFree is what can be promised without it.
  for (const char* key : {"MemAvailable:", "MemFree:"}) {
    auto kib = field_of(meminfo, key);
    if (!kib) continue;
    std::string_view name = key;
    name.remove_suffix(1);
    tighten(limits, {*kib * kKiB, fmt::format("{} of the system: {}", name, format_bytes(*kib * kKiB))});
    break;
  }
  for (const Hierarchy& h : hierarchies(root)) walk(root, h, limits);
  if (limits.reason.empty()) {
    limits.available = 0;
    limits.reason = "neither /proc/meminfo nor a memory cgroup can be read: give --memory";
  }
  limits.locked_limit = locked_limit(root);
  return limits;
}

ProcessMemory process_memory(const std::string& root) {
  const std::string status = read_small_file(root + "/proc/self/status").value_or("");
  auto bytes = [&](std::string_view key) { return field_of(status, key).value_or(0) * kKiB; };
  ProcessMemory memory;
  memory.resident = bytes("VmRSS:");
  memory.peak_resident = bytes("VmHWM:");
  memory.anonymous = bytes("RssAnon:");
  memory.page_tables = bytes("VmPTE:");
  memory.mapped_files = mapped_files(root);
  return memory;
}

namespace {

// Of one cgroup: v1 counts failures, v2 what went beyond `high` and `max`.
uint64_t limit_hits(const std::string& folder, Version version) {
  if (version == Version::v1) return read_number(folder + "/memory.failcnt").value_or(0);
  const std::string events = read_small_file(folder + "/memory.events").value_or("");
  return field_of(events, "high ").value_or(0) + field_of(events, "max ").value_or(0);
}

// "full avg10=1.50 avg60=…": per cent, as a share.
double full_stall(const std::string& path) {
  constexpr std::string_view kKey = "full avg10=";
  const std::string text = read_small_file(path).value_or("");
  const size_t at = text.find(kKey);
  double percent = 0;
  if (at != std::string::npos) {
    std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), percent);
  }
  return percent / 100;
}

}  // namespace

MemoryPressure memory_pressure(const std::string& root) {
  MemoryPressure pressure;
  if (auto kib = field_of(read_small_file(root + "/proc/meminfo").value_or(""), "MemAvailable:")) {
    pressure.available = *kib * kKiB;
  }
  pressure.stalled = full_stall(root + "/proc/pressure/memory");
  MemoryLimits limits;
  limits.available = kUnlimited;
  for (const Hierarchy& h : hierarchies(root)) {
    walk(root, h, limits);
    std::string path = h.own;
    pressure.stalled = std::max(pressure.stalled, full_stall(root + h.mount + path + "/memory.pressure"));
    for (;; path.erase(path.rfind('/'))) {
      pressure.limit_hits += limit_hits(root + h.mount + path, h.version);
      if (path.empty()) break;
    }
  }
  if (!limits.reason.empty()) pressure.cgroup_left = limits.available;
  return pressure;
}

CgroupMemory cgroup_memory(const std::string& root) {
  CgroupMemory memory;
  MemoryLimits limits;
  limits.available = kUnlimited;
  for (const Hierarchy& h : hierarchies(root)) {
    walk(root, h, limits);
    // On systems with both versions mounted only one of them has the memory controller.
    auto charged = read_number(root + h.mount + h.own + "/" + names_of(h.version).usage);
    if (charged) memory.charged = std::max(memory.charged.value_or(0), *charged);
  }
  if (limits.reason.empty()) return memory;
  memory.left = limits.available;
  memory.reason = limits.reason;
  return memory;
}

uint64_t cgroup_peak(const std::string& root) {
  uint64_t peak = 0;
  for (const Hierarchy& h : hierarchies(root)) {
    peak = std::max(peak, read_number(root + h.mount + h.own + "/" + names_of(h.version).peak).value_or(0));
  }
  return peak;
}

}  // namespace ridge

#include "machine/cpu.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace ridge {
namespace {

// ---- Small files of /proc and /sys ----------------------------------------------------------------------------------

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The number that a line begins with; nothing if it does not.
std::optional<int64_t> leading_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

// ---- CPU time of the cgroup -----------------------------------------------------------------------------------------

struct CgroupMount {
  bool v2;
  std::string root;   // the cgroup that is mounted, "/" outside containers
  std::string point;  // where
};

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The mounts on which CPU quotas may stand: cgroup2, and the v1 hierarchy that has the cpu controller.
std::vector<CgroupMount> cpu_cgroup_mounts(const std::string& root) {
  std::vector<CgroupMount> mounts;
  // id parent major:minor ROOT POINT options [tags] - TYPE source SUPER-OPTIONS
  for (const std::string& line : split(read_text(root + "/proc/self/mountinfo").value_or(""), '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto before = split(std::string_view(line).substr(0, dash), ' ');
    const auto after = split(std::string_view(line).substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3) continue;
    if (after[0] == "cgroup2") mounts.push_back({true, before[3], before[4]});
    if (after[0] == "cgroup" && contains(split(after[2], ','), "cpu")) mounts.push_back({false, before[3], before[4]});
  }
  return mounts;
}

// The process's group in the v2 hierarchy or in the v1 one of the cpu controller.
std::optional<std::string> cpu_cgroup_path(const std::string& root, bool v2) {
  for (const std::string& line : split(read_text(root + "/proc/self/cgroup").value_or(""), '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    const bool matches = v2 ? controllers.empty() : contains(split(controllers, ','), "cpu");
    if (matches) return line.substr(second + 1);
  }
  return std::nullopt;
}

// quota / period of one group's folder; 0 if it sets no limit.
double quota_of(const std::string& folder, bool v2) {
  std::optional<int64_t> quota, period;
  if (v2) {
    const auto words = split(read_text(folder + "/cpu.max").value_or(""), ' ');  // "max 100000" or "150000 100000"
    if (words.size() == 2) quota = leading_number(words[0]), period = leading_number(words[1]);
  } else {
    quota = leading_number(read_text(folder + "/cpu.cfs_quota_us").value_or(""));  // −1: none
    period = leading_number(read_text(folder + "/cpu.cfs_period_us").value_or(""));
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return 0;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

// The smallest limit from the process's group up to the mount point.
double quota_on_mount(const std::string& root, const CgroupMount& mount) {
  std::string path = cpu_cgroup_path(root, mount.v2).value_or("/");
  // In a container the mount may show a subtree; a path outside of it means that the subtree is the process's own.
  if (mount.root != "/" && path.starts_with(mount.root)) path.erase(0, mount.root.size());
  if (path.find("..") != std::string::npos) path.clear();
  double smallest = 0;
  while (true) {
    while (!path.empty() && path.back() == '/') path.pop_back();
    const double quota = quota_of(root + mount.point + path, mount.v2);
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
    if (path.empty()) return smallest;
    path.erase(std::min(path.rfind('/'), path.size()));
  }
}

// ---- Affinity -------------------------------------------------------------------------------------------------------

std::vector<int> affinity_cpus() {
  std::vector<int> cpus;
  // The kernel refuses a mask smaller than its own, so the size is tried upwards.
  for (int count = 1024; count <= (1 << 20); count *= 2) {
    std::vector<cpu_set_t> sets(static_cast<size_t>(count) / CPU_SETSIZE);
    const size_t bytes = sets.size() * sizeof(cpu_set_t);
    std::memset(sets.data(), 0, bytes);
    if (sched_getaffinity(0, bytes, sets.data()) != 0) continue;
    for (int cpu = 0; cpu < count; ++cpu) {
      const cpu_set_t& set = sets[static_cast<size_t>(cpu) / CPU_SETSIZE];
      if (CPU_ISSET(static_cast<size_t>(cpu) % CPU_SETSIZE, &set)) cpus.push_back(cpu);
    }
    break;
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

// ---- Features and names ---------------------------------------------------------------------------------------------

#if defined(__x86_64__)

struct CpuidLeaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zeros if the CPU has no such leaf.
CpuidLeaf cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  CpuidLeaf r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(uint32_t word, int index) { return ((word >> index) & 1u) != 0; }

// Register state that the operating system saves and restores: what a CPU can do counts only if it is in here.
uint64_t enabled_state() {
  if (!bit(cpuid(1).ecx, 27)) return 0;  // OSXSAVE
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Linux grants the 8 KiB of tile state per thread only on request.
bool request_amx() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool is_amd() {
  const CpuidLeaf vendor = cpuid(0);  // "AuthenticAMD"
  return vendor.ebx == 0x68747541 && vendor.edx == 0x69746e65 && vendor.ecx == 0x444d4163;
}

CpuFeatures detect_features() {
  constexpr uint64_t kAvxState = 0x6, kAvx512State = 0xe6, kTileState = 0x60000;
  const uint64_t state = enabled_state();
  const CpuidLeaf one = cpuid(1), seven = cpuid(7), more = cpuid(7, 1);
  CpuFeatures found;
  const auto add = [&](bool present, CpuFeatures feature) {
    if (present) found = found | feature;
  };

  if ((state & kAvxState) != kAvxState || !bit(one.ecx, 28)) return found;
  const bool avx2 = bit(seven.ebx, 5) && bit(one.ecx, 12) && bit(one.ecx, 29);  // AVX2, FMA, F16C
  if (!avx2) return found;
  add(true, kAvx2Fma);
  add(bit(more.eax, 4), kAvxVnni);

  const bool avx512 = (state & kAvx512State) == kAvx512State && bit(seven.ebx, 16) && bit(seven.ebx, 17) &&
                      bit(seven.ebx, 28) && bit(seven.ebx, 30) && bit(seven.ebx, 31);  // F, DQ, CD, BW, VL
  if (!avx512) return found;
  add(true, kAvx512);
  add(bit(seven.ecx, 11), kAvx512Vnni);
  add(bit(seven.ecx, 1), kAvx512Vbmi);
  add(bit(more.eax, 5), kAvx512Bf16);
  add(bit(seven.edx, 23), kAvx512Fp16);
  add(is_amd(), kAmdPrefetch);

  const bool tiles = (state & kTileState) == kTileState && bit(seven.edx, 24) && request_amx();
  add(tiles && bit(seven.edx, 25), kAmxInt8);
  add(tiles && bit(seven.edx, 22), kAmxBf16);
  return found;
}

std::string detect_model() {
  std::string name;
  for (uint32_t leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    const CpuidLeaf r = cpuid(leaf);
    for (const uint32_t word : {r.eax, r.ebx, r.ecx, r.edx}) {
      for (int byte = 0; byte < 4; ++byte) name.push_back(static_cast<char>((word >> (8 * byte)) & 0xff));
    }
  }
  name.erase(std::min(name.find('\0'), name.size()));
  return name;
}

// CPUID's own list of caches: leaf 4 of Intel, 0x8000001d of AMD, in the same form.
void caches_from_cpuid(CpuInfo& info) {
  for (const uint32_t leaf : {0x4u, 0x8000001du}) {
    for (uint32_t index = 0; index < 8; ++index) {
      const CpuidLeaf r = cpuid(leaf, index);
      const uint32_t kind = r.eax & 31, level = (r.eax >> 5) & 7;
      if (kind == 0) break;
      if (kind == 2) continue;  // instructions
      const uint64_t bytes = ((r.ebx >> 22) + 1ull) * (((r.ebx >> 12) & 1023) + 1ull) * ((r.ebx & 4095) + 1ull) *
                             (r.ecx + 1ull);  // ways × partitions × line × sets
      if (level == 1 && info.l1d_bytes == 0) info.l1d_bytes = bytes;
      if (level == 2 && info.l2_bytes == 0) info.l2_bytes = bytes;
      if (level == 3 && info.l3_bytes == 0) info.l3_bytes = bytes;
    }
  }
}

#else

CpuFeatures detect_features() {
  CpuFeatures found;
#if defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMD) == 0) return found;
  found = found | kNeon;
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) found = found | kNeonDot;
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDHP) != 0) found = found | kNeonFp16;
#if defined(HWCAP2_I8MM)
  if ((getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0) found = found | kNeonI8mm;
  if ((getauxval(AT_HWCAP2) & HWCAP2_BF16) != 0) found = found | kNeonBf16;
#endif
#endif
  return found;
}

// The value of a line "NAME\t: VALUE" of /proc/cpuinfo.
std::string cpuinfo_value(std::string_view name) {
  for (const std::string& line : split(read_text("/proc/cpuinfo").value_or(""), '\n')) {
    const size_t colon = line.find(": ");
    if (line.starts_with(name) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

// Boards name themselves in the device tree; servers have only the numbers of the core's maker and design.
std::string detect_model() {
  std::string name = read_text("/proc/device-tree/model").value_or("");
  name.erase(std::min(name.find('\0'), name.size()));
  const std::string maker = cpuinfo_value("CPU implementer"), part = cpuinfo_value("CPU part");
  if (name.empty() && !part.empty()) name = "CPU of maker " + maker + ", part " + part;
  return name;
}

void caches_from_cpuid(CpuInfo&) {}

#endif

// "48K", "2048K", "32M".
uint64_t parse_cache_size(const std::string& text) {
  const uint64_t number = static_cast<uint64_t>(std::max<int64_t>(leading_number(text).value_or(0), 0));
  if (text.find('K') != std::string::npos) return number << 10;
  if (text.find('M') != std::string::npos) return number << 20;
  return number;
}

void caches_from_sysfs(int cpu, CpuInfo& info) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
    const auto level = leading_number(read_text(folder + "level").value_or(""));
    if (!level) return;
    if (read_text(folder + "type").value_or("").starts_with("Instruction")) continue;
    const uint64_t bytes = parse_cache_size(read_text(folder + "size").value_or(""));
    if (*level == 1) info.l1d_bytes = bytes;
    if (*level == 2) info.l2_bytes = bytes;
    if (*level == 3) info.l3_bytes = bytes;
  }
}

CpuInfo read_cpu_info() {
  const std::vector<int> cpus = affinity_cpus();
  CpuInfo info;
  info.model = detect_model();
  while (!info.model.empty() && info.model.back() == ' ') info.model.pop_back();
  if (info.model.empty()) info.model = "unknown CPU";
  info.features = detect_features();
  info.feature_names = feature_names(info.features);
  info.logical_cpus = static_cast<int>(cpus.size());
  caches_from_sysfs(cpus.front(), info);
  caches_from_cpuid(info);  // fills what sysfs did not say
  return info;
}

}  // namespace

std::vector<std::string> feature_names(CpuFeatures features) {
  static constexpr std::array<const char*, 15> kNames = {
      "avx2+fma", "avx-vnni", "avx512",    "avx512-vnni", "avx512-vbmi", "avx512-bf16", "amx-int8",    "amx-bf16",
      "neon",     "neon-dot", "neon-i8mm", "avx512-fp16", "neon-fp16",   "neon-bf16",   "amd-prefetch"};
  std::vector<std::string> names;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (((features.bits >> i) & 1u) != 0) names.emplace_back(kNames[i]);
  }
  return names;
}

const CpuInfo& cpu_info() {
  static const CpuInfo info = read_cpu_info();
  return info;
}

std::vector<int> usable_cpus() {
  std::vector<int> cpus = affinity_cpus();
  const double quota = cgroup_cpu_quota();
  if (quota > 0) cpus.resize(std::min(cpus.size(), static_cast<size_t>(std::ceil(quota))));
  return cpus;
}

double cgroup_cpu_quota(const std::string& root) {
  double smallest = 0;
  for (const CgroupMount& mount : cpu_cgroup_mounts(root)) {
    const double quota = quota_on_mount(root, mount);
    if (quota > 0 && (smallest == 0 || quota < smallest)) smallest = quota;
  }
  return smallest;
}

}  // namespace ridge

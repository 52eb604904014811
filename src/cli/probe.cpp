// ridge probe: the read roof of memory and of storage, measured and kept for later runs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "analyze/engine_reads.h"
#include "analyze/kernel_bench.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/common.h"
#include "machine/cpu.h"
#include "machine/opencl_probe.h"
#include "machine/probe.h"
#include "machine/probe_stats.h"

namespace ridge::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  ridge probe --quick\n"
    "  ridge probe --file model.gguf -o machine.toml\n"
    "  ridge probe --storage --file /media/usb/model.gguf\n"
    "  ridge probe --json --threads 4\n"
    "  ridge probe --opencl -o gpu.toml\n\n"
    "The result is kept in the cache folder; `ridge run` compares itself with it.";

struct Flags {
  ProbeOptions options;
  std::optional<std::string> out;
  std::optional<int64_t> threads;
  bool json = false, no_storage = false, storage = false, opencl = false;
  std::optional<int64_t> device;      // of OpenCL
  std::optional<std::string> folder;  // of the temporary file
};

nlohmann::ordered_json figure_json(const Measured& m) {
  return {{"median", m.value}, {"low", m.low}, {"high", m.high}, {"runs", m.runs}, {"settled", settled(m)}};
}

nlohmann::ordered_json to_json(const MachineProfile& p) {
  nlohmann::ordered_json j = {
      {"name", p.name}, {"measured_at", p.measured_at}, {"contended", p.contended}, {"contention", p.contention}};
  j["reads"] = nlohmann::ordered_json::array();
  for (const ReadPoint& r : p.reads) {
    j["reads"].push_back({{"footprint_bytes", r.footprint_bytes},
                          {"threads", r.threads},
                          {"huge_pages", r.huge_pages},
                          {"gb_per_s", figure_json(r.gb_per_s)}});
  }
  j["storage_path"] = p.storage_path;
  j["storage"] = nlohmann::ordered_json::array();
  for (const StoragePoint& s : p.storage) {
    j["storage"].push_back({{"request_bytes", s.request_bytes},
                            {"depth", s.depth},
                            {"direct", s.direct},
                            {"gb_per_s", figure_json(s.gb_per_s)}});
  }
  auto list = [&](const char* name, const auto& points, auto row) {
    j[name] = nlohmann::ordered_json::array();
    for (const auto& point : points) j[name].push_back(row(point));
  };
  using Row = nlohmann::ordered_json;
  list("streams", p.streams, [](const StreamPoint& s) {
    return Row{{"kind", name_of(s.kind)},
               {"footprint_bytes", s.footprint_bytes},
               {"threads", s.threads},
               {"gb_per_s", figure_json(s.gb_per_s)}};
  });
  list("latencies", p.latencies, [](const LatencyPoint& l) {
    return Row{{"footprint_bytes", l.footprint_bytes}, {"ns", figure_json(l.ns)}};
  });
  list("levels", p.levels, [](const MemoryLevel& l) {
    return Row{
        {"from_bytes", l.from_bytes}, {"to_bytes", l.to_bytes}, {"gb_per_s", l.gb_per_s}, {"threads", l.threads}};
  });
  list("peaks", p.peaks, [](const PeakPoint& peak) {
    return Row{{"type", peak.type}, {"isa", peak.isa}, {"threads", peak.threads}, {"gops", figure_json(peak.gops)}};
  });
  list("formats", p.formats, [](const FormatPoint& f) {
    return Row{{"type", f.type}, {"gb_per_s", figure_json(f.gb_per_s)}};
  });
  j["clock_ghz"] = {{"before", p.clock_ghz_before}, {"after", p.clock_ghz_after}};
  return j;
}

// "16.2  (15.9–16.3)", and a mark where another probe may find something else.
std::string figure(const Measured& m, int digits = 1) {
  return fmt::format("{:>6.{}f}  ({:.{}f}–{:.{}f}){}", m.value, digits, m.low, digits, m.high, digits,
                     settled(m) ? "" : "  unsettled");
}

// Levels, copies, latencies, peaks and formats.
std::string more_tables(const MachineProfile& p) {
  std::string text;
  if (!p.levels.empty()) text += "\nlevels found, all threads     GB/s\n";
  for (const MemoryLevel& l : p.levels) {
    text +=
        fmt::format("  {:>9} to {:>9}   {:>8.1f}\n", format_bytes(l.from_bytes), format_bytes(l.to_bytes), l.gb_per_s);
  }
  if (!p.streams.empty()) text += "\nbeside reading            GB/s  (quartiles)\n";
  for (const StreamPoint& s : p.streams) {
    text += fmt::format("  {:>9}  {} thread{} {:<15}{}\n", format_bytes(s.footprint_bytes), s.threads,
                        s.threads == 1 ? " " : "s", name_of(s.kind), figure(s.gb_per_s));
  }
  if (!p.latencies.empty()) text += "\nlatency of a load           ns  (quartiles)\n";
  for (const LatencyPoint& l : p.latencies) {
    text += fmt::format("  {:>9}             {}\n", format_bytes(l.footprint_bytes), figure(l.ns));
  }
  if (!p.peaks.empty()) {
    text += "\ncomputing                   Gop/s  (quartiles)";
    if (p.clock_ghz_before > 0) {
      text += fmt::format("; clock {:.2f} GHz before, {:.2f} after", p.clock_ghz_before, p.clock_ghz_after);
    }
    text += "\n";
  }
  for (const PeakPoint& peak : p.peaks) {
    text += fmt::format("  {:<4} {:<11}  {} thread{} {}\n", peak.type, peak.isa, peak.threads,
                        peak.threads == 1 ? " " : "s", figure(peak.gops, 0));
  }
  if (!p.formats.empty()) text += "\nunpack and multiply, one core, from its cache: GB/s of panels\n";
  for (const FormatPoint& f : p.formats) text += fmt::format("  {:<9}  {}\n", f.type, figure(f.gb_per_s));
  return text;
}

std::string table(const MachineProfile& p) {
  std::string text = fmt::format("{}\n\nmemory, read only         GB/s  (quartiles)\n", p.name);
  for (const ReadPoint& r : p.reads) {
    text += fmt::format("  {:>9}  {} thread{} {:<5}  {}\n", format_bytes(r.footprint_bytes), r.threads,
                        r.threads == 1 ? " " : "s", r.huge_pages ? "huge" : "4 KiB", figure(r.gb_per_s));
  }
  text += more_tables(p);
  if (!p.storage.empty()) text += fmt::format("\nstorage, {}\n", p.storage_path);
  for (const StoragePoint& s : p.storage) {
    text += fmt::format("  {:>9}  depth {:<3} {:<9} {:>5.2f}  ({:.2f}–{:.2f})\n", format_bytes(s.request_bytes),
                        s.depth, s.direct ? "direct" : "buffered", s.gb_per_s.value, s.gb_per_s.low, s.gb_per_s.high);
  }
  if (p.contended) text += fmt::format("\nNot to be trusted: {}.\n", p.contention);
  return text;
}

Result<MachineProfile> whole(const Flags& flags) {
  MachineProfile profile = RIDGE_TRY(probe_machine(flags.options));
  profile.formats = RIDGE_TRY(measure_formats(flags.options.quick));
  return profile;
}

// The profile that is kept at `path` with other figures of storage.
Result<MachineProfile> storage_anew(const Flags& flags, const std::string& path) {
  MachineProfile profile = RIDGE_TRY(load_profile(path));
  ProbeOptions options = flags.options;
  options.memory = false;
  MachineProfile measured = RIDGE_TRY(probe_machine(options));
  profile.storage = std::move(measured.storage);
  profile.storage_path = std::move(measured.storage_path);
  return profile;
}

// A device of its own: its profile never replaces that of the host.
Result<void> run_opencl(const Flags& flags) {
  const bool of_storage = flags.storage || flags.no_storage || !flags.options.storage_file.empty() || flags.folder;
  if (of_storage || flags.threads) {
    return usage_error(
        "--opencl measures a device's memory and units: leave --storage, --no-storage, --file, --folder and --threads "
        "out");
  }
  if (flags.device.value_or(0) < 0) {
    return usage_error(fmt::format("--device {}: devices are counted from 0", *flags.device));
  }
  if (!flags.out) return usage_error("--opencl writes the profile of another machine: name its file with -o");
  RIDGE_TRY(check_output(*flags.out, "-o"));
  const std::vector<std::string> devices = RIDGE_TRY(opencl_devices());
  if (!flags.device && devices.size() > 1) {
    for (size_t i = 0; i < devices.size(); ++i) note(fmt::format("--device {}: {}", i, devices[i]));
  }
  const MachineProfile profile =
      RIDGE_TRY(probe_opencl({.device = static_cast<size_t>(flags.device.value_or(0)), .quick = flags.options.quick}));
  RIDGE_TRY(save_profile(profile, *flags.out));
  RIDGE_TRY(print(flags.json ? to_json(profile).dump(2) + "\n" : table(profile)));
  note(fmt::format("kept in {}", *flags.out));
  return {};
}

Result<void> run(Flags& flags) {
  if (flags.device && !flags.opencl) return usage_error("--device picks one of --opencl: give that too");
  if (flags.opencl) return run_opencl(flags);
  const int64_t cpus = static_cast<int64_t>(usable_cpus().size());
  if (flags.threads && (*flags.threads < 1 || *flags.threads > cpus)) {
    return usage_error(fmt::format("--threads {} is no usable number: this process may use {}, give 1 to {}",
                                   *flags.threads, counted(static_cast<uint64_t>(cpus), "CPU"), cpus));
  }
  flags.options.threads = static_cast<int>(flags.threads.value_or(0));
  if (flags.storage && flags.no_storage) return usage_error("--storage and --no-storage exclude one another");
  flags.options.storage = !flags.no_storage;
  if (flags.folder) flags.options.storage_folder = *flags.folder;
  flags.options.engine_reads = [&](const std::string& path) {
    return measure_engine_reads(path, {.quick = flags.options.quick});
  };
  flags.options.engine_reads_bytes = engine_reads_file_bytes();
  if (!flags.options.storage_file.empty())
    flags.options.storage_file = RIDGE_TRY(resolve_model(flags.options.storage_file));
  const std::string path = flags.out.value_or(default_profile_path());
  if (flags.out) {
    RIDGE_TRY(check_output(*flags.out, "-o"));
    if (!flags.options.storage_file.empty()) RIDGE_TRY(refuse_overwriting(*flags.out, flags.options.storage_file));
  }
  const MachineProfile profile = RIDGE_TRY(flags.storage ? storage_anew(flags, path) : whole(flags));
  RIDGE_TRY(save_profile(profile, path));
  RIDGE_TRY(print(flags.json ? to_json(profile).dump(2) + "\n" : table(profile)));
  note(fmt::format("kept in {}", path));
  return {};
}

}  // namespace

void add_probe(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("probe", "measure what memory, storage and cores can do");
  command->add_flag("--quick", flags->options.quick, "about 10 seconds instead of a minute");
  command->add_option("--file", flags->options.storage_file, "file to read (default: a temporary one)")
      ->type_name("FILE");
  command->add_option("--folder", flags->folder, "where the temporary file goes")->type_name("DIR");
  command->add_option("-t,--threads", flags->threads, "most threads to try")->type_name("N");
  command->add_flag("--no-storage", flags->no_storage, "memory and computing alone");
  command->add_flag("--storage", flags->storage, "storage alone; the rest of the kept profile stays");
  command->add_option("-o,--output", flags->out, "write the profile here, not to the cache")->type_name("FILE");
  command->add_flag("--opencl", flags->opencl, "an OpenCL device instead of this host, into -o");
  command->add_option("--device", flags->device, "which of them (default: the first, GPUs first)")->type_name("N");
  command->add_flag("--json", flags->json, "print JSON");
  command->footer(kExamples);
  on_run(*command, [flags] { return run(*flags); });
}

}  // namespace ridge::cli

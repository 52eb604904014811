#include "machine/opencl_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/units.h"
#include "base/utc_now.h"
#include "machine/opencl_api.h"
#include "machine/probe_rate.h"
#include "machine/probe_stats.h"

namespace ridge {

#if RIDGE_HAVE_OPENCL

namespace {

// Work items read 16 bytes at a time: neighbours side by side on a GPU (first = 1, step = all items), each its own
// stretch on a CPU (first = its length, step = 1). What they find goes into a sum that is stored, so that the loads
// stay. The multiply-adds are eight independent chains of vectors, whose factors the compiler cannot know.
constexpr const char* kSource = R"(
__kernel void read(__global const uint4* in, __global uint4* out, ulong count, ulong first, ulong step, ulong passes) {
  uint4 a = 0, b = 0, c = 0, d = 0;
  for (ulong p = 0; p < passes; ++p) {
    __global const uint4* at = in + get_global_id(0) * first;
    for (ulong i = 0; i + 4 <= count; i += 4, at += 4 * step) {
      a += at[0]; b += at[step]; c += at[2 * step]; d += at[3 * step] ^ (uint4)(uint)p;
    }
  }
  out[get_global_id(0)] = (a + b) + (c + d);
}
__kernel void copy(__global const uint4* in, __global uint4* out, ulong count, ulong first, ulong step, ulong passes) {
  for (ulong p = 0; p < passes; ++p)
    for (ulong i = 0, at = get_global_id(0) * first; i < count; ++i, at += step) out[at] = in[at] + (uint4)(uint)p;
}
#define CHAINS(name, real, vector, half_vector, quarter)                                    \
  __kernel void name(__global float* out, float a, float b, ulong rounds) {                 \
    const vector x = (vector)(real)a, y = (vector)(real)b;                                  \
    vector s0 = (vector)(real)get_global_id(0), s1 = s0 + x, s2 = s1 + x, s3 = s2 + x,      \
           s4 = s3 + x, s5 = s4 + x, s6 = s5 + x, s7 = s6 + x;                              \
    for (ulong r = 0; r < rounds; ++r) {                                                    \
      s0 = fma(s0, x, y); s1 = fma(s1, x, y); s2 = fma(s2, x, y); s3 = fma(s3, x, y);       \
      s4 = fma(s4, x, y); s5 = fma(s5, x, y); s6 = fma(s6, x, y); s7 = fma(s7, x, y);       \
    }                                                                                       \
    const vector all = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7));                   \
    const half_vector eight = all.lo + all.hi;                                              \
    const quarter four = eight.lo + eight.hi;                                               \
    out[get_global_id(0)] = (float)(four.s0 + four.s1 + four.s2 + four.s3);                 \
  }
CHAINS(chains_f32, float, float16, float8, float4)
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
CHAINS(chains_f16, half, half16, half8, half4)
#endif
)";
constexpr double kChainOps = 8 * 16 * 2;  // of a round of one work item

struct Device {
  cl_device_id id = nullptr;
  std::string name;
  bool gpu = false;
};

template <class Value>
Value device_value(const OpenClApi& api, cl_device_id id, cl_device_info what) {
  Value value{};
  (void)api.get_device_info(id, what, sizeof value, &value, nullptr);
  return value;
}

// `get` is clGetPlatformInfo or clGetDeviceInfo.
template <class Get, class Id>
std::string text_of(Get get, Id id, cl_uint what) {
  size_t size = 0;
  if (get(id, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (get(id, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(text.find('\0'));
  return text;
}

Result<std::vector<Device>> devices(const OpenClApi& api) {
  cl_uint count = 0;
  if (api.get_platform_ids(0, nullptr, &count) != CL_SUCCESS) count = 0;  // the loader's way to say that it knows none
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) RIDGE_TRY(opencl_check(api.get_platform_ids(count, platforms.data(), nullptr), "listing platforms"));
  std::vector<Device> all;
  for (cl_platform_id platform : platforms) {
    cl_uint many = 0;
    if (api.get_device_ids(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &many) != CL_SUCCESS || many == 0) continue;
    std::vector<cl_device_id> ids(many);
    RIDGE_TRY(
        opencl_check(api.get_device_ids(platform, CL_DEVICE_TYPE_ALL, many, ids.data(), nullptr), "listing devices"));
    for (cl_device_id id : ids) {
      all.push_back({.id = id,
                     .name = fmt::format("{}: {}", text_of(api.get_platform_info, platform, CL_PLATFORM_NAME),
                                         text_of(api.get_device_info, id, CL_DEVICE_NAME)),
                     .gpu = (device_value<cl_device_type>(api, id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0});
    }
  }
  if (all.empty())
    return io_error("OpenCL: no driver offers a device: install one (pocl-opencl-icd makes the CPU one)");
  std::stable_partition(all.begin(), all.end(), [](const Device& d) { return d.gpu; });
  return all;
}

// A device that is ready to run the kernels.
class Bench {
 public:
  static Result<Bench> create(const OpenClApi& api, const Device& device) {
    cl_int code = CL_SUCCESS;
    Bench b(api);
    b.context_.reset(api.create_context(nullptr, 1, &device.id, nullptr, nullptr, &code));
    RIDGE_TRY(opencl_check(code, "making a context"));
    b.queue_.reset(api.create_queue(b.context_.get(), device.id, CL_QUEUE_PROFILING_ENABLE, &code));
    RIDGE_TRY(opencl_check(code, "making a queue with times"));
    const char* source = kSource;
    b.program_.reset(api.create_program(b.context_.get(), 1, &source, nullptr, &code));
    RIDGE_TRY(opencl_check(code, "making a program"));
    RIDGE_TRY(opencl_check(api.build_program(b.program_.get(), 1, &device.id, "", nullptr, nullptr),
                           "compiling the kernels"));
    // Enough for every unit of a GPU to have its next work item at hand.
    b.side_by_side_ = device.gpu;
    b.items_ = (device.gpu ? 1024 : 16) *
               std::max<size_t>(1, device_value<cl_uint>(api, device.id, CL_DEVICE_MAX_COMPUTE_UNITS));
    return b;
  }

  size_t items() const { return items_; }
  // So that each item of a copy has something to do.
  uint64_t least_bytes() const { return round_up(kMiB, 2 * 4 * sizeof(cl_uint4) * items_); }
  bool side_by_side() const { return side_by_side_; }  // items read neighbours, not stretches

  Result<Owned<cl_mem>> buffer(uint64_t bytes) const {
    cl_int code = CL_SUCCESS;
    Owned<cl_mem> memory(api_->create_buffer(context_.get(), CL_MEM_READ_WRITE, bytes, nullptr, &code),
                         api_->release_buffer);
    RIDGE_TRY(opencl_check(code, fmt::format("a buffer of {}", format_bytes(bytes))));
    const cl_uint one = 1;
    RIDGE_TRY(opencl_check(
        api_->fill_buffer(queue_.get(), memory.get(), &one, sizeof one, 0, bytes, 0, nullptr, nullptr), "filling"));
    RIDGE_TRY(opencl_check(api_->finish(queue_.get()), "filling"));
    return memory;
  }

  Result<Owned<cl_kernel>> kernel(const char* name) const {
    cl_int code = CL_SUCCESS;
    Owned<cl_kernel> kernel(api_->create_kernel(program_.get(), name, &code), api_->release_kernel);
    RIDGE_TRY(opencl_check(code, fmt::format("the kernel {}", name)));
    return kernel;
  }

  // Seconds by the device's clock.
  template <class... Args>
  Result<double> run(const Owned<cl_kernel>& kernel, const Args&... args) const {
    cl_uint index = 0;
    cl_int code = CL_SUCCESS;
    auto set = [&](const auto& arg) {
      if (code == CL_SUCCESS) code = api_->set_kernel_arg(kernel.get(), index++, sizeof arg, &arg);
    };
    (set(args), ...);
    RIDGE_TRY(opencl_check(code, "passing arguments"));
    cl_event raw = nullptr;
    RIDGE_TRY(opencl_check(api_->enqueue(queue_.get(), kernel.get(), 1, nullptr, &items_, nullptr, 0, nullptr, &raw),
                           "starting a kernel"));
    const Owned<cl_event> event(raw, api_->release_event);
    RIDGE_TRY(opencl_check(api_->wait(1, &raw), "running a kernel"));
    cl_ulong start = 0, end = 0;
    RIDGE_TRY(opencl_check(api_->get_profiling_info(raw, CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr),
                           "reading times"));
    RIDGE_TRY(opencl_check(api_->get_profiling_info(raw, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr),
                           "reading times"));
    return std::max(static_cast<double>(end - start) * 1e-9, 1e-9);
  }

 private:
  explicit Bench(const OpenClApi& api)
      : api_(&api),
        context_(nullptr, api.release_context),
        queue_(nullptr, api.release_queue),
        program_(nullptr, api.release_program) {}

  const OpenClApi* api_;
  Owned<cl_context> context_;
  Owned<cl_command_queue> queue_;
  Owned<cl_program> program_;
  size_t items_ = 0;
  bool side_by_side_ = true;
};

enum class Job : uint8_t { read, copy, f32, f16 };
struct Figure {
  Job job;
  uint64_t footprint = 0;
};

// What the figures run on: an array of the largest footprint, and one to store to.
struct Gear {
  Owned<cl_kernel> kernel;
  Owned<cl_mem> in, out;
};

// Kernels of one figure, once for each sitting.
Result<void> sample(const Bench& bench, const Gear& gear, const Figure& f, size_t index, Rounds& rounds) {
  Result<void> failed;
  auto timed = [&](Result<double> seconds) {
    if (seconds.ok()) return Timed{.seconds = seconds.value()};
    failed = seconds.error();
    return Timed{.seconds = 1e9};  // ends the search for a number of passes
  };
  const cl_mem in = gear.in.get(), out = gear.out.get();
  if (f.job == Job::f32 || f.job == Job::f16) {
    constexpr cl_ulong kRounds = 64;
    const cl_float a = 0.5f, b = 0.25f;
    rounds.sample(index, kChainOps * kRounds * static_cast<double>(bench.items()) * 1e-9, [&](uint64_t passes) {
      return timed(bench.run(gear.kernel, out, a, b, cl_ulong{kRounds * passes}));
    });
    return failed;
  }
  const double streams = f.job == Job::copy ? 2 : 1;
  // Of each item; of a copy half of the footprint is read and half written.
  const cl_ulong items = bench.items(), unroll = 4;
  const cl_ulong count = f.footprint / (f.job == Job::copy ? 2 : 1) / sizeof(cl_uint4) / items / unroll * unroll;
  const cl_ulong first = bench.side_by_side() ? 1 : count, step = bench.side_by_side() ? items : 1;
  rounds.sample(index, streams * static_cast<double>(count * items * sizeof(cl_uint4)) * 1e-9, [&](uint64_t passes) {
    return timed(bench.run(gear.kernel, in, out, count, first, step, cl_ulong{passes}));
  });
  return failed;
}

// From `least` on by factors of four (sixteen).
std::vector<Figure> figures_of(uint64_t least, uint64_t most, bool quick, bool halves) {
  std::vector<Figure> figures = {{Job::f32, 0}};
  if (halves) figures.push_back({Job::f16, 0});
  for (uint64_t bytes = std::min(least, most);; bytes = std::min(most, bytes * (quick ? 16 : 4))) {
    figures.push_back({Job::read, bytes});
    figures.push_back({Job::copy, bytes});
    if (bytes == most) return figures;
  }
}

void keep(const Figure& f, const Measured& m, MachineProfile& profile) {
  switch (f.job) {
    case Job::read:
      profile.reads.push_back({f.footprint, 1, false, m});
      return;
    case Job::copy:
      profile.streams.push_back({StreamKind::copy, f.footprint, 1, m});
      return;
    case Job::f32:
    case Job::f16:
      profile.peaks.push_back({f.job == Job::f32 ? "f32" : "f16", "opencl", 1, m});
  }
}

Result<void> measure(const Bench& bench, const std::vector<Figure>& figures, uint64_t most, bool quick,
                     MachineProfile& profile) {
  constexpr const char* kKernels[] = {"read", "copy", "chains_f32", "chains_f16"};
  RoundsPlan plan = quick ? quick_rounds() : full_rounds();
  plan.run_time = std::chrono::milliseconds(quick ? 5 : 20);  // starting a kernel takes up to 0.1 ms
  Rounds rounds(figures.size(), plan);
  const uint64_t stored = std::max<uint64_t>(most / 2, bench.items() * sizeof(cl_uint4));
  while (rounds.next()) {
    Gear gear{{nullptr, nullptr}, RIDGE_TRY(bench.buffer(most)), RIDGE_TRY(bench.buffer(stored))};
    for (size_t i = 0; i < figures.size(); ++i) {
      if (!rounds.wanted(i)) continue;
      gear.kernel = RIDGE_TRY(bench.kernel(kKernels[static_cast<size_t>(figures[i].job)]));
      RIDGE_TRY(sample(bench, gear, figures[i], i, rounds));
    }
  }
  size_t unsettled = 0;
  for (size_t i = 0; i < figures.size(); ++i) {
    keep(figures[i], rounds.result(i), profile);
    unsettled += settled(rounds.result(i)) ? 0 : 1;
  }
  if (unsettled * 10 > figures.size()) {
    profile.contention = fmt::format("{} of {} figures did not settle", unsettled, figures.size());
    profile.contended = true;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> opencl_devices() {
  const OpenClApi& api = RIDGE_TRY(OpenClApi::get()).get();
  std::vector<std::string> names;
  for (const Device& d : RIDGE_TRY(devices(api))) names.push_back(d.name);
  return names;
}

Result<MachineProfile> probe_opencl(const OpenClOptions& options) {
  const OpenClApi& api = RIDGE_TRY(OpenClApi::get()).get();
  const std::vector<Device> all = RIDGE_TRY(devices(api));
  if (options.device >= all.size()) {
    return usage_error(fmt::format("--device {}: there {} {}; give 0 to {}", options.device,
                                   all.size() == 1 ? "is" : "are", counted(all.size(), "OpenCL device"),
                                   all.size() - 1));
  }
  const Device& device = all[options.device];
  const uint64_t memory = device_value<cl_ulong>(api, device.id, CL_DEVICE_GLOBAL_MEM_SIZE);
  const uint64_t at_once = device_value<cl_ulong>(api, device.id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  // A quarter of the memory, as on the host; whole MiB, so that every footprint is whole vectors.
  uint64_t most = std::min({kGiB, memory / 4, at_once});
  if (options.most_bytes != 0) most = std::min(most, options.most_bytes);
  const Bench bench = RIDGE_TRY(Bench::create(api, device));
  most = most / kMiB * kMiB;
  if (most < bench.least_bytes()) {
    return does_not_fit(
        fmt::format("{}: grants no buffer of {} to measure with", device.name, format_bytes(bench.least_bytes())));
  }
  const bool halves =
      text_of(api.get_device_info, device.id, CL_DEVICE_EXTENSIONS).find("cl_khr_fp16") != std::string::npos;
  MachineProfile profile;
  profile.name = device.name;
  profile.measured_at = utc_now();
  RIDGE_TRY(measure(bench, figures_of(bench.least_bytes(), most, options.quick, halves), most, options.quick, profile));
  profile.figures.push_back(
      {"memory_bytes", static_cast<double>(memory), FigureStatus::measured, "CL_DEVICE_GLOBAL_MEM_SIZE of its driver"});
  return profile;
}

#else

namespace {

Error no_opencl() {
  return io_error("this ridge was built without OpenCL: install its headers (opencl-c-headers) and build it again");
}

}  // namespace

Result<std::vector<std::string>> opencl_devices() { return no_opencl(); }

Result<MachineProfile> probe_opencl(const OpenClOptions&) { return no_opencl(); }

#endif

}  // namespace ridge

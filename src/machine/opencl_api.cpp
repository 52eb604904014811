#include "machine/opencl_api.h"

#if RIDGE_HAVE_OPENCL

#include <dlfcn.h>
#include <fmt/format.h>

#include <optional>

namespace ridge {
namespace {

// Why it cannot be used, or nothing.
std::optional<Error> load(OpenClApi& api) {
  constexpr const char* kLibrary = "libOpenCL.so.1";
  void* library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return io_error(
        fmt::format("{}: cannot be opened ({}): install an OpenCL loader and a driver", kLibrary, ::dlerror()));
  }
  const char* missing = nullptr;
  auto find = [&](auto& function, const char* name) {
    void* symbol = ::dlsym(library, name);
    if (symbol == nullptr && missing == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(api.get_platform_ids, "clGetPlatformIDs");
  find(api.get_platform_info, "clGetPlatformInfo");
  find(api.get_device_ids, "clGetDeviceIDs");
  find(api.get_device_info, "clGetDeviceInfo");
  find(api.create_context, "clCreateContext");
  find(api.release_context, "clReleaseContext");
  find(api.create_queue, "clCreateCommandQueue");
  find(api.release_queue, "clReleaseCommandQueue");
  find(api.create_program, "clCreateProgramWithSource");
  find(api.release_program, "clReleaseProgram");
  find(api.build_program, "clBuildProgram");
  find(api.create_kernel, "clCreateKernel");
  find(api.release_kernel, "clReleaseKernel");
  find(api.set_kernel_arg, "clSetKernelArg");
  find(api.create_buffer, "clCreateBuffer");
  find(api.release_buffer, "clReleaseMemObject");
  find(api.fill_buffer, "clEnqueueFillBuffer");
  find(api.enqueue, "clEnqueueNDRangeKernel");
  find(api.finish, "clFinish");
  find(api.wait, "clWaitForEvents");
  find(api.get_profiling_info, "clGetEventProfilingInfo");
  find(api.release_event, "clReleaseEvent");
  if (missing == nullptr) return std::nullopt;
  return io_error(fmt::format("{}: has no function {}: OpenCL 1.2 or newer is needed", kLibrary, missing));
}

}  // namespace

Result<std::reference_wrapper<const OpenClApi>> OpenClApi::get() {
  static OpenClApi api;
  static const std::optional<Error> why = load(api);
  if (why) return *why;
  return std::cref(api);
}

Result<void> opencl_check(cl_int code, std::string_view what) {
  if (code == CL_SUCCESS) return {};
  return io_error(fmt::format("OpenCL: {} fails (error {}): the driver refuses; look at what clinfo says", what, code));
}

}  // namespace ridge

#endif

// The functions of an OpenCL library that was opened at run time, and owners for its objects.
//
//   const OpenClApi& api = RIDGE_TRY(OpenClApi::get()).get();
//   api.get_platform_ids(0, nullptr, &count);
#pragma once

#if RIDGE_HAVE_OPENCL

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>

#include "base/result.h"

namespace ridge {

struct OpenClApi {
  decltype(&clGetPlatformIDs) get_platform_ids = nullptr;
  decltype(&clGetPlatformInfo) get_platform_info = nullptr;
  decltype(&clGetDeviceIDs) get_device_ids = nullptr;
  decltype(&clGetDeviceInfo) get_device_info = nullptr;
  decltype(&clCreateContext) create_context = nullptr;
  decltype(&clReleaseContext) release_context = nullptr;
  decltype(&clCreateCommandQueue) create_queue = nullptr;
  decltype(&clReleaseCommandQueue) release_queue = nullptr;
  decltype(&clCreateProgramWithSource) create_program = nullptr;
  decltype(&clReleaseProgram) release_program = nullptr;
  decltype(&clBuildProgram) build_program = nullptr;
  decltype(&clCreateKernel) create_kernel = nullptr;
  decltype(&clReleaseKernel) release_kernel = nullptr;
  decltype(&clSetKernelArg) set_kernel_arg = nullptr;
  decltype(&clCreateBuffer) create_buffer = nullptr;
  decltype(&clReleaseMemObject) release_buffer = nullptr;
  decltype(&clEnqueueFillBuffer) fill_buffer = nullptr;
  decltype(&clEnqueueNDRangeKernel) enqueue = nullptr;
  decltype(&clFinish) finish = nullptr;
  decltype(&clWaitForEvents) wait = nullptr;
  decltype(&clGetEventProfilingInfo) get_profiling_info = nullptr;
  decltype(&clReleaseEvent) release_event = nullptr;

  // Opened once and never closed: drivers have threads of their own. I/O error that says what is missing.
  static Result<std::reference_wrapper<const OpenClApi>> get();
};

// A cl_… object that is released with its owner.
template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, cl_int (*)(Handle)>;

// I/O error "OpenCL: WHAT fails (CODE)".
Result<void> opencl_check(cl_int code, std::string_view what);

}  // namespace ridge

#endif

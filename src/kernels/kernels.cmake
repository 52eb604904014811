# One folder per ISA, compiled with its own flags: the only files that may use its instructions.
file(GLOB kernel_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/*.cpp ${CMAKE_SOURCE_DIR}/src/kernels/scalar/*.cpp)
add_library(ridge_kernels STATIC ${kernel_sources})
target_link_libraries(ridge_kernels PUBLIC ridge_options fmt::fmt ridge_tensor ridge_machine)

set(kernel_options -O3)
if(RIDGE_SANITIZE)
  # g++ took 147 s for one of these files with all checks at -O3, and takes 10 s so. Wrong sizes and offsets are found by
  # AddressSanitizer; undefined arithmetic in the scalar kernels, which have the same formulas and keep their checks.
  set(kernel_options -O1)
  # The scalar kernels are what all others are compared with, and most of the time of those tests: they keep their checks
  # inline, and a fused multiply-add is an instruction where this machine has it (the same bytes, without a call for each).
  file(GLOB scalar_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/scalar/*.cpp)
  set(scalar_options -O2)
  if(RIDGE_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND scalar_options --param asan-instrumentation-with-call-threshold=7000)
  endif()
  include(CheckCXXSourceRuns)
  check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"fma\") ? 0 : 1; }" RIDGE_HAS_FMA)
  if(RIDGE_HAS_FMA)
    list(APPEND scalar_options -mfma)
  endif()
  set_source_files_properties(${scalar_sources} PROPERTIES COMPILE_OPTIONS "${scalar_options}")
endif()

function(ridge_isa name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/${name}/*.cpp)
  add_library(ridge_kernels_${name} OBJECT ${sources})
  target_link_libraries(ridge_kernels_${name} PRIVATE ridge_options)
  target_compile_options(ridge_kernels_${name} PRIVATE ${kernel_options} ${ARGN})
  set_target_properties(ridge_kernels_${name} PROPERTIES RIDGE_LIGHT ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # False alarms of g++ 12: the "undefined" operands inside its own AVX-512 intrinsics.
    target_compile_options(ridge_kernels_${name} PRIVATE -Wno-uninitialized)
  endif()
  target_sources(ridge_kernels PRIVATE $<TARGET_OBJECTS:ridge_kernels_${name}>)
  target_compile_definitions(ridge_kernels PRIVATE RIDGE_ISA_${name}=1)
endfunction()

# Adding an ISA: a folder, a line here, and its entries in list.cpp (docs/kernels.md).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  ridge_isa(avx2 -mavx2 -mfma -mf16c)
  ridge_isa(avxvnni -mavx2 -mfma -mf16c -mavxvnni)
  set(avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd -mprefer-vector-width=512)
  ridge_isa(avx512 ${avx512} -mavx512vnni)
  ridge_isa(avx512bf16 ${avx512} -mavx512bf16)
  ridge_isa(amx ${avx512} -mavx512vnni -mavx512bf16 -mamx-tile -mamx-bf16 -mamx-int8)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(flags "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++'s scheduler before register allocation begins the loads of a whole unit at once: half of the instructions of
    # Q3_K's decode were spills. The one after allocation stays.
    set(flags -fno-schedule-insns)
  endif()
  ridge_isa(neon -march=armv8-a ${flags})
  ridge_isa(neondot -march=armv8.2-a+dotprod ${flags})
  ridge_isa(neoni8mm -march=armv8.2-a+dotprod+i8mm ${flags})
endif()

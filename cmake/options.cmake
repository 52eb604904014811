# Compiler options of every target. -ffp-contract=off is part of the arithmetic contract (docs/numerics.md): the compiler
# must not fuse what the code did not.
add_library(ridge_options INTERFACE)
target_compile_options(ridge_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor
                       -Wold-style-cast -Wcast-qual -ffp-contract=off -fno-math-errno)
target_include_directories(ridge_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
if(RIDGE_UNITY_LAYERS)
  # Of files that are compiled as one: a name that hides one of another file, a member whose type is of that file.
  target_compile_options(ridge_options INTERFACE -Wno-shadow)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(ridge_options INTERFACE -Wno-subobject-linkage)
  endif()
endif()
if(RIDGE_WERROR)
  target_compile_options(ridge_options INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False alarms of g++ 12 inside the standard library at -O2 and above.
  target_compile_options(ridge_options INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds
                         -Wno-restrict -Wno-dangling-pointer)
endif()
if(RIDGE_SANITIZE)
  target_compile_options(ridge_options INTERFACE -fsanitize=${RIDGE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(ridge_options INTERFACE -fsanitize=${RIDGE_SANITIZE})
  if(RIDGE_SANITIZE MATCHES undefined)
    # A target with RIDGE_LIGHT set does without the checks for undefined behaviour, which are a third of the compile time:
    # tests, reports and commands, whose work is done by the layers below them.
    target_compile_options(ridge_options INTERFACE $<$<BOOL:$<TARGET_PROPERTY:RIDGE_LIGHT>>:-fno-sanitize=undefined>)
  endif()
  if(RIDGE_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Checks as calls, not inline: the kernels compile in a fifth of the time.
    target_compile_options(ridge_options INTERFACE "SHELL:--param asan-instrumentation-with-call-threshold=0")
  endif()
endif()

# The hot loops ask for -O3 themselves (kernels.cmake); elsewhere it only makes builds slower.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(uring IMPORTED_TARGET liburing)
pkg_check_modules(png REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(sqlite REQUIRED IMPORTED_TARGET sqlite3)
find_path(CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
find_path(TOMLPP_INCLUDE toml++/toml.h REQUIRED)
find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
find_path(OPENCL_INCLUDE CL/cl.h)

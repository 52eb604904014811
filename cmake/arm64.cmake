# Toolchain: builds for 64-bit Arm Linux on another machine, with Debian's cross compiler and the arm64 packages that
# `scripts/setup --arm64` installs. Tests run under qemu-aarch64; RIDGE_ARM64_CPU says which CPU it plays (qemu-aarch64
# -cpu help lists them).
#
#   cmake --preset arm64          # the preset names this file
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(RIDGE_ARM64_CPU max CACHE STRING "The CPU that qemu-aarch64 plays")

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu ${RIDGE_ARM64_CPU})

# Debian keeps both architectures under one root: programs are the host's, libraries carry the architecture in their
# path. pkg-config has no such notion and must be told.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

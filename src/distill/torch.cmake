# ridge-distill, the trainer of `ridge distill`: a program of its own, so that ridge does not load libtorch's 120 MB.
set(RIDGE_HAVE_TORCH OFF)
set(RIDGE_TORCH_REASON "RIDGE_DISTILL is OFF")
if(NOT RIDGE_DISTILL STREQUAL "OFF" AND NOT RIDGE_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  set(RIDGE_TORCH_REASON "needs libtorch: scripts/setup --distill installs it")
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # tests/ links them too
  find_package(Torch QUIET)
  set(RIDGE_HAVE_TORCH ${Torch_FOUND})
elseif(RIDGE_SANITIZE)
  set(RIDGE_TORCH_REASON "libtorch is not built with sanitizers")
endif()
if(RIDGE_DISTILL STREQUAL "ON" AND NOT RIDGE_HAVE_TORCH)
  message(FATAL_ERROR "RIDGE_DISTILL is ON, but the trainer cannot be built: ${RIDGE_TORCH_REASON}")
endif()
set_property(GLOBAL PROPERTY RIDGE_TORCH_REASON "${RIDGE_TORCH_REASON}")
if(NOT RIDGE_HAVE_TORCH)
  message(STATUS "ridge distill is left out: ${RIDGE_TORCH_REASON}")
  return()
endif()

file(GLOB torch_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/distill/torch/*.cpp)
add_library(ridge_distill_torch STATIC ${torch_sources})
target_link_libraries(ridge_distill_torch PUBLIC ridge_distill)
# By hand: the imported target brings flags that are not ours.
target_include_directories(ridge_distill_torch SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
target_link_libraries(ridge_distill_torch PUBLIC ${TORCH_LIBRARIES})
target_precompile_headers(ridge_distill_torch PRIVATE <torch/torch.h>)

set(cli ${CMAKE_SOURCE_DIR}/src/cli)
add_executable(ridge-distill ${cli}/trainer/main.cpp ${cli}/distill.cpp ${cli}/tune.cpp ${cli}/training_flags.cpp
               ${cli}/common.cpp ${cli}/command_line.cpp ${cli}/model_store.cpp)
target_link_libraries(ridge-distill PRIVATE ridge_distill_torch ridge_report)
target_include_directories(ridge-distill SYSTEM PRIVATE ${CLI11_INCLUDE})
target_compile_definitions(ridge-distill PRIVATE RIDGE_VERSION="${PROJECT_VERSION}"
                           RIDGE_BUILD_TYPE="${CMAKE_BUILD_TYPE}")
target_compile_options(ridge-distill PRIVATE -O1)
set_target_properties(ridge-distill PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
# In no package unless asked for: ridge would depend on libtorch.
install(TARGETS ridge-distill RUNTIME DESTINATION libexec/ridge COMPONENT distill EXCLUDE_FROM_ALL)

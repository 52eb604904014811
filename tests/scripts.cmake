# Tests that are programs or scripts of their own: what surrounds the library. Exit code 77 means skipped, with the reason
# as the last line.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(RIDGE_SOURCE ${CMAKE_SOURCE_DIR})
option(RIDGE_CI "Also the tests that take minutes or judge unfinished work: sanitizer builds, the format" OFF)

# ridge_script_test(NAME COMMAND arguments…)
function(ridge_script_test name)
  add_test(NAME ${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
endfunction()

ridge_script_test(project.layers ${Python3_EXECUTABLE} ${RIDGE_SOURCE}/tests/layers_test.py --self-test)
ridge_script_test(project.scripts ${RIDGE_SOURCE}/tests/project/scripts_test.sh)
ridge_script_test(project.manual ${Python3_EXECUTABLE} ${RIDGE_SOURCE}/tests/project/manual_test.py $<TARGET_FILE:ridge>)

if(NOT RIDGE_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  ridge_script_test(project.package ${RIDGE_SOURCE}/tests/project/package_test.sh ${CMAKE_BINARY_DIR})
  if(TARGET ridge_api)
    ridge_script_test(project.install ${RIDGE_SOURCE}/tests/project/install_test.sh ${CMAKE_BINARY_DIR})
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    ridge_script_test(project.symbols ${RIDGE_SOURCE}/scripts/check_symbols.sh ${CMAKE_BINARY_DIR})
    ridge_script_test(project.nehalem ${RIDGE_SOURCE}/tests/project/nehalem_test.sh $<TARGET_FILE:ridge>
                      ${RIDGE_SHARED_DIR})
  endif()
endif()

# What only continuous integration runs, since it takes minutes or judges unfinished work.
if(RIDGE_CI)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    ridge_script_test(project.arm64 ${RIDGE_SOURCE}/tests/project/arm64_test.sh $<TARGET_FILE:ridge> ${RIDGE_SHARED_DIR})
    set_tests_properties(project.arm64 PROPERTIES RUN_SERIAL ON TIMEOUT 1500)
  endif()
  ridge_script_test(ci.format ${RIDGE_SOURCE}/scripts/format --check)
  foreach(sanitizer asan tsan)
    ridge_script_test(ci.${sanitizer} ${RIDGE_SOURCE}/scripts/sanitize ${sanitizer})
    # They build with all cores; nothing else should run beside them.
    set_tests_properties(ci.${sanitizer} PROPERTIES RUN_SERIAL ON TIMEOUT 2400)
  endforeach()
endif()

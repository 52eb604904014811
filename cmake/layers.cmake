# ridge_layer(NAME DEPENDS other layers… LIBRARIES other targets…): the folder src/NAME as a static library.
# Layers may only depend downwards; tests/layers_test.py checks the includes themselves.
function(ridge_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  add_library(ridge_${name} STATIC ${sources})
  set_target_properties(ridge_${name} PROPERTIES UNITY_BUILD ${RIDGE_UNITY_LAYERS} UNITY_BUILD_BATCH_SIZE 5)
  if(RIDGE_UNITY_LAYERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A member whose type has no linkage is no trouble where the class is of that file as well.
    target_compile_options(ridge_${name} PRIVATE -Wno-subobject-linkage)
  endif()
  target_link_libraries(ridge_${name} PUBLIC ridge_options fmt::fmt ${ARG_LIBRARIES})
  foreach(layer ${ARG_DEPENDS})
    target_link_libraries(ridge_${name} PUBLIC ridge_${layer})
  endforeach()
endfunction()

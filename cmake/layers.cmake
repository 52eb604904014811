# With RIDGE_UNITY_LAYERS these are compiled alone: names in their unnamed namespaces stand in other files of their layer,
# too. What is not listed goes together with any other file of its layer, however the files are grouped.
set(RIDGE_ALONE
    analyze/doctor analyze/roofline analyze/roofline_run analyze/roofs analyze/shape_model engine/image_forecast engine/phase
    engine/spectrum format/safetensors format/safetensors_reader format/spool_file format/tokenizer_json
    machine/probe_memory memory/io_uring memory/request_book memory/row_gatherer memory/stream_slots model/compute_attention
    model/operators model/vae_planes plan/placement report/curve_chart report/doctor_report report/line_chart
    report/pass_times_report report/roofline_chart report/run_report report/sim_report report/trace_map sim/lifecycle
    sim/recorded_trace text/jinja_methods text/jinja_sequence_filters text/unigram)

# ridge_layer(NAME DEPENDS other layers… LIBRARIES other targets…): the folder src/NAME as a static library.
# Layers may only depend downwards; tests/layers_test.py checks the includes themselves.
function(ridge_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  add_library(ridge_${name} STATIC ${sources})
  set_target_properties(ridge_${name} PROPERTIES UNITY_BUILD ${RIDGE_UNITY_LAYERS} UNITY_BUILD_BATCH_SIZE 5)
  foreach(file ${RIDGE_ALONE})
    if(file MATCHES "^${name}/")
      set_source_files_properties(${CMAKE_SOURCE_DIR}/src/${file}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
  target_link_libraries(ridge_${name} PUBLIC ridge_options fmt::fmt ${ARG_LIBRARIES})
  foreach(layer ${ARG_DEPENDS})
    target_link_libraries(ridge_${name} PUBLIC ridge_${layer})
  endforeach()
endfunction()

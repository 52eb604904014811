# Install rules, the package config for find_package(ridge), and the Debian package.
include(CMakePackageConfigHelpers)

install(TARGETS ridge RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_SOURCE_DIR}/man/ridge.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_SOURCE_DIR}/share/completions/ridge.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ridge)
install(FILES ${CMAKE_SOURCE_DIR}/share/completions/_ridge DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${CMAKE_SOURCE_DIR}/share/completions/ridge.fish
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ridge RENAME copyright)
install(FILES ${CMAKE_SOURCE_DIR}/NOTICE ${CMAKE_SOURCE_DIR}/LICENSES/MIT-gguf.txt
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/ridge)
file(GLOB profiles ${CMAKE_SOURCE_DIR}/profiles/*.toml)
if(profiles)
  install(FILES ${profiles} DESTINATION ${CMAKE_INSTALL_DATADIR}/ridge/profiles)
endif()

# The library: one archive of all layers below the public header, so that who uses it links one file and what Debian
# offers, and sees none of our folders.
if(TARGET ridge_api)
  set(objects "")
  foreach(layer base machine tensor program kernels format text memory model plan engine api)
    list(APPEND objects $<TARGET_OBJECTS:ridge_${layer}>)
  endforeach()
  # One folder per instruction set, each an object library of its own.
  file(GLOB folders RELATIVE ${CMAKE_SOURCE_DIR}/src/kernels ${CMAKE_SOURCE_DIR}/src/kernels/*)
  foreach(isa ${folders})
    if(TARGET ridge_kernels_${isa})
      list(APPEND objects $<TARGET_OBJECTS:ridge_kernels_${isa}>)
    endif()
  endforeach()
  add_library(ridge_library STATIC ${objects})
  set_target_properties(ridge_library PROPERTIES OUTPUT_NAME ridge EXPORT_NAME ridge LINKER_LANGUAGE CXX)
  target_include_directories(ridge_library INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(ridge_library INTERFACE cxx_std_20)
  # Plain names: pkg-config's targets cannot be exported.
  target_link_libraries(ridge_library INTERFACE fmt::fmt Threads::Threads ${utf8proc_LIBRARIES} ${png_LIBRARIES}
                        ${uring_LIBRARIES})
  add_library(ridge::ridge ALIAS ridge_library)

  set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/ridge)
  install(TARGETS ridge_library EXPORT ridge-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ridge DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ridge-targets NAMESPACE ridge:: DESTINATION ${config_folder})
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/ridge-config.cmake.in
                                ${CMAKE_BINARY_DIR}/generated/ridge-config.cmake INSTALL_DESTINATION ${config_folder})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/ridge-config-version.cmake
                                   COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/ridge-config.cmake ${CMAKE_BINARY_DIR}/generated/ridge-config-version.cmake
          DESTINATION ${config_folder})
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ridge)
set(CPACK_PACKAGE_CONTACT "The Ridge authors <ridge@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run language models that do not fit in memory")
set(CPACK_PACKAGE_DESCRIPTION "Ridge runs GGUF language models inside a hard memory budget, streaming the weights that do
not fit, and shows what limits it.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, python3-pip")  # ridge models get
include(CPack)

# cmake --install: library, headers, perigee.pc and the CMake package. Nothing in what is installed names the prefix, so
# the tree may be moved. DESTDIR works as everywhere.
install(TARGETS perigee EXPORT perigeeTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/perigee DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
  FILES_MATCHING PATTERN "*.h")
if(TARGET perigee_cli)
  install(TARGETS perigee_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
  if(NOT CMAKE_CROSSCOMPILING AND NOT PERIGEE_SANITIZE)
    install(FILES ${PROJECT_BINARY_DIR}/perigee.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
    install(FILES ${PROJECT_BINARY_DIR}/perigee.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
      RENAME perigee COMPONENT tools)
  endif()
  # what `perigee run` takes where no model is named
  if(EXISTS ${PROJECT_SOURCE_DIR}/models/nano-k3)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/nano-k3 DESTINATION ${CMAKE_INSTALL_DATADIR}/perigee/models
      COMPONENT tools PATTERN expected EXCLUDE)
  endif()
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/perigee)
install(EXPORT perigeeTargets NAMESPACE perigee:: DESTINATION ${package_folder} COMPONENT dev)
configure_package_config_file(${PROJECT_SOURCE_DIR}/pkgconfig/perigeeConfig.cmake.in perigeeConfig.cmake
  INSTALL_DESTINATION ${package_folder})
# until 1.0 a minor version may break what the one before promised
write_basic_package_version_file(perigeeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/perigeeConfig.cmake ${PROJECT_BINARY_DIR}/perigeeConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT dev)

# perigee.pc finds the prefix from its own folder
file(RELATIVE_PATH PERIGEE_PC_UP "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
string(REGEX REPLACE "/$" "" PERIGEE_PC_UP "${PERIGEE_PC_UP}")
configure_file(${PROJECT_SOURCE_DIR}/pkgconfig/perigee.pc.in perigee.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/perigee.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
# for bindings and programs that are built without an install: PKG_CONFIG_PATH=<build folder>
configure_file(${PROJECT_SOURCE_DIR}/pkgconfig/perigee-uninstalled.pc.in perigee-uninstalled.pc @ONLY)

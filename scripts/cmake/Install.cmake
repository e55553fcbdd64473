# cmake --install: the binary with its data and studies, the rooms as libraries and headers, and the package that
# find_package(basin) reads. Third-party targets are not exported: basinConfig.cmake finds them again with our own files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(rooms GLOBAL PROPERTY BASIN_ROOMS)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/basin)

install(TARGETS basin RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY ${BASIN_DATA_DIR}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/basin/data COMPONENT program)
install(DIRECTORY configs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/basin/configs COMPONENT program FILES_MATCHING PATTERN "*.toml")
install(FILES LICENSE data/assets/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/basin COMPONENT program)

foreach(room IN LISTS rooms)
  install(TARGETS basin_${room} EXPORT basin-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/basin)
  install(DIRECTORY ${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/basin FILES_MATCHING PATTERN "*.h"
    PATTERN precompiled.h EXCLUDE)
endforeach()

install(EXPORT basin-targets NAMESPACE basin:: DESTINATION ${package_dir})
configure_package_config_file(scripts/cmake/basinConfig.cmake.in ${CMAKE_BINARY_DIR}/basinConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/basinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/basinConfig.cmake ${CMAKE_BINARY_DIR}/basinConfigVersion.cmake
  scripts/cmake/Dependencies.cmake scripts/cmake/Torch.cmake DESTINATION ${package_dir})

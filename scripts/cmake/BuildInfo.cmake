# basin_build_info(TARGET): adds the generated build_info.cpp (version, commit, dirty flag, compiler, flags) to TARGET. The git state
# is read at build time, not at configure time, by GitState.cmake.
function(basin_build_info target)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" flags)
  file(STRINGS ${BASIN_SPECTRA_INCLUDE}/Spectra/Util/Version.h spectra REGEX "define SPECTRA_(MAJOR|MINOR|PATCH)_VERSION")
  string(REGEX REPLACE "[^0-9;]" "" spectra "${spectra}")
  list(JOIN spectra "." spectra)
  set(libraries "eigen ${Eigen3_VERSION}, hdf5 ${HDF5_VERSION}, spectra ${spectra}")
  set(generated ${CMAKE_BINARY_DIR}/generated/build_info.cpp)
  add_custom_target(basin_git_state
    COMMAND ${CMAKE_COMMAND} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DTEMPLATE=${CMAKE_SOURCE_DIR}/scripts/cmake/build_info.cpp.in
      -DOUTPUT=${generated} -DBASIN_VERSION=${PROJECT_VERSION} "-DBASIN_COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
      "-DBASIN_FLAGS=${CMAKE_BUILD_TYPE}: ${flags}" "-DBASIN_LIBRARIES=${libraries}" -P ${CMAKE_SOURCE_DIR}/scripts/cmake/GitState.cmake
    BYPRODUCTS ${generated} COMMENT "Reading the git state" VERBATIM)
  set_source_files_properties(${generated} PROPERTIES GENERATED ON SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${generated})
  add_dependencies(${target} basin_git_state)
endfunction()

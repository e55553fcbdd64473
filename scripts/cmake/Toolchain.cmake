# Language level, warnings and build speed, the same for every target of ours.
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Every preset has NDEBUG: torch's headers lay out classes (at::RecordFunction) differently without it, and its libraries are built with
# it. What dev and asan assert is the standard library's part, _GLIBCXX_ASSERTIONS.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # ATen's kernels do the arithmetic: -O3 only costs build time

# basin_flags: language level and warnings. Torch asks for its own standard, so it is set per target, not globally.
add_library(basin_flags INTERFACE)
target_compile_features(basin_flags INTERFACE cxx_std_20)
# -fPIC for programs as well: the precompiled header that they share with the libraries demands equal flags.
target_compile_options(basin_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-fPIC;-Wall;-Wextra;-Wpedantic;-Werror;-Wno-error=maybe-uninitialized>"
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>)
# Eigen's own threads would fight torch's, and change the order of sums with the machine.
# fmt is the one that torch ships (torch/include/fmt shadows the system's, whose library has another version); core/fmt.cpp compiles it.
target_compile_definitions(basin_flags INTERFACE EIGEN_DONT_PARALLELIZE)

find_program(BASIN_CCACHE ccache)
if(BASIN_CCACHE)
  # gcc's precompiled headers are cached only with the first two (ccache manual, "Precompiled headers"); depend mode spares a miss the
  # preprocessor's own run, since Ninja asks for dependency files anyway. The cache lies in the
  # checkout: nothing outside it is ours to fill.
  set(BASIN_CCACHE_DIR ${CMAKE_SOURCE_DIR}/.cache/ccache CACHE PATH "Where ccache keeps its objects")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
                                  CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_DIR=${BASIN_CCACHE_DIR}
                                  CCACHE_MAXSIZE=3G ${BASIN_CCACHE})
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(basin_flags INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  endif()
endif()

find_program(BASIN_MOLD mold)
if(BASIN_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1)
  add_link_options(-fuse-ld=mold)
endif()

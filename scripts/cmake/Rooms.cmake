# basin_room(NAME [GLUE] LINK target...): the room's static library from all .cpp (and, with CUDA, .cu) of this folder and its
# sub-rooms. What a room links is the direction of dependency (CONTRIBUTING.md, "Rooms"); tests/architecture/rooms.py holds
# sub-rooms to it. GLUE: nothing in it loops over numbers, so it is waited for in the build and not in the run.
function(basin_room name)
  cmake_parse_arguments(ARG "GLUE" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(basin_${name} STATIC ${sources})
  add_library(basin::${name} ALIAS basin_${name})
  set_target_properties(basin_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(basin_${name} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:include/basin>)
  target_link_libraries(basin_${name} PUBLIC basin_torch ${ARG_LINK} PRIVATE $<BUILD_INTERFACE:basin_flags>)
  basin_precompile(basin_${name})
  basin_unity(basin_${name})
  if(ARG_GLUE)
    target_compile_options(basin_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(BASIN_CUDA)
    file(GLOB_RECURSE kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
    if(kernels)
      target_sources(basin_${name} PRIVATE ${kernels})
      set_target_properties(basin_${name} PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON
        CUDA_ARCHITECTURES "${BASIN_CUDA_ARCHITECTURES}")
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY BASIN_ROOMS ${name})
endfunction()

# With BASIN_UNITY several sources make one unit: before it has read a line of its own, each unit costs five seconds for templates that
# torch's headers leave to every unit to instantiate. Sources with options of their own (kernels) stay alone.
function(basin_unity target)
  if(BASIN_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # a unit is never included by another
  endif()
endfunction()

# One precompiled header for what is tested, built in core, and one for the tests, built in basin_testing; every other target reuses
# one of them (flags must match, -O0 or not among them).
function(basin_precompile target)
  cmake_parse_arguments(ARG "" "FROM" "" ${ARGN})
  if(NOT ARG_FROM)
    set(ARG_FROM basin_core)
  endif()
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)  # clang-tidy can't read gcc's
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${CMAKE_SOURCE_DIR}/core/precompiled.h>")
  elseif(target STREQUAL ARG_FROM)
    target_precompile_headers(${target} PRIVATE ${CMAKE_SOURCE_DIR}/core/precompiled.h)
  else()
    target_precompile_headers(${target} REUSE_FROM ${ARG_FROM})
  endif()
endfunction()

# For files whose loops we want fast (the rest leaves arithmetic to ATen): -O3, and what lets gcc use vector registers without a
# change of values. A fused multiplication and addition would make bits depend on the processor. Other flags than the shared
# precompiled header's, so without it.
function(basin_loops)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-O3;-ffp-contract=off;-fno-math-errno;-fno-trapping-math")
endfunction()

# For a file whose loops are written for certain registers, and whose callers ask first whether the processor has them: the
# flags that name them, and fused multiplications. Elsewhere than on x86-64 it is compiled without them and never called.
function(basin_kernels source)
  set(registers ${ARGN})
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(registers "")
  endif()
  set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-O3;-ffp-contract=fast;-fno-math-errno;-fno-trapping-math;${registers}")
endfunction()

# How tests are registered with ctest, and their labels: unit, regression, slow (`make test-slow` alone), gpu, oracle (`make
# oracles` alone). A GoogleTest case gets its label from its name: suite or case name begins with Slow, Regression or Gpu.

# What every test may ask for. Float sums differ with the thread count, so every test runs with one thread.
set(BASIN_TEST_ENVIRONMENT
  OMP_NUM_THREADS=1
  BASIN_BINARY=$<TARGET_FILE:basin>
  BASIN_SOURCE_DIR=${CMAKE_SOURCE_DIR}
  PYTHONPATH=${CMAKE_SOURCE_DIR}/python
  PYTHONDONTWRITEBYTECODE=1
  MPLCONFIGDIR=${CMAKE_SOURCE_DIR}/.cache/matplotlib
  IPYTHONDIR=${CMAKE_SOURCE_DIR}/.cache/ipython)

# What is tested is optimised as ever; the tests themselves a little, which takes no longer to compile than nothing. Without it the linker
# takes their copies of inline functions (of std::string, say) for the libraries as well, which then run at half their speed.
function(basin_test_code target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  basin_precompile(${target} FROM basin_testing)
endfunction()

# basin_test(ROOM [BY_SUITE] LINK target...): the test program of tests/ROOM and its sub-rooms, every folder a ctest test; BY_SUITE: every
# suite. No files, no program.
function(basin_test room)
  cmake_parse_arguments(ARG "BY_SUITE" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${room} ${sources})
  target_link_libraries(test_${room} PRIVATE basin_flags basin_testing basin_test_main ${ARG_LINK})
  basin_test_code(test_${room})
  basin_unity(test_${room})
  set(discovered ${CMAKE_CURRENT_BINARY_DIR}/test_${room}_discovered.cmake)
  add_custom_command(TARGET test_${room} POST_BUILD BYPRODUCTS ${discovered}
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:test_${room}> -D ROOM=${room} -D OUT=${discovered}
            -D BY_SUITE=${ARG_BY_SUITE} "-DSOURCES=${sources}" -P ${CMAKE_SOURCE_DIR}/scripts/cmake/DiscoverTests.cmake VERBATIM)

  # ctest reads this file when it runs.
  set(properties ${CMAKE_CURRENT_BINARY_DIR}/test_${room}_tests.cmake)
  file(GENERATE OUTPUT ${properties} CONTENT "
if(EXISTS \"${discovered}\")
  include(\"${discovered}\")
else()
  add_test(${room}.NOT_BUILT ${room}.NOT_BUILT)
endif()
foreach(case IN LISTS ${room}_tests)
  set(timeout 1800)
  if(case MATCHES \"[./]Slow\")
    set(label slow)
    set(timeout 7200)
  elseif(case MATCHES \"[./]Gpu\")
    set(label gpu)
  elseif(case MATCHES \"[./]Regression\")
    set(label regression)
  else()
    set(label unit)
  endif()
  set_tests_properties(\"\${case}\" PROPERTIES LABELS \${label} TIMEOUT \${timeout} ENVIRONMENT \"${BASIN_TEST_ENVIRONMENT}\")
endforeach()
foreach(folder IN LISTS ${room}_folders)
  set_tests_properties(\"\${folder}\" PROPERTIES COST 10)  # as of those below
endforeach()
foreach(case IN LISTS ${room}_single_cases)
  set_tests_properties(\"\${case}\" PROPERTIES SKIP_REGULAR_EXPRESSION \"\\\\[  SKIPPED \\\\]\")
endforeach()
foreach(suite IN LISTS ${room}_gpu_suites)
  set_tests_properties(\"\${suite}\" PROPERTIES SKIP_REGULAR_EXPRESSION \"NO GPU|NO CUDA DEVICE\")
endforeach()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${properties})
endfunction()

# What a test outside the test programs needs besides its label. The slowest, python.extension.slow, builds the whole tree: 35 minutes on
# two cores of its own.
function(basin_test_properties name label)
  if("${label}" STREQUAL "slow")  # quoted: the caller has a variable of that name
    set(timeout 14400)
  else()
    set(timeout 1800)
  endif()
  # COST: these take longer than GoogleTest's cases and begin before them, so that the end keeps all processors busy.
  set_tests_properties(${name} PROPERTIES LABELS ${label} COST 10 TIMEOUT ${timeout} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    ENVIRONMENT "${BASIN_TEST_ENVIRONMENT}")
endfunction()

# basin_python_test(FOLDER): pytest over its files as test python.NAME; what is marked pytest.mark.slow is python.NAME.slow.
function(basin_python_test folder)
  get_filename_component(name ${folder} NAME)
  set(pytest ${CMAKE_SOURCE_DIR}/.venv/bin/python -m pytest -q -p no:cacheprovider ${folder})
  set(quick FALSE)
  set(slow FALSE)
  file(GLOB files CONFIGURE_DEPENDS ${folder}/test_*.py)
  foreach(file IN LISTS files)
    file(STRINGS ${file} all_slow REGEX "^pytestmark.*mark\\.slow" LIMIT_COUNT 1)
    file(STRINGS ${file} some_slow REGEX "mark\\.slow" LIMIT_COUNT 1)
    if(NOT all_slow)
      set(quick TRUE)
    endif()
    if(some_slow)
      set(slow TRUE)
    endif()
  endforeach()
  if(quick)
    add_test(NAME python.${name} COMMAND ${pytest} -m "not slow")
    basin_test_properties(python.${name} unit)
  endif()
  if(slow)
    add_test(NAME python.${name}.slow COMMAND ${pytest} -m slow)
    basin_test_properties(python.${name}.slow slow)
  endif()
endfunction()

# basin_oracle(FILE): FILE run by the Python with a full PyTorch (scripts/setup oracles; another by BASIN_ORACLE_PYTHON).
set(BASIN_ORACLE_PYTHON ${CMAKE_SOURCE_DIR}/.venv-oracles/bin/python CACHE FILEPATH "Python that can import torch")
function(basin_oracle file)
  get_filename_component(name ${file} NAME_WE)
  add_test(NAME oracle.${name} COMMAND ${BASIN_ORACLE_PYTHON} ${file})
  basin_test_properties(oracle.${name} oracle)
endfunction()

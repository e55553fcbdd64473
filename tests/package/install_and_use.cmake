# cmake -DBUILD= -DSOURCE= -DGENERATOR= -DCXX= -DFLAGS= -P: installs BUILD, builds the consumer in SOURCE against it, runs both.
set(prefix ${BUILD}/package-test/prefix)
set(consumer ${BUILD}/package-test/consumer)
file(REMOVE_RECURSE ${BUILD}/package-test)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${ARGN}\n${output}\nexit code: ${failed}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${consumer} -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX}
  "-DCMAKE_CXX_FLAGS=${FLAGS}"
  -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${consumer})
run(${consumer}/consumer)
message("${output}")
unset(ENV{BASIN_DATA})
run(${prefix}/bin/basin data check cifar10-5k)
message("installed binary: ${output}")
foreach(file configs/quick.toml LICENSE)
  if(NOT EXISTS ${prefix}/share/basin/${file})
    message(FATAL_ERROR "not installed: share/basin/${file}")
  endif()
endforeach()
file(REMOVE_RECURSE ${BUILD}/package-test)

# Run by every build (cmake -P): writes build_info.cpp from its template, and touches it only where commit, dirty flag or
# flags changed, so that a build with nothing new compiles nothing.
find_program(git git)
set(BASIN_GIT_COMMIT unknown)
set(BASIN_GIT_DIRTY unknown)

function(run_git variable)
  execute_process(COMMAND ${git} -C ${SOURCE_DIR} ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE failed
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${variable} "${text}" PARENT_SCOPE)
  set(git_failed ${failed} PARENT_SCOPE)
endfunction()

if(git)
  # An unpacked archive may lie inside somebody else's repository: that one's commit says nothing about us.
  run_git(prefix rev-parse --show-prefix)
  if(NOT git_failed AND prefix STREQUAL "")
    run_git(commit rev-parse HEAD)
    if(NOT git_failed)
      set(BASIN_GIT_COMMIT ${commit})
      run_git(changes status --porcelain --untracked-files=no)
      if(NOT git_failed)
        if(changes STREQUAL "")
          set(BASIN_GIT_DIRTY false)
        else()
          set(BASIN_GIT_DIRTY true)
        endif()
      endif()
    endif()
  endif()
endif()
configure_file(${TEMPLATE} ${OUTPUT} @ONLY)

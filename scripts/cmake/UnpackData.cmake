# cmake -DARCHIVE= -DCHECKSUMS= -DFOLDER= -DINSIDE= -DFILES= -P: unpacks the archive's folder INSIDE as FOLDER after checking it and the
# files.
get_filename_component(parent ${FOLDER} DIRECTORY)
get_filename_component(name ${FOLDER} NAME)
file(STRINGS ${CHECKSUMS} lines)

function(check_file path listed_as)
  file(SHA256 ${path} found)
  foreach(line IN LISTS lines)
    if(line STREQUAL "${found}  ${listed_as}")
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "${path}: SHA-256 ${found} is not the one listed in ${CHECKSUMS} for ${listed_as}")
endfunction()

get_filename_component(archive_name ${ARCHIVE} NAME)
check_file(${ARCHIVE} ${archive_name})
set(unpacked ${parent}/.unpacked-${name})
file(REMOVE_RECURSE ${unpacked} ${FOLDER})
file(ARCHIVE_EXTRACT INPUT ${ARCHIVE} DESTINATION ${unpacked})
file(RENAME ${unpacked}/${INSIDE} ${FOLDER})
file(REMOVE_RECURSE ${unpacked})
foreach(file IN LISTS FILES)
  check_file(${FOLDER}/${file} ${name}/${file})
  file(TOUCH ${FOLDER}/${file})  # newer than the archive, whatever dates are in it
endforeach()

# The embedded data sets: data/assets/SET.tar.xz unpacked to share/basin/data/SET of the build tree, where the binary finds it relative to
# itself (../share/basin/data), as it does after install.
set(BASIN_DATA_DIR ${CMAKE_BINARY_DIR}/share/basin/data)
add_custom_target(basin_embedded_data ALL)
add_dependencies(basin_data basin_embedded_data)

# inside: the folder in the archive; then the files that it holds and SET.sha256 lists.
function(basin_embed set inside)
  set(archive ${CMAKE_SOURCE_DIR}/data/assets/${set}.tar.xz)
  set(checksums ${CMAKE_SOURCE_DIR}/data/assets/${set}.sha256)
  list(TRANSFORM ARGN PREPEND ${BASIN_DATA_DIR}/${set}/ OUTPUT_VARIABLE files)
  add_custom_command(
    OUTPUT ${files}
    COMMAND ${CMAKE_COMMAND} -DARCHIVE=${archive} -DCHECKSUMS=${checksums} -DFOLDER=${BASIN_DATA_DIR}/${set} -DINSIDE=${inside}
      "-DFILES=${ARGN}" -P ${CMAKE_SOURCE_DIR}/scripts/cmake/UnpackData.cmake
    DEPENDS ${archive} ${checksums} ${CMAKE_SOURCE_DIR}/scripts/cmake/UnpackData.cmake
    COMMENT "Unpacking ${set}" VERBATIM)
  add_custom_target(basin_embedded_${set} DEPENDS ${files})
  add_dependencies(basin_embedded_data basin_embedded_${set})
endfunction()

basin_embed(cifar10-5k cifar-10-batches-bin data_batch_1.bin test_batch.bin)
basin_embed(moby_dick moby_dick moby_dick.txt)
# The studies too lie where `basin init` looks for them, as they do after install.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/basin)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/configs ${CMAKE_BINARY_DIR}/share/basin/configs SYMBOLIC)

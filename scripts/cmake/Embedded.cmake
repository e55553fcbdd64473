# The embedded data set: data/assets/cifar10-5k.tar.xz unpacked to share/basin/data/cifar10-5k of the build tree, where the binary
# finds it relative to itself (../share/basin/data), as it does after install.
set(BASIN_DATA_DIR ${CMAKE_BINARY_DIR}/share/basin/data)
set(archive ${CMAKE_SOURCE_DIR}/data/assets/cifar10-5k.tar.xz)
set(checksums ${CMAKE_SOURCE_DIR}/data/assets/cifar10-5k.sha256)
set(folder ${BASIN_DATA_DIR}/cifar10-5k)
add_custom_command(
  OUTPUT ${folder}/data_batch_1.bin ${folder}/test_batch.bin
  COMMAND ${CMAKE_COMMAND} -DARCHIVE=${archive} -DCHECKSUMS=${checksums} -DFOLDER=${folder}
    -P ${CMAKE_SOURCE_DIR}/scripts/cmake/UnpackData.cmake
  DEPENDS ${archive} ${checksums} ${CMAKE_SOURCE_DIR}/scripts/cmake/UnpackData.cmake
  COMMENT "Unpacking cifar10-5k" VERBATIM)
add_custom_target(basin_embedded_data ALL DEPENDS ${folder}/data_batch_1.bin ${folder}/test_batch.bin)
add_dependencies(basin_data basin_embedded_data)
# The studies too lie where `basin init` looks for them, as they do after install.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/basin)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/configs ${CMAKE_BINARY_DIR}/share/basin/configs SYMBOLIC)

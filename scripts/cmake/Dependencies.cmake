# Everything Basin links, as targets. Debian's packages except for torch, which is the pinned PyPI wheel in .venv.
include(Torch)
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(LibArchive REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C HL)
find_package(nlohmann_json REQUIRED)

# FindHDF5 repeats what libhdf5.so itself needs (curl, crypto, sz); we link the two libraries we call and no more.
list(FILTER HDF5_C_LIBRARIES INCLUDE REGEX "hdf5[^/]*$")
add_library(basin_hdf5 INTERFACE IMPORTED GLOBAL)
target_link_libraries(basin_hdf5 INTERFACE ${HDF5_C_HL_LIBRARIES} ${HDF5_C_LIBRARIES})
target_include_directories(basin_hdf5 INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_compile_definitions(basin_hdf5 INTERFACE ${HDF5_C_DEFINITIONS})

find_path(BASIN_SPECTRA_INCLUDE Spectra/SymEigsSolver.h REQUIRED)
find_path(BASIN_LBFGSPP_INCLUDE LBFGSB.h REQUIRED)
find_path(BASIN_TOMLPP_INCLUDE toml++/toml.h REQUIRED)

# basin_torch: the pinned PyPI wheel, CPU libraries alone or, with BASIN_CUDA, all of them.
set(BASIN_TORCH_VERSION 2.11.0)
file(GLOB BASIN_WHEEL ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch/share/cmake/Torch)

if(BASIN_CUDA)
  set(BASIN_CUDA_ARCHITECTURES 90 CACHE STRING "GPU architectures of our kernels, as CMAKE_CUDA_ARCHITECTURES")
  set(CMAKE_CUDA_ARCHITECTURES ${BASIN_CUDA_ARCHITECTURES})
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin REQUIRED)
  # Without it torch guesses from a missing GPU and names architectures that nvcc 13 refuses. Our kernels have their own list.
  if(NOT TORCH_CUDA_ARCH_LIST)
    set(TORCH_CUDA_ARCH_LIST "9.0")
  endif()
else()
  # The wheel is a CUDA build and its cuda.cmake demands nvcc; it returns at once where torch::cudart exists.
  # An undocumented guard: hence the pinned version, checked below.
  add_library(torch::cudart INTERFACE IMPORTED)
  add_library(torch::nvtoolsext INTERFACE IMPORTED)
endif()
# Torch complains of a static library that it doesn't ship and nobody needs (kineto).
set(BASIN_LOG_LEVEL ${CMAKE_MESSAGE_LOG_LEVEL})
set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
find_package(Torch REQUIRED HINTS ${BASIN_WHEEL})
set(CMAKE_MESSAGE_LOG_LEVEL ${BASIN_LOG_LEVEL})
# It also adds its architectures to the flags of everybody's kernels; ours are BASIN_CUDA_ARCHITECTURES alone.
string(REGEX REPLACE "-gencode[= ][^ ]+" "" CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS}")
if(NOT Torch_VERSION VERSION_EQUAL BASIN_TORCH_VERSION)
  message(WARNING "Basin is tested with torch ${BASIN_TORCH_VERSION}; found ${Torch_VERSION}")
endif()
# Torch stays where it is: installed programs look for it there (CMake leaves folders of the source tree, as .venv, out by itself).
list(APPEND CMAKE_INSTALL_RPATH ${TORCH_INSTALL_PREFIX}/lib)
if(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  message(FATAL_ERROR "This torch has the old C++ ABI and cannot be linked with the system's fmt, HDF5 and GoogleTest")
endif()

# Imported, as basin_hdf5 is: system headers, and the exported package can name them (basinConfig.cmake makes them again).
add_library(basin_torch INTERFACE IMPORTED GLOBAL)
target_include_directories(basin_torch INTERFACE ${TORCH_INCLUDE_DIRS})
# The wheel's libraries export parts of an older standard library (std::filesystem among them), which a newer system's can't be mixed with:
# std::filesystem::remove_all of libtorch.so jumps to 0 on Ubuntu 24.04. The system's library is looked up first.
target_link_options(basin_torch INTERFACE LINKER:--push-state,--no-as-needed,-lstdc++,--pop-state)
if(BASIN_CUDA)
  enable_language(CUDA)
  target_link_libraries(basin_torch INTERFACE ${TORCH_LIBRARIES})
  target_compile_definitions(basin_torch INTERFACE BASIN_CUDA)
else()
  target_link_libraries(basin_torch INTERFACE torch_cpu_library c10)
  # libtorch_cpu.so needs cudart and cupti at run time only; it finds them by its own rpath.
  target_link_options(basin_torch INTERFACE -Wl,--allow-shlib-undefined)
endif()

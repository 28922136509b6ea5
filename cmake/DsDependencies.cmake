# Everything comes from Debian 12; CUDA is optional and its absence is said in one line.
find_package(MLIR 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})  # add_mlir_doc writes below it

find_package(nlohmann_json 3.11 REQUIRED)
find_package(GTest REQUIRED)
find_package(CLI11 REQUIRED)
find_package(spdlog REQUIRED)
find_package(dnnl 2.6 REQUIRED CONFIG)
find_package(libzip REQUIRED)
find_package(Threads REQUIRED)
find_program(DS_FLATC flatc REQUIRED)

find_package(CUDAToolkit 13 QUIET)
if(CUDAToolkit_FOUND)
  message(STATUS "CUDA ${CUDAToolkit_VERSION} found")
else()
  message(STATUS "CUDA 13 not found: building for the CPU only")
endif()

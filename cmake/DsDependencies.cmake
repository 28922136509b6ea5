# Everything comes from Debian 12; CUDA is optional and its absence is said in one line.
find_package(MLIR 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(MLIR_BINARY_DIR ${CMAKE_BINARY_DIR})  # add_mlir_doc writes below it

find_package(nlohmann_json 3.11 REQUIRED)
if(DS_TESTS)
  find_package(GTest REQUIRED)
endif()
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)

# Two of Debian's package files demand files of packages that are not needed here (oneDNN: the OpenCL headers;
# libzip: its command-line tools), so their targets are made by hand, under the names they would have.
function(ds_import_library target library header)
  find_path(DS_${library}_INCLUDE_DIR ${header} REQUIRED)
  find_library(DS_${library}_LIBRARY ${library} REQUIRED)
  add_library(${target} SHARED IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION ${DS_${library}_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DS_${library}_INCLUDE_DIR})
endfunction()
ds_import_library(DNNL::dnnl dnnl oneapi/dnnl/dnnl.h)
ds_import_library(libzip::zip zip zip.h)

# The OpenMP runtime is oneDNN's and LibTorch's, libgomp; clang cannot generate code for it, so it is called by its
# ABI.
find_library(DS_GOMP NAMES gomp libgomp.so.1 HINTS /usr/lib/gcc/x86_64-linux-gnu/12 REQUIRED)

find_program(DS_FLATC flatc REQUIRED)

# A plan of hundreds of layers is millions of small allocations, of which jemalloc makes less work than the C library. It goes
# into ds-opt as an archive. Sanitizers have an allocator of their own, which finds mistakes.
if(NOT DS_SANITIZE)
  find_library(DS_JEMALLOC NAMES libjemalloc_pic.a)
  if(DS_JEMALLOC)
    message(STATUS "jemalloc found: ${DS_JEMALLOC}")
  else()
    message(STATUS "jemalloc not found: planning of large models takes longer")
  endif()
endif()

find_package(CUDAToolkit 13 QUIET)
if(CUDAToolkit_FOUND)
  message(STATUS "CUDA ${CUDAToolkit_VERSION} found")
else()
  message(STATUS "CUDA 13 not found: building for the CPU only")
endif()

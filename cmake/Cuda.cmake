# CUDA, if it is installed: with ASSAY_CUDA src/train/cuda is built in full. Nothing else of Assay
# needs it, so a missing part is reported and never an error.
include(CheckLanguage)
set(ASSAY_CUDA OFF)

function(_without_cuda why)
  message(STATUS "without CUDA: ${why}")
endfunction()

# Kernels are compiled for Hopper, and for all other cards from compute capability 8.0 on as PTX,
# which the driver compiles when it is first loaded there. "all" compiles them for every kind of
# card, which takes three times as long: for programs that are handed on (make CARDS=all).
set(ASSAY_CUDA_CARDS "default" CACHE STRING "default or all: GPUs that kernels are compiled for")
if(ASSAY_CUDA_CARDS STREQUAL "all")
  set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90a-real 100-real 80-virtual)
else()
  set(CMAKE_CUDA_ARCHITECTURES 90a-real 80-virtual)
endif()
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  _without_cuda("no nvcc was found")
  return()
endif()
enable_language(CUDA)
find_package(CUDAToolkit 13)
if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cublasLt)
  _without_cuda("version 13 of the toolkit with cuBLASLt was not found")
  return()
endif()

find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR})
# The C++ layer over cuDNN's graphs: headers only, fetched by `scripts/setup cuda`.
find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h
  HINTS ${CMAKE_SOURCE_DIR}/build/third_party/cudnn-frontend/include)
if(NOT CUDNN_INCLUDE_DIR OR NOT CUDNN_LIBRARY)
  _without_cuda("cuDNN was not found")
  return()
endif()
if(NOT CUDNN_FRONTEND_INCLUDE_DIR)
  _without_cuda("cudnn_frontend.h was not found; run `scripts/setup cuda` or set CUDNN_FRONTEND_INCLUDE_DIR")
  return()
endif()

# NCCL itself is found at run time. Where the toolkit has come without its header, `scripts/setup
# cuda` fetches it.
find_path(NCCL_INCLUDE_DIR nccl.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CMAKE_SOURCE_DIR}/build/third_party/nccl/include)
if(NOT NCCL_INCLUDE_DIR)
  _without_cuda("nccl.h was not found; run `scripts/setup cuda` or set NCCL_INCLUDE_DIR")
  return()
endif()
add_library(assay_nccl INTERFACE)
target_include_directories(assay_nccl SYSTEM INTERFACE ${NCCL_INCLUDE_DIR})

add_library(assay_cudnn INTERFACE)
target_include_directories(assay_cudnn SYSTEM INTERFACE
  ${CUDNN_FRONTEND_INCLUDE_DIR} ${CUDNN_INCLUDE_DIR})
target_link_libraries(assay_cudnn INTERFACE ${CUDNN_LIBRARY})
# CMake 3.25 does not know that nvcc supports C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
if(ASSAY_CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
set(ASSAY_CUDA ON)

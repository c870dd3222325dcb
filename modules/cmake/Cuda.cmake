# Uses the compiler of the toolkit that was found, for GPUs from T4 and A100 to H100. For later GPUs, the driver
# compiles kernels when it loads them.
if(NOT CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)
endif()
set(CMAKE_CUDA_STANDARD 17)  # the latest that CMake 3.25 supports with nvcc
set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)
enable_language(CUDA)

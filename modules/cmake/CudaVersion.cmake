# Refuses a CUDA toolkit, or an NCCL, of another major version than LibTorch was built for: the program would load two
# CUDA runtimes, or none that LibTorch finds.
string(REGEX MATCH "^[0-9]+" libtorch_major "${LibTorch_CUDA_VERSION}")

# check_cuda_major(WHAT VERSION MODULE): WHAT is of CUDA version VERSION; MODULE would fit.
function(check_cuda_major what version module)
  string(REGEX MATCH "^[0-9]+" major "${version}")
  if(major AND libtorch_major AND NOT major EQUAL libtorch_major)
    message(FATAL_ERROR "${what} is of CUDA ${version}, but LibTorch ${LibTorch_VERSION} in ${LibTorch_ROOT} was built "
      "for CUDA ${LibTorch_CUDA_VERSION}. Their major versions must be equal: take ${module}.")
  endif()
endfunction()

check_cuda_major("the toolkit in ${CUDAToolkit_BIN_DIR}" "${CUDAToolkit_VERSION}"
  "a module of CUDA ${libtorch_major}, or set CUDAToolkit_ROOT")
check_cuda_major("NCCL ${NCCL_VERSION} in ${NCCL_LIBRARY}" "${NCCL_CUDA_VERSION}"
  "a module of NCCL for CUDA ${libtorch_major}, or the wheel nvidia-nccl-cu${libtorch_major} (set NCCL_ROOT)")

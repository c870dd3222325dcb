# shellcheck shell=bash
# What the CUDA flavour needs, for the CUDA version that LibTorch was built with: a compiler, NCCL, and the libraries
# that LibTorch loads. They come from a toolkit that fits and from loaded modules, and what is missing from wheels. To
# be sourced; needs `fail`, `unpack`, `pins_of` and `deps` of bootstrap.sh, and LIBTORCH_ROOT.

# Wheels of one CUDA version, in the versions that LibTorch 2.11.0 was built and tested with.
readonly wheels_cuda=13.0
readonly compiler_wheels=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88
  nvidia-cuda-cccl==13.0.85 nvidia-cuda-runtime==13.0.96)
readonly nccl_wheel=nvidia-nccl-cu13==2.28.9
# "library wheels": which wheels have a library that LibTorch loads, and what that loads in turn.
readonly library_wheels=(
  "libcudart.so.13 nvidia-cuda-runtime==13.0.96"
  "libcupti.so.13 nvidia-cuda-cupti==13.0.85"
  "libnvrtc.so.13 nvidia-cuda-nvrtc==13.0.88"
  "libcublas.so.13 nvidia-cublas==13.1.0.3"
  "libcublasLt.so.13 nvidia-cublas==13.1.0.3"
  "libcufft.so.12 nvidia-cufft==12.0.0.61 nvidia-nvjitlink==13.0.88"
  "libcurand.so.10 nvidia-curand==10.4.0.35"
  "libcusolver.so.12 nvidia-cusolver==12.0.4.66 nvidia-nvjitlink==13.0.88"
  "libcusparse.so.12 nvidia-cusparse==12.6.3.3 nvidia-nvjitlink==13.0.88"
  "libcufile.so.0 nvidia-cufile==1.15.1.6"
  "libcudnn.so.9 nvidia-cudnn-cu13==9.19.0.56"
  "libcusparseLt.so.0 nvidia-cusparselt-cu13==0.8.0"
  "libnvshmem_host.so.3 nvidia-nvshmem-cu13==3.4.5"
  "libnccl.so.2 $nccl_wheel")

# The CUDA version that LibTorch was built with: "13.0" from a wheel, only "13" from an archive; empty for a CPU build.
cuda_of_libtorch() {
  local told
  [[ -e $LIBTORCH_ROOT/lib/libc10_cuda.so ]] || return 0
  told=$(sed -n "s/^cuda.*= *'\([0-9.]*\)'.*/\1/p" "$LIBTORCH_ROOT/version.py" 2> /dev/null || true)
  [[ -n $told ]] || told=$(grep -aoE 'libcudart[-a-z0-9]*\.so\.[0-9]+' "$LIBTORCH_ROOT/lib/libc10_cuda.so" |
    sed -n '1s/.*\.so\.//p')
  printf '%s\n' "$told"
}

# The toolkit of this machine: CUDA_HOME, else that of the nvcc on PATH, else /usr/local/cuda. It may not exist.
toolkit_here() {
  local nvcc folder
  if [[ -n ${CUDA_HOME:-} ]]; then
    printf '%s\n' "$CUDA_HOME"
    return
  fi
  if nvcc=$(command -v nvcc); then
    folder=$(dirname "$(dirname "$(realpath "$nvcc")")")
    if [[ -e $folder/include/cuda_runtime.h ]]; then # else it is a script that calls another
      printf '%s\n' "$folder"
      return
    fi
  fi
  echo /usr/local/cuda
}

# version_of_toolkit FOLDER: "12.6"; empty if there is no compiler that works.
version_of_toolkit() {
  [[ ! -x $1/bin/nvcc ]] || { "$1/bin/nvcc" --version 2> /dev/null || true; } | sed -n 's/.*release \([0-9.]*\),.*/\1/p'
}

# Folders of libraries: of the toolkit, of NCCL, of loaded modules, and of the wheels beside LibTorch's. None without a
# toolkit that fits: the headers come with the wheels of the libraries.
library_folders() {
  [[ -n $cuda_toolkit ]] || return 0
  local folder
  local -a loaded=()
  IFS=: read -ra loaded <<< "${LD_LIBRARY_PATH:-}"
  for folder in "$cuda_toolkit/lib64" "$cuda_toolkit/lib" "${NCCL_ROOT:-}/lib" "${NCCL_HOME:-}/lib" \
    ${loaded[@]+"${loaded[@]}"} "$LIBTORCH_ROOT/lib" "$LIBTORCH_ROOT"/../nvidia/*/lib; do
    [[ $folder != /lib && -d $folder ]] && printf '%s\n' "$folder"
  done
  return 0
}

# folder_of LIBRARY: where it lies; fails if it is nowhere.
folder_of() {
  local folder
  while read -r folder; do
    [[ ! -e $folder/$1 ]] || { printf '%s\n' "$folder"; return; }
  done < <(library_folders)
  return 1
}

# wheels_of LIBRARY: the wheels that bring it, or the library itself if none does.
wheels_of() {
  printf '%s\n' "${library_wheels[@]}" | awk -v library="$1" '
    $1 == library { $1 = ""; print; found = 1 }
    END { if (!found) print library }'
}

# Sets nccl_root to the folder that has NCCL's header, if there is one.
find_nccl() {
  local folder
  nccl_root=
  for folder in "${NCCL_ROOT:-}" "${NCCL_HOME:-}" "$cuda_toolkit"; do
    if [[ -n $folder && -e $folder/include/nccl.h ]]; then
      nccl_root=$folder
      return
    fi
  done
}

# The libraries of CUDA that LibTorch's own load; the driver's is not among them.
libraries_of_libtorch() {
  readelf -d "$LIBTORCH_ROOT"/lib/lib{torch_cuda,torch_cuda_linalg,torch_cpu,torch_nvshmem,caffe2_nvrtc,c10_cuda}.so \
    2> /dev/null | sed -nE 's/.*\(NEEDED\).*\[(lib(cu|nv|nccl)[^]]*)\]/\1/p' | grep -v '^libcuda\.so' | sort -u
}

unique() { awk 'NF && !seen[$0]++'; }

# Sets cuda_toolkit (empty if the one here does not fit), nccl_root, cuda_library_dirs, and `wheels`, which would bring
# what is missing.
resolve_cuda() {
  local version library folder wanted=() found=()
  libtorch_cuda=$(cuda_of_libtorch)
  [[ -n $libtorch_cuda ]] || fail "LibTorch in $LIBTORCH_ROOT was built without CUDA: take one with CUDA, or leave" \
    "LIBTORCH_ROOT out"
  cuda_toolkit=$(toolkit_here)
  version=$(version_of_toolkit "$cuda_toolkit")
  if [[ ${version%%.*} == "${libtorch_cuda%%.*}" ]]; then
    echo "CUDA toolkit: $version in $cuda_toolkit"
  else
    [[ -z $version ]] || echo "CUDA $version in $cuda_toolkit does not fit: LibTorch was built for CUDA $libtorch_cuda"
    cuda_toolkit=
    wanted+=("${compiler_wheels[@]}")
  fi
  find_nccl
  [[ -n $nccl_root ]] || wanted+=("$nccl_wheel")
  for library in $(libraries_of_libtorch); do
    if folder=$(folder_of "$library"); then
      found+=("$folder")
    else
      wanted+=("$(wheels_of "$library")")
    fi
  done
  mapfile -t wheels < <(printf '%s\n' ${wanted[@]+"${wanted[@]}"} | tr ' ' '\n' | unique)
  mapfile -t cuda_library_dirs < <(printf '%s\n' ${found[@]+"${found[@]}"} | unique)
}

# Sets cuda_toolkit, nccl_root and cuda_library_dirs, and downloads what is missing.
provide_cuda() {
  resolve_cuda
  ((${#wheels[@]} > 0)) || return 0
  echo "missing, and taken from wheels: ${wheels[*]}"
  [[ ${libtorch_cuda%%.*} == "${wheels_cuda%%.*}" ]] ||
    fail "LibTorch in $LIBTORCH_ROOT was built for CUDA $libtorch_cuda, but the wheels are of CUDA $wheels_cuda: load" \
      "modules of CUDA ${libtorch_cuda%%.*} with NCCL and cuDNN, or leave LIBTORCH_ROOT out"
  local folder
  folder=${deps:?}/cuda-$wheels_cuda-$(pins_of "${wheels[@]}")
  [[ -d $folder ]] || unpack "$folder" --no-deps "${wheels[@]}"
  folder=$folder/nvidia
  if [[ -z $cuda_toolkit ]]; then
    cuda_toolkit=$folder/cu13
    # The names that compiler, linker and CMake look for.
    [[ -e $cuda_toolkit/lib64 ]] || ln -s lib "$cuda_toolkit/lib64"
    [[ -e $cuda_toolkit/lib/libcudart.so ]] || ln -s libcudart.so.13 "$cuda_toolkit/lib/libcudart.so"
  fi
  [[ -n $nccl_root ]] || nccl_root=$folder/nccl
  cuda_library_dirs=("$folder"/*/lib ${cuda_library_dirs[@]+"${cuda_library_dirs[@]}"})
}

# check_libraries PROGRAM: it finds all its libraries without LD_LIBRARY_PATH, as on a node without the modules of the
# build.
check_libraries() {
  local problems
  problems=$(env -u LD_LIBRARY_PATH ldd -r "$1" 2>&1 | grep -E 'not found|undefined symbol') || return 0
  fail "$1 does not find all its libraries, or finds other versions: $problems"
}

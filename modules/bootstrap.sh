#!/usr/bin/env bash
# From a fresh machine to a running stratagem. May be repeated: what is already there stays as it is.
#
#   modules/bootstrap.sh build [--gpu]    install what is missing, build build/stratagem
#   modules/bootstrap.sh demo [--gpu]     build, then run `stratagem demo`
#   modules/bootstrap.sh test             build everything, run all tests; with a CUDA toolkit also the CUDA flavour's
#
#   --gpu    build build-cuda-release/stratagem, for CUDA and NCCL. The build needs no GPU. Compiler, NCCL, cuDNN and
#            all that LibTorch loads come from a CUDA toolkit or modules that fit, and what is missing from wheels, up
#            to 3 GB.
#
# LIBTORCH_ROOT    a LibTorch of your own (the folder with include/ and lib/) instead of a download
# CUDA_HOME        CUDA toolkit; default: that of the nvcc on PATH, or /usr/local/cuda
# NCCL_ROOT        NCCL, if it is not in the toolkit
# STRATAGEM_DEPS   where downloads go; default ${XDG_CACHE_HOME:-~/.cache}/stratagem
# STRATAGEM_WERROR ON: compiler warnings are errors, as in CI; default OFF, because compilers differ
# STRATAGEM_DATA   folder with mnist/ and cifar-10-batches-bin/, for the tests that read real data
#
# Examples:
#   modules/bootstrap.sh demo
#   modules/bootstrap.sh build --gpu
#   LIBTORCH_ROOT=$HOME/libtorch modules/bootstrap.sh build
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=modules/lib/packages.sh
source modules/lib/packages.sh
# shellcheck source=modules/lib/cuda.sh
source modules/lib/cuda.sh

readonly torch_version=2.11.0
readonly packages=(openmpi-bin libopenmpi-dev libhdf5-dev hdf5-tools libyaml-cpp-dev
  libboost-program-options-dev nlohmann-json3-dev libgtest-dev ccache ninja-build zlib1g-dev libjpeg-dev libpng-dev
  libssl-dev g++ cmake git python3 python3-pip python3-venv)
# For the tests of slurm/, modulefiles, completion and downloads. No daemon is started.
readonly test_packages=(slurm-wlm munge iproute2 lmod tcl shellcheck zsh curl)
# For the fuzz targets and the model of the parameter server; left out if the system does not have them.
readonly optional_packages=(clang-14 libclang-rt-14-dev spin)
# What LibTorch's wheel needs to compute on a CPU.
readonly torch_wheels=("torch==$torch_version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
readonly oracle_wheels=(torchvision==0.26.0 numpy pillow safetensors h5py typing_extensions sympy mpmath
  networkx jinja2 markupsafe filelock fsspec transformers==5.24.0 tokenizers==0.23.3 huggingface_hub==2.4.0
  httpx2==2.16.2 httpcore2==2.16.2 truststore h11 idna packaging pyyaml regex tqdm)
# The packages of analysis/requirements.txt and of analysis/tokenize_text.py, in the versions that the tests use.
readonly analysis_wheels=(h5py==3.16.0 pandas==2.3.3 matplotlib==3.10.8 jinja2==3.1.6 scipy==1.17.1 tokenizers==0.23.3)

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'bootstrap: %s\n' "$*" >&2; exit 3; }

timings=()
# phase NAME COMMAND...: runs it and remembers how long it took.
phase() {
  local name=$1 begin=$SECONDS
  shift
  say "$name"
  "$@"
  timings+=("$(printf '%-28s %5d s' "$name" $((SECONDS - begin)))")
}
print_timings() { say "seconds by phase"; printf '%s\n' "${timings[@]}"; }

has_fuzzer() {
  command -v clang++-14 > /dev/null &&
    compgen -G "$(clang++-14 -print-resource-dir)/lib/linux/libclang_rt.fuzzer-*.a" > /dev/null
}

# The tests build the CUDA flavour only where that takes no large download.
has_cuda_toolkit() { [[ -e $(toolkit_here)/bin/nvcc && -e $(toolkit_here)/include/nccl.h ]]; }

# ---- LibTorch and the tests' Python ---------------------------------------------------------------

# unpack FOLDER WHEELS...: pip unpacks the wheels into FOLDER, which appears complete or not at all.
unpack() {
  local folder=$1 temporary
  shift
  check_python
  echo "downloading into $folder"
  mkdir -p "$deps"
  temporary=$(mktemp -d "$deps/.unpacking.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$temporary'" EXIT
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-cache-dir --no-compile \
    --target "$temporary" "$@"
  chmod 755 "$temporary"
  mv -T "$temporary" "$folder" 2> /dev/null || [[ -d $folder ]] || fail "cannot create $folder"
  rm -rf "$temporary"
  trap - EXIT
}

provide_libtorch() {
  if [[ -n ${LIBTORCH_ROOT:-} ]]; then
    [[ -e $LIBTORCH_ROOT/include/ATen/ATen.h ]] || fail "LIBTORCH_ROOT=$LIBTORCH_ROOT has no include/ATen/ATen.h"
  else
    local folder=$deps/torch-$torch_version-$python_tag
    [[ -d $folder ]] || unpack "$folder" --no-deps "${torch_wheels[@]}"
    export LIBTORCH_ROOT=$folder/torch
  fi
  echo "LibTorch: $LIBTORCH_ROOT"
}

# write_python FILE MODULES [LIBRARIES]: writes a `python` that finds packages in the folders MODULES.
write_python() {
  local libraries=
  [[ -z ${3:-} ]] || libraries="export LD_LIBRARY_PATH=\"$3\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\""
  cat > "$1.$$" << END
#!/bin/sh
# The Python of this machine with the packages that some tests need.
export PYTHONPATH="$2"
$libraries
export PYTHONDONTWRITEBYTECODE=\${PYTHONDONTWRITEBYTECODE-1}
exec "$(python3 -c 'import sys; print(sys.executable)')" "\$@"
END
  chmod 755 "$1.$$"
  mv "$1.$$" "$1"
}

pins_of() { printf '%s\n' "$@" | cksum | cut -d' ' -f1; } # a number that stands for the packages
# The Python that the tests compare with. If a CUDA toolkit has the libraries that `import torch` loads, LibTorch's own
# wheel is enough; otherwise it needs all of torch's wheels (5 GB).
provide_oracle() {
  local wheel=$LIBTORCH_ROOT/.. cuda_libraries=
  if has_cuda_toolkit && [[ -e $wheel/torch/__init__.py ]]; then
    provide_cuda
    cuda_libraries=$(IFS=: && echo "${cuda_library_dirs[*]}")
    oracle=$deps/oracle-$torch_version-$(pins_of "${oracle_wheels[@]}")-$python_tag
    [[ -d $oracle ]] || unpack "$oracle" --no-deps "${oracle_wheels[@]}"
  else
    wheel=
    oracle=$deps/oracle-full-$torch_version-$(pins_of "${oracle_wheels[@]}")-$python_tag
    [[ -d $oracle ]] || unpack "$oracle" "torch==$torch_version" "${oracle_wheels[@]}"
  fi
  write_python "$oracle/python-oracle" "$oracle${wheel:+:$(realpath "$LIBTORCH_ROOT/..")}" "$cuda_libraries"
  # Compiled once here, so that every test starts seconds sooner.
  PYTHONDONTWRITEBYTECODE='' "$oracle/python-oracle" -c '
import h5py, safetensors.torch, torch, torchvision, transformers.models.gpt2.modeling_gpt2
print("oracle: torch", torch.__version__)'
}

# The Python that makes reports.
provide_analysis() {
  analysis=$deps/analysis-$(pins_of "${analysis_wheels[@]}")-$python_tag
  if [[ ! -d $analysis ]]; then
    unpack "$analysis" "${analysis_wheels[@]}"
    python3 -m compileall -q "$analysis" > /dev/null || true # saves every test seconds
  fi
  write_python "$analysis/python-analysis" "$analysis"
  "$analysis/python-analysis" -c 'import matplotlib, pandas; print("analysis: pandas", pandas.__version__)'
}

# ---- build and test -----------------------------------------------------------------------------

# A compiler process with LibTorch's headers takes up to 2 GB.
compile_jobs() {
  local by_memory
  by_memory=$(awk '/MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  echo $((by_memory < 1 ? 1 : by_memory < $(nproc) ? by_memory : $(nproc)))
}

configure() { cmake --preset "$@"; }
# At low priority: Slurm's tests run meanwhile and must not miss their timers.
compile() { nice cmake --build --preset "$1" --parallel "$(compile_jobs)" "${@:2}"; }
run_tests() { ctest --preset "$1" --parallel "$(nproc)" "${@:2}"; }
# These tests mostly wait for Slurm's timers, so they run during the builds. A test that misses a timer is run once
# more.
begin_slurm_tests() {
  ctest --preset cpu-release --label-regex slurm --parallel 4 --repeat until-pass:2 > build/slurm-tests.log 2>&1 &
  slurm_tests=$!
  trap wait EXIT
}
end_slurm_tests() {
  local passed=true
  wait "$slurm_tests" || passed=false
  cat build/slurm-tests.log
  $passed
}

build_program() {
  phase "configure" configure cpu-release "${options[@]}"
  phase "build" compile cpu-release --target stratagem
}

# Another toolkit than last time starts CMake's cache anew.
configure_cuda() {
  local cache=build-cuda-release/CMakeCache.txt fresh=()
  [[ ! -e $cache ]] || grep -q "^CUDAToolkit_ROOT:[A-Z]*=$cuda_toolkit\$" "$cache" || fresh=(--fresh)
  configure cuda-release ${fresh[@]+"${fresh[@]}"} "${options[@]}" -D "CUDAToolkit_ROOT=$cuda_toolkit" \
    -D "NCCL_ROOT=$nccl_root" -D "STRATAGEM_LIBRARY_DIRS=$(IFS=';' && echo "${cuda_library_dirs[*]}")"
}

build_gpu_program() {
  phase "CUDA" provide_cuda
  phase "configure" configure_cuda
  phase "build" compile cuda-release --target stratagem
  phase "libraries" check_libraries build-cuda-release/stratagem
}

test_everything() {
  phase "test packages" install_packages "${test_packages[@]}"
  phase "optional packages" provide_optional_packages
  provide_environment_modules
  phase "oracle" provide_oracle
  phase "analysis" provide_analysis
  phase "configure" configure cpu-release "${options[@]}" -D "STRATAGEM_ORACLE_PYTHON=$oracle/python-oracle" \
    -D "STRATAGEM_ANALYSIS_PYTHON=$analysis/python-analysis"
  phase "build" compile cpu-release
  phase "test" run_tests cpu-release --label-exclude 'long|slurm'
  begin_slurm_tests
  if has_fuzzer; then
    phase "configure fuzz targets" configure fuzz "${options[@]}"
    phase "build fuzz targets" compile fuzz
    phase "fuzz" nice ctest --preset fuzz --parallel "$(nproc)" --no-tests=error
  else
    echo "no clang++-14 with libFuzzer: the fuzz targets are SKIPPED"
  fi
  if has_cuda_toolkit; then
    phase "configure CUDA" configure_cuda
    phase "build CUDA" compile cuda-release --target stratagem fake_tests gpu_tests
    phase "test CUDA without a GPU" test_cuda
  else
    echo "no CUDA toolkit with NCCL in $(toolkit_here): the CUDA flavour is not built"
  fi
  phase "test Slurm, what is left" end_slurm_tests
}

# The NCCL and CUDA code against fakes, and on a GPU if there is one. Without one, the program must start and say so.
test_cuda() {
  check_libraries build-cuda-release/stratagem
  run_tests cuda-release --label-regex 'fake|gpu' --no-tests=error
  local told
  told=$(CUDA_VISIBLE_DEVICES='' build-cuda-release/stratagem info)
  echo "$told"
  grep -q '^GPUs *none' <<< "$told" || { echo "info does not say that there is no GPU" >&2; return 1; }
}

# The comment at the top of this file.
usage() { sed -n '2,/^set /s/^# \{0,1\}//p' modules/bootstrap.sh; }

main() {
  [[ ${1:-} != -h && ${1:-} != --help ]] || { usage; exit 0; }
  [[ $* =~ ^(build|demo|test|(build|demo) --gpu)$ ]] || { usage >&2; exit 2; }
  deps=${STRATAGEM_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/stratagem}
  # The same settings for all commands, so that one command reuses what another compiled.
  options=(-D "STRATAGEM_WERROR=${STRATAGEM_WERROR:-OFF}")
  if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
  phase "packages" install_packages "${packages[@]}"
  python_tag=py$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  phase "LibTorch" provide_libtorch
  case $* in
    build) build_program ;;
    "build --gpu") build_gpu_program ;;
    demo) build_program; phase "demo" build/stratagem demo ;;
    "demo --gpu") build_gpu_program; phase "demo" build-cuda-release/stratagem demo ;;
    test) test_everything ;;
  esac
  print_timings
}

main "$@"

# Finds LibTorch in a Python wheel or an unpacked archive, without its own CMake files. For a CUDA build of LibTorch,
# those require a CUDA toolkit, and then compile for architectures that it lacks.
#
# Looks in LIBTORCH_ROOT (variable, then environment), then in the folder from which `python3` imports torch.
# Defines LibTorch::LibTorch, LibTorch_VERSION, LibTorch_ROOT; LibTorch_CUDA_VERSION, of which an archive tells only the
# major number, is empty for a CPU build.
set(candidates ${LIBTORCH_ROOT} $ENV{LIBTORCH_ROOT})
if(NOT candidates)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(Python3_FOUND)
    execute_process(COMMAND ${Python3_EXECUTABLE} -c
      "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE candidates OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h PATHS ${candidates} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_library(LibTorch_CPU_LIBRARY torch_cpu PATHS ${candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(LibTorch_C10_LIBRARY c10 PATHS ${candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
set(required LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR)
if(STRATAGEM_CUDA)
  find_library(LibTorch_CUDA_LIBRARY torch_cuda PATHS ${candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
  find_library(LibTorch_C10_CUDA_LIBRARY c10_cuda PATHS ${candidates} PATH_SUFFIXES lib NO_DEFAULT_PATH)
  list(APPEND required LibTorch_CUDA_LIBRARY LibTorch_C10_CUDA_LIBRARY)
endif()

if(LibTorch_INCLUDE_DIR)
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(NOT LibTorch_VERSION AND EXISTS ${LibTorch_INCLUDE_DIR}/${header})
      file(STRINGS ${LibTorch_INCLUDE_DIR}/${header} lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
      string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
      string(REPLACE ";" "." LibTorch_VERSION "${numbers}")
    endif()
  endforeach()
endif()
if(LibTorch_C10_LIBRARY)
  # The library's mangled names show with which std::string it was compiled.
  file(STRINGS ${LibTorch_C10_LIBRARY} cxx11_names REGEX "_ZN3c105ErrorC.*B5cxx11|_ZN3c10.*__cxx11" LIMIT_COUNT 1)
  if(cxx11_names)
    set(LibTorch_CXX11_ABI 1)
  else()
    set(LibTorch_CXX11_ABI 0)
  endif()
  get_filename_component(library_dir ${LibTorch_C10_LIBRARY} DIRECTORY)
  get_filename_component(LibTorch_ROOT ${library_dir} DIRECTORY)
endif()
if(LibTorch_C10_CUDA_LIBRARY)
  if(EXISTS ${LibTorch_ROOT}/version.py)
    file(STRINGS ${LibTorch_ROOT}/version.py lines REGEX "^cuda.*'[0-9.]+'")
    string(REGEX MATCH "[0-9]+[.0-9]*" LibTorch_CUDA_VERSION "${lines}")
  endif()
  if(NOT LibTorch_CUDA_VERSION)
    file(STRINGS ${LibTorch_C10_CUDA_LIBRARY} names REGEX "libcudart[-a-z0-9]*\\.so\\.[0-9]+" LIMIT_COUNT 1)
    string(REGEX REPLACE ".*\\.so\\.([0-9]+).*" "\\1" LibTorch_CUDA_VERSION "${names}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS ${required} VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "set -DLIBTORCH_ROOT=<folder with include/ and lib/>, or run modules/bootstrap.sh")

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch SYSTEM INTERFACE
    ${LibTorch_INCLUDE_DIR} ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include)
  target_compile_definitions(LibTorch::LibTorch INTERFACE _GLIBCXX_USE_CXX11_ABI=${LibTorch_CXX11_ABI})
  # Kernels register themselves in static initialisers: link the libraries although no symbol is used.
  set(libraries ${LibTorch_CPU_LIBRARY} ${LibTorch_C10_LIBRARY})
  if(STRATAGEM_CUDA)
    list(PREPEND libraries ${LibTorch_CUDA_LIBRARY} ${LibTorch_C10_CUDA_LIBRARY})
    # libtorch_cuda needs libraries (nvshmem, cusparseLt, cufile) that must be found only when it is loaded.
    target_link_options(LibTorch::LibTorch INTERFACE LINKER:--allow-shlib-undefined LINKER:--disable-new-dtags)
    target_link_libraries(LibTorch::LibTorch INTERFACE CUDA::cudart)
  endif()
  list(JOIN libraries "," joined)
  target_link_libraries(LibTorch::LibTorch INTERFACE
    "-Wl,--push-state,--no-as-needed,${joined},--pop-state")
  # The wheel's libraries find each other by RPATH; the program needs its own path.
  file(GLOB neighbour_dirs ${LibTorch_ROOT}/../nvidia/*/lib)
  set(LibTorch_RPATH ${library_dir} ${neighbour_dirs} ${STRATAGEM_LIBRARY_DIRS})
endif()
mark_as_advanced(LibTorch_INCLUDE_DIR LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY
  LibTorch_CUDA_LIBRARY LibTorch_C10_CUDA_LIBRARY)

# shellcheck shell=bash
# What the system has to offer: its packages, or its tools where it has no dpkg. To be sourced; needs `fail`, `deps` and
# `optional_packages` of bootstrap.sh.

# install_packages NAMES...
install_packages() {
  if ! command -v dpkg-query > /dev/null; then
    check_tools
    return
  fi
  local package missing=()
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2> /dev/null) == installed ]] || missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    echo "all packages are installed"
    return
  fi
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo > /dev/null && { sudo -n true 2> /dev/null || [[ -t 0 ]]; } ||
      fail "missing packages, and neither root nor sudo to install them: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get -q update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get -qy install --no-install-recommends "${missing[@]}"
}

provide_optional_packages() {
  local package
  (install_packages "${optional_packages[@]}") || for package in "${optional_packages[@]}"; do
    (install_packages "$package") || echo "no package $package: its tests will be skipped"
  done
}

# Environment Modules cannot be installed together with Lmod; for the test of the modulefiles it is unpacked instead.
provide_environment_modules() {
  local folder=$deps/environment-modules temporary
  [[ ! -d $folder ]] && command -v dpkg > /dev/null || return 0
  temporary=$(mktemp -d)
  chmod 755 "$temporary"
  if (cd "$temporary" && apt-get -q download environment-modules && dpkg -x ./*.deb root); then
    mkdir -p "$deps"
    mv -T "$temporary/root" "$folder" 2> /dev/null || [[ -d $folder ]]
  else
    echo "no package environment-modules: its test will be skipped"
  fi
  rm -rf "$temporary"
}

# Without dpkg, as on most clusters, these come from modules or from the system's own packages.
check_tools() {
  local tool missing=()
  for tool in g++ cmake ninja git mpicc mpirun h5dump python3; do
    command -v "$tool" > /dev/null || missing+=("$tool")
  done
  ((${#missing[@]} == 0)) ||
    fail "not on PATH: ${missing[*]}; load modules for GCC >= 12, CMake >= 3.25, Ninja, Open MPI, HDF5, yaml-cpp," \
      "Boost, nlohmann-json, libjpeg-turbo, libpng," \
      "OpenSSL >= 3 (for strategy.secure), GoogleTest and Python >= 3.10, or install them"
}

check_python() {
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "$(python3 --version) is too old for LibTorch $torch_version: needs Python >= 3.10, or set LIBTORCH_ROOT"
  python3 -m pip --version > /dev/null 2>&1 ||
    fail "python3 has no pip: install python3-pip (or run python3 -m ensurepip), or set LIBTORCH_ROOT"
}

#!/usr/bin/env bash
# Tries both commands of the README on a fresh system, in a chroot, and records the results.
#
#   modules/check-in-chroot.sh [OPTIONS] debian-12|debian-13|ubuntu-24.04
#
# Makes the system with debootstrap if it does not exist yet, clones this checkout's HEAD into it, runs
# `modules/bootstrap.sh demo` and `modules/bootstrap.sh test`, and writes a record: versions, minutes, tests
# passed and skipped, digests of the demo. Exits with 0 if both passed, 1 if one failed, 3 if the system
# cannot be made. Needs root, debootstrap, 15 GB, and half an hour to two hours.
#
#   --only COMMAND   only demo, or only test; or gpu: `modules/bootstrap.sh build --gpu` by a user who may install no
#                    packages, after root has installed those that it names; then what `ldd`, `info` and a job with GPUs
#                    say of the program, with an empty environment
#   --root DIR       folder of the system, which is kept for the next time; default /var/tmp/stratagem-SYSTEM
#   --fresh          make the system again
#   --remove         remove it at the end
#   --data DIR       STRATAGEM_DATA, for the tests that read real data; read-only in the chroot
#   --mirror URL     package mirror; default: this machine's, if it runs the same distribution, else debootstrap's
#   --keyring FILE   keys that sign its packages; default: those of this machine in /usr/share/keyrings
#   --record FILE    file for the record; default SYSTEM.txt in the current directory
#
# Examples:
#   sudo modules/check-in-chroot.sh --data ~/data debian-13
#   sudo modules/check-in-chroot.sh --only demo --remove ubuntu-24.04
#
# The chroot uses this machine's certificates, and its settings of proxies and mirrors for pip and apt.
set -euo pipefail
readonly user_home=/srv/user # in the system
readonly mark=.made-by-check-in-chroot # only folders with this file are ever removed

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" | sed '/^set /d'; }
fail() { local code=$1; shift; printf 'check-in-chroot: %s\n' "$*" >&2; exit "$code"; }
say() { printf '\n== %s\n' "$*"; }

# ---- the system ---------------------------------------------------------------------------------

# mirror_of DISTRIBUTION: this machine's package mirror, if it runs that distribution.
mirror_of() {
  grep -qE "^ID=\"?$1\"?\$" /etc/os-release || return 0
  # Not every machine has all of these files.
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2> /dev/null || true; } |
    sed -nE "s#^(deb(-src)? (\[[^]]*\] )?|URIs: *)(https?://[^ ]*/$1/?)( .*)?\$#\4#p" | head -n 1
}

# make_system: debootstrap, with the mirrors, proxies and certificates of this machine.
make_system() {
  local script=/usr/share/debootstrap/scripts/$suite
  keyring=${keyring:-/usr/share/keyrings/$distribution-archive-keyring.gpg}
  [[ -e $keyring ]] || fail 3 "no $keyring: install the package $distribution-archive-keyring or" \
    "$distribution-keyring, or name that file with --keyring; without it $system cannot be tried here"
  # An older debootstrap does not know newer suites; all suites of a distribution use the same script.
  [[ -e $script ]] || script=/usr/share/debootstrap/scripts/$like
  [[ -n $mirror ]] || mirror=$(mirror_of "$distribution")
  rm -rf --one-file-system "$root" "$root.new"
  mkdir -p "$root.new"
  unshare --mount --pid --fork --kill-child debootstrap --variant=minbase --include=ca-certificates \
    --components="$components" --keyring="$keyring" "$suite" "$root.new" "$mirror" "$script" ||
    { tail -n 3 "$root.new/debootstrap/debootstrap.log" >&2 || true; fail 3 "debootstrap cannot make $system"; }
  sed -nE "s/^(deb .*) $suite (.*)/\1 $suite-updates \2/p" "$root.new/etc/apt/sources.list" > "$root.new/tmp/updates"
  cat "$root.new/tmp/updates" >> "$root.new/etc/apt/sources.list"
  # Packages must not start daemons.
  printf '#!/bin/sh\nexit 101\n' > "$root.new/usr/sbin/policy-rc.d"
  chmod 755 "$root.new/usr/sbin/policy-rc.d"
  touch "$root.new/$mark"
  mv -T "$root.new" "$root"
}

# Each time, because settings may have changed.
prepare() {
  local file
  rm -f "$root/etc/resolv.conf" # a link, on some systems
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  [[ ! -e /etc/pip.conf ]] || cp /etc/pip.conf "$root/etc/"
  for file in $(grep -lsE '^Acquire::' /etc/apt/apt.conf.d/* || true); do cp "$file" "$root/etc/apt/apt.conf.d/"; done
  for file in /usr/local/share/ca-certificates/*.crt; do
    [[ ! -e $file ]] || cp "$file" "$root/usr/local/share/ca-certificates/"
  done
  chroot "$root" update-ca-certificates > /dev/null
  # Of launchers that were killed. Process ids begin anew, and a launcher that gets such a one would fail.
  rm -rf "$root"/tmp/prterun.*
}

# inside COMMAND...: runs it in the system, in its own mount and process namespaces, which the kernel always removes.
inside() {
  local carried=() name
  for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_DEFAULT_TIMEOUT http_proxy https_proxy no_proxy \
    HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    [[ -z ${!name:-} ]] || carried+=("$name=${!name}")
  done
  [[ -z $data ]] || carried+=(STRATAGEM_DATA=/data)
  # shellcheck disable=SC2016
  unshare --mount --pid --fork --kill-child bash -euc '
    root=$1 data=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    if [[ -n $data ]]; then
      mkdir -p "$root/data"
      mount --bind "$data" "$root/data"
      mount -o remount,bind,ro "$root/data"
    fi
    exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
    inside "$root" "$data" "${carried[@]}" "$@"
}

# ---- the record ---------------------------------------------------------------------------------

# The versions that a bug report needs.
# shellcheck disable=SC2016 # for the shell inside
versions() {
  inside bash -c '
    . /etc/os-release && echo "$PRETTY_NAME"
    g++ --version | head -n 1
    cmake --version | head -n 1
    mpirun --version | head -n 1
    [ ! -x /stratagem/build/stratagem ] || /stratagem/build/stratagem info | grep -vE "^(host|ranks|CUDA|GPU)"
    python3 --version
    dpkg-query -W -f "\${Package} \${Version}\n" libyaml-cpp-dev libopenmpi-dev libhdf5-dev \
      libboost-program-options-dev nlohmann-json3-dev libgtest-dev slurm-wlm 2> /dev/null' 2>&1 || true
}

# digests_of: digests of the demo's runs.
digests() {
  local outcome
  for outcome in "$root"/stratagem/runs/demo-*/*/outcome.json; do
    [[ -e $outcome ]] || continue
    printf '%-16s %s\n' "$(basename "$(dirname "$outcome")")" \
      "$(sed -nE 's/.*"digest": *"([^"]*)".*/\1/p' "$outcome")"
  done
}

# of_tests LOG: ctest's summaries.
of_tests() {
  grep -E '^[0-9]+% tests passed' "$1" || true
  grep -E '\((Failed|Timeout|Skipped|SEGFAULT|Subprocess aborted|Not Run)\)$' "$1" | sort -u || true
  sed -n '/^== seconds by phase/,$p' "$1"
}

# run_command COMMAND
# shellcheck disable=SC2016 # for the shell inside
run_command() {
  if [[ $1 == gpu ]]; then
    build_gpu_as_user
  else
    inside bash -c 'cd /stratagem && exec modules/bootstrap.sh "$1"' bootstrap "$1"
  fi
}

# try_command COMMAND: runs it and appends to the record.
try_command() {
  local log=$root/var/log/stratagem-$1.log begin=$SECONDS ended=passed words=$1
  [[ $1 != gpu ]] || words='build --gpu, by a user without root'
  say "modules/bootstrap.sh $words"
  run_command "$1" 2>&1 | tee "$log" || { ended=FAILED; result=1; }
  {
    printf '\nmodules/bootstrap.sh %s: %s, %s min\n' "$words" "$ended" \
      "$(awk -v s=$((SECONDS - begin)) 'BEGIN { printf "%.1f", s / 60 }')"
    [[ $1 == demo ]] && digests
    [[ $1 == test ]] && of_tests "$log"
    [[ $1 == gpu ]] && sed -n '/^== seconds by phase/,$p' "$log"
    [[ $ended == passed ]] || { echo "its last lines:"; tail -n 20 "$log"; }
  } >> "$record"
}

# What a user runs in a home of his own, with an empty environment.
as_user() {
  inside setpriv --reuid=2000 --regid=2000 --clear-groups env HOME="$user_home" "$@"
}

# says TEXT COMMAND...: the user's command prints it.
says() {
  local text=$1 told
  shift
  told=$(as_user "$@" 2>&1 || true)
  printf '%s\n' "$told"
  [[ $told == *"$text"* ]] || { echo "this does not say: $text"; return 1; }
}

# shellcheck disable=SC2016 # for the shell inside
build_gpu_as_user() {
  local home=$user_home/stratagem packages told
  local program=$home/build-cuda-release/stratagem
  local build=(bash -c 'cd ~/stratagem && exec modules/bootstrap.sh build --gpu')
  rm -rf "$root$user_home"
  mkdir -p "$root$user_home"
  cp -a "$root/stratagem" "$root$user_home/"
  chown -R 2000:2000 "$root$user_home"
  if ! told=$(as_user "${build[@]}" 2>&1 | tee /dev/stderr); then
    packages=$(grep -oP 'apt-get install \K.*' <<< "$told") || return
    echo "root installs what it names"
    inside bash -c 'apt-get -q update && apt-get -qy install --no-install-recommends $1' packages "$packages" &&
      as_user "${build[@]}" || return
  fi
  says cuda "$program" info || return
  says 'this job holds GPUs' env SLURM_JOB_GPUS=0 "$program" run "$home/inputs/smoke/digits-lenet-serial.yaml" || return
  told=$(as_user ldd -r "$program" 2>&1)
  printf '%s\n' "$told" | grep -E 'libcu|libnv|libnccl'
  [[ $told != *"not found"* && $told != *"undefined symbol"* ]]
}

main() {
  local checkout option changed result=0 fresh=false remove=false commands=(demo test)
  root='' data='' mirror='' keyring='' record='' system=''
  while (($# > 0)); do
    option=$1
    shift
    case $option in
      --help | -h) usage; exit 0 ;;
      --fresh) fresh=true ;;
      --remove) remove=true ;;
      --only | --root | --data | --mirror | --keyring | --record)
        (($# > 0)) || fail 2 "$option needs a value; see --help"
        case $option in
          --only) [[ $1 =~ ^(demo|test|gpu)$ ]] || fail 2 "--only $1: must be demo, test or gpu"; commands=("$1") ;;
          --data) data=$(realpath -e "$1") || fail 2 "--data $1: no such folder" ;;
          --root) root=$(realpath -m "$1") ;;
          --mirror) mirror=$1 ;;
          --keyring) keyring=$1 ;;
          --record) record=$1 ;;
        esac
        shift
        ;;
      -*) fail 2 "unknown option $option; see --help" ;;
      *) [[ -z $system ]] || fail 2 "one system at a time: $system or $option"; system=$option ;;
    esac
  done
  case $system in
    debian-12) distribution=debian suite=bookworm like=sid components=main ;;
    debian-13) distribution=debian suite=trixie like=sid components=main ;;
    ubuntu-24.04) distribution=ubuntu suite=noble like=gutsy components=main,universe ;;
    '') fail 2 "which system? debian-12, debian-13 or ubuntu-24.04; see --help" ;;
    *) fail 2 "unknown system $system: must be debian-12, debian-13 or ubuntu-24.04" ;;
  esac
  root=${root:-/var/tmp/stratagem-$system}
  [[ -e $root/$mark || -z $(ls -A "$root" 2> /dev/null) ]] ||
    fail 2 "$root is no system that this script made: name another --root"
  ((EUID == 0)) || fail 3 "a chroot needs root: start it with sudo"
  command -v debootstrap > /dev/null || fail 3 "no debootstrap: apt-get install debootstrap"
  checkout=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --show-toplevel)
  changed=$(git -C "$checkout" status --porcelain)
  record=$(realpath -m "${record:-$system.txt}")
  : > "$record" || fail 6 "cannot write $record"

  if $fresh || [[ ! -e $root/$mark ]]; then say "$system in $root"; make_system; fi
  prepare
  rm -rf "$root/stratagem"
  git clone --quiet --no-hardlinks "$checkout" "$root/stratagem"
  {
    printf 'stratagem %s in a chroot of %s, %s\n' "$(git -C "$checkout" rev-parse --short=12 HEAD)" "$system" \
      "$(date -u +%F)"
    [[ -z $changed ]] || echo "(changes of the checkout that are not committed were not tried)"
    awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo
    printf '%s cores, %s GiB\n' "$(nproc)" "$(awk '/^MemTotal/ { print int($2 / 1048576) }' /proc/meminfo)"
  } >> "$record"
  local command
  for command in "${commands[@]}"; do try_command "$command"; done
  { echo; versions; } >> "$record"
  say "the record, also in $record"
  cat "$record"
  if $remove; then rm -rf --one-file-system "$root"; fi
  return "$result"
}

main "$@"

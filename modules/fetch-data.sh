#!/usr/bin/env bash
# Downloads MNIST and CIFAR-10 (binary version) into a folder for data.root, and verifies every byte.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: modules/fetch-data.sh FOLDER [mnist] [cifar10]

Puts FOLDER/mnist and FOLDER/cifar-10-batches-bin there, both unless one is named. What is already
there and right is left alone. Needs curl or wget, gzip, tar and sha256sum.

Set STRATAGEM_MNIST_URL or STRATAGEM_CIFAR10_URL to the address of another folder that holds the
files (a mirror, or file:///... on a machine without a network).

Examples:
  modules/fetch-data.sh $SCRATCH/data
  STRATAGEM_MNIST_URL=file:///media/usb/mnist modules/fetch-data.sh ~/data mnist
TEXT
}

mnist_urls=(https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist)
cifar10_urls=(https://www.cs.toronto.edu/~kriz)
[[ -z ${STRATAGEM_MNIST_URL:-} ]] || mnist_urls=("$STRATAGEM_MNIST_URL")
[[ -z ${STRATAGEM_CIFAR10_URL:-} ]] || cifar10_urls=("$STRATAGEM_CIFAR10_URL")

# Digests of the unpacked content; they do not depend on how it was packed.
mnist_files='
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte'
cifar10_files='
cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5  data_batch_1.bin
a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed  data_batch_2.bin
bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67  data_batch_3.bin
014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48  data_batch_4.bin
755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add  data_batch_5.bin
8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b  test_batch.bin'

say() { printf 'fetch-data: %s\n' "$*"; }
die() { printf 'fetch-data: error: %s\n' "$*" >&2; exit 1; }

need() { command -v "$1" >/dev/null || die "$1 is not installed; install it and run this again"; }

# download URL FILE
download() {
  if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --retry 3 --output "$2" "$1"
  else
    wget --quiet --tries=3 --output-document="$2" "$1"
  fi
}

# download_any FILE NAME URL...: downloads NAME from the first folder that has it.
download_any() {
  local file=$1 name=$2 url
  shift 2
  for url in "$@"; do
    say "downloading $url/$name"
    download "$url/$name" "$file" && return
  done
  die "cannot download $name; is there a network? Otherwise copy it from another machine"
}

digest() { sha256sum | cut -d ' ' -f 1; }

fetch_mnist() {
  local folder=$1/mnist expected name found
  mkdir -p "$folder"
  while read -r expected name; do
    [[ -n $name ]] || continue
    if [[ -f $folder/$name && $(digest <"$folder/$name") == "$expected" ]] ||
       [[ ! -f $folder/$name && -f $folder/$name.gz &&
          $(gzip -dc "$folder/$name.gz" 2>/dev/null | digest) == "$expected" ]]; then
      say "$folder/$name is there"
      continue
    fi
    [[ ! -f $folder/$name ]] || die "$folder/$name is not the published file; remove it and run this again"
    download_any "$work/$name.gz" "$name.gz" "${mnist_urls[@]}"
    found=$(gzip -dc "$work/$name.gz" | digest) || found=unreadable
    [[ $found == "$expected" ]] || die "$name.gz: expected content with SHA-256 $expected, found $found"
    mv "$work/$name.gz" "$folder/$name.gz"
  done <<<"$mnist_files"
  say "MNIST is complete in $folder"
}

fetch_cifar10() {
  local folder=$1/cifar-10-batches-bin
  if [[ -d $folder ]]; then
    (cd "$folder" && sha256sum --check --status - <<<"${cifar10_files#?}") ||
      die "$folder does not hold the published files; remove it and run this again"
  else
    download_any "$work/cifar10.tar.gz" cifar-10-binary.tar.gz "${cifar10_urls[@]}"
    tar --no-same-owner -xzf "$work/cifar10.tar.gz" -C "$work" || die "cifar-10-binary.tar.gz cannot be unpacked"
    (cd "$work/cifar-10-batches-bin" && sha256sum --check --quiet - <<<"${cifar10_files#?}") ||
      die "cifar-10-binary.tar.gz does not hold the published files"
    mv "$work/cifar-10-batches-bin" "$folder"
  fi
  say "CIFAR-10 is complete in $folder"
}

[[ ${1:-} != -h && ${1:-} != --help ]] || { usage; exit 0; }
[[ $# -ge 1 && $1 != -* ]] || { usage >&2; exit 2; }
root=$1
shift
[[ $# -gt 0 ]] || set -- mnist cifar10
for dataset in "$@"; do
  [[ $dataset == mnist || $dataset == cifar10 ]] || { usage >&2; exit 2; }
done
command -v curl >/dev/null || need wget
for program in gzip tar sha256sum; do need "$program"; done

mkdir -p "$root"
work=$(mktemp -d "$root/.fetch-XXXXXX")  # next to its destination, so that files can be moved there at once
trap 'rm -rf "$work"' EXIT
for dataset in "$@"; do "fetch_$dataset" "$root"; done
say "set STRATAGEM_DATA=$(cd "$root" && pwd) or data.root to it"

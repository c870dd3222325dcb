#!/usr/bin/env bash
# fetch_data.sh SCRIPT: SCRIPT against local mirrors that hold wrong files, none, and, where
# STRATAGEM_DATA holds it, MNIST.
set -euo pipefail
script=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { printf 'FAILED: %s\n' "$*"; cat "$work/output"; exit 1; }

# expect STATUS TEXT ARGUMENT...: the script ends with STATUS and says TEXT.
expect() {
  local status=$1 text=$2 found=0
  shift 2
  "$script" "$@" >"$work/output" 2>&1 || found=$?
  [[ $found == "$status" ]] || fail "exit code $found, expected $status: $*"
  grep -qF -- "$text" "$work/output" || fail "does not say '$text': $*"
}

mkdir "$work/empty" "$work/wrong"
echo nonsense | gzip >"$work/wrong/train-images-idx3-ubyte.gz"
mkdir "$work/cifar-10-batches-bin"
echo nonsense >"$work/cifar-10-batches-bin/data_batch_1.bin"
tar -czf "$work/wrong/cifar-10-binary.tar.gz" -C "$work" cifar-10-batches-bin

expect 2 usage
expect 2 usage "$work/data" imagenet
expect 0 STRATAGEM_MNIST_URL --help
export STRATAGEM_MNIST_URL=file://$work/empty STRATAGEM_CIFAR10_URL=file://$work/empty
expect 1 "cannot download train-images-idx3-ubyte.gz" "$work/data"
expect 1 "cannot download cifar-10-binary.tar.gz" "$work/data" cifar10
STRATAGEM_MNIST_URL=file://$work/wrong STRATAGEM_CIFAR10_URL=file://$work/wrong
expect 1 "expected content with SHA-256 ba891046" "$work/data" mnist
expect 1 "does not hold the published files" "$work/data" cifar10
[[ -z $(find "$work/data" -type f) ]] || fail "refused files were left behind"
mkdir "$work/data/cifar-10-batches-bin"
expect 1 "remove it and run this again" "$work/data" cifar10

if [[ -f ${STRATAGEM_DATA:-}/mnist/train-images-idx3-ubyte.gz ]]; then
  STRATAGEM_MNIST_URL=file://$STRATAGEM_DATA/mnist
  expect 0 "MNIST is complete" "$work/data" mnist
  expect 0 "train-images-idx3-ubyte is there" "$work/data" mnist
  gzip -d "$work/data/mnist/"*.gz
  expect 0 "MNIST is complete" "$work/data" mnist
  ! grep -q downloading "$work/output" || fail "plain files were not recognised"
  echo x >>"$work/data/mnist/train-labels-idx1-ubyte"
  expect 1 "is not the published file" "$work/data" mnist
fi
echo passed

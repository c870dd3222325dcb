"""What oracles of whole runs have in common: the program, started by mpirun, and the samples of its steps."""

import argparse
import os
import subprocess
import sys

import numpy as np
from safetensors.numpy import load_file

from mnist_mlp import training_data

SKIPPED = 77


def arguments(description, *programs):
    """Options; --program and others like it are paths of programs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", *programs):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--mpiexec", default="mpirun")
    return parser


def arguments_with_mnist(description, *programs):
    """The same; without data the test is skipped."""
    parser = arguments(description, *programs)
    parser.add_argument("--data", default=os.environ.get("STRATAGEM_DATA", ""))
    options = parser.parse_args()
    if not options.data:
        print("SKIPPED: needs STRATAGEM_DATA")
        sys.exit(SKIPPED)
    return options


def run(options, folder, ranks, *settings):
    """folder/config.yaml, with KEY=VALUE."""
    subprocess.run([options.mpiexec, "--oversubscribe", "--bind-to", "none", "-n", str(ranks), options.program, "run",
                    str(folder / "config.yaml"), "--progress", "none", "-q",
                    *(word for one in settings for word in ("-s", one))], check=True)


def weights_of_run(options, folder, ranks, name, *settings):
    """{name: float64 array} that a run saves at its end."""
    file = folder / f"{name}.safetensors"
    run(options, folder, ranks, *settings, f"run.out={folder / name}", f"run.save_weights={file}")
    tensors = load_file(file)
    assert all(array.dtype == np.float64 for array in tensors.values())
    return tensors


def batches_of(options, subset, seed, batch, workers):
    """step -> [(images, labels)] of each worker, in the order of the first epoch."""
    images, labels = training_data(options.data, subset)
    words = [options.order_program, str(seed), "0", str(subset)]
    order = np.array(subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout.split(), dtype=int)

    def batches(step):
        shares = np.split(order[step * batch : (step + 1) * batch], workers)
        return [(images[share], labels[share]) for share in shares]

    return batches


def distance(a, b):
    """The largest of any element."""
    return max(np.abs(a[name] - b[name]).max() for name in a)

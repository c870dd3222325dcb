"""Compares three rounds of federated averaging with NumPy in float64: a multilayer perceptron on MNIST, whose forward
and backward passes, SGD, integers, weighted mean and server momentum are written out here.

The run starts from the weights that `stratagem run` saves before any step. `clients_program`, which runs the sampler
alone, prints the samples of every client. Exits with 1 if a parameter differs by more than rounding in float64
explains, or if the same without the integers, or with equal weights, does not.
"""

import math
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from mnist_mlp import gradients, training_data
from training_run import arguments_with_mnist, distance, weights_of_run

SUBSET, SEED, ROUNDS = 600, 3, 3
CLIENTS, PER_ROUND, LOCAL_STEPS, BATCH = 12, 4, 3, 5
ALPHA, SERVER_LR, SERVER_MOMENTUM, LARGEST = 1.0, 0.7, 0.9, 0.5
LR, MOMENTUM, DECAY = 0.05, 0.9, 1e-3
TOLERANCE = 1e-12


def config(root):
    return f"""schema: 1
run: {{name: fedavg, threads: 1, epochs: 1, evaluate_every: 0, device: cpu, seed: {SEED}}}
data: {{dataset: mnist, root: "{root}", subset: {SUBSET}, batch_per_worker: {BATCH}, input_size: 28}}
model: {{name: mlp}}
optimizer: {{lr: {LR}, momentum: {MOMENTUM}, weight_decay: {DECAY}}}
precision: {{compute: fp64}}
strategy: {{name: fedavg, clients: {CLIENTS}, per_round: {PER_ROUND}, local_steps: {LOCAL_STEPS}, split: dirichlet,
  split_alpha: {ALPHA}, server_lr: {SERVER_LR}, server_momentum: {SERVER_MOMENTUM}, largest_change: {LARGEST}}}
"""


def train_client(begin, x, labels):
    """The parameters after its steps of SGD, whose momentum begins with nothing."""
    parameters, momentum = dict(begin), {}
    for step in range(LOCAL_STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        for name, gradient in gradients(parameters, x[part], labels[part]).items():
            gradient = gradient + DECAY * parameters[name]
            momentum[name] = MOMENTUM * momentum[name] + gradient if step else gradient
            parameters[name] = parameters[name] - LR * momentum[name]
    return parameters


def average(begin, rounds, images, labels, integers=True, weighted=True):
    """The parameters after all rounds: lists of (samples that a client has, samples that it uses)."""
    parameters, momentum = begin, None
    for clients in rounds:
        total = sum(count if weighted else 1 for count, _ in clients)
        bits = min(32 - (total - 1).bit_length(), 25)
        scale = 2.0 ** (bits - 1 - math.ceil(math.log2(LARGEST)))
        most = 2 ** (bits - 1) - 1
        sums = {name: 0 for name in parameters}
        for count, used in clients:
            after = train_client(parameters, images[used], labels[used])
            for name in sums:
                change = (after[name] - parameters[name]) * scale
                if integers:
                    change = np.clip(np.rint(change), -most, most).astype(np.int64)
                sums[name] = sums[name] + (count if weighted else 1) * change
        mean = {name: value / scale / total for name, value in sums.items()}
        momentum = {name: (SERVER_MOMENTUM * momentum[name] if momentum else 0) + mean[name] for name in mean}
        parameters = {name: parameters[name] + SERVER_LR * momentum[name] for name in mean}
    return parameters


def rounds_of(options, folder, labels):
    """As clients_program tells them; a sample that two clients use would be an error."""
    file = folder / "labels.txt"
    file.write_text("\n".join(map(str, labels)), encoding="ascii")
    words = [SEED, CLIENTS, PER_ROUND, "dirichlet", ALPHA, ROUNDS, LOCAL_STEPS * BATCH, file]
    told = subprocess.run([options.clients_program, *map(str, words)], check=True, text=True, stdout=subprocess.PIPE)
    lines = [[int(word) for word in line.split()] for line in told.stdout.splitlines()]
    owner = {}
    for client, _, *used in lines:
        assert all(owner.setdefault(sample, client) == client for sample in used), "a sample of two clients"
    rounds = [lines[i : i + PER_ROUND] for i in range(0, len(lines), PER_ROUND)]
    return [[(count, np.array(used)) for _, count, *used in clients] for clients in rounds]


def main():
    options = arguments_with_mnist(__doc__, "clients-program")
    images, labels = training_data(options.data, SUBSET)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(config(options.data), encoding="utf-8")
        begin = weights_of_run(options, folder, 1, "begin", "run.epochs=0")
        rounds = rounds_of(options, folder, labels)
        steps = f"run.max_steps={ROUNDS}"
        ours = {ranks: weights_of_run(options, folder, ranks, str(ranks), steps) for ranks in (1, 2)}
    exact = average(begin, rounds, images, labels)
    found = {f"{ranks} rank(s)": distance(ours[ranks], exact) for ranks in ours}
    others = {
        "no step": distance(ours[1], begin),
        "no integers": distance(ours[1], average(begin, rounds, images, labels, integers=False)),
        "equal weights": distance(ours[1], average(begin, rounds, images, labels, weighted=False)),
    }
    for what, value in {**found, **others}.items():
        print(f"{what:>14} {value:.1e}")
    good = all(value <= TOLERANCE for value in found.values()) and all(value > 1e-9 for value in others.values())
    print(f"limit {TOLERANCE:.0e}: {'ok' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

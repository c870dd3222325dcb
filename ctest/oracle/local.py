"""Compares three rounds of strategy local with NumPy in float64: local SGD, DiLoCo and streaming DiLoCo. A multilayer
perceptron on MNIST is trained; passes, SGD, means, the outer step and the turns of fragments are written out here.

The run starts from the weights that `stratagem run` saves before any step, and ends with the mean of two workers, which
one rank plays, or two. Exits with 1 if a parameter differs by more than rounding in float64 explains, or if something
else than was asked for does not.
"""

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mnist_mlp import LAYERS, gradients
from training_run import arguments_with_mnist, batches_of, distance, weights_of_run

SUBSET, SEED, BATCH, WORKERS = 600, 3, 24, 2
INNER_STEPS, ROUNDS = 4, 3
LR, MOMENTUM, DECAY = 0.05, 0.9, 1e-3
TOLERANCE = 1e-12
CONFIG = """schema: 1
run: {{name: local, threads: 1, epochs: 1, evaluate_every: 0, device: cpu, seed: {seed}}}
data: {{dataset: mnist, root: "{root}", subset: {subset}, global_batch: {batch}, input_size: 28}}
model: {{name: mlp}}
optimizer: {{lr: {lr}, momentum: {momentum}, weight_decay: {decay}}}
precision: {{compute: fp64}}
strategy: {{name: local, workers: {workers}, inner_steps: {inner_steps}}}
trace: {{spans_every: 0}}
"""


@dataclass(frozen=True)
class Way:
    """How workers come together. Fragments: layers whose parameters are sent together."""

    fragments: tuple = (tuple(LAYERS),)
    delay: int = 0
    mixing_factor: float = 0
    outer_lr: float = 1
    outer_momentum: float = 0
    nesterov: bool = True

    def settings(self):
        numbers = {"fragments": len(self.fragments), "delay": self.delay, "mixing_factor": self.mixing_factor,
                   "outer_lr": self.outer_lr, "outer_momentum": self.outer_momentum}
        return [f"strategy.{key}={value}" for key, value in numbers.items()]


# The first layer has most of the parameters.
IN_TWO = (("fc1",), ("fc2", "fc3"))
DILOCO = Way(outer_lr=0.7, outer_momentum=0.9)
STREAMING = replace(DILOCO, fragments=IN_TWO, delay=1, mixing_factor=0.5)
# Each with what it must not be.
WAYS = {
    "local SGD": (Way(), {"DiLoCo": DILOCO, "a delay": Way(delay=1), "two fragments": Way(fragments=IN_TWO)}),
    "DiLoCo": (DILOCO, {"the mean": Way(), "no Nesterov": replace(DILOCO, nesterov=False)}),
    "streaming DiLoCo": (STREAMING, {
        "no delay": replace(STREAMING, delay=0),
        "no mixing": replace(STREAMING, mixing_factor=0),
        "one fragment": replace(STREAMING, fragments=Way().fragments),
        "the mean": replace(STREAMING, outer_lr=1, outer_momentum=0),
    }),
}


class Worker:
    def __init__(self, begin):
        self.parameters = dict(begin)
        self.momentum = {name: np.zeros_like(value) for name, value in begin.items()}

    def step(self, x, labels):
        for name, gradient in gradients(self.parameters, x, labels).items():
            gradient = gradient + DECAY * self.parameters[name]
            self.momentum[name] = MOMENTUM * self.momentum[name] + gradient
            self.parameters[name] = self.parameters[name] - LR * self.momentum[name]


def mean(workers, name):
    return sum(worker.parameters[name] for worker in workers) / len(workers)


class OuterStep:
    """SGD with Nesterov's momentum: the gradient is the way from the mean to where all began."""

    def __init__(self, begin, way):
        self.begin, self.way = dict(begin), way
        self.momentum = {name: np.zeros_like(value) for name, value in begin.items()}

    def __call__(self, name, average):
        gradient = self.begin[name] - average
        self.momentum[name] = self.way.outer_momentum * self.momentum[name] + gradient
        step = gradient + self.way.outer_momentum * self.momentum[name] if self.way.nesterov else self.momentum[name]
        self.begin[name] = self.begin[name] - self.way.outer_lr * step
        return self.begin[name]


def train(begin, batches, way):
    """The mean of the workers after all rounds."""
    workers = [Worker(begin) for _ in range(WORKERS)]
    outer, under_way = OuterStep(begin, way), {}
    for made in range(1, ROUNDS * INNER_STEPS + 1):
        for worker, batch in zip(workers, batches(made - 1)):
            worker.step(*batch)
        for number, layers in enumerate(way.fragments):
            names = [name for name in begin if name.split(".")[0] in layers]
            turn = (number + 1) * INNER_STEPS // len(way.fragments)
            if (made - turn) % INNER_STEPS == 0:
                under_way |= {name: mean(workers, name) for name in names}
            if made > way.delay and (made - way.delay - turn) % INNER_STEPS == 0:
                for name in names:
                    new, kept = outer(name, under_way[name]), way.mixing_factor
                    for worker in workers:
                        worker.parameters[name] = kept * worker.parameters[name] + (1 - kept) * new
    return {name: mean(workers, name) for name in begin}


def check(options, folder, begin, batches, what):
    way, others = WAYS[what]
    steps = f"run.max_steps={ROUNDS * INNER_STEPS}"
    exact, good = train(begin, batches, way), True
    for ranks in (1, 2):
        ours = weights_of_run(options, folder, ranks, f"{what}-{ranks}".replace(" ", "-"), steps, *way.settings())
        found = distance(ours, exact)
        good = good and found <= TOLERANCE
        print(f"{what:>16}, {ranks} rank(s)    {found:.1e}")
    for name, other in others.items():
        value = distance(ours, train(begin, batches, other))
        good = good and value > 1e-6
        print(f"{what:>16}, {name:13} {value:.1e}")
    return good


def main():
    options = arguments_with_mnist(__doc__, "order-program")
    batches = batches_of(options, SUBSET, SEED, BATCH, WORKERS)
    with tempfile.TemporaryDirectory(prefix="stratagem-oracle-") as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(CONFIG.format(
            seed=SEED, root=options.data, subset=SUBSET, batch=BATCH, lr=LR, momentum=MOMENTUM, decay=DECAY,
            workers=WORKERS, inner_steps=INNER_STEPS), encoding="utf-8")
        begin = weights_of_run(options, folder, 1, "begin", "run.epochs=0")
        good = [check(options, folder, begin, batches, what) for what in WAYS]
    print(f"limit {TOLERANCE:.0e}: {'ok' if all(good) else 'FAILED'}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

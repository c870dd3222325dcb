"""Compares three steps of strategy ddp with compression low_rank with PowerSGD in NumPy, in float64: algorithms 1 and 2
of Vogels et al. (arXiv 1905.13727), with the gradients of a multilayer perceptron on MNIST that are written out here.

Checkpoints after one to four steps hold parameters, momentum, what each worker has not sent yet, and the right factors.
From those after the first step on, NumPy goes on by itself; the program computes in float32. Exits with 1 if more than
its rounding is between them, or if the same without feedback, or with factors that are not orthogonal, is as near.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from mnist_mlp import gradients
from training_run import arguments_with_mnist, batches_of, run

SUBSET, SEED, BATCH, WORKERS, STEPS, RANK = 600, 3, 24, 2, 3, 2
LR, MOMENTUM = 0.05, 0.9
TOLERANCE = 1e-4
CONFIG = """schema: 1
run: {{name: powersgd, threads: 1, epochs: 1, evaluate_every: 0, device: cpu, seed: {seed}}}
data: {{dataset: mnist, root: "{root}", subset: {subset}, global_batch: {batch}, input_size: 28}}
model: {{name: mlp}}
optimizer: {{lr: {lr}, momentum: {momentum}}}
strategy: {{name: ddp, compression: low_rank, error_feedback: true, matrix_rank: {rank}, bucket_mb: 0.1}}
trace: {{spans_every: 0}}
"""


def state_after(options, folder, step):
    """{kind: {name: array}} of a run that saved after this step; a worker's own kinds end with its number."""
    out = folder / str(step)
    run(options, folder, WORKERS, f"checkpoint.every_steps={step}", f"run.max_steps={step + 1}", f"run.out={out}")
    kinds = {}
    for file in next((out / "checkpoint").glob(f"step-*{step:02d}")).glob("*.safetensors"):
        for name, array in load_file(file).items():
            kind, tensor = name.rsplit("/", 1)
            kinds.setdefault(kind, {})[tensor] = array.astype(np.float64)
    return kinds


def orthogonal(p):
    """Columns by modified Gram-Schmidt."""
    p = p.copy()
    for i in range(p.shape[1]):
        for j in range(i):
            p[:, i] -= (p[:, j] @ p[:, i]) * p[:, j]
        p[:, i] /= np.linalg.norm(p[:, i])
    return p


def is_low_rank(array):
    return array.ndim > 1 and RANK * sum(array.shape) < array.size


def next_state(state, batches, feedback, orthogonalise):
    """After one step with the workers' (images, labels)."""
    found = {kind: {} for kind in state}
    own = [gradients(state["parameters"], *batch) for batch in batches]
    for name, parameter in state["parameters"].items():
        sums = sum(gradient[name] for gradient in own)
        if is_low_rank(parameter):
            wanted = [gradient[name] + (state[f"residual/{w}"][name] if feedback else 0)
                      for w, gradient in enumerate(own)]
            q = state["right_factor"][name][:RANK].T
            p = sum(m @ q for m in wanted)
            p = orthogonal(p) if orthogonalise else p / np.linalg.norm(p, axis=0)
            factors = [m.T @ p for m in wanted]
            for w, (m, factor) in enumerate(zip(wanted, factors)):
                found[f"residual/{w}"][name] = m - p @ factor.T
            sums = p @ sum(factors).T
            found["right_factor"][name] = sum(factors).T
        mean = sums / WORKERS
        found["momentum"][name] = MOMENTUM * state["momentum"][name] + mean
        found["parameters"][name] = parameter - LR * found["momentum"][name]
    return found


def rounds(first, batches, feedback=True, orthogonalise=True):
    states = [first]
    for step in range(1, STEPS + 1):
        states.append(next_state(states[-1], batches(step), feedback, orthogonalise))
    return states


def distance(ours, expected):
    """The largest of all kinds, steps and matrices, relative to what the state is, or how far parameters moved."""
    worst = 0
    for before, a, b in zip(expected, ours[1:], expected[1:]):
        for kind in b:
            for name, array in b[kind].items():
                if kind == "right_factor":
                    assert not a[kind][name][RANK:].any(), "beside its factor a matrix has nothing"
                found = a[kind][name][:RANK] if kind == "right_factor" else a[kind][name]
                moved = array - before[kind][name] if kind == "parameters" else array
                worst = max(worst, np.abs(found - array).max() / np.abs(moved).max())
    return worst


def main():
    options = arguments_with_mnist(__doc__, "order-program")
    batches = batches_of(options, SUBSET, SEED, BATCH, WORKERS)
    with tempfile.TemporaryDirectory(prefix="stratagem-oracle-") as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(CONFIG.format(
            seed=SEED, root=options.data, subset=SUBSET, batch=BATCH, lr=LR, momentum=MOMENTUM, rank=RANK))
        ours = [state_after(options, folder, step) for step in range(1, STEPS + 2)]
    found = distance(ours, rounds(ours[0], batches))
    others = {"no feedback": distance(ours, rounds(ours[0], batches, feedback=False)),
              "not orthogonal": distance(ours, rounds(ours[0], batches, orthogonalise=False))}
    print(f"{'PowerSGD':>14} {found:.1e}")
    for what, value in others.items():
        print(f"{what:>14} {value:.1e}")
    good = found <= TOLERANCE and all(value > 100 * TOLERANCE for value in others.values())
    print(f"limit {TOLERANCE:.0e}: {'ok' if good else 'FAILED'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Compares three steps of strategy gossip with their definition in NumPy, in float64: x(t+1) = P(t) (x(t) - lr m(t+1)).

Checkpoints after one to four steps hold what each worker has of its own: parameters z, momentum m, and the weight w of
push-sum. P is made from the definition of each graph, x = w z, and w(t+1) = P(t) w(t). The mean that is evaluated must
be that of z. Gradients come from the program: the momenta show them, and each worker's must be its own.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from training_run import arguments, run

WORKERS, RANKS, STEPS, LEARNING_RATE = 6, 2, 3, 0.05
TOLERANCE = 1e-12
CONFIG = """schema: 1
run: {name: gossip, threads: 1, epochs: 1, evaluate_every: 0}
data: {dataset: synthetic-digits, global_batch: 24, subset: 240}
model: {name: mlp}
optimizer: {lr: %g, momentum: 0.9}
precision: {compute: fp64}
trace: {spans_every: 0}
""" % LEARNING_RATE


def matrix(graph, t):
    """Column j: how worker j divides what it has. Equally, in shares of 24 bits; it keeps the rest."""
    p = np.zeros((WORKERS, WORKERS))
    for j in range(WORKERS):
        listeners = {
            "ring": [j - 1, j + 1],
            "exponential": [j + 2 ** (t % 3)],
            "complete": range(WORKERS),
            "star": range(WORKERS) if j == 0 else [0],
        }[graph]
        others = {i % WORKERS for i in listeners} - {j}
        share = float(np.float32(1 / (len(others) + 1)))
        for i in others:
            p[i, j] = share
        p[j, j] = 1 - len(others) * share
    return p


def state_after(options, folder, settings, step):
    """z and m [workers, parameters], weights [workers] and the mean of a run that saved after this step."""
    out = folder / f"{'-'.join(settings)}-{step}".replace("=", "-").replace(".", "-")
    run(options, folder, RANKS, "strategy.name=gossip", f"strategy.workers={WORKERS}", f"checkpoint.every_steps={step}",
        f"run.max_steps={step + 1}", f"run.out={out}", *settings)
    saved = next((out / "checkpoint").glob(f"step-*{step:02d}"))
    tensors = {}
    for file in saved.glob("*.safetensors"):
        tensors |= load_file(file)
    counters = json.loads((saved / "manifest.json").read_text())["content"]["counters"]
    names = sorted(name.split("/", 2)[2] for name in tensors if name.startswith("momentum/0/"))

    def flat(prefix):
        return np.concatenate([tensors[f"{prefix}/{name}"].ravel() for name in names])

    own = {kind: np.stack([flat(f"{kind}/{worker}") for worker in range(WORKERS)])
           for kind in ("parameters", "momentum")}
    weights = np.array([counters.get(f"push_sum_weight/{WORKERS}/{worker}", 1) for worker in range(WORKERS)])
    return own["parameters"], own["momentum"], weights, flat("parameters")


def check(options, folder, graph, push_sum):
    settings = [f"strategy.graph={graph}", f"strategy.push_sum={str(push_sum).lower()}"]
    states = [state_after(options, folder, settings, step) for step in range(1, STEPS + 2)]
    errors = []
    for step, ((z, m, w, _), (next_z, next_m, next_w, next_mean)) in enumerate(zip(states, states[1:]), start=1):
        p = matrix(graph, step)
        weights = p @ w
        x = p @ (w[:, None] * z - LEARNING_RATE * next_m)
        moved = np.abs(next_z - z).max()
        errors += [np.abs(next_z - x / weights[:, None]).max() / moved, np.abs(next_w - weights).max(),
                   np.abs(next_mean - next_z.mean(axis=0)).max() / moved]
        gradients = next_m - 0.9 * m
        assert len({gradient.tobytes() for gradient in gradients}) == WORKERS, "workers learn from parts of their own"
    good = max(errors) <= TOLERANCE
    irregular = np.abs(states[-1][2] - 1).max() > 0.1
    print(f"{graph:12} push_sum {push_sum!s:6} {max(errors):10.2e} {'ok' if good else 'FAILED'}")
    return good and irregular == (graph == "star")


def main():
    options = arguments(__doc__).parse_args()
    cases = [("ring", False), ("exponential", False), ("exponential", True), ("complete", False), ("star", True)]
    with tempfile.TemporaryDirectory(prefix="stratagem-oracle-") as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(CONFIG)
        good = [check(options, folder, *case) for case in cases]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()

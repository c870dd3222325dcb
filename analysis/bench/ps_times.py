#!/usr/bin/env python3
"""Predicted time of a parameter server's modes over that of sync, for clusters of different speeds.

  python3 analysis/bench/ps_times.py --json analysis/bench/data/ps_times.json

`stratagem simulate` predicts the times, in mean steps of a worker. What varies: the time of a message with a gradient
or all parameters, that for which a push keeps the server busy, the jitter of steps, and how much slower one worker is.
Messages do not share links and overlap with nothing. Medians over seeds. Needs Python with numpy and h5py, and
`build/stratagem`.
"""

import argparse
import itertools
import json
import statistics
import subprocess

import programs
import report

ROOT = programs.HERE.parent.parent
BASE = {"message": 0.1, "update": 0.01, "jitter": 0.1, "slow": 1}
# What is varied, one at a time.
VARIED = {"message": (0.01, 0.3, 1), "update": (0.05, 0.2), "jitter": (0.02, 0.3), "slow": (2, 4, 10)}


def clusters():
    """The base, and others that differ from it in one value."""
    yield BASE
    for name, values in VARIED.items():
        for value in values:
            yield {**BASE, name: value}


def predicted_time(options, mode, workers, cluster, seed):
    settings = [f"run.seed={seed}", "run.threads=1", "run.epochs=1", "run.evaluate_every=0", "model.name=mlp",
                f"data.subset={options.subset}", "data.global_batch=0", f"data.batch_per_worker={options.batch}",
                "strategy.name=ps", f"strategy.mode={mode}"]
    if cluster["slow"] > 1:
        settings += ["experiment.slow_worker=0", f"experiment.slow={cluster['slow']}"]
    words = [options.program, "simulate", options.config, "--json", "--workers", str(workers)]
    for name in "message", "update", "jitter":
        words += [f"--{name}", str(cluster[name])]
    words += programs.set_words(settings)
    told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return told["predicted_time"]


def row_of(options, workers, cluster):
    ratios = {mode: [] for mode in options.modes}
    for seed in range(1, options.seeds + 1):
        sync = predicted_time(options, "sync", workers, cluster, seed)
        for mode in options.modes:
            ratios[mode].append(predicted_time(options, mode, workers, cluster, seed) / sync)
    return {"workers": workers, **cluster, **{mode: statistics.median(of) for mode, of in ratios.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/stratagem"))
    parser.add_argument("--config", default=str(ROOT / "inputs/smoke/digits-lenet-ps.yaml"))
    parser.add_argument("--modes", nargs="+", default=["async", "ssp", "modified", "dana", "delayed_sync"])
    parser.add_argument("--workers", nargs="+", type=int, default=[4, 16])
    parser.add_argument("--subset", type=int, default=4096, help="images of the procedural digits")
    parser.add_argument("--batch", type=int, default=16, help="images of a push")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", help="also write everything to this file")
    options = parser.parse_args()
    columns = {"W": "{workers}", **{name: f"{{{name}:g}}" for name in BASE},
               **{mode: f"{{{mode}:.2f}}" for mode in options.modes}}
    version = subprocess.run([options.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    table = report.Table(options, columns, machine={"stratagem": version})
    for workers, cluster in itertools.product(options.workers, clusters()):
        table.add(row_of(options, workers, cluster))


if __name__ == "__main__":
    main()

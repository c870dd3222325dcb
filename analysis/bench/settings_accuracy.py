#!/usr/bin/env python3
"""What a setting costs in accuracy: the same runs with it and without it, pair by pair over seeds.

  python3 analysis/bench/settings_accuracy.py inputs/smoke/mnist-lenet-ddp.yaml --change precision.compute=bf16

`--set` changes both sides. p is that of two one-sided tests: of a difference of accuracy of half a point or more. The
loss is that of training, over the last epoch. Needs the packages in requirements.txt, and `build/stratagem`.
"""

import argparse
import csv
import json
import pathlib
import statistics
import sys
import tempfile

import programs
import report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from stratagem_report import communication, inference  # noqa: E402

COLUMNS = {
    "configuration": "{configuration}",
    "change": "{change}",
    "seeds": "{seeds}",
    "accuracy without %": "{accuracy_without:.2f}",
    "accuracy with %": "{accuracy:.2f}",
    "points": "{difference:+.2f}",
    "95 % interval": "{low:+.2f} to {high:+.2f}",
    "p": "{p:.3f}",
    "loss without": "{loss_without:.4f}",
    "loss with": "{loss:.4f}",
}


def trained(options, settings):
    """Test accuracy of a run, and its mean training loss over the last epoch."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        programs.train(options, settings, out)
        with open(out / "metrics.csv", encoding="utf-8") as file:
            last = list(csv.DictReader(file))[-1]
        return json.loads((out / "outcome.json").read_text())["test_accuracy"], float(last["train_loss"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration")
    parser.add_argument("--change", nargs="+", required=True, metavar="KEY=VALUE", help="on one side")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="on both sides")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank, as in the configuration")
    parser.add_argument("--program", default="build/stratagem")
    parser.add_argument("--launcher", default="mpirun --bind-to none -n {ranks}")
    parser.add_argument("--json", help="write results to this file, too")
    options = parser.parse_args()
    table = report.Table(options, COLUMNS, machine=programs.machine(options))
    runs = {seed: [trained(options, [*options.set, f"run.seed={seed}", *change]) for change in ([], options.change)]
            for seed in range(1, options.seeds + 1)}
    without, changed = ({seed: pair[side][0] for seed, pair in runs.items()} for side in (0, 1))
    pairs = inference.paired(changed, without)
    interval = pairs.interval()
    table.add({
        "configuration": ", ".join([pathlib.Path(options.configuration).stem, *options.set]),
        "change": ", ".join(options.change), "seeds": options.seeds,
        "accuracy_without": 100 * statistics.fmean(without.values()),
        "accuracy": 100 * statistics.fmean(changed.values()), "difference": 100 * interval.mean,
        "low": 100 * interval.low, "high": 100 * interval.high, "p": pairs.p_equivalent(communication.MARGIN),
        "loss_without": statistics.fmean(pair[0][1] for pair in runs.values()),
        "loss": statistics.fmean(pair[1][1] for pair in runs.values()),
        "accuracy_and_loss_by_seed": {str(seed): {"without": pair[0], "with": pair[1]} for seed, pair in runs.items()}})


if __name__ == "__main__":
    main()

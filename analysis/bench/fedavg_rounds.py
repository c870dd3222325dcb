#!/usr/bin/env python3
"""How many rounds federated averaging needs to an accuracy, by how clients' data are dealt: from the runs of a study.

  build/stratagem sweep inputs/study/fedavg.yaml --all
  python3 analysis/bench/fedavg_rounds.py runs/fedavg --json analysis/bench/data/fedavg_rounds.json

Accuracy is that of the first seed after so many rounds; rounds to the target are counted to the first evaluation that
reached it, the median over seeds. Needs the packages in requirements.txt.
"""

import argparse
import math
import pathlib
import statistics
import sys

import programs
import report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from stratagem_report import measures, study, style  # noqa: E402


def curve_of(run):
    """[(rounds, accuracy %)] at each evaluation."""
    curve = measures.learning_curve(run)
    of_epoch = run.row["steps"] / run.config["run.epochs"]
    rounds = (curve["epoch"] * of_epoch).round().astype(int)
    return list(zip(rounds.tolist(), (100 * curve["test_accuracy"]).tolist()))


def rounds_to(curve, target):
    return next((rounds for rounds, accuracy in curve if accuracy >= target), math.inf)


def row_of(variant, curves, target):
    rounds = statistics.median(rounds_to(curve, target) for curve in curves)
    last = max(count for count, _ in curves[0])
    return {
        "name": style.look_of(variant).label,
        "curves": curves,
        "rounds": f"{rounds:g}" if math.isfinite(rounds) else f"> {last}",
        **{f"at_{count}": accuracy for count, accuracy in curves[0]},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path, help="of a study whose cells are complete")
    parser.add_argument("--target", type=float, default=97, help="[%%]")
    parser.add_argument("--program", default="build/stratagem")
    parser.add_argument("--threads", type=int, default=1, help="of each rank, as in the study")
    parser.add_argument("--json", help="write results to this file, too")
    options = parser.parse_args()
    by_variant = {}
    for run in study.load(options.directory, False, options.program).runs.values():
        by_variant.setdefault(run.row["variant"], []).append(curve_of(run))
    counts = [count for count, _ in next(iter(by_variant.values()))[0]]
    shown = [count for place, count in enumerate(counts) if place in (0, 1, len(counts) // 2 - 1, len(counts) - 1)]
    columns = {"strategy, split": "{name}", **{f"% after {count}": f"{{at_{count}:.2f}}" for count in shown},
               f"rounds to {options.target:g} %": "{rounds}"}
    table = report.Table(options, columns, machine=programs.machine(options))
    for variant in style.in_order(by_variant):
        table.add(row_of(variant, by_variant[variant], options.target))


if __name__ == "__main__":
    main()

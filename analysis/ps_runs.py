#!/usr/bin/env python3
"""Accuracy, time and lag of a parameter server's modes from runs of a study, such as inputs/study/ps-accuracy.yaml.

Modes with the same number of workers are compared in pairs of the same seed: accuracies by two one-sided t tests, times
by the median of ratios, which is least sensitive to other work on the machine. Results: analysis/PS.md.
"""

import argparse
import collections
import json
import pathlib
import re
import statistics
import subprocess
import sys

import simulations
from equivalence import verdict

CELL = re.compile(r"-w(?P<workers>\d+)-s(?P<seed>\d+)-(?P<mode>[\w-]+)$")


def read(program, folder):
    """What `collect` reports for each cell: {workers: {mode: {seed: row}}}."""
    cells = sorted(path.parent for path in folder.glob("*/outcome.json"))
    if not cells:
        sys.exit(f"{folder} has no runs; first: {program} sweep inputs/study/ps-accuracy.yaml --all")
    words = [program, "collect", *map(str, cells), "--format", "json", "--quiet"]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    runs = collections.defaultdict(lambda: collections.defaultdict(dict))
    for row in json.loads(told)["cells"]:
        if (cell := CELL.search(row["cell"])) and row["status"] == "complete":
            runs[int(cell["workers"])][cell["mode"]][int(cell["seed"])] = row
    return runs


def rows(runs, options):
    for workers, modes in sorted(runs.items()):
        for mode in (mode for mode in options.modes if mode in modes):
            seeds = sorted(set.intersection(*(set(modes[other]) for other in options.modes if other in modes)))
            of = {other: [modes[other][seed] for seed in seeds] for other in modes}
            points = {other: [100 * row["test_accuracy"] for row in of[other]] for other in of}
            base, timed = options.modes[0], options.timed
            ratios = [one["train_time_s"] / other["train_time_s"] for one, other in zip(of[mode], of[timed])]
            lag = statistics.fmean(row["lag_mean"] for row in of[mode])
            yield [
                str(workers),
                mode,
                str(len(seeds)),
                f"{statistics.fmean(points[mode]):.2f} ± {statistics.pstdev(points[mode]):.2f}",
                f"{statistics.fmean(points[mode]) - statistics.fmean(points[base]):+.2f}",
                "" if mode == base else verdict(points[mode], points[base], options.margin),
                f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]",
                f"{lag:.2f}",
            ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=pathlib.Path, help="folder of the cells")
    parser.add_argument("--program", default=str(simulations.ROOT / "build" / "stratagem"))
    parser.add_argument("--modes", nargs="+", default=["sync", "async", "dana"], help="the first is compared with")
    parser.add_argument("--timed", default="async", help="the mode whose time is 1")
    parser.add_argument("--margin", type=float, default=0.5, help="points")
    options = parser.parse_args()
    titles = ["W", "mode", "seeds", "accuracy %", f"against {options.modes[0]}", f"within {options.margin:g}"]
    titles += [f"time over {options.timed}'s", "mean lag"]
    table = simulations.markdown(titles, rows(read(options.program, options.study), options), ("mode", titles[5]))
    print(table, end="")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Accuracy, time and lag of a parameter server's modes from runs of a study, such as inputs/study/ps-accuracy.yaml.

Modes with the same number of workers are compared in pairs of the same seed: accuracies by their differences, times by
their ratios. Runs that a time limit ended are left out. Needs scipy. Results: analysis/PS.md.
"""

import argparse
import collections
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

import scores
import simulations
from scores import ACCURACY
from stratagem_report import inference

MEASURES = ("cell", "status", "reason", "test_accuracy", "train_time_s", "lag_mean")
CELL = re.compile(r"-w(?P<workers>\d+)-s(?P<seed>\d+)-(?P<mode>[\w-]+)$")


def collected(program, folder):
    """What `collect` reports for each cell, as far as the table needs it."""
    cells = sorted(path.parent for path in folder.glob("*/outcome.json"))
    if not cells:
        sys.exit(f"{folder} has no runs; first: {program} sweep inputs/study/ps-accuracy.yaml --all")
    words = [program, "collect", *map(str, cells), "--format", "json", "--quiet"]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return [{name: row[name] for name in MEASURES} for row in json.loads(told)["cells"]]


def read(options):
    """The rows of complete runs: {(workers, mode): {seed: row}}."""
    rows = json.loads(options.json.read_text()) if options.recorded else collected(options.program, options.study)
    if options.json and not options.recorded:
        options.json.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    runs = collections.defaultdict(dict)
    for row in rows:
        cell = CELL.search(row["cell"])
        if cell and row["status"] == "complete" and row["reason"] != "time_limit":
            runs[int(cell["workers"]), cell["mode"]][int(cell["seed"])] = row
    return runs


def time_text(times, key, timed, confidence):
    """The geometric mean of ratios, with an interval."""
    if key[1] == timed:
        return "1.00"
    pairs = inference.paired_ratios(times[key], times.get((key[0], timed), {}))
    if pairs.n < inference.LEAST_PAIRS:
        return f"{math.exp(pairs.mean):.2f}" if pairs.n else "-"
    ratio = inference.as_ratio(pairs.interval(confidence))
    return f"{ratio.mean:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"


def fewest(keys, runs, options):
    """The baseline with the fewest workers."""
    of_baseline = [key for key in keys if key[1] == options.baseline]
    if not of_baseline:
        there = ", ".join(sorted({mode for _, mode in runs})) or "the modes there"
        where = options.json if options.recorded else options.study
        sys.exit(f"{where} has no complete run of the baseline {options.baseline}: run it, or name one of"
                 f" {there} with --baseline")  # fmt: skip
    return of_baseline[0]


class Table:
    def __init__(self, runs, options):
        self.runs, self.options = runs, options
        self.keys = [
            (workers, mode)
            for workers in sorted({workers for workers, _ in runs})
            for mode in options.modes
            if (workers, mode) in runs
        ]
        self.points, self.times = self.of_each("test_accuracy", 100), self.of_each("train_time_s", 1)
        error = 100 - statistics.fmean(self.points[fewest(self.keys, runs, options)].values())
        self.margin = options.margin or scores.MARGIN * error
        self.judged = scores.judge(scores.ACCURACY, self.points, options.compared, self.margin)

    def of_each(self, measure, factor):
        """{(workers, mode): {seed: value}}."""
        return {key: {seed: factor * row[measure] for seed, row in self.runs[key].items()} for key in self.keys}

    def row(self, key):
        timed = self.options.timed
        ratios = sum((workers, timed) in self.times for workers, mode in self.keys if mode != timed)
        return [
            str(key[0]),
            key[1],
            str(len(self.points[key])),
            ACCURACY.mean_sd(self.points[key]),
            *ACCURACY.comparison_cells(self.judged, key, self.options.compared),
            time_text(self.times, key, timed, inference.simultaneous(ratios)),
            f"{statistics.fmean(row['lag_mean'] for row in self.runs[key].values()):.2f}",
        ]

    def text(self):
        verdict = ACCURACY.verdict_title(self.margin)
        titles = ["W", "mode", "seeds", "accuracy %", "against", "difference", verdict]
        titles += [f"time over {self.options.timed}'s", "mean lag"]
        return simulations.markdown(titles, map(self.row, self.keys), ("mode", "against", verdict))

    def notes(self):
        origin = "as given" if self.options.margin else (
            f"{100 * scores.MARGIN:.0f} % of the error of {self.options.baseline} in these runs: fix it with --margin"
        )
        return (
            f"± is the sample standard deviation. {ACCURACY.family_text(self.margin, origin)} Ratios of times"
            " are geometric means; their intervals hold together, too."
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=pathlib.Path, nargs="?", help="folder of the cells")
    parser.add_argument("--program", default=str(simulations.ROOT / "build" / "stratagem"))
    parser.add_argument("--modes", nargs="+", default=["sync", "async", "dana"])
    parser.add_argument("--timed", default="async", help="the mode whose time is 1")
    parser.add_argument("--json", type=pathlib.Path, help="keeps what `collect` told of the runs")
    parser.add_argument("--recorded", action="store_true", help="read no runs: --json has what was told of them")
    scores.add_options(parser)
    options = parser.parse_args()
    if not (options.json if options.recorded else options.study):
        parser.error("--recorded needs --json FILE" if options.recorded else "name the folder of the cells")
    options.baseline, options.compared = scores.baselines(parser, options)
    table = Table(read(options), options)
    print(f"{table.text()}\n{table.notes()}")


if __name__ == "__main__":
    main()

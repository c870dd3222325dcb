#!/usr/bin/env python3
"""Accuracy of what sends less than DDP does, against DDP: from the runs of a study, pair by pair over seeds.

  build/stratagem sweep inputs/study/compression.yaml --all
  python3 analysis/bench/code_accuracy.py runs/compression --json analysis/bench/data/code_accuracy.json

p is that of two one-sided tests, for one row alone: of a difference of half a point or more. A verdict is `equivalent`
if these tests find the difference within half a point; `lower` or `higher` if they do not, but a two-sided test finds
one. All verdicts and intervals hold together with 95 %. Needs the packages in requirements.txt.
"""

import argparse
import json
import pathlib
import statistics
import sys

import programs
import report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from stratagem_report import communication, compare, inference, study, style  # noqa: E402

COLUMNS = {
    "strategy, code": "{name}",
    "sent per step MiB": "{sent_MiB:.3f}",
    "accuracy %": "{accuracy:.2f} ± {sd:.2f}",
    "points over DDP": "{difference:+.2f}",
    "95 % interval of all": "{low:+.2f} to {high:+.2f}",
    "interval of the test": "{test_low:+.2f} to {test_high:+.2f}",
    "p": "{p:.3f}",
    "verdict": "{verdict}",
}


def row_of(family, variant, workers, judged, of_test):
    """`of_test`: the interval that must lie within the margin."""
    of_seeds = family.by_seed("test_accuracy", variant, workers)
    values = [100 * value for value in of_seeds.values()]
    row = {
        "name": style.look_of(variant).label,
        "sent_MiB": communication.sent(family, variant, workers) / 2**20,
        "accuracy": statistics.fmean(values),
        "sd": statistics.stdev(values),
        "seeds": len(values),
        "accuracy_by_seed": {str(seed): value for (seed, _), value in of_seeds.items()},
    }
    if judged:
        interval = judged.interval
        row |= {"difference": 100 * interval.mean, "low": 100 * interval.low, "high": 100 * interval.high}
        row |= {"test_low": 100 * of_test.low, "test_high": 100 * of_test.high}
        row |= {"p": judged.pairs.p_equivalent(communication.MARGIN), "verdict": judged.verdict}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=pathlib.Path, help="of a study whose cells are complete")
    parser.add_argument("--program", default="build/stratagem")
    parser.add_argument("--threads", type=int, default=1, help="of each rank, as in the study")
    parser.add_argument("--json", help="write results to this file, too")
    options = parser.parse_args()
    loaded = study.load(options.directory, False, options.program)
    table = report.Table(options, COLUMNS, machine=programs.machine(options))
    for family in compare.compare(loaded, {}).families:
        judged = communication.judgements(family)
        pairs = [judgement.pairs for judgement in judged.values()]
        of_tests = dict(zip(judged, inference.equivalence_intervals(pairs, communication.MARGIN)))
        for pair in family.pairs():
            table.add(row_of(family, *pair, judged.get(pair), of_tests.get(pair)))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How often the report's verdicts are false, and what they find, in made studies.

  python3 analysis/null_studies.py --studies 1000 --json analysis/data/null_studies.json
  python3 analysis/null_studies.py --recorded analysis/data/null_studies.json      prints it again

A made study has the rows of inputs/study/study.yaml: strategies with the same work and workers. They are judged by
choices.py, as in a report; only the values are drawn. In a null study no strategy differs in the mean. False are rows
in which any strategy is `established` to be worse than the best; a row and goal is the family that 5 % are promised
for.
"""

import argparse
import json
import math
import pathlib
import types

import numpy as np

from stratagem_report import choices
from stratagem_report.spread import spread
from stratagem_report.standing import ESTABLISHED

# Of study.yaml: strategies in a row, and how many such rows (`dp`; `ps` and `per-worker`; `head224`; `head`).
ROWS = {2: 18, 3: 30, 5: 5, 11: 5, 12: 5}
SEEDS = (3, 5, 10)
IMAGES = 10_000  # to test on
NOISE_OF_TIMES = 0.03
SLOWER = (0.05, 0.1, 0.15, 0.2)


def counted(values):
    """As accuracies: shares of whole images."""
    return np.clip(np.round(values * IMAGES), 0, IMAGES) / IMAGES


def normal(random, shape):
    return counted(0.93 + seeds_of(random, shape, 0.01) + random.normal(0, 0.004, shape))


def tied(random, shape):
    """Noise of an image."""
    return counted(0.93 + seeds_of(random, shape, 0.01) + random.normal(0, 1 / IMAGES, shape))


def saturated(random, shape):
    """An image in IMAGES is wrong, on average."""
    return counted(1 - random.poisson(1, shape) / IMAGES)


def collapsing(random, shape):
    """A fifth of the runs lose 80 points."""
    return counted(0.93 + random.normal(0, 0.003, shape) - 0.8 * (random.random(shape) < 0.2))


def unequal(random, shape):
    """Deviations from 0.04 to 4 points, which are no collapses."""
    return counted(0.7 + random.normal(0, 1, shape) * np.geomspace(0.0004, 0.04, shape[0])[:, None])


def times(random, shape):
    return np.exp(seeds_of(random, shape, 0.05) + random.normal(0, NOISE_OF_TIMES, shape))


def unequal_times(random, shape):
    """One strategy varies ten times as much as the others."""
    return np.exp(random.normal(0, 0.01, shape) * np.where(np.arange(shape[0]) == 0, 10, 1)[:, None])


def seeds_of(random, shape, deviation):
    """What all runs with a seed have in common."""
    return random.normal(0, deviation, shape[1])


NULL = {
    "accuracies, normal": (choices.ACCURACY, normal),
    "accuracies, tied": (choices.ACCURACY, tied),
    "accuracies, saturated": (choices.ACCURACY, saturated),
    "accuracies, collapsing": (choices.ACCURACY, collapsing),
    "accuracies, unequal deviations": (choices.ACCURACY, unequal),
    "times, 3 % noise": (choices.TIME, times),
    "times, one of 10 % and the others of 1 %": (choices.TIME, unequal_times),
}


def judged(goal, table):
    """The Choice of a row; a line of `table` for each strategy, a column for each seed."""
    by_seed = {f"s{index}": dict(enumerate(line.tolist())) for index, line in enumerate(table)}
    spreads = {name: spread(values.values()) for name, values in by_seed.items()}
    ranked = dict(sorted(spreads.items(), key=lambda item: item[1].median, reverse=goal.greatest))
    row = choices.Candidates(types.SimpleNamespace(test_images=IMAGES), 1, ranked, by_seed)
    return choices.choice_of(row, goal, choices.judged_pairs(row, goal))


def established(goal, table):
    """The strategies that are said to be worse than the best."""
    return {name for name, of in judged(goal, table).standings.items() if of.word == ESTABLISHED}


def false_share(goal, draw, strategies, seeds, rows, random):
    return sum(bool(established(goal, draw(random, (strategies, seeds)))) for _ in range(rows)) / rows


def limit(rows, share=0.05, deviations=3.1):
    """A true share exceeds this in one of 1000 samples."""
    return share + deviations * math.sqrt(share * (1 - share) / rows)


def null_row(name, seeds, rows, random):
    """Shares of false rows by size; of a study, how many are to be expected."""
    goal, draw = NULL[name]
    found = {size: false_share(goal, draw, size, seeds, rows, random) for size in ROWS}
    return {
        "noise": name,
        "seeds": seeds,
        "rows_of_a_size": rows,
        **{f"of_{size}": 100 * share for size, share in found.items()},
        "rows_in_study": sum(ROWS.values()),
        "false_in_study": sum(share * ROWS[size] for size, share in found.items()),
    }


def power(strategies, seeds, rows, random):
    """In how many rows the one slower strategy is established to be slower than the best, by how much it is slower."""
    found = {}
    for slower in SLOWER:
        shift = np.log1p(slower) * (np.arange(strategies) == strategies - 1)[:, None]
        tables = (times(random, (strategies, seeds)) * np.exp(shift) for _ in range(rows))
        share = sum(f"s{strategies - 1}" in established(choices.TIME, table) for table in tables) / rows
        found[f"slower_{100 * slower:.0f}"] = 100 * share
    return {"strategies": strategies, "seeds": seeds, **found}


def columns(titles):
    return "| " + " | ".join(titles) + " |\n| --- |" + " ---: |" * (len(titles) - 1)


def markdown(recorded):
    rows = recorded["null"][0]["rows_of_a_size"]
    lines = [
        f"False `{ESTABLISHED}`, % of {rows:,} rows without a difference; promised are 5"
        f" (a sample of a true 5 % seldom exceeds {100 * limit(rows):.1f}):",
        columns(["noise", "seeds", *(f"{size} strategies" for size in ROWS), "expected in a study"]),
    ]
    for row in recorded["null"]:
        shares = " | ".join(f"{row[f'of_{size}']:.1f}" for size in ROWS)
        lines.append(
            f"| {row['noise']} | {row['seeds']} | {shares} | {row['false_in_study']:.1f} of {row['rows_in_study']} |"
        )
    lines += [
        "",
        f"Found, % of rows, with noise of {100 * NOISE_OF_TIMES:.0f} %, if one strategy is slower by:",
        columns(["strategies", "seeds", *(f"{100 * slower:.0f} %" for slower in SLOWER)]),
    ]
    for row in recorded["power"]:
        shares = " | ".join(f"{row[f'slower_{100 * slower:.0f}']:.0f}" for slower in SLOWER)
        lines.append(f"| {row['strategies']} | {row['seeds']} | {shares} |")
    return "\n".join(lines) + "\n"


def simulate(rows, seed):
    random = np.random.default_rng(seed)
    return {
        "seed": seed,
        "null": [null_row(name, seeds, rows, random) for name in NULL for seeds in SEEDS],
        "power": [power(strategies, seeds, rows, random) for strategies in ROWS for seeds in SEEDS],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=1000, metavar="N", help="rows of each size, noise and seeds")
    parser.add_argument("--seed", type=int, default=1, help="of the noise")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the numbers")
    parser.add_argument("--recorded", type=pathlib.Path, metavar="FILE", help="simulate nothing, print these numbers")
    options = parser.parse_args()
    if options.recorded:
        print(markdown(json.loads(options.recorded.read_text(encoding="utf-8"))), end="")
        return
    found = simulate(options.studies, options.seed)
    print(markdown(found), end="")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

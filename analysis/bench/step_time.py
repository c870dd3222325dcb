#!/usr/bin/env python3
"""How well `stratagem plan` predicts the time of a step, for every complete cell of a study.

    python3 analysis/bench/step_time.py runs/study-mini --calibration calibration.json
"""

import argparse
import itertools
import math
import pathlib
import sys

import pandas as pd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from stratagem_report import predict, study
from stratagem_report.program import find_program

# Of strategies that compute what `serial` does.
ALIKE = {"ddp", "fsdp", "fsdp-large", "zero1", "zero2", "ps-sync"}
SHORT_S = 0.020  # steps in which it matters when a thread wakes up
GROUP = ["part", "model", "variant", "workers", "global_batch"]


def rows_of(loaded, plans):
    """One row per complete cell with a prediction [s]."""
    cells = loaded.complete().set_index("cell")
    rows = []
    for cell, plan in plans.items():
        time = plan.get("time", {})
        if "step_s" not in time:
            print(f"{cell}: {time.get('problem', 'no time')}", file=sys.stderr)
            continue
        measured = loaded.runs[cell].row["steady_step_s"]
        rows.append({**cells.loc[cell, GROUP].to_dict(), **time, "measured_s": measured})
    found = pd.DataFrame(rows)
    found["error"] = (found["step_s"] / found["measured_s"] - 1).abs()
    return found


def summary(found):
    """Errors of the cells, by part and in total."""
    print("| part | cells | median error % | 90th percentile % | greatest % |")
    print("| --- | ---: | ---: | ---: | ---: |")
    parts = [(part, rows) for part, rows in found.groupby("part", sort=False)]
    for part, rows in [*parts, ("all", found)]:
        errors = 100 * rows["error"]
        print(
            f"| {part} | {len(rows)} | {errors.median():.1f} | {errors.quantile(0.9):.1f}"
            f" | {errors.max():.1f} |"
        )


def ratio_errors(rows):
    """Of each two strategies that train alike, in one cell: how far the predicted ratio of their steps is from the
    measured one, as a fraction of the smaller. `rows`: (cell, strategy, predicted, measured). {both are short: errors}
    """
    errors = {False: [], True: []}
    rows = [row for row in rows if row[1] in ALIKE]
    for a, b in itertools.combinations(rows, 2):
        short = {row[2] < SHORT_S for row in (a, b)}
        if a[0] == b[0] and len(short) == 1:
            errors[short.pop()].append(math.exp(abs(math.log(a[2] / b[2] * b[3] / a[3]))) - 1)
    return {short: sorted(found) for short, found in errors.items()}


def quantile(errors, share):
    """The least error that so many do not exceed."""
    return errors[math.ceil(share * len(errors)) - 1]


def ratios(rows):
    print("| predicted steps | pairs | median error % | nine of ten % | greatest % |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for short, errors in ratio_errors(rows).items():
        if errors:
            told = (f"{100 * quantile(errors, share):.0f}" for share in (0.5, 0.9, 1))
            print(f"| {'below' if short else 'from'} 20 ms | {len(errors)} | {' | '.join(told)} |")


def details(found):
    """Medians of each group, over seeds and any other settings."""
    print(
        "| part | model | strategy | workers | batch | cells | step ms | predicted ms | computes"
        " | communication | cores | error % |"
    )
    print("| --- " * 3 + "| ---: " * 9 + "|")
    for key, rows in found.groupby(GROUP, sort=False):
        middle = rows.median(numeric_only=True)
        times = [middle[name] for name in ("measured_s", "step_s", "compute_s", "exposed_s", "cores_s")]
        shown = " | ".join(f"{1000 * time:.1f}" for time in times)
        error = 100 * (middle["step_s"] / middle["measured_s"] - 1)
        print(f"| {' | '.join(map(str, key))} | {len(rows)} | {shown} | {error:+.1f} |")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=pathlib.Path)
    parser.add_argument("--calibration", required=True)
    parser.add_argument("--program")
    options = parser.parse_args()
    program = find_program(options.program)
    loaded = study.load(options.study, program=program)
    found = rows_of(loaded, predict.predict(loaded, program, options.calibration))
    summary(found)
    print()
    medians = [(key, rows.median(numeric_only=True)) for key, rows in found.groupby(GROUP, sort=False)]
    ratios([((key[0], key[1], *key[3:]), key[2], row["step_s"], row["measured_s"]) for key, row in medians])
    print()
    details(found)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The cost of the watchdog: the processor time of its thread on every rank, as a share of the elapsed time.

  python3 analysis/bench/watchdog_cost.py --models lenet resnet50 --ranks 2 4

Paired ratios cannot show it, because their spread is more than a hundred times as large. Needs Python with numpy and
h5py, and `build/stratagem`.
"""

import tempfile
import time
from pathlib import Path

import programs
import report

COLUMNS = {"model": "{model}", "ranks": "{ranks}", "images/rank": "{batch}", "threads": "{threads}",
           "share of a core, mean": "{mean:.4%}", "most": "{most:.4%}"}


def main():
    programs.MODELS["lenet"] = None  # torchvision has none
    parser = programs.arguments(__doc__, ranks=[2], batches=[16])
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    table = report.Table(options, COLUMNS, machine=programs.machine(options))
    for cell in programs.cells(options):
        table.add(measure(options, cell))


def measure(options, cell):
    with tempfile.TemporaryDirectory() as name:
        with programs.Stratagem(Path(name), options, cell, "{name: ddp}") as run:
            run.wait_for_steps(3, 300)
            before, begin = used_ns(run), time.monotonic_ns()
            time.sleep(options.seconds)
            after, end = used_ns(run), time.monotonic_ns()
    shares = [(after[thread] - before[thread]) / (end - begin) for thread in before]
    return {"model": cell.model, "ranks": cell.ranks, "batch": cell.batch, "threads": len(shares),
            "mean": sum(shares) / len(shares), "most": max(shares)}


def used_ns(run):
    """{thread: processor time} of the watchdogs of all ranks."""
    used = {}
    for pid in run.ranks():
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text().strip() == "watchdog":
                used[task.name] = int((task / "schedstat").read_text().split()[0])
    return used


if __name__ == "__main__":
    main()

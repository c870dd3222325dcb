#!/usr/bin/env python3
"""What it gains to communicate during the backward pass: a strategy with `overlap: true` and with `overlap: false`.

  python3 analysis/bench/overlap.py --models lenet resnet50 --batches 64 16 --ranks 2
  ... --control          compares the strategy without overlap with itself (see paired.py)

A ratio above 1 means that overlap is faster. Needs Python with numpy and h5py, and `build/stratagem`.
"""

import functools

import paired
import programs
import report
import traces


def look(ours, theirs, windows):
    """The share of a step that waited for communication, with overlap and without."""
    own, other = zip(*windows)
    return {"exposed": traces.exposed_shares(ours.traces, own)["step"],
            "exposed_without": traces.exposed_shares(theirs.traces, other)["step"]}


def main():
    programs.MODELS["lenet"] = None  # torchvision has none
    parser = paired.arguments(__doc__, ranks=[2])
    parser.set_defaults(models=["lenet", "resnet50"], batches=[64, 16])
    parser.add_argument("--strategies", nargs="+", default=["name: ddp"], help="each as YAML")
    options = parser.parse_args()
    columns = {"model": "{model}", "strategy": "{strategy}", "ranks": "{ranks}", "images/rank": "{batch_per_rank}",
               **paired.speed_columns("overlap", "none"), "exposed": "{exposed:.1%}",
               "exposed without": "{exposed_without:.1%}"}
    table = report.Table(options, columns, machine=programs.machine(options))
    for strategy in options.strategies:
        for cell in programs.cells(options):
            start = (functools.partial(programs.Stratagem, options=options, cell=cell, spans_every=1,
                                       strategy=f"{{{strategy}, overlap: {overlap}}}") for overlap in ("true", "false"))
            row = paired.measure(options, cell, *start, look)
            table.add({**row, "strategy": strategy})


if __name__ == "__main__":
    main()

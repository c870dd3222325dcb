#!/usr/bin/env python3
"""The cost of comparing replicas: the program with `integrity.hash_every` against the program without.

  python3 analysis/bench/integrity_cost.py --models resnet50 lenet --ranks 2
  ... --base PROGRAM     compares with another program, such as an older one without fingerprints of collectives
  ... --control          compares the program without hashes with itself (see paired.py)

A ratio below 1 means that comparing costs time. Needs Python with numpy and h5py, and `build/stratagem`.
"""

import argparse
import functools

import paired
import programs
import report


def main():
    programs.MODELS["lenet"] = None  # torchvision has none
    parser = paired.arguments(__doc__, ranks=[2])
    parser.set_defaults(models=["resnet50", "lenet"], batches=[64])
    parser.add_argument("--hash-every", type=int, default=100, help="steps; windows should hold more than that")
    parser.add_argument("--base", help="the other program; it knows no section integrity")
    options = parser.parse_args()

    def settings(every):
        return "{name: ddp}\nintegrity: {hash_every: %d}" % every

    ours = settings(options.hash_every)
    theirs = "{name: ddp}" if options.base else settings(0)
    other = argparse.Namespace(**{**vars(options), "program": options.base or options.program})
    columns = {"model": "{model}", "ranks": "{ranks}", "images/rank": "{batch_per_rank}",
               **paired.speed_columns("with", "without")}
    table = report.Table(options, columns, machine=programs.machine(options, ours=ours, theirs=theirs))
    for cell in programs.cells(options):
        table.add(paired.measure(
            options, cell,
            functools.partial(programs.Stratagem, options=options, cell=cell, strategy=ours),
            functools.partial(programs.Stratagem, options=other, cell=cell, strategy=theirs)))


if __name__ == "__main__":
    main()

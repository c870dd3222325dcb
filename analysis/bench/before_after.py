#!/usr/bin/env python3
"""Two builds of stratagem: is the newer one slower?

  python3 analysis/bench/before_after.py --base OLD/build/stratagem --models lenet resnet50 --batches 16 --ranks 2
  ... --control          compares the older build with itself (see paired.py)

DDP, ZeRO-3, and a synchronous and an asynchronous parameter server with one server in addition to the ranks. A ratio
above 1 means that the newer build is faster. Needs Python with numpy and h5py, and both builds.
"""

import argparse
import dataclasses
import functools

import paired
import programs
import report

# Both builds must know the keys.
STRATEGIES = {
    "ddp": "{name: ddp}",
    "fsdp": "{name: fsdp, shard: full, unit_mb: 4}",
    "ps sync": "{name: ps, mode: sync}",
    "ps async": "{name: ps, mode: async}",
}


def main():
    programs.MODELS["lenet"] = None  # torchvision has none
    parser = paired.arguments(__doc__, ranks=[2])
    parser.set_defaults(models=["lenet", "resnet50"], batches=[16])
    parser.add_argument("--base", required=True, help="the older build")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    options = parser.parse_args()
    base = argparse.Namespace(**{**vars(options), "program": options.base})
    columns = {"model": "{model}", "ranks": "{ranks}", "images/rank": "{batch_per_rank}", "strategy": "{strategy}",
               **paired.speed_columns("newer", "older")}
    table = report.Table(options, columns, machine=programs.machine(options, older=programs.machine(base)["stratagem"]))
    for cell in programs.cells(options):
        for name in options.strategies:
            trained = dataclasses.replace(cell, servers=int(name.startswith("ps")))
            start = (functools.partial(programs.Stratagem, options=of, cell=trained, strategy=STRATEGIES[name])
                     for of in (options, base))
            table.add({**paired.measure(options, trained, *start), "strategy": name})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What settings gain in speed: the same training with some of them and with others.

  python3 analysis/bench/settings_speed.py --ours comm.node_memory=auto --theirs comm.node_memory=off --models vgg16
  ... --ours strategy.overlap=true --theirs strategy.overlap=false --models lenet resnet50
  ... --ours precision.compute=bf16 --theirs precision.compute=fp32 --batches 64
  ... --control          compares the second ones with themselves (see paired.py)

A ratio above 1 means that the first ones are faster. Needs Python with numpy and h5py, and `build/stratagem`.
"""

import functools

import paired
import programs
import report
import traces


def look(ours, theirs, windows):
    """The share of a step that waited for communication, on both sides."""
    own, other = zip(*windows)
    return {"exposed": traces.exposed_shares(ours.traces, own)["step"],
            "exposed_theirs": traces.exposed_shares(theirs.traces, other)["step"]}


def main():
    programs.MODELS["lenet"] = None  # torchvision has none
    parser = paired.arguments(__doc__, ranks=[2])
    parser.add_argument("--ours", nargs="+", required=True, metavar="KEY=VALUE")
    parser.add_argument("--theirs", nargs="+", required=True, metavar="KEY=VALUE")
    parser.add_argument("--strategies", nargs="+", default=["name: ddp"], help="each as YAML")
    options = parser.parse_args()
    ours, theirs = (", ".join(settings) for settings in (options.ours, options.theirs))
    columns = {"model": "{model}", "strategy": "{strategy}", "settings": "{settings}", "ranks": "{ranks}",
               "images/rank": "{batch_per_rank}", **paired.speed_columns("ours", "theirs"),
               "exposed": "{exposed:.1%}", "theirs exposed": "{exposed_theirs:.1%}"}
    table = report.Table(options, columns, machine=programs.machine(options))
    for strategy in options.strategies:
        for cell in programs.cells(options):
            start = (functools.partial(programs.Stratagem, options=options, cell=cell, spans_every=1,
                                       strategy=f"{{{strategy}}}", settings=settings)
                     for settings in (options.ours, options.theirs))
            row = paired.measure(options, cell, *start, look)
            table.add({**row, "strategy": strategy, "settings": f"{ours}; {theirs}"})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What it gains that ranks of one node sum in memory that they share, against messages: comm.node_memory auto and off.

  python3 analysis/bench/node_memory.py --models vgg16 --strategies "name: ddp" "name: fsdp, shard: full"
  ... --control          compares messages with messages (see paired.py)

A ratio above 1 means that node memory is faster. Needs Python with numpy and h5py, and `build/stratagem`.
"""

import argparse
import functools

import paired
import programs
import report
import traces


def look(ours, theirs, windows):
    """The share of a step that waited for communication, with node memory and with messages."""
    own, other = zip(*windows)
    return {"exposed": traces.exposed_shares(ours.traces, own)["step"],
            "exposed_by_messages": traces.exposed_shares(theirs.traces, other)["step"]}


def main():
    parser = paired.arguments(__doc__, ranks=[2])
    parser.add_argument("--strategies", nargs="+", default=["name: ddp"], help="each as YAML")
    options = parser.parse_args()
    messages = argparse.Namespace(**{**vars(options), "comm": ", node_memory: off"})
    columns = {"model": "{model}", "strategy": "{strategy}", "ranks": "{ranks}", "images/rank": "{batch_per_rank}",
               **paired.speed_columns("node memory", "messages"), "exposed": "{exposed:.1%}",
               "exposed, by messages": "{exposed_by_messages:.1%}"}
    table = report.Table(options, columns, machine=programs.machine(options))
    for strategy in options.strategies:
        for cell in programs.cells(options):
            start = functools.partial(programs.Stratagem, cell=cell, spans_every=1, strategy=f"{{{strategy}}}")
            row = paired.measure(options, cell, functools.partial(start, options=options),
                                 functools.partial(start, options=messages), look)
            table.add({**row, "strategy": strategy})


if __name__ == "__main__":
    main()

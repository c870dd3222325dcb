#!/usr/bin/env python3
"""stratagem's FSDP against its DDP: the time that sharding costs, and how much of its communication is exposed.

  python3 analysis/bench/fsdp_vs_ddp.py --data $STRATAGEM_DATA/cifar-10-batches-bin --fsdp "shard: full, prefetch: 1"
  ... --control     compares DDP with itself: the smallest difference that the method (see paired.py) can show

A ratio above 1 means that FSDP is faster. The exposed share of an operation is the part of its time during which
computation waited for communication. The second table shows where the time of a step went.
Needs Python with numpy and h5py, and `build/stratagem`.
"""

import functools

import paired
import programs
import report
import traces


def look(ours, theirs, windows):
    """Exposed communication of FSDP, and the phases of both programs, in the windows just measured."""
    own, other = zip(*windows)
    return {"exposed": traces.exposed_shares(ours.traces, own),
            "ours_ms": traces.phases_ms(ours.traces[0], own), "theirs_ms": traces.phases_ms(theirs.traces[0], other)}


def print_phases(rows, names):
    """Mean milliseconds of each phase of a step of rank 0."""
    columns = {"model": "{model}", "ranks": "{ranks}", "images/rank": "{batch_per_rank}", "strategy": "{strategy}"}
    columns |= {f"{phase} ms": f"{{{phase}:.1f}}" for phase in traces.PHASES}
    print("\n" + report.head(columns))
    for row in rows:
        for name, phases in zip(names, (row["ours_ms"], row["theirs_ms"])):
            print(report.line(columns, {**row, **phases, "strategy": name}))


def main():
    parser = paired.arguments(__doc__, ranks=[1, 2])
    parser.add_argument("--fsdp", default="shard: full", help="options of the strategy, as YAML")
    parser.add_argument("--ddp", default="bucket_mb: 25", help="the same of DDP")
    options = parser.parse_args()

    ddp = f"{{name: ddp, {options.ddp}}}"
    fsdp = f"{{name: fsdp, {options.fsdp}}}"
    names = ("ddp", "ddp again") if options.control else ("fsdp", "ddp")
    columns = {"model": "{model}", "ranks": "{ranks}", "images/rank": "{batch_per_rank}",
               **paired.speed_columns(*names), "all-gather exposed": "{exposed[all_gather]:.1%}",
               "reduce-scatter exposed": "{exposed[reduce_scatter]:.1%}", "step exposed": "{exposed[step]:.1%}"}
    table = report.Table(options, columns, machine=programs.machine(options, ours=fsdp, theirs=ddp))
    for cell in programs.cells(options):
        start = functools.partial(programs.Stratagem, options=options, cell=cell, spans_every=1)
        table.add(paired.measure(options, cell, functools.partial(start, strategy=fsdp),
                                  functools.partial(start, strategy=ddp), look))
    print_phases(table.rows, names)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Sums over two nodes that a link of a given rate joins: comm.algorithm chain against flat, by commbench.

  python3 analysis/bench/between_nodes.py --rates 1gbit 100mbit --ranks-per-node 2 --sizes 64K 1M 25M
  ... --control          compares flat with flat

Both nodes are inside this machine (linked_nodes.py): needs root. The two take turns, each started `--pairs` times. A
ratio above 1 means that chain is faster. `of the link`: the time that the bytes of the busier direction need at least,
as a share of the time with chain.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import linked_nodes
import programs
import report

UNITS = {"gbit": 1e9, "mbit": 1e6, "K": 1 << 10, "M": 1 << 20}


def number(text):
    """Of a rate, "1gbit" [bit/s], or of a size, "64K" [B]."""
    return next(float(text.removesuffix(unit)) * size for unit, size in UNITS.items() if text.endswith(unit))


def time_of(options, nodes, cell, algorithm):
    """[s] of one start."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = [Path(options.program).resolve(), "commbench", "--ops", cell["operation"], "-b", cell["size"], "-e",
                 cell["size"], "--algorithm", algorithm, "--json", out]
        subprocess.run(nodes.mpirun(options.ranks_per_node, words), stdin=subprocess.DEVNULL, capture_output=True,
                       check=True, timeout=options.timeout)
        rows = json.loads(out.read_text())["rows"]
        return next(row["time_s"] for row in rows if row["operation"] == cell["operation"])


def measure(options, nodes, cell):
    found = linked_nodes.compare(options, "chain", "flat", lambda way: time_of(options, nodes, cell, way))
    least = 8 * number(cell["size"]) / number(cell["rate"])
    return {**cell, **found, "ranks_per_node": options.ranks_per_node, "of_link": least / found["ours_s"]}


def main():
    parser = linked_nodes.arguments(__doc__, pairs=7)
    parser.add_argument("--operations", nargs="+", default=["all_reduce"])
    parser.add_argument("--rates", nargs="+", default=["1gbit", "100mbit"])
    parser.add_argument("--sizes", nargs="+", default=["64K", "1M", "25M"])
    parser.add_argument("--ranks-per-node", type=int, default=2)
    options = parser.parse_args()
    columns = {"operation": "{operation}", "bytes": "{size}", "link": "{rate}", "ranks per node": "{ranks_per_node}",
               "chain ms": "{ours_ms:.1f}", "flat ms": "{theirs_ms:.1f}", **linked_nodes.RATIO_COLUMNS,
               "of the link": "{of_link:.0%}"}
    table = report.Table(options, columns, machine=programs.machine(options))
    with linked_nodes.LinkedNodes() as nodes:
        for rate in options.rates:
            nodes.rate(rate)
            for operation in options.operations:
                for size in options.sizes:
                    table.add(measure(options, nodes, {"operation": operation, "size": size, "rate": rate}))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Sums over two nodes that a link of a given rate joins: comm.algorithm chain against flat, by commbench.

  python3 analysis/bench/between_nodes.py --rates 1gbit 100mbit --ranks-per-node 2 --sizes 64K 1M 25M
  ... --control          compares flat with flat

Both nodes are inside this machine (linked_nodes.py): needs root. The two take turns, each started `--pairs` times. A
ratio above 1 means that chain is faster. `of the link`: the time that the bytes of the busier direction need at least,
as a share of the time with chain.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import linked_nodes
import paired
import programs
import report

UNITS = {"gbit": 1e9, "mbit": 1e6}


def bits_per_second(rate):
    return next(float(rate.removesuffix(unit)) * size for unit, size in UNITS.items() if rate.endswith(unit))


def time_of(options, nodes, cell, algorithm):
    """[s] of one start."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        words = [Path(options.program).resolve(), "commbench", "--ops", cell["operation"], "-b", cell["size"], "-e",
                 cell["size"], "--algorithm", algorithm, "--json", out]
        subprocess.run(nodes.mpirun(options.ranks_per_node, words), stdin=subprocess.DEVNULL, capture_output=True,
                       check=True, timeout=options.timeout)
        return next(row for row in json.loads(out.read_text())["rows"] if row["operation"] == cell["operation"])


def measure(options, nodes, cell):
    pairs = []
    for number in range(options.pairs):
        order = ["chain", "flat"] if number % 2 == 0 else ["flat", "chain"]
        found = {place: time_of(options, nodes, cell, "flat" if options.control else name)
                 for place, name in enumerate(order)}
        pairs.append((found[order.index("chain")], found[order.index("flat")]))
    ratio, low, high, coverage = paired.median_interval([b["time_s"] / a["time_s"] for a, b in pairs])
    chain, flat = (sorted(times)[len(times) // 2] for times in zip(*((a["time_s"], b["time_s"]) for a, b in pairs)))
    least = 8 * pairs[0][0]["bytes"] / bits_per_second(cell["rate"])
    return {**cell, "ranks_per_node": options.ranks_per_node, "pairs": len(pairs), "ratio": ratio, "ratio_low": low,
            "ratio_high": high, "coverage": coverage, "chain_ms": 1e3 * chain, "flat_ms": 1e3 * flat,
            "of_link": least / chain, "control": options.control,
            "times_s": [(a["time_s"], b["time_s"]) for a, b in pairs]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/stratagem")
    parser.add_argument("--operations", nargs="+", default=["all_reduce"])
    parser.add_argument("--rates", nargs="+", default=["1gbit", "100mbit"])
    parser.add_argument("--sizes", nargs="+", default=["64K", "1M", "25M"])
    parser.add_argument("--ranks-per-node", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--timeout", type=float, default=300, help="of one start [s]")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--json", help="also write the raw numbers to this file")
    options = parser.parse_args()
    options.threads = 1
    columns = {"operation": "{operation}", "bytes": "{size}", "link": "{rate}", "ranks per node": "{ranks_per_node}",
               "chain ms": "{chain_ms:.1f}", "flat ms": "{flat_ms:.1f}", "ratio": "{ratio:.2f}",
               "interval (coverage)": "{ratio_low:.2f} to {ratio_high:.2f} ({coverage:.1%})", "pairs": "{pairs}",
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

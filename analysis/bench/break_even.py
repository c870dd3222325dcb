#!/usr/bin/env python3
"""Below which rate of a link coded gradients shorten a step, as `stratagem plan` predicts it and as measured: DDP on
two nodes with one rank each.

  python3 analysis/bench/break_even.py --models vgg16 --images 4 --rates 1gbit 2gbit 4gbit 8gbit 16gbit

Both nodes are inside this machine, each with half of its cores (linked_nodes.py): needs root. They are calibrated with
no limit on their cable. Then steps with and without the code are compared at each rate, as compressed_links.py does.
What counts as the rate is what sums in fp32 send during such steps, for each second in which one is under way: a cable
between such nodes does not reach its own. Where the ratio passes 1 it is taken on a straight line over its logarithm.
"""

import json
import math
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import compressed_links
import linked_nodes
import programs
import report
import traces


def predicted(options, nodes, folder):
    """[bit/s], from a calibration of the nodes; no less than they have without a limit: infinite."""
    nodes.rate(None)
    config = folder / "config.yaml"
    config.write_text(compressed_links.CONFIG.format(strategy=compressed_links.strategy_of(options.code),
                                                     **vars(options)))
    program, file = Path(options.program).resolve(), folder / "calibration.json"
    calibrate = nodes.mpirun(1, [program, "calibrate", config, "-o", file, "-q"])
    plan = [program, "plan", config, "--ranks", "2", "--calibration", file, "--json", "--no-activations"]
    for words in (calibrate, plan):
        ended = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               check=True, timeout=options.timeout)
    codes = {row["compression"]: row for row in json.loads(ended.stdout)["codes"]}
    pays_below = codes[options.code]["pays_below_B_per_s"]
    return math.inf if pays_below is None else 8 * pays_below


def union(intervals):
    """The time in which any of the (begin, end) is under way."""
    ordered = intervals[np.argsort(intervals[:, 0])]
    covered_to = np.maximum.accumulate(np.concatenate([[ordered[0, 0]], ordered[:-1, 1]]))
    return np.maximum(ordered[:, 1] - np.maximum(ordered[:, 0], covered_to), 0).sum()


def achieved(options, nodes):
    """[bit/s], each way."""
    with compressed_links.trained(options, nodes, "name: ddp", ["trace.spans_every=1"]) as trace:
        sums = traces.spans(trace)[traces.COMM_LANE, "all_reduce"]
        sent = sum(of_step for of_step, _ in traces.sent_per_step(trace).values())
    return 8e9 * sent / union(sums)


def crossing(points):
    """Where the ratio passes 1, of (rate, ratio) at rising rates [bit/s]; infinite where it stays above."""
    if points[0][1] <= 1:
        return 0
    for (left, above), (right, below) in zip(points, points[1:]):
        if below <= 1:
            share = (above - 1) / (above - below)
            return math.exp(math.log(left) + share * math.log(right / left))
    return math.inf


def measure(options, nodes):
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as folder:
        foretold = predicted(options, nodes, Path(folder))
    rates = []
    for rate in options.rates:
        nodes.rate(rate)
        bandwidth = achieved(options, nodes)
        found = compressed_links.measure(options, nodes, rate, "name: ddp", options.code)
        rates.append({**found, "achieved_gbit": 1e-9 * bandwidth})
    found = 1e9 * crossing([(row["achieved_gbit"], row["ratio"]) for row in rates])
    return {"model": options.model, "images": options.images, "code": options.code, "measured_gbit": 1e-9 * found,
            "predicted_gbit": 1e-9 * foretold, "predicted_over_measured": foretold / found if found else math.inf,
            "ratios": ", ".join(f"{row['ratio']:.2f} at {row['achieved_gbit']:.1f}" for row in rates), "rates": rates}


def main():
    parser = linked_nodes.arguments(__doc__, pairs=3)
    parser.add_argument("--models", nargs="+", default=["vgg16"])
    parser.add_argument("--dataset", default="cifar10")
    parser.add_argument("--images", type=int, default=4, help="of all ranks together")
    parser.add_argument("--code", default="int8")
    parser.add_argument("--rates", nargs="+", default=["1gbit", "2gbit", "4gbit", "8gbit", "16gbit"], help="rising")
    parser.add_argument("--steps", type=int, default=12, help="of each start")
    parser.add_argument("--warm-up", type=int, default=3, help="steps that do not count")
    options = parser.parse_args()
    columns = {"model": "{model}", "images": "{images}", "code": "{code}",
               "pays below, measured": "{measured_gbit:.1f} Gbit/s", "predicted": "{predicted_gbit:.1f} Gbit/s",
               "predicted / measured": "{predicted_over_measured:.2f}",
               "fp32 / code, at Gbit/s": "{ratios}"}
    table = report.Table(options, columns, machine=programs.machine(options))
    with linked_nodes.LinkedNodes(apart=True) as nodes:
        for options.model in options.models:
            table.add(measure(options, nodes))


if __name__ == "__main__":
    main()

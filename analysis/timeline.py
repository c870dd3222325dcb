#!/usr/bin/env python3
"""Draws one training step of a run as a timeline: a lane per rank and kind of work.

    analysis/timeline.py runs/mnist-lenet-ddp/collected.h5 [-o step.svg] [--step N]

Reads the file that `stratagem collect` wrote (needs h5py) and writes SVG. Only steps whose spans
were kept can be drawn (trace.spans_every); without --step the last of them is taken.
"""
import argparse
import sys

import h5py
import numpy

LANES = ("compute", "comm", "loader")
COLORS = {
    "data": "#b8b8b8", "forward": "#4c78a8", "backward": "#72b7b2", "comm_exposed": "#e45756",
    "optimizer": "#f2a33c", "all_reduce": "#7b5ea7", "prepare_batch": "#d0c9a8",
}
WIDTH, LEFT, LANE, GAP = 900, 130, 22, 6


def read_spans(group):
    """The spans of one rank as a list of dictionaries, with the rank's clock moved to rank 0's."""
    names = [name.decode() for name in group["names/name"][:]]
    offset = int(group["clock/offset_to_rank0_ns"][0])
    spans = group["spans"]
    columns = {key: spans[key][:] for key in ("name_id", "lane", "t_begin_ns", "t_end_ns", "step", "bytes")}
    return [
        {"name": names[columns["name_id"][i]], "lane": LANES[columns["lane"][i]], "step": int(columns["step"][i]),
         "begin": int(columns["t_begin_ns"][i]) + offset, "end": int(columns["t_end_ns"][i]) + offset,
         "bytes": int(columns["bytes"][i])}
        for i in range(len(columns["step"]))
    ]


def choose_step(ranks, wanted):
    """`wanted`, or the last step that every rank kept."""
    common = set.intersection(*({span["step"] for span in spans if span["lane"] == "compute"} for spans in ranks))
    if not common:
        sys.exit("timeline: no step was kept by all ranks; set trace.spans_every in the configuration")
    if wanted is None:
        return max(common)
    if wanted not in common:
        sys.exit(f"timeline: step {wanted} was not kept; there are {sorted(common)}")
    return wanted


def draw(ranks, step):
    """SVG text of one step."""
    shown = [[span for span in spans if span["step"] == step] for spans in ranks]
    rows = [(rank, lane) for rank, spans in enumerate(shown) for lane in LANES
            if any(span["lane"] == lane for span in spans)]
    begin = min(span["begin"] for spans in shown for span in spans if span["lane"] == "compute")
    end = max(span["end"] for spans in shown for span in spans if span["lane"] != "loader")
    scale = (WIDTH - LEFT - 10) / (end - begin)
    height = len(rows) * (LANE + GAP) + 70
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
             'font-size="12">', '<rect width="100%" height="100%" fill="white"/>']
    for index, (rank, lane) in enumerate(rows):
        y = 8 + index * (LANE + GAP)
        parts.append(f'<text x="8" y="{y + 15}">rank {rank} {lane}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - 10}" height="{LANE}" fill="#f4f4f4"/>')
        for span in shown[rank]:
            if span["lane"] != lane or span["begin"] >= end:
                continue
            x = LEFT + max(span["begin"] - begin, 0) * scale
            width = max((min(span["end"], end) - max(span["begin"], begin)) * scale, 0.7)
            color = COLORS.get(span["name"], "#888888")
            size = f', {span["bytes"] / 2**20:.2f} MiB sent' if span["bytes"] else ""
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LANE}" fill="{color}" stroke="white" '
                         f'stroke-width="0.6">'
                         f'<title>{span["name"]}: {(span["end"] - span["begin"]) / 1e6:.2f} ms{size}</title></rect>')
    y = 8 + len(rows) * (LANE + GAP)
    ticks = numpy.linspace(0, (end - begin) / 1e6, 6)
    for tick in ticks:
        x = LEFT + tick * 1e6 * scale
        parts.append(f'<text x="{x - 8:.0f}" y="{y + 14}" text-anchor="middle">{tick:.0f} ms</text>')
    x = LEFT
    order = {name: place for place, name in enumerate(COLORS)}
    names = {span["name"] for spans in shown for span in spans}
    for name in sorted(names, key=lambda name: order.get(name, len(order))):
        parts.append(f'<rect x="{x}" y="{y + 28}" width="12" height="12" fill="{COLORS.get(name, "#888888")}"/>')
        parts.append(f'<text x="{x + 16}" y="{y + 38}">{name}</text>')
        x += 30 + 7 * len(name)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collected", help="file that `stratagem collect` wrote")
    parser.add_argument("-o", "--output", default="timeline.svg")
    parser.add_argument("--step", type=int)
    options = parser.parse_args()
    with h5py.File(options.collected, "r") as file:
        ranks = [read_spans(file[name]) for name in sorted(file) if name.startswith("rank-")]
    step = choose_step(ranks, options.step)
    with open(options.output, "w", encoding="utf-8") as out:
        out.write(draw(ranks, step))
    print(f"step {step} of {len(ranks)} ranks: {options.output}")


if __name__ == "__main__":
    main()

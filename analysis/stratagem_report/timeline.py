"""One training step of all ranks as a picture: one row per rank and kind of work, on rank 0's clock."""

import numpy as np
import pandas as pd

from . import style
from .errors import BAD_DATA, ReportError, USAGE

LANES = ("compute", "comm")
# What an operation carries; for a server's operations with a worker, the direction decides.
CARRIES = {
    "all_reduce": "gradients",
    "reduce_scatter": "gradients",
    "send": "gradients",
    "all_gather": "parameters",
    "receive": "parameters",
    "put": "gradients",
    "get": "parameters",
}
SHOWN_AS = {
    "gradients": "gradients under way",
    "parameters": "parameters under way",
    "control": "other communication",
    "apply": "server's update",
}


def sampled_steps(trace):
    """Steps for which every worker kept its spans."""
    kept = [set(rank["spans"].query("lane == 0")["step"]) for rank in trace.workers]
    return sorted(set.intersection(*kept)) if kept else []


def choose_step(trace, wanted=None):
    """`wanted`; otherwise, among the kept steps after the first, the one with the median duration on the first
    worker."""
    kept = sampled_steps(trace)
    if not kept:
        raise ReportError(
            "no step was kept by all workers: set trace.spans_every in the configuration", BAD_DATA
        )
    if wanted is not None:
        if wanted not in kept:
            raise ReportError(
                f"step {wanted} was not kept; there are {', '.join(map(str, kept))}", USAGE
            )
        return wanted
    steps = trace.workers[0]["steps"].set_index("step")["dur_step_ns"]
    later = [step for step in kept if step > 0] or kept
    return sorted(later, key=lambda step: steps.get(step, 0))[(len(later) - 1) // 2]


def spans_of_step(trace, step):
    """rank, lane, name, begin_ms, end_ms, bytes of everything in the step; a server's updates form their own lane.
    In an asynchronous run, the step is that of the first worker, and the others are shown during it."""
    spans = [rank.named_spans().assign(rank=rank.rank) for rank in trace.workers]
    for rank in trace.servers:
        updates = rank["ps"]
        spans.append(rank.named_spans().assign(rank=rank.rank))
        spans.append(
            pd.DataFrame(
                {
                    "name": "apply",
                    "lane": "compute",
                    "begin": rank.on_rank0_clock(updates["t_applied_ns"] - updates["dur_busy_ns"]),
                    "end": rank.on_rank0_clock(updates["t_applied_ns"]),
                    "step": updates["step"],
                    "bytes": updates["bytes"],
                    "peer": updates["worker"],
                    "rank": rank.rank,
                }
            )
        )
    every = pd.concat(spans, ignore_index=True)
    every = every[every["lane"].isin(LANES)]
    own = every[
        (every["lane"] == "compute")
        & (every["step"] == step)
        & (every["rank"] == trace.workers[0].rank)
    ]
    begin, end = own["begin"].min(), own["end"].max()
    shown = every[(every["end"] > begin) & (every["begin"] < end)].copy()
    shown["begin_ms"] = (shown["begin"].clip(begin, end) - begin) * 1e-6
    shown["end_ms"] = (shown["end"].clip(begin, end) - begin) * 1e-6
    return shown[["rank", "lane", "name", "begin_ms", "end_ms", "bytes", "step"]]


def kind_of(lane, name, of_server):
    """How a span is drawn: as a phase, as gradients or parameters in transit, or as a server's update."""
    if lane == "compute":
        return name
    carried = CARRIES.get(name, "control")
    opposite = {"gradients": "parameters", "parameters": "gradients"}
    return opposite.get(carried, carried) if of_server else carried


def draw(axis, spans, servers=()):
    """One row per rank and lane, ranks from top to bottom. In a communication row, operations with gradients are in
    the upper half, those with parameters in the lower."""
    rows = sorted(
        set(zip(spans["rank"], spans["lane"])), key=lambda row: (row[0], LANES.index(row[1]))
    )
    colours = {**style.PHASE_COLOURS, **style.OPERATION_COLOURS}
    bands = {"gradients": (-0.42, 0.42), "parameters": (0.0, 0.42)}
    for place, (rank, lane) in enumerate(rows):
        of_row = spans[(spans["rank"] == rank) & (spans["lane"] == lane)]
        kinds = of_row["name"].map(
            lambda name, lane=lane, rank=rank: kind_of(lane, name, rank in servers)
        )
        for kind, of_kind in of_row.groupby(kinds, sort=False):
            offset, height = bands.get(kind, (-0.42, 0.84))
            bars = np.column_stack([of_kind["begin_ms"], of_kind["end_ms"] - of_kind["begin_ms"]])
            axis.broken_barh(
                bars,
                (place + offset, height),
                facecolors=colours.get(kind, "#888888"),
                edgecolor="white",
                linewidth=0.3,
                label=SHOWN_AS.get(kind, style.PHASE_LABELS.get(kind, kind)),
            )
    axis.set_yticks(
        range(len(rows)),
        [f"{'server' if rank in servers else 'rank'} {rank} {lane}" for rank, lane in rows],
    )
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)


def draw_run(trace, wanted=None):
    """(figure, step) of a run's step."""
    step = choose_step(trace, wanted)
    spans = spans_of_step(trace, step)
    figure, axes = style.panels(
        1, columns=1, height=1.0 + 0.25 * len(spans.groupby(["rank", "lane"]))
    )
    draw(axes[0], spans, [rank.rank for rank in trace.servers])
    axes[0].set_xlabel(f"time since step {step} began [ms]")
    axes[0].set_xlim(0, spans["end_ms"].max())
    style.legend_below(figure, axes)
    return figure, step

"""Figures of one step: F8, what each rank did; F13, which rank holds and sends what."""

import pandas as pd
from matplotlib.patches import FancyBboxPatch

from . import style, timeline
from .errors import ReportError
from .figures_memory import at_most_workers
from .style import Figure, look_of

TOGETHER = ("serial", "ddp", "fsdp", "ps-sync", "ps-async")  # the strategies in a family's timelines
MIB = 2**-20


def shown_together(family, variant, workers):
    kind = style.kind_of(variant)
    return workers > 1 and kind in TOGETHER and variant == family.find(kind, workers)


def f8_timeline(comparison, family):
    """One step of all ranks with each strategy, on the same time scale."""
    found = {}
    for variant, workers in at_most_workers(family):
        if shown_together(family, variant, workers):
            trace = comparison.first_run(family, variant, workers).trace
            try:
                found[variant, workers] = trace, timeline.spans_of_step(
                    trace, timeline.choose_step(trace)
                )
            except ReportError:
                continue  # no spans were kept
    if not found:
        return None
    heights = [len(spans.groupby(["rank", "lane"])) + 1.6 for _, spans in found.values()]
    figure, axes = style.panels(
        len(found),
        columns=1,
        height=0.23 * sum(heights) / len(found) + 0.25,
        sharex=True,
        gridspec_kw={"height_ratios": heights},
    )
    rows = []
    for axis, ((variant, workers), (trace, spans)) in zip(axes, found.items()):
        timeline.draw(axis, spans, [rank.rank for rank in trace.servers])
        axis.set_title(
            f"{look_of(variant).label}, {style.workers_text(workers)}: {spans['end_ms'].max():.1f} ms",
            loc="left",
        )
        axis.axvline(spans["end_ms"].max(), color="#222222", linewidth=0.8)
        rows.append(spans.assign(**family.key, variant=variant, workers=workers))
    axes[-1].set_xlabel("time since the step began [ms]")
    axes[-1].set_xlim(0, None)
    figure.suptitle(family.title)
    style.legend_below(figure, axes)
    return Figure(
        f"F8-timeline-{family.label}",
        f"One step of all ranks: {family.title}",
        "The step of median duration among those whose spans were kept, on one scale; clocks are"
        " corrected. Red is waiting for communication that computation did not hide. An"
        " asynchronous step is the first worker's; of other ranks, what was kept while it lasted.",
        figure,
        pd.concat(rows, ignore_index=True),
    )


def mib(size):
    return f"{size * MIB:,.1f} MiB"


def box(axis, x, y, width, height, title, lines, colour):
    """A framed box around (x, y) with a title and lines in it."""
    axis.add_patch(
        FancyBboxPatch(
            (x - width / 2, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.02",
            facecolor="white",
            edgecolor=colour,
            linewidth=1.6,
        )
    )
    text = "\n".join([title, *lines])
    axis.text(x, y, text, ha="center", va="center", fontsize=7, linespacing=1.3)


def arrow(axis, start, end, colour, style_of="<|-|>"):
    """An arrow between the edges of two boxes."""
    axis.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": style_of,
            "color": colour,
            "linewidth": 1.4,
            "shrinkA": 1,
            "shrinkB": 1,
        },
    )


def held(memory):
    return [
        f"{name} {mib(memory[name])}"
        for name in ("parameters", "gradients", "optimizer")
        if memory[name]
    ]


# Bounds of the boxes in a panel, from 0 to 1.
WORKER_Y, BOX_HEIGHT, BUS_Y, SERVER_Y = 0.2, 0.36, 0.6, 0.82
WORKER_TOP, SERVER_BOTTOM = WORKER_Y + BOX_HEIGHT / 2, SERVER_Y - BOX_HEIGHT / 2


def draw_workers(axis, workers, plan, colour):
    """Positions of the workers, from left to right."""
    shown = min(workers, 3)
    places = [(index + 0.5) / shown for index in range(shown)]
    names = [f"worker {index}" for index in range(shown)]
    if workers > 3:
        names[-2:] = ["...", f"worker {workers - 1}"]
    for x, name in zip(places, names):
        lines = held(plan["memory_B"]) if name != "..." else []
        box(axis, x, WORKER_Y, min(0.44, 0.95 / shown), BOX_HEIGHT, name, lines, colour)
    return places


def draw_server(axis, places, plan, colour):
    """The server above its workers, with the bytes that each pushes and pulls."""
    servers = len(plan["ps"]["server_ranks"])
    title = "server" if servers == 1 else f"{servers} servers, each"
    box(axis, 0.5, SERVER_Y, 0.44, BOX_HEIGHT, title, held(plan["ps"]["server_memory_B"]), colour)
    for x in places:
        top = 0.5 + (x - 0.5) * 0.45
        arrow(axis, (x - 0.03, WORKER_TOP), (top - 0.03, SERVER_BOTTOM), colour, "-|>")
        arrow(axis, (top + 0.03, SERVER_BOTTOM), (x + 0.03, WORKER_TOP), colour, "-|>")
    push, pull = plan["bytes_sent_per_step"], sum(plan["ps"]["elements"]) * 4
    told = f"each worker,\nper step:\npush {mib(push)}\npull {mib(pull)}"
    axis.text(1, SERVER_Y, told, fontsize=7, ha="right", va="center")


def draw_collectives(axis, places, plan, colour):
    """The data that all workers exchange, as a line connected to each of them."""
    axis.plot([0.04, 0.96], [BUS_Y, BUS_Y], color=colour, linewidth=3, solid_capstyle="round")
    for x in places:
        arrow(axis, (x, WORKER_TOP), (x, BUS_Y), colour)
    told = [
        f"all-reduce of gradients, {len(plan['buckets'])} buckets: {mib(plan['bytes_sent_per_step'])}"
    ]
    if "fsdp" in plan:
        told = [
            f"all-gather of parameters: {mib(plan['fsdp']['gathered_bytes_per_step'])}",
            f"reduce-scatter of gradients: {mib(plan['fsdp']['reduced_bytes_per_step'])}",
        ]
    text = "each worker sends, per step:\n" + "\n".join(told)
    axis.text(0.5, BUS_Y + 0.05, text, fontsize=7, ha="center", va="bottom")


def draw_strategy(axis, variant, workers, plan):
    """Workers at the bottom; above them what they exchange, with bytes per step."""
    look = look_of(variant)
    places = draw_workers(axis, workers, plan, look.colour)
    if "ps" in plan:
        draw_server(axis, places, plan, look.colour)
    elif workers > 1:
        draw_collectives(axis, places, plan, look.colour)
    axis.set(xlim=(-0.01, 1.01), ylim=(0, 1.02), title=f"{look.label}, {style.workers_text(workers)}")
    axis.axis("off")


def f13_strategies(comparison, family):
    """Which rank holds and sends what, with the bytes from the plan."""
    drawn = []
    for variant, workers in at_most_workers(family):
        plan = comparison.predictions.get(family.of(variant, workers)["cell"].iloc[0])
        if plan and shown_together(family, variant, workers):
            drawn.append((variant, workers, plan))
    if not drawn:
        return None
    figure, axes = style.panels(len(drawn), columns=2, height=2.6)
    for axis, (variant, workers, plan) in zip(axes, drawn):
        draw_strategy(axis, variant, workers, plan)
    figure.suptitle(family.title)
    data = pd.DataFrame(
        [
            {
                **family.key,
                "variant": variant,
                "workers": workers,
                "sent_per_step_B": plan["bytes_sent_per_step"],
                **{f"{name}_B": value for name, value in plan["memory_B"].items()},
            }
            for variant, workers, plan in drawn
        ]
    )
    return Figure(
        f"F13-strategies-{family.label}",
        f"Who holds and sends what: {family.title}",
        "Lasting memory of each rank and bytes per step, as `stratagem plan` computes them.",
        figure,
        data,
    )

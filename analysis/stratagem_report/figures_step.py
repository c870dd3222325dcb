"""Figures of one step: F8, what each rank did; F13, who holds and sends what."""

import pandas as pd

from . import style, timeline
from .errors import ReportError
from .figures_memory import at_most_workers
from .style import Figure, look_of

TOGETHER = ("serial", "ddp", "fsdp", "ps-sync", "ps-async")  # what a family's timelines show
MIB = 2**-20


def shown_together(family, variant, workers):
    kind = style.kind_of(variant)
    return workers > 1 and kind in TOGETHER and variant == family.find(kind, workers)


def f8_timeline(comparison, family):
    """A step of all ranks under each strategy, on one scale of time."""
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
            f"{look_of(variant).label}, {workers} workers: {spans['end_ms'].max():.1f} ms",
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


def box(axis, x, y, title, lines, colour):
    axis.text(
        x,
        y,
        "\n".join([title, *lines]),
        ha="center",
        va="center",
        fontsize=7.5,
        linespacing=1.35,
        bbox={
            "boxstyle": "round,pad=0.5",
            "facecolor": "white",
            "edgecolor": colour,
            "linewidth": 1.6,
        },
    )


def arrow(axis, start, end, colour, style_of="<|-|>"):
    axis.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": style_of,
            "color": colour,
            "linewidth": 1.4,
            "shrinkA": 0,
            "shrinkB": 0,
        },
    )


def held(memory):
    return [
        f"{name} {mib(memory[name])}"
        for name in ("parameters", "gradients", "optimizer")
        if memory[name]
    ]


def draw_strategy(axis, variant, workers, plan):
    """Workers below; above them what they exchange, with bytes per step."""
    look = look_of(variant)
    places = [(index + 0.5) / min(workers, 3) for index in range(min(workers, 3))]
    names = [f"worker {index}" for index in range(len(places))]
    if workers > 3:
        names[-2:] = ["...", f"worker {workers - 1}"]
    for x, name in zip(places, names):
        box(axis, x, 0.2, name, held(plan["memory_B"]) if name != "..." else [], look.colour)
    if "ps" in plan:
        push, pull = plan["bytes_sent_per_step"], sum(plan["ps"]["elements"]) * 4
        servers = len(plan["ps"]["server_ranks"])
        box(
            axis,
            0.5,
            0.85,
            "server" if servers == 1 else f"{servers} servers, each",
            held(plan["ps"]["server_memory_B"]),
            look.colour,
        )
        for x in places:
            top = 0.5 + (x - 0.5) * 0.35
            arrow(axis, (x - 0.03, 0.42), (top - 0.03, 0.64), look.colour, "-|>")
            arrow(axis, (top + 0.03, 0.64), (x + 0.03, 0.42), look.colour, "-|>")
        told = [f"push {mib(push)}", f"pull {mib(pull)}"]
        axis.text(
            0.98,
            0.78,
            "each worker,\nper step:\n" + "\n".join(told),
            fontsize=7.5,
            ha="right",
            va="center",
        )
    elif workers > 1:
        axis.plot(
            [0.04, 0.96], [0.62, 0.62], color=look.colour, linewidth=3, solid_capstyle="round"
        )
        for x in places:
            arrow(axis, (x, 0.42), (x, 0.615), look.colour)
        if "fsdp" in plan:
            told = [
                f"all-gather of parameters: {mib(plan['fsdp']['gathered_bytes_per_step'])}",
                f"reduce-scatter of gradients: {mib(plan['fsdp']['reduced_bytes_per_step'])}",
            ]
        else:
            told = [
                f"all-reduce of gradients, {len(plan['buckets'])} buckets:"
                f" {mib(plan['bytes_sent_per_step'])}"
            ]
        axis.text(
            0.5,
            0.68,
            "each worker sends, per step:\n" + "\n".join(told),
            fontsize=7.5,
            ha="center",
            va="bottom",
        )
    axis.set(xlim=(0, 1), ylim=(0, 1.05), title=f"{look.label}, {workers} workers")
    axis.axis("off")


def f13_strategies(comparison, family):
    """Who holds what and who sends what, with the bytes of the plan."""
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

"""Figures of memory and device use: F3, F4, F5, F9, F12, F17."""

import math

import pandas as pd

from . import style
from .figures_time import collect, grouped_bars
from .stacked_bars import Part, stacked_bars
from .style import Figure, look_of
from .tables_training import prediction_rows
from .trace import MEMORY_CATEGORIES

MIB = 2**-20
FEWEST_SAMPLES = 4  # fewer do not show a course over time


def at_most_workers(family):
    """(variant, workers) of every strategy, at the largest number of workers that most strategies have; more than
    one if possible."""
    counts = {workers: len(family.variants_with(workers)) for workers in family.workers}
    best = max(counts, key=lambda workers: (workers > 1, counts[workers], workers))
    return [(variant, best) for variant in family.variants_with(best)]


def f3_peak_memory(comparison):
    parts = [
        Part(category, f"worker_peak_{category}_B", style.CATEGORY_COLOURS[category], category)
        for category in MEMORY_CATEGORIES
    ]
    figure, data = stacked_bars(
        comparison, parts, "category", "MiB", "peak memory of a worker", factor=MIB
    )
    return Figure(
        "F3-peak-memory",
        "Peak memory by category",
        "A bar per strategy and number of workers. Sharding divides parameters, gradients and"
        " optimizer state (blue and green); it cannot divide activations (orange). Without the data set.",
        figure,
        data,
    )


def course_places(comparison):
    """(family, workers) of the figures over time: for every number of workers, one worker only where there is no
    other."""
    return [
        (family, workers)
        for family in comparison.drawn
        for workers in [count for count in family.workers if count > 1] or family.workers
    ]


def sampled(comparison, family, workers, table):
    """(variant, first run, samples of its first worker) of the strategies with enough samples to show a course."""
    runs = [(variant, comparison.first_run(family, variant, workers)) for variant in family.variants_with(workers)]
    return [(variant, run) for variant, run in runs if len(run.trace.workers[0][table]) >= FEWEST_SAMPLES]


def course_panels(count):
    """A single row is higher, for title and legend."""
    return style.panels(count, columns=3, height=1.75 if count > 3 else 2.3, sharex=True, sharey=True)


def shade(rank):
    """Of a rank's line among those of its strategy."""
    return 0.45 + 0.55 / (1 + rank.rank)


def begin_of(run):
    """Of its first step, on rank 0's clock [ns]."""
    return run.trace.workers[0]["steps"]["t_begin_ns"].min()


def mark_epochs(axis, run):
    start = begin_of(run)
    for _, steps in run.trace.workers[0]["steps"].groupby("epoch"):
        axis.axvline((steps["t_begin_ns"].iloc[0] - start) * 1e-9, color="#BBBBBB", linewidth=0.6, zorder=0)


def f4_utilisation(comparison, family, workers):
    """Utilisation over time, one line per rank, with epochs marked; None if there are too few samples."""
    drawn = sampled(comparison, family, workers, "device")
    if not drawn:
        return None
    figure, axes = course_panels(len(drawn))
    rows = []
    unit = "GPU utilisation [%]" if comparison.on_gpu else "cores in use"
    scale = 100 if comparison.on_gpu else 1
    for axis, (variant, run) in zip(axes, drawn):
        look = look_of(variant)
        for rank in run.trace.ranks:
            seconds = (rank.on_rank0_clock(rank["device"]["t_ns"]) - begin_of(run)) * 1e-9
            device, seconds = rank["device"][seconds >= 0], seconds[seconds >= 0]
            server = rank.is_server
            axis.plot(
                seconds,
                scale * device["utilization"],
                color="#777777" if server else look.colour,
                linewidth=1.1,
                linestyle=":" if server else "-",
                alpha=1 if server else shade(rank),
            )
            about = {**family.key, "variant": variant, "workers": workers, "rank": rank.rank}
            about["role"] = "server" if server else "worker"
            rows += [{**about, "s": s, "utilization": value} for s, value in zip(seconds, device["utilization"])]
        mark_epochs(axis, run)
        axis.set(title=look.label, xlabel="time [s]", ylabel=unit)
    axes[0].set_ylim(0, None)
    style.label_outer(axes)
    figure.suptitle(f"{family.title}, {style.workers_text(workers)}")
    return Figure(
        f"F4-utilisation-{family.label}-w{workers}",
        f"Utilisation over time: {family.title}, {style.workers_text(workers)}",
        "A line per rank, a server's dotted; thin vertical lines are begins of epochs."
        + (
            ""
            if comparison.on_gpu
            else " On a CPU, utilisation is the cores that a process kept busy."
        ),
        figure,
        pd.DataFrame(rows),
    )


def memories_of(rank, variant, in_use):
    """(label, table, column, look) of what is known of a rank's memory over time."""
    live = {"color": look_of(variant).colour, "marker": ".", "markersize": 3}
    return (
        ("live tensors", rank["memory"], "allocated_B", live),
        ("reserved by the allocator", rank["memory"], "reserved_B", {"color": "#777777", "linestyle": "--"}),
        (in_use, rank["device"], "memory_used_B", {"color": "#222222", "linestyle": ":"}),
    )


def f5_memory_over_time(comparison, family, workers):
    """Live, reserved and device memory of every worker over time; None if there are too few samples."""
    drawn = sampled(comparison, family, workers, "memory")
    if not drawn:
        return None
    figure, axes = course_panels(len(drawn))
    rows, in_use = [], "in use on the device" if comparison.on_gpu else "resident set"
    for axis, (variant, run) in zip(axes, drawn):
        for rank in run.trace.workers:
            for label, table, column, look in memories_of(rank, variant, in_use):
                table = table.sort_values("t_ns")
                seconds = (rank.on_rank0_clock(table["t_ns"]) - begin_of(run)) * 1e-9
                axis.plot(seconds, table[column] * MIB, linewidth=1.1, alpha=shade(rank), label=label, **look)
                about = {**family.key, "variant": variant, "workers": workers, "rank": rank.rank, "measure": label}
                rows += [{**about, "s": s, "MiB": value} for s, value in zip(seconds, table[column] * MIB)]
        axis.set(title=look_of(variant).label, xlabel="time [s]", ylabel="memory [MiB]")
    axes[0].set_ylim(0, None)
    style.label_outer(axes)
    figure.suptitle(f"{family.title}, {style.workers_text(workers)}")
    style.legend_below(figure, axes[:1])
    return Figure(
        f"F5-memory-{family.label}-w{workers}",
        f"Memory over time: {family.title}, {style.workers_text(workers)}",
        "Lines of every worker. Live tensors are sampled where backward passes begin and, at the end of an epoch, at"
        " their peak. Time 0: the first step begins. On a CPU all three contain the data set, unlike peaks elsewhere in"
        " this report.",
        figure,
        pd.DataFrame(rows),
    )


def f17_utilisation(comparison):
    """How busy devices were, and how evenly; None where no device told it."""
    families = [
        family for family in comparison.drawn if any(family.spread("utilization", *of).known for of in family.pairs())
    ]
    if not families:
        return None
    factor, unit = (100, "[%]") if comparison.on_gpu else (1, "[cores]")
    measured = [
        ("utilization", f"mean utilisation {unit}"),
        ("utilization_sd", f"standard deviation {unit.replace('%', 'points')}"),
    ]
    figure, axes = style.panels(2 * len(families), columns=2)
    for index, family in enumerate(families):
        for axis, (quantity, label) in zip(axes[2 * index :], measured):
            grouped_bars(axis, family, quantity, factor)
            axis.set(title=family.heading, xlabel="workers", ylabel=label)
            axis.set_ylim(0, None)
    style.legend_below(figure, axes)
    data = [
        collect(comparison, families, quantity).rename(columns={quantity: "value"}).assign(quantity=quantity)
        for quantity, _ in measured
    ]
    return Figure(
        "F17-utilisation",
        "Use of the devices, and its steadiness",
        "Left: mean over samples while training and over workers; right: standard deviation of these samples, lower is"
        " steadier. Whiskers: range over seeds."
        + ("" if comparison.on_gpu else " On a CPU, utilisation is the cores that a process kept busy."),
        figure,
        pd.concat(data, ignore_index=True),
    )


def dominated(points):
    """The (x, y) for which another point is better in one and not worse in the other."""
    return [any(a <= x and b <= y and (a, b) != (x, y) for a, b in points) for x, y in points]


def f9_pareto(comparison):
    """Time to the target accuracy or perplexity against peak memory; time per epoch if most did not reach it. None of a
    single point."""
    families = comparison.drawn
    if sum(len(family.pairs()) for family in families) < 2:
        return None
    figure, axes = style.panels(len(families), height=3.0)
    rows = []
    for axis, family in zip(axes, families):
        timed = {pair: comparison.time_to_target(family, *pair).median for pair in family.pairs()}
        reached = sum(math.isfinite(time) for time in timed.values()) > len(timed) / 2
        if not reached:
            timed = {pair: family.spread("epoch_s", *pair).median for pair in family.pairs()}
        label = f"time to target {family.yardstick.word} [s]" if reached else "time per epoch [s]"
        shown = [
            (variant, workers, family.spread("peak_B", variant, workers).median * MIB, time)
            for (variant, workers), time in timed.items()
            if math.isfinite(time)
        ]
        for (variant, workers, memory, time), worse in zip(
            shown, dominated([point[2:] for point in shown])
        ):
            look = look_of(variant)
            axis.plot([], [], linestyle="none", label=look.label, **look.points)
            axis.plot(
                memory,
                time,
                linestyle="none",
                alpha=0.4 if worse else 1,
                markersize=6.5,
                **look.points,
            )
            if not worse and len(family.workers) > 1:
                axis.annotate(
                    str(workers),
                    (memory, time),
                    textcoords="offset points",
                    xytext=(5, 3),
                    fontsize=7,
                    color="#444444",
                )
            rows.append(
                {
                    **family.key,
                    "variant": variant,
                    "workers": workers,
                    "peak_MiB": memory,
                    label: time,
                    "dominated": worse,
                }
            )
        axis.set(title=family.heading, xlabel="peak memory of a rank [MiB]", ylabel=label)
        axis.margins(0.15)
    style.legend_below(figure, axes)
    return Figure(
        "F9-time-memory",
        "Time against memory",
        "Towards the lower left is better; pale points are beaten in both by another. A number"
        " is that of a point's workers. Memory is that of the fullest rank, worker or server.",
        figure,
        pd.DataFrame(rows),
    )


def draw_against(axis, data, planned, measured, band, label):
    """Measured against predicted values, with the line of equality and a band around it."""
    ends = [
        0.8 * data[[planned, measured]].min().min(),
        1.25 * data[[planned, measured]].max().max(),
    ]
    axis.plot(ends, ends, color="#999999", linewidth=1, linestyle=":", label="equal")
    axis.fill_between(
        ends,
        [(1 - band) * end for end in ends],
        [(1 + band) * end for end in ends],
        color="#EEEEEE",
        zorder=0,
        label=f"within {100 * band:.0f} %",
    )
    for variant in style.in_order(data["variant"]):
        look, rows = look_of(variant), data[data["variant"] == variant]
        axis.plot(
            rows[planned],
            rows[measured],
            linestyle="none",
            label=look.label,
            **look.points,
        )
    axis.set(
        xscale="log",
        yscale="log",
        xlabel=f"planned {label}",
        ylabel=f"measured {label}",
        xlim=ends,
        ylim=ends,
    )
    for side in axis.xaxis, axis.yaxis:
        side.set_major_formatter("{x:g}")
        side.set_minor_formatter("{x:g}" if ends[1] < 10 * ends[0] else "")


def f12_prediction(comparison):
    """Predicted against measured peak memory and, with a calibration, step time."""
    data = pd.DataFrame(
        [
            {
                **family.key,
                "variant": variant,
                "workers": workers,
                "planned_MiB": plan.get("peak_B", math.nan) * MIB,
                "measured_MiB": family.spread("worker_peak_without_batches_B", variant, workers).median * MIB,
                "planned_step_ms": 1000 * plan.get("time", {}).get("step_s", math.nan),
                "measured_step_ms": 1000 * family.spread("steady_step_s", variant, workers).median,
            }
            for family, variant, workers, plan in prediction_rows(comparison)
        ]
    )
    if data.empty:
        return None
    drawn = [
        (data.dropna(subset=[planned, measured]), planned, measured, band, label)
        for planned, measured, band, label in (
            ("planned_MiB", "measured_MiB", 0.05, "peak [MiB]"),
            ("planned_step_ms", "measured_step_ms", 0.15, "step [ms]"),
        )
    ]
    drawn = [panel for panel in drawn if not panel[0].empty]
    if not drawn:
        return None
    figure, axes = style.panels(
        len(drawn), columns=len(drawn), height=4.0, width=5.2 if len(drawn) == 1 else style.WIDTH
    )
    for axis, panel in zip(axes, drawn):
        draw_against(axis, *panel)
    style.legend_below(figure, axes)
    return Figure(
        "F12-predicted",
        "Predicted and measured memory and time",
        "Planned by `stratagem plan` before anything ran: the peak of live tensors without the"
        " data of batches, and, from a calibration of the machine, the time of a global batch.",
        figure,
        data,
    )

"""Figures of memory and device use: F3, F4, F5, F9, F12."""

import math

import pandas as pd

from . import style
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


def per_family_grid(family):
    pairs = at_most_workers(family)
    return pairs, style.panels(len(pairs), columns=3, height=1.75, sharex=True, sharey=True)


def fewest_samples(comparison, family, table):
    """Number of samples of the strategy with the fewest, among those that a figure over time shows."""
    return min(
        len(comparison.first_run(family, *pair).trace.workers[0][table])
        for pair in at_most_workers(family)
    )


def f4_utilisation(comparison, family):
    """Utilisation over time, one line per rank, with epochs marked; None if there are too few samples."""
    if fewest_samples(comparison, family, "device") < FEWEST_SAMPLES:
        return None
    pairs, (figure, axes) = per_family_grid(family)
    rows = []
    unit = "GPU utilisation [%]" if comparison.on_gpu else "cores in use"
    scale = 100 if comparison.on_gpu else 1
    for axis, (variant, workers) in zip(axes, pairs):
        run, look = comparison.first_run(family, variant, workers), look_of(variant)
        start = run.trace.workers[0]["steps"]["t_begin_ns"].min()
        for rank in run.trace.ranks:
            seconds = (rank.on_rank0_clock(rank["device"]["t_ns"]) - start) * 1e-9
            device, seconds = rank["device"][seconds >= 0], seconds[seconds >= 0]
            server = rank.is_server
            axis.plot(
                seconds,
                scale * device["utilization"],
                color="#777777" if server else look.colour,
                linewidth=1.1,
                linestyle=":" if server else "-",
                alpha=1 if server else 0.45 + 0.55 / (1 + rank.rank),
            )
            rows += [
                {
                    **family.key,
                    "variant": variant,
                    "workers": workers,
                    "rank": rank.rank,
                    "role": "server" if server else "worker",
                    "s": second,
                    "utilization": value,
                }
                for second, value in zip(seconds, device["utilization"])
            ]
        for _, steps in run.trace.workers[0]["steps"].groupby("epoch"):
            axis.axvline(
                (steps["t_begin_ns"].iloc[0] - start) * 1e-9,
                color="#BBBBBB",
                linewidth=0.6,
                zorder=0,
            )
        axis.set(title=f"{look.label}, {style.workers_text(workers)}", xlabel="time [s]", ylabel=unit)
    axes[0].set_ylim(0, None)
    style.label_outer(axes)
    figure.suptitle(family.title)
    return Figure(
        f"F4-utilisation-{family.label}",
        f"Utilisation over time: {family.title}",
        "A line per rank, a server's dotted; thin vertical lines are begins of epochs."
        + (
            ""
            if comparison.on_gpu
            else " On a CPU, utilisation is the cores that a process kept busy."
        ),
        figure,
        pd.DataFrame(rows),
    )


def f5_memory_over_time(comparison, family):
    """Live, reserved and device memory of the first worker over time; None if there are too few samples."""
    if fewest_samples(comparison, family, "memory") < FEWEST_SAMPLES:
        return None
    pairs, (figure, axes) = per_family_grid(family)
    rows = []
    for axis, (variant, workers) in zip(axes, pairs):
        rank = comparison.first_run(family, variant, workers).trace.workers[0]
        memory, device = rank["memory"], rank["device"]
        start = min(table["t_ns"].min() for table in (memory, device) if len(table))
        for label, table, column, look in [
            (
                "live tensors",
                memory,
                "allocated_B",
                {"color": look_of(variant).colour, "marker": ".", "markersize": 3},
            ),
            (
                "reserved by the allocator",
                memory,
                "reserved_B",
                {"color": "#777777", "linestyle": "--"},
            ),
            (
                "in use on the device" if comparison.on_gpu else "resident set",
                device,
                "memory_used_B",
                {"color": "#222222", "linestyle": ":"},
            ),
        ]:
            table = table.sort_values("t_ns")
            seconds = (table["t_ns"] - start) * 1e-9
            axis.plot(seconds, table[column] * MIB, linewidth=1.2, label=label, **look)
            rows += [
                {
                    **family.key,
                    "variant": variant,
                    "workers": workers,
                    "measure": label,
                    "s": second,
                    "MiB": value,
                }
                for second, value in zip(seconds, table[column] * MIB)
            ]
        axis.set(
            title=f"{look_of(variant).label}, {style.workers_text(workers)}",
            xlabel="time [s]",
            ylabel="memory [MiB]",
        )
    axes[0].set_ylim(0, None)
    style.label_outer(axes)
    figure.suptitle(family.title)
    style.legend_below(figure, axes[:1])
    return Figure(
        f"F5-memory-{family.label}",
        f"Memory over time: {family.title}",
        "Of the first worker. Live tensors are sampled where backward passes begin and, at the end"
        " of an epoch, at their peak. On a CPU all three contain the data set, unlike peaks elsewhere in"
        " this report.",
        figure,
        pd.DataFrame(rows),
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

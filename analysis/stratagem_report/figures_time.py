"""Figures of time: F1, F2, F11, F14, F15."""

import numpy as np
import pandas as pd
from matplotlib import ticker

from . import style
from .stacked_bars import Part, stacked_bars
from .style import Figure, look_of
from .trace import PHASES


FEWEST_BARS = 6  # a panel has room for at least this many


def error_bars(spreads, factor=1.0):
    """Distances to the ends of the ranges, in matplotlib's format."""
    return factor * np.array(
        [
            [value.median - value.low for value in spreads],
            [value.high - value.median for value in spreads],
        ]
    )


def collect(comparison, families, quantity):
    """The data of a figure: one row per family, variant and number of workers, with the range over seeds."""
    rows = []
    for family in families:
        for variant, workers in family.pairs():
            value = family.spread(quantity, variant, workers)
            rows.append(
                {
                    **family.key,
                    "variant": variant,
                    "workers": workers,
                    quantity: value.median,
                    "least": value.low,
                    "greatest": value.high,
                    "runs": value.n,
                }
            )
    return pd.DataFrame(rows)


def grouped_bars(axis, family, quantity, factor=1.0):
    """Bars of each strategy, grouped by number of workers; whiskers are ranges over seeds."""
    place = 0.0
    ticks = []
    for workers in family.workers:
        variants = family.variants_with(workers)
        for index, variant in enumerate(variants):
            look, value = look_of(variant), family.spread(quantity, variant, workers).scaled(factor)
            axis.bar(
                place + index,
                value.median,
                0.88,
                color=look.colour,
                hatch=look.hatch,
                edgecolor="white",
                linewidth=0.4,
                label=look.label,
            )
            if value.low < value.high:
                axis.errorbar(
                    place + index,
                    value.median,
                    error_bars([value]),
                    color="#222222",
                    capsize=2,
                    linewidth=0.9,
                )
        ticks.append((place + (len(variants) - 1) / 2, str(workers)))
        place += len(variants) + 1
    axis.set_xticks(*zip(*ticks))
    spare = max(0.0, FEWEST_BARS - (place - 1)) / 2  # so that a few bars are as narrow as many
    axis.set_xlim(-0.6 - spare, place - 1.4 + spare)
    axis.grid(axis="x", visible=False)


def f1_time_per_epoch(comparison):
    figure, axes = style.panels(len(comparison.drawn))
    for axis, family in zip(axes, comparison.drawn):
        grouped_bars(axis, family, "epoch_s")
        axis.set(title=family.heading, xlabel="workers", ylabel="time per epoch [s]")
    style.legend_below(figure, axes)
    return Figure(
        "F1-time-per-epoch",
        "Time per epoch",
        "Lower is better. From the median steps of each run; whiskers: range over seeds.",
        figure,
        collect(comparison, comparison.drawn, "epoch_s"),
    )


def scaled_families(comparison):
    return [
        family
        for family in comparison.drawn
        if any(len(gains_of(family, variant)) > 1 for variant in family.variants)
    ]


def gains_of(family, variant):
    """(workers, speed-up) of a strategy, where known."""
    points = [
        (workers, family.speed_up(variant, workers))
        for name, workers in family.pairs()
        if name == variant
    ]
    return [(workers, gain) for workers, gain in points if gain.known]


def f2_scaling(comparison):
    families = scaled_families(comparison)
    if not families:
        return None
    figure, axes = style.panels(len(families))
    rows = []
    for axis, family in zip(axes, families):
        most = max(family.workers)
        axis.plot([1, most], [1, most], color="#999999", linewidth=1, linestyle=":", label="ideal")
        for variant in family.variants:
            points = gains_of(family, variant)
            rows += [
                {
                    **family.key,
                    "variant": variant,
                    "workers": workers,
                    "speed_up": gain.median,
                    "least": gain.low,
                    "greatest": gain.high,
                    "efficiency": gain.median / workers,
                }
                for workers, gain in points
            ]
            if len(points) < 2:
                continue  # a single point shows no scaling
            look = look_of(variant)
            axis.errorbar(
                [workers for workers, _ in points],
                [gain.median for _, gain in points],
                error_bars([gain for _, gain in points]),
                linestyle=look.line,
                capsize=2,
                label=look.label,
                **look.points,
            )
        axis.set(
            title=family.heading, xlabel="workers", ylabel="speed-up", xscale="log", yscale="log"
        )
        for side, ticks in (axis.xaxis, family.workers), (
            axis.yaxis,
            [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64],
        ):
            side.set_major_locator(ticker.FixedLocator(ticks))
            side.set_minor_locator(ticker.NullLocator())
            side.set_major_formatter(ticker.FormatStrFormatter("%g"))
    style.legend_below(figure, axes)
    return Figure(
        "F2-strong-scaling",
        "Strong scaling",
        "Speed-up over the same strategy on one worker (else the serial run), with the global batch"
        " kept; the dotted line is ideal. Whiskers: range over seeds. Efficiency is in the data of"
        " the figure.",
        figure,
        pd.DataFrame(rows),
    )


def f11_exposed(comparison):
    data = collect(comparison, comparison.drawn, "exposed_comm_share")
    sizes = {
        (family.key["model"]): family.cells["parameters"].iloc[0] for family in comparison.drawn
    }
    data["parameters"] = data["model"].map(sizes)
    data = data[(data["workers"] > 1) & data["exposed_comm_share"].notna()]
    if data["parameters"].nunique() < 2:
        return None  # T5 has the shares of a single model
    workers = sorted(data["workers"].unique())
    figure, axes = style.panels(len(workers), columns=2, height=3.3, sharex=True, sharey=True)
    for axis, count in zip(axes, workers):
        for variant in style.in_order(data["variant"]):
            rows = data[(data["variant"] == variant) & (data["workers"] == count)].sort_values(
                "parameters"
            )
            if len(rows):
                look = look_of(variant)
                axis.plot(
                    rows["parameters"] / 1e6,
                    100 * rows["exposed_comm_share"],
                    linestyle="none",
                    label=look.label,
                    **look.points,
                )
        axis.set(
            title=f"{style.workers_text(count)}",
            xlabel="parameters [million]",
            ylabel="waiting for communication [%]",
            xscale="log",
        )
        axis.xaxis.set_major_locator(ticker.FixedLocator(sorted(set(data["parameters"] / 1e6))))
        axis.xaxis.set_minor_locator(ticker.NullLocator())
        axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%.2g"))
    axes[0].set_ylim(bottom=0)  # shared, after all points were drawn
    style.legend_below(figure, axes)
    return Figure(
        "F11-exposed-communication",
        "Exposed communication over model size",
        "Share of the steps that waited for communication; lower is better.",
        figure,
        data,
    )


def f14_batch(comparison):
    families = comparison.sweeps
    if not families:
        return None
    figure, axes = style.panels(2 * len(families), columns=2)
    rows = []
    for index, family in enumerate(families):
        for axis, (quantity, factor, label) in zip(
            axes[2 * index :],
            [
                ("steady_images_per_s", 1, f"{family.yardstick.counted}/s"),
                ("worker_peak_B", 2**-20, "peak live memory [MiB]"),
            ],
        ):
            for variant, workers in family.pairs():
                look, cells = look_of(variant), family.of(variant, workers)
                curve = {
                    batch: family.spread_of(quantity, of_batch).median * factor
                    for batch, of_batch in cells.groupby("global_batch")
                }
                axis.plot(
                    list(curve),
                    list(curve.values()),
                    linestyle=look.line,
                    **look.points,
                    label=(
                        f"{look.label}, {style.workers_text(workers)}"
                        if len(family.workers) > 1
                        else look.label
                    ),
                )
                rows += [
                    {
                        **family.key,
                        "variant": variant,
                        "workers": workers,
                        "global_batch": batch,
                        "quantity": label,
                        "value": value,
                    }
                    for batch, value in curve.items()
                ]
            axis.set(
                title=family.heading,
                xlabel=f"global batch [{family.yardstick.batch}]",
                ylabel=label,
                xscale="log",
                ylim=(0, None),
            )
            axis.xaxis.set_major_locator(
                ticker.FixedLocator(sorted(set(family.cells["global_batch"])))
            )
            axis.xaxis.set_minor_locator(ticker.NullLocator())
            axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    style.legend_below(figure, axes)
    return Figure(
        "F14-batch-size",
        "Throughput and memory over batch size",
        "The rightmost point of a strategy is the largest batch that was run; what did not fit is"
        " in T8.",
        figure,
        pd.DataFrame(rows),
    )


def f15_phases(comparison):
    parts = [
        Part(phase, f"{phase}_ms", style.PHASE_COLOURS[phase], style.PHASE_LABELS.get(phase, phase))
        for phase in PHASES
    ]
    figure, data = stacked_bars(comparison, parts, "phase", "ms", "mean step of a worker")
    return Figure(
        "F15-where-the-time-goes",
        "Where the time of a step goes",
        "A bar per strategy and number of workers. Red is communication that computation did not"
        " hide.",
        figure,
        data,
    )

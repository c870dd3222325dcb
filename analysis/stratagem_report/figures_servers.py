"""Figures of the parameter server and of learning: F6, F7, F10."""

import dataclasses

import numpy as np
import pandas as pd

from . import measures, style
from .figures_memory import at_most_workers
from .figures_time import collect, grouped_bars
from .style import Figure, look_of
from .yardstick import ACCURACY, yardsticks_of


def learning_curves(comparison, family, variant, workers):
    """Median and range over the seeds, for every evaluated epoch."""
    cells = family.of(variant, workers)["cell"]
    curves = pd.concat([measures.learning_curve(comparison.run(cell)) for cell in cells])
    quantity = family.yardstick.quantity
    curves = curves[np.isfinite(curves[quantity])]
    return (
        curves.groupby("epoch")
        .agg(
            time_s=("time_s", "median"),
            learned=(quantity, "median"),
            least=(quantity, "min"),
            greatest=(quantity, "max"),
            runs=(quantity, "size"),
        )
        .rename(columns={"learned": family.yardstick.word})
        .reset_index()
    )


def f6_accuracy(comparison):
    """Accuracy or perplexity over epochs and over time."""
    drawn = []
    for family in comparison.drawn:
        curves = {
            pair: learning_curves(comparison, family, *pair) for pair in at_most_workers(family)
        }
        curves = {pair: curve for pair, curve in curves.items() if len(curve) > 1}
        if curves:
            drawn.append((family, curves))
    if not drawn:
        return None
    words = " and ".join(of.word for of in yardsticks_of([family for family, _ in drawn]))
    figure, axes = style.panels(2 * len(drawn), columns=2, height=2.7)
    rows = []
    for index, (family, curves) in enumerate(drawn):
        factor = family.yardstick.factor
        for axis, (column, label) in zip(
            axes[2 * index :], [("epoch", "epoch"), ("time_s", "training time [s]")]
        ):
            for (variant, workers), curve in curves.items():
                look = look_of(variant)
                axis.plot(
                    curve[column],
                    factor * curve[family.yardstick.word],
                    linestyle=look.line,
                    label=look.label,
                    markersize=4,
                    **look.points,
                )
                axis.fill_between(
                    curve[column],
                    factor * curve["least"],
                    factor * curve["greatest"],
                    color=look.colour,
                    alpha=0.13,
                    linewidth=0,
                )
                if column == "epoch":
                    rows.append(curve.assign(**family.key, variant=variant, workers=workers))
            workers = max(count for _, count in curves)
            axis.set(
                title=f"{family.heading}, {style.workers_text(workers)}", xlabel=label, ylabel=family.yardstick.axis
            )
            if column == "epoch":
                axis.xaxis.get_major_locator().set_params(integer=True)
        if family.yardstick is ACCURACY:
            zoom(axes[2 * index : 2 * index + 2], [curve["least"].min() for curve in curves.values()])
    style.legend_below(figure, axes)
    return Figure(
        "F6-accuracy",
        f"{words.capitalize()} over epochs and over time",
        "Median over seeds, shaded their range. Left: what an epoch teaches. Right: what a second"
        " does.",
        figure,
        pd.concat(rows, ignore_index=True),
    )


def zoom(axes, lows):
    """Makes the axis of accuracies begin near the lowest point."""
    low = 100 * min(lows)
    for axis in axes:
        axis.set_ylim(max(0, low - 0.05 * (100 - low) - 0.5), None)


def asynchronous(family):
    """(variant, workers) of servers that apply gradients one by one."""
    return [
        (variant, workers)
        for variant, workers in at_most_workers(family)
        if variant.startswith("ps-")
        and style.kind_of(variant) != "ps-sync"
        and family.spread("lag_mean", variant, workers).known
    ]


def lag_counts(comparison, cells):
    """Pushes by lag, of all cells together."""
    counts = [pd.Series(comparison.run(cell).row["lag_counts"]) for cell in cells]
    together = pd.concat(counts, axis=1).fillna(0).sum(axis=1)
    return together[together > 0]


def f7_staleness(comparison, family):
    """Distribution of the lag, a panel per mode."""
    pairs = asynchronous(family)
    if not pairs:
        return None
    figure, axes = style.panels(len(pairs), columns=3, height=1.9, sharex=True, sharey=True)
    rows = []
    for axis, (variant, workers) in zip(axes, pairs):
        counts = lag_counts(comparison, family.of(variant, workers)["cell"])
        shares, look = counts / counts.sum(), look_of(variant)
        axis.bar(shares.index, 100 * shares, 0.85, color=look.colour)
        mean, late, most = (family.spread(f"lag_{name}", variant, workers) for name in ("mean", "p95", "max"))
        axis.text(
            0.97,
            0.95,
            f"mean {mean.median:.2f}\np95 {late.median:.0f}\nmost {most.high:.0f}",
            transform=axis.transAxes,
            ha="right",
            va="top",
            fontsize=8,
        )
        axis.set(
            title=f"{look.label}, {style.workers_text(workers)}", xlabel="lag [updates]", ylabel="pushes [%]"
        )
        axis.xaxis.get_major_locator().set_params(integer=True)
        rows += [
            {**family.key, "variant": variant, "workers": workers, "lag": value, "share": share}
            for value, share in shares.items()
        ]
    style.label_outer(axes)
    figure.suptitle(family.title)
    return Figure(
        f"F7-staleness-{family.label}",
        f"Staleness: {family.title}",
        "Updates made since the parameters that a gradient was computed with, over all pushes of all"
        " seeds; mean and 95th percentile of the median run.",
        figure,
        pd.DataFrame(rows),
    )


def f10_server_load(comparison):
    families = [
        dataclasses.replace(family, cells=family.cells[family.cells["strategy"] == "ps"])
        for family in comparison.drawn
    ]
    families = [family for family in families if len(family.pairs()) > 1]  # one bar compares nothing
    if not families:
        return None
    measured = [
        ("updates_per_s", 1, "updates per s"),
        ("queue_depth", 1, "pushes under way"),
        ("server_busy_share", 100, "server busy [%]"),
    ]
    figure, axes = style.panels(3 * len(families), columns=3, height=2.2)
    for index, family in enumerate(families):
        for axis, (quantity, factor, label) in zip(axes[3 * index :], measured):
            grouped_bars(axis, family, quantity, factor)
            axis.set(
                title=family.heading if axis is axes[3 * index] else "",
                xlabel="workers",
                ylabel=label,
            )
    style.legend_below(figure, axes)
    data = pd.concat(
        [
            collect(comparison, families, quantity)
            .rename(columns={quantity: "value"})
            .assign(quantity=quantity)
            for quantity, _, _ in measured
        ],
        ignore_index=True,
    )
    return Figure(
        "F10-server-load",
        "Load of the server",
        "Versions of the parameters per second of training, pushes under way when one was treated, and"
        " the share of training time in which servers computed. Near 100 % busy, servers are what limits.",
        figure,
        data,
    )

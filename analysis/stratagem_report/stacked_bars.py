"""One panel per family, with a stacked bar per strategy and number of workers."""

import dataclasses

import pandas as pd

from . import style
from .style import look_of


@dataclasses.dataclass(frozen=True)
class Part:
    """One colour in all bars."""

    name: str
    column: str  # of the cells
    colour: str
    label: str


def by_workers(family):
    """(variant, workers), with the same number of workers next to each other."""
    return [
        (variant, workers)
        for workers in family.workers
        for variant in family.variants_with(workers)
    ]


def stacked_bars(comparison, parts, kind, unit, xlabel, factor=1.0):
    """The figure and its data. `kind` is the name of a part; `unit` is the unit of factor x column."""
    families = comparison.drawn
    figure, axes = style.bar_panels([len(family.pairs()) for family in families])
    rows = []
    for axis, family in zip(axes, families):
        labels = []
        for place, (variant, workers) in enumerate(by_workers(family)):
            left = 0.0
            for part in parts:
                value = family.spread(part.column, variant, workers).median * factor
                axis.barh(place, value, 0.8, left=left, color=part.colour, label=part.label)
                left += value
                rows.append(
                    {
                        **family.key,
                        "variant": variant,
                        "workers": workers,
                        kind: part.name,
                        unit: value,
                    }
                )
            labels.append(f"{look_of(variant).label}, {workers}")
        axis.set_yticks(range(len(labels)), labels)
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.set(title=family.heading, xlabel=f"{xlabel} [{unit}]")
    style.legend_below(figure, axes)
    return figure, pd.DataFrame(rows)

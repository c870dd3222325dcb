"""Which measured cells match a published one, and their values."""

import dataclasses
import functools
import math

import pandas as pd

from . import conditions, measures
from .runs import variant_of
from .style import look_of

ACCURACY = "test_accuracy"
# In these, all cells of a comparison must agree.
ALIKE = {"device": "device", "git_sha": "commit of stratagem", "fingerprint": "data", "precision": "precision"}


@dataclasses.dataclass(frozen=True)
class Match:
    """The cells that match one side of a published comparison, one of each seed; if there are none, what is missing.
    `depth`: how many conditions some cell fulfilled."""

    cells: pd.DataFrame
    missing: str
    depth: int


class Evidence:
    """The complete cells of a comparison, with what decides whether they match."""

    def __init__(self, comparison):
        self.runs, self.groups = comparison.study.runs, comparison.study.groups
        cells = comparison.cells[comparison.cells["state"] == "complete"]
        runs = [self.runs[cell] for cell in cells["cell"]]
        self.cells = cells.assign(
            kind=[variant_of(run.config) for run in runs],
            differing=[", ".join(conditions.differing_settings(run.config)) for run in runs],
            fingerprint=[run.manifest["dataset"]["fingerprint"] for run in runs],
            unsound=cells["group"].isin(unsound_groups(comparison.cells)),
        )
        self.by_model = dict(list(self.cells.groupby("model")))
        self.match = functools.cache(self.find_match)  # claims share the sides of their comparisons

    def find_match(self, wanted):
        cells = self.by_model.get(wanted.model, self.cells.iloc[:0])
        for depth, (missing, passes) in enumerate(wanted.conditions()):
            left = cells[passes(cells)]
            if not len(left):
                return Match(left, f"{look_of(wanted.variant).label}: {missing}{found_instead(cells, missing)}", depth)
            cells = left
        return Match(cells.drop_duplicates("seed"), "", depth + 1)

    def values(self, cells, measure, epoch):
        """Of a measure, by seed; of the accuracy after an epoch."""
        if measure == ACCURACY:
            return {seed: self.accuracy(cell, epoch) for seed, cell in zip(cells["seed"], cells["cell"])}
        return dict(zip(cells["seed"], measures.column(cells, measure)))

    def accuracy(self, cell, epoch):
        found = [point[ACCURACY] for point in self.runs[cell].row["curve"] if point["epoch"] == epoch - 1]
        return math.nan if not found or found[0] is None else found[0]

    def medians(self, sides):
        """A function from a measure to its median of each side, as the program computed it. NaN where the cells of a
        side are not exactly those of one group."""
        return lambda measure: [self.median(cells, measure) for cells in sides]

    def median(self, cells, measure):
        groups = set(cells["group"])
        if len(groups) != 1 or set(self.cells.loc[self.cells["group"].isin(groups), "cell"]) != set(cells["cell"]):
            return math.nan
        told = self.groups.get(groups.pop(), {}).get(measure)
        return told["median"] if told and told["n"] else math.nan


def unsound_groups(cells):
    """Groups of which a run failed, was ended by its time limit or left damaged traces. What the other seeds show
    would be a choice among the seeds."""
    odd = cells["limited"].eq(True) | cells["damaged"].eq(True) | (cells["state"] == "failed")
    return set(cells.loc[odd, "group"])


def found_instead(cells, missing):
    """The settings that differ, where these are what is missing."""
    if "settings" not in missing:
        return ""
    return f" (there: {'; '.join(sorted(set(cells['differing'])))})"


def mixture(*sides):
    """What the cells of one comparison differ in although they must not, as a text; else ""."""
    cells = pd.concat(sides)
    told = [
        f"one {name} (there: {', '.join(sorted(map(str, set(cells[column]))))})"
        for column, name in ALIKE.items()
        if cells[column].nunique(dropna=False) > 1
    ]
    return "; ".join(told)


def of_the_paper(comparison):
    """Whether anything was run that the published study is about."""
    return any(
        family.key["model"] in experiment.models and family.key["dataset"] == experiment.dataset
        for family in comparison.families
        for experiment in (conditions.SHARDING, conditions.SERVERS)
    )

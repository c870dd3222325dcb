"""Which cells may be compared: families of cells that do the same work with different strategies."""

import dataclasses
import functools
import math
import re

import pandas as pd

from . import measures, style, yardstick
from .spread import UNKNOWN, Spread, ratio, reaching
from .study import FAMILY, Study

USUAL_TEST_IMAGES = 10_000
REFERENCES = ("serial", "ddp", "ps-sync")  # without sharding or staleness; the first that ran


@dataclasses.dataclass
class Family:
    """The complete cells that did the same work, that is, have the same `key`."""

    key: dict
    cells: pd.DataFrame
    groups: dict  # group -> the program's row of it
    apart: tuple = ()  # words for what it differs in from families that would have the same title

    @property
    def name(self):
        return self.key["model"] + (f" ({', '.join(self.apart)})" if self.apart else "")

    @property
    def title(self):
        return f"{self.name}, {style.family_conditions(self.key)}"

    @property
    def heading(self):
        """The title in two lines, for a panel next to others."""
        return f"{self.name}\n{style.family_conditions(self.key)}"

    @property
    def label(self):
        """Part of a file name."""
        words = [self.key[name] for name in ("part", "model", "dataset")]
        of_images = self.yardstick is yardstick.ACCURACY
        words += [f"b{self.key['global_batch']}", f"{self.key['input_size']}px" if of_images else ""]
        words += [self.key["precision"] if self.key["precision"] != "fp32" else ""]
        words += [word.replace(",", "") for word in self.apart if word != self.key["part"]]
        return re.sub(r"[^\w.-]+", "-", "-".join(str(word) for word in words if word))

    @functools.cached_property
    def by_pair(self):
        """{(variant, workers): its cells}."""
        return dict(list(self.cells.groupby(["variant", "workers"], sort=False)))

    @property
    def variants(self):
        return style.in_order(variant for variant, _ in self.by_pair)

    @property
    def workers(self):
        return sorted({workers for _, workers in self.by_pair})

    def of(self, variant, workers):
        """Cells of a variant; if there are none with this name, those of the variant that represents this kind of
        strategy."""
        exact = self.by_pair.get((variant, workers))
        if exact is not None:
            return exact
        return self.by_pair.get((self.find(variant, workers), workers), self.cells.iloc[:0])

    def has(self, variant, workers):
        return len(self.of(variant, workers)) > 0

    def variants_with(self, workers):
        return style.in_order(variant for variant, count in self.by_pair if count == workers)

    def find(self, kind, workers):
        """The variant that represents a kind of strategy: the plain one, else the only one; None if there is none."""
        names = [name for name in self.variants_with(workers) if style.kind_of(name) == kind]
        return kind if kind in names else names[0] if len(names) == 1 else None

    def pairs(self):
        """The existing (variant, workers), in the order of tables."""
        places = {variant: place for place, variant in enumerate(self.variants)}
        return sorted(self.by_pair, key=lambda pair: (places[pair[0]], pair[1]))

    def spread(self, quantity, variant, workers):
        """Of a measure, over the seeds."""
        return self.spread_of(quantity, self.of(variant, workers))

    def spread_of(self, quantity, cells):
        """Of a measure over the seeds, as the program computed it; unknown where the cells are not of one group."""
        groups = set(cells["group"])
        measured = self.groups.get(groups.pop(), {}).get(quantity) if len(groups) == 1 else None
        if not measured or not measured["n"] or measured["n"] > len(cells):  # some cells of it did other work
            return UNKNOWN
        return Spread(measured["median"], measured["least"], measured["greatest"], measured["n"])

    def by_seed(self, quantity, variant, workers):
        """Values of its runs; keys are the seed, and which of the runs with this seed it is."""
        return keyed(self.of(variant, workers), lambda cells: measures.column(cells, quantity))

    @property
    def test_images(self):
        """The fewest that an accuracy is a share of; those of MNIST and CIFAR-10 where a manifest does not tell."""
        told = self.cells.get("test_images", pd.Series(dtype=float)).dropna()
        return int(told.min()) if len(told) else USUAL_TEST_IMAGES

    def limited(self, variant, workers):
        """Whether one of its runs reached its time limit."""
        return bool(self.of(variant, workers)["limited"].any())

    @property
    def on_gpu(self):
        return bool(self.cells["gpu"].eq(True).all())

    @property
    def yardstick(self):
        """What tells how much its runs have learned."""
        of_text = self.cells["counted"].eq(yardstick.PERPLEXITY.counted).any()
        return yardstick.PERPLEXITY if of_text else yardstick.ACCURACY

    def base_of(self, variant):
        """The (variant, workers) that its speed-up is relative to: the same variant on one worker, else the serial
        run."""
        for base in (variant, "serial", "ddp"):
            if self.has(base, 1):
                return base, 1
        return None

    def speed_up(self, variant, workers):
        base = self.base_of(variant)
        if base is None:
            return UNKNOWN
        return ratio(self.spread("epoch_s", *base), self.spread("epoch_s", variant, workers))

    def target(self):
        """The accuracy or perplexity of "time to the target": close to the median final one of plain training, on as
        few workers as there are. Fixed before the runs, not by the luckiest of them; NaN without plain training."""
        for reference in REFERENCES:
            for workers in self.workers:
                final = self.spread(self.yardstick.quantity, reference, workers).median
                if self.find(reference, workers) == reference and math.isfinite(final):
                    return self.yardstick.near * final
        return math.nan


@dataclasses.dataclass
class Comparison:
    """A study, its cells with their measures, and its families."""

    study: Study
    cells: pd.DataFrame
    predictions: dict  # cell -> plan of the program, as JSON

    def __post_init__(self):
        complete = self.cells[self.cells["state"] == "complete"]
        sweeps = batch_sweeps(complete)
        self.families = [
            Family(dict(zip(FAMILY, key)), rows, self.study.groups)
            for key, rows in complete.groupby(list(FAMILY), sort=False)
        ]
        tell_apart(self.families)
        self.sweeps = [
            Family(
                {**dict(zip(sweep_key(), key)), "global_batch": None, "planned_steps": None}, rows, self.study.groups
            )
            for key, rows in sweeps.groupby(list(sweep_key()), sort=False)
        ]
        # For figures: the points of a sweep over the batch size have a figure of their own.
        of_sweeps = set(sweeps["cell"])
        self.drawn = [
            family for family in self.families if not set(family.cells["cell"]) <= of_sweeps
        ] or self.families

    def run(self, cell):
        return self.study.runs[cell]

    def first_run(self, family, variant, workers):
        """The run with the smallest seed."""
        return self.run(family.of(variant, workers).sort_values("seed")["cell"].iloc[0])

    def times_to_target(self, family, variant, workers):
        """By seed, as Family.by_seed; infinite for a run that did not reach the target."""
        target = family.target()
        times = keyed(
            family.of(variant, workers),
            lambda cells: [measures.time_to(self.run(cell), family.yardstick, target) for cell in cells["cell"]],
        )
        return {seed: time if math.isfinite(time) else math.inf for seed, time in times.items()}

    def time_to_target(self, family, variant, workers):
        return reaching(self.times_to_target(family, variant, workers).values())

    @property
    def on_gpu(self):
        return bool(self.cells["gpu"].eq(True).any())


def keyed(cells, values_of):
    """{(seed, n): value} of the n-th cell with a seed."""
    seen, keys = {}, []
    for seed in cells["seed"]:
        seen[seed] = seen.get(seed, -1) + 1
        keys.append((seed, seen[seed]))
    return dict(zip(keys, values_of(cells)))


# What families differ in that would have the same title, and its words.
APART = {
    "part": str,
    "planned_steps": "{:,.0f} steps".format,
    "images": "{:,.0f} images".format,
    "slow": lambda factor: "equal workers" if factor == 1 else f"one worker {factor:g}x slower",
}


def tell_apart(families):
    """Adds the differences to the titles of families that would have the same title."""
    for name, words in APART.items():
        groups = {}
        for family in families:
            groups.setdefault(family.title, []).append(family)
        for group in groups.values():
            if len({family.key[name] for family in group}) > 1:
                for family in group:
                    if family.key[name]:
                        family.apart += (words(family.key[name]),)


def sweep_key():
    """What all points of a sweep over the batch size have in common; an epoch has fewer steps with a larger batch."""
    return tuple(name for name in FAMILY if name not in ("global_batch", "planned_steps"))


def batch_sweeps(cells):
    """The cells for which there are others that differ only in the batch size."""
    key = [*sweep_key(), "variant", "workers"]
    return (
        cells[cells.groupby(key)["global_batch"].transform("nunique") > 1] if len(cells) else cells
    )


def compare(study, predictions):
    return Comparison(study, measures.measure_all(study), predictions)

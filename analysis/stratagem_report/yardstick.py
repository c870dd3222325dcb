"""What tells how much a run has learned: of images the accuracy, of text the perplexity."""

import dataclasses
import math

from .table import Column


@dataclasses.dataclass(frozen=True)
class Yardstick:
    """`quantity` is a measure of the program and a column of learning curves. A run has reached the target at
    `near` times the final value of plain training (Family.target)."""

    counted: str  # what rates of such runs count
    batch: str  # what a batch is made of
    word: str
    quantity: str
    factor: float  # from the measure to what is shown
    axis: str
    column: Column
    greatest: bool
    near: float

    def best(self, values):
        return max(values) if self.greatest else min(values)

    def reached(self, value, target):
        """Whether it is at the target or beyond."""
        return value >= target if self.greatest else value <= target

    def learned(self, point):
        """What a point of a learning curve tells of it; None if nothing."""
        if self.quantity in point:
            return point[self.quantity]
        return None if point["test_loss"] is None else math.exp(point["test_loss"])


ACCURACY = Yardstick(
    "images", "images", "accuracy", "test_accuracy", 100, "test accuracy [%]", Column("accuracy %", 2, 100), True, 0.98
)
PERPLEXITY = Yardstick(
    "tokens", "sequences", "perplexity", "perplexity", 1, "test perplexity", Column("perplexity", 2), False, 1.02
)


def counted_of(cells):
    """Text for the unit of rates in a table of these cells: "images", "tokens", or both."""
    kinds = set(cells["counted"].dropna())
    return " or ".join(of.counted for of in (ACCURACY, PERPLEXITY) if of.counted in kinds) or ACCURACY.counted


def yardsticks_of(families):
    """Of these families, each once."""
    kinds = [family.yardstick for family in families]
    return [of for of in (ACCURACY, PERPLEXITY) if of in kinds]

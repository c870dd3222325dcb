"""Which strategy is best for which goal, among those that did the same work, and by how much."""

import dataclasses
import math

from .spread import separate


@dataclasses.dataclass(frozen=True)
class Goal:
    """A reason to choose a strategy. `single_run`: how much two single runs must differ to count; `negligible`: a
    difference that is a tie for any number of runs."""

    respect: str
    name: str
    quantity: str
    unit: str
    factor: float
    digits: int
    greatest: bool = False
    single_run: float = 0.0
    negligible: float = 0.0

    def number(self, value, like):
        """Formatted with as many digits as `like` needs: three significant ones if it is small."""
        size = abs(like * self.factor)
        digits = self.digits if size >= 1 or size == 0 else 2 - math.floor(math.log10(size))
        return f"{value * self.factor:,.{digits}f}"

    def median_text(self, value):
        return f"{self.number(value.median, value.median)} {self.unit}"

    def text(self, value):
        """Median and, if several runs differ, their range."""
        low, high = (self.number(end, value.median) for end in (value.low, value.high))
        return self.median_text(value) + ("" if low == high else f" ({low} to {high})")


MIB = 1 / 2**20
TIME = Goal("time", "time per epoch", "epoch_s", "s", 1, 2, single_run=0.1)
PEAK = Goal("memory", "peak memory of a rank", "peak_B", "MiB", MIB, 1, single_run=0.01, negligible=0.01)
LASTING = Goal("memory", "lasting memory of a rank", "state_B", "MiB", MIB, 2, single_run=0.01, negligible=0.01)
TOTAL = Goal(
    "memory",
    "peak memory of all ranks",
    "total_peak_B",
    "MiB",
    MIB,
    1,
    single_run=0.01,
    negligible=0.01,
)
ACCURACY = Goal("accuracy", "final accuracy", "test_accuracy", "%", 100, 2, greatest=True)
TO_TARGET = Goal("time", "time to the target accuracy", "time_to_target", "s", 1, 2)
GOALS = [TIME, PEAK, LASTING, TOTAL, ACCURACY, TO_TARGET]


@dataclasses.dataclass(frozen=True)
class Choice:
    """The best strategy for a goal, among those of a family with the same number of workers."""

    family: object
    workers: int
    goal: Goal
    values: dict  # variant -> Spread, best first
    level: tuple  # those that are as good as the best: equal, or with ranges that overlap
    unjudged: tuple  # those that cannot be judged because of single runs

    @property
    def best(self):
        return next(iter(self.values))

    @property
    def value(self):
        return self.values[self.best]

    @property
    def second(self):
        """The best of those that are not as good as the best; None if all are."""
        others = [name for name in self.values if name != self.best and name not in self.level]
        return others[0] if others else None

    @property
    def distinct(self):
        """True: the best is better than all others. False: a tie. None: it cannot be judged."""
        if self.level:
            return False
        return None if self.unjudged else True

    @property
    def margin(self):
        """How much more the second needs (as a share), or how much lower its accuracy is."""
        return self.margin_of(self.second)

    def margin_of(self, variant):
        other = self.values[variant]
        if self.goal.greatest:
            return self.value.median - other.median
        return other.median / self.value.median - 1

    @property
    def margin_text(self):
        if self.goal.greatest:
            return f"{100 * self.margin:.2f} points"
        return (
            f"{100 * self.margin:.1f} % more" if self.margin < 1 else f"{1 + self.margin:.1f} times"
        )


def value_of(comparison, family, goal, variant, workers):
    if goal.quantity == "time_to_target":
        return comparison.time_to_target(family, variant, workers)
    return family.spread(goal.quantity, variant, workers)


def compare_with(best, other, goal):
    """Like `separate`, but equal and almost equal values are a tie for any number of runs."""
    if abs(best.median - other.median) <= goal.negligible * abs(best.median):
        return False
    return separate(best, other, goal.single_run)


def choose(comparison, family, workers, goal):
    """None if fewer than two strategies can be compared. Accuracies of runs that reached their time limit are left
    out, because they made fewer steps."""
    values = {
        variant: value_of(comparison, family, goal, variant, workers)
        for variant in family.variants_with(workers)
        if not (goal is ACCURACY and family.limited(variant, workers))
    }
    known = [variant for variant, value in values.items() if value.known]
    if len(known) < 2:
        return None
    known.sort(key=lambda variant: values[variant].median, reverse=goal.greatest)
    best = values[known[0]]
    apart = {name: compare_with(best, values[name], goal) for name in known[1:]}
    return Choice(
        family,
        workers,
        goal,
        {name: values[name] for name in known},
        tuple(name for name, verdict in apart.items() if verdict is False),
        tuple(name for name, verdict in apart.items() if verdict is None),
    )


def choices(comparison):
    """The choices for every family, number of workers and goal."""
    made = [
        choose(comparison, family, workers, goal)
        for family in comparison.families
        for workers in family.workers
        for goal in GOALS
    ]
    return [choice for choice in made if choice is not None]

"""Which strategy is best for which goal, among those that did the same work, by how much, and how sure that is."""

import dataclasses
import itertools
import math

from . import inference, row_tests, yardstick
from .inference import EQUIVALENT, UNDERPOWERED
from .standing import ESTABLISHED, ONE_RUN, WEAKEST_FIRST, standing

LEAST_MARGIN = 5e-4  # of accuracies: an error of 0 would leave none
LEARNED = "accuracy"  # respect of goals that tell how much was learned


@dataclasses.dataclass(frozen=True)
class Goal:
    """A reason to choose a strategy. `margin`: a smaller difference is of no interest, as a share of the best value,
    or of its error where greater is better. `single_run`: a hint, the share that two single runs must differ by.
    `of`: only of families with this yardstick. `counted`: without noise, as bytes are.
    `collapse`: a run that is so much further behind than others, on the scale of behind(), may have collapsed."""

    respect: str
    name: str
    quantity: str
    unit: str
    factor: float
    digits: int
    margin: float
    greatest: bool = False
    single_run: float = 0.0
    of: yardstick.Yardstick = None
    counted: bool = False
    collapse: float = math.inf

    def number(self, value, like):
        """Formatted with as many digits as `like` needs: three significant ones if it is small."""
        if math.isinf(value):
            return "not reached"
        size = abs(like * self.factor)
        digits = self.digits if size >= 1 or size == 0 or math.isinf(size) else 2 - math.floor(math.log10(size))
        return f"{value * self.factor:,.{digits}f}"

    def median_text(self, value):
        if math.isinf(value.median):
            return self.number(value.median, value.median)
        return f"{self.number(value.median, value.median)} {self.unit}".rstrip()

    def text(self, value):
        """Median and, if several runs differ, their range."""
        low, high = (self.number(end, value.median) for end in (value.low, value.high))
        return self.median_text(value) + ("" if low == high else f" ({low} to {high})")

    @property
    def verb(self):
        """Of a strategy that is behind: "needs" 3 % more time, "has" 3 % more perplexity."""
        return "has" if self.respect == LEARNED else "needs"

    def behind(self, values):
        """Of values by seed: what is greater the further a strategy is behind. Differences of it are those of
        accuracies, or logarithms of ratios."""
        return {seed: -value for seed, value in values.items()} if self.greatest else inference.logarithms(values)

    def bound(self, best):
        """The margin, on the scale of behind()."""
        return max(self.margin * (1 - best.median), LEAST_MARGIN) if self.greatest else math.log1p(self.margin)

    def size_text(self, size):
        """Of something on the scale of behind()."""
        if self.greatest:
            return f"{100 * size:.2f} points"
        return f"{100 * math.expm1(size):.2g} %" if size < math.log(2) else f"{math.exp(size):.2g} times"


MIB = 1 / 2**20
TIME_MARGIN, MEMORY_MARGIN, ERROR_MARGIN, PERPLEXITY_MARGIN = 0.05, 0.01, 0.1, 0.02
IN_MIB = {"unit": "MiB", "factor": MIB, "margin": MEMORY_MARGIN, "single_run": 0.01, "counted": True}
TIME = Goal("time", "time per epoch", "epoch_s", "s", 1, 2, TIME_MARGIN, single_run=0.1)
PEAK = Goal("memory", "peak memory of a rank", "peak_B", digits=1, **IN_MIB)
LASTING = Goal("memory", "lasting memory of a rank", "state_B", digits=2, **IN_MIB)
TOTAL = Goal("memory", "peak memory of all ranks", "total_peak_B", digits=1, **IN_MIB)
ACCURACY = Goal(
    LEARNED, "final accuracy", "test_accuracy", "%", 100, 2, ERROR_MARGIN, greatest=True, of=yardstick.ACCURACY,
    collapse=0.05,
)
PERPLEXITY = Goal(
    LEARNED, "final perplexity", "perplexity", "", 1, 2, PERPLEXITY_MARGIN, of=yardstick.PERPLEXITY,
    collapse=math.log(1.5),
)
TARGET = "time_to_target"
TO_ACCURACY, TO_PERPLEXITY = (
    Goal("time", f"time to the target {of.word}", TARGET, "s", 1, 2, TIME_MARGIN, of=of)
    for of in (yardstick.ACCURACY, yardstick.PERPLEXITY)
)
GOALS = [TIME, PEAK, LASTING, TOTAL, ACCURACY, PERPLEXITY, TO_ACCURACY, TO_PERPLEXITY]
MARGINS = (
    f"Equivalent: times within {100 * TIME_MARGIN:.0f} %, memory within {100 * MEMORY_MARGIN:.0f} %, accuracies within"
    f" {100 * ERROR_MARGIN:.0f} % of the best's error (at least {100 * LEAST_MARGIN:.2f} points), perplexities within"
    f" {100 * PERPLEXITY_MARGIN:.0f} %. Single runs are not judged; as a hint, those within"
    f" {100 * TIME.single_run:.0f} % in time or {100 * PEAK.single_run:.0f} % in memory are not told apart."
)


@dataclasses.dataclass(frozen=True)
class Choice:
    """The best strategy for a goal, by the median, among those of a family with the same number of workers."""

    family: object
    workers: int
    goal: Goal
    values: dict  # variant -> Spread, best first
    standings: dict  # variant -> Standing of each but the best

    @property
    def best(self):
        return next(iter(self.values))

    @property
    def value(self):
        return self.values[self.best]

    @property
    def level(self):
        """Those that are not shown to be worse than the best."""
        return tuple(name for name, of in self.standings.items() if of.level)

    @property
    def second(self):
        """The best of those that are worse; None if there is none."""
        return next((name for name, of in self.standings.items() if not of.level), None)

    @property
    def verdict(self):
        """The weakest word of all comparisons with the best."""
        return min((of.word for of in self.standings.values()), key=WEAKEST_FIRST.index)

    @property
    def by_ranks(self):
        return any(of.by_ranks for of in self.standings.values())

    @property
    def distinct(self):
        """The best is shown to be better than each other one."""
        return self.verdict == ESTABLISHED

    @property
    def verdict_text(self):
        if self.verdict == EQUIVALENT:
            return f"{EQUIVALENT} within {self.goal.size_text(self.goal.bound(self.value))}"
        if self.by_ranks and self.verdict in (UNDERPOWERED, ESTABLISHED):
            return f"{self.verdict} by ranks: a run collapsed"
        if self.verdict == UNDERPOWERED:
            found = max(of.detectable for of in self.standings.values() if of.word == UNDERPOWERED)
            return f"{UNDERPOWERED}: would find {self.goal.size_text(found)} or more"
        if self.verdict == ONE_RUN and self.goal.single_run:
            noise = f"{100 * self.goal.single_run:.0f} %"
            return f"{ONE_RUN}, " + (f"within {noise}" if self.level else f"more than {noise} apart")
        return self.verdict

    def margin_of(self, variant):
        """How much more it needs (as a share), or how much lower its accuracy is, by medians."""
        other = self.values[variant]
        if self.goal.greatest:
            return self.value.median - other.median
        return other.median / self.value.median - 1

    def change_text(self, variant):
        if math.isinf(self.values[variant].median):
            return "not reached"
        margin = 100 * self.margin_of(variant)
        return f"{-margin:+.2f} points" if self.goal.greatest else f"{margin:+.1f} %"

    @property
    def margin_text(self):
        """Of the second."""
        margin = self.margin_of(self.second)
        if math.isinf(margin):
            return "more than its runs had"
        if self.goal.greatest:
            return f"{100 * margin:.2f} points less"
        return f"{100 * margin:.1f} % more" if margin < 1 else f"{1 + margin:.1f} times"


@dataclasses.dataclass(frozen=True)
class Candidates:
    """Strategies of a family with the same number of workers: values by seed, and their spreads, best first."""

    family: object
    workers: int
    values: dict
    by_seed: dict

    def pairs(self):
        return itertools.combinations(self.values, 2)


def candidates(comparison, family, workers, goal):
    """None if fewer than two strategies can be compared. Accuracies and perplexities of runs that reached their time
    limit are left out, because they made fewer steps."""
    if goal.of not in (None, family.yardstick):
        return None
    timed = goal.quantity == TARGET
    values, by_seed = {}, {}
    for variant in family.variants_with(workers):
        if goal.respect == LEARNED and family.limited(variant, workers):
            continue
        at = variant, workers
        value = comparison.time_to_target(family, *at) if timed else family.spread(goal.quantity, *at)
        if value.known:
            values[variant] = value
            of_runs = comparison.times_to_target(family, *at) if timed else family.by_seed(goal.quantity, *at)
            # A test without the runs that did not reach the target would favour the strategy that has them.
            by_seed[variant] = of_runs if all(map(math.isfinite, of_runs.values())) or not timed else {}
    if len(values) < 2:
        return None
    ranked = sorted(values.items(), key=lambda item: item[1].median, reverse=goal.greatest)
    return Candidates(family, workers, dict(ranked), by_seed)


def judged_pairs(row, goal):
    """A Judgement for all pairs of strategies, because which of them are best is known only after the runs."""
    return row_tests.judge_row(
        {variant: goal.behind(values) for variant, values in row.by_seed.items()},
        {pair: goal.bound(row.values[pair[0]]) for pair in row.pairs()},
        inference.least_sd_of(row.family.test_images) if goal.greatest else 0.0,
        goal.counted,
        goal.collapse,
    )


def choices_of(comparison, goal):
    """For every family of cells and number of workers: a row, whose tests hold together (row_tests.py)."""
    found = [
        of
        for family in comparison.families
        for workers in family.workers
        if (of := candidates(comparison, family, workers, goal))
    ]
    return [choice_of(of, goal, judged_pairs(of, goal)) for of in found]


def choice_of(of, goal, judged):
    best, *others = of.values
    standings = {
        other: standing(judged[best, other], of.values[best], of.values[other], goal.single_run)
        for other in others
    }
    return Choice(of.family, of.workers, goal, of.values, standings)


def learned_goal(family):
    """The goal that tells how much was learned."""
    return next(goal for goal in (ACCURACY, PERPLEXITY) if goal.of is family.yardstick)


def choose(comparison, family, workers, goal):
    """None if fewer than two strategies can be compared."""
    made = choices_of(comparison, goal)
    return next((choice for choice in made if choice.family is family and choice.workers == workers), None)


def choices(comparison):
    """The choices for every family, number of workers and goal, in this order."""
    made = [choice for goal in GOALS for choice in choices_of(comparison, goal)]
    places = {id(family): place for place, family in enumerate(comparison.families)}
    return sorted(made, key=lambda choice: (places[id(choice.family)], choice.workers))

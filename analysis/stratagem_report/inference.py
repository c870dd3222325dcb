"""Statistics of repeated runs: paired differences over shared seeds, families of comparisons, equivalence, power.

Two ways of training are compared seed by seed, because runs with the same seed share initial parameters and order of
samples. All statements about several comparisons hold together: of all the families of comparisons in which nothing
differs, at most LEVEL lead to a false "differs", and likewise for "equivalent" (Holm 1979, for each separately).
Equivalence is shown by two one-sided t tests (Schuirmann 1987) with a margin that is chosen before the runs.
"""

import dataclasses
import functools
import math
import statistics

from scipy import optimize, special

LEVEL = 0.05  # of false statements, per family of comparisons
POWER = 0.8  # probability with which a difference is to be found
LEAST_PAIRS = 3  # with two pairs, a t interval is wider than any difference of interest
LEAST_RANKED = 6  # with fewer pairs, no order of ranks is rare enough
ALONE = 10  # median deviations: a difference that is further away is of a run that collapsed

HIGHER, LOWER, EQUIVALENT = "higher", "lower", "equivalent"
UNDERPOWERED, TOO_FEW = "underpowered", "too few seeds"


@dataclasses.dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval; `confidence` is a probability."""

    mean: float
    low: float
    high: float
    confidence: float

    def within(self, least, most):
        return least <= self.low and self.high <= most

    def outside(self, least, most):
        return self.high < least or self.low > most


@dataclasses.dataclass(frozen=True)
class Paired:
    """Differences between two ways of training, one for each shared seed. Differences of logarithms are ratios:
    `as_ratio` converts an interval of them. `least_sd`: of one of the two values; accuracies are known to an image, and
    a few that are equal by chance are no more precise than that. `counted`: counts and bytes, which have no noise."""

    differences: tuple
    least_sd: float = 0.0
    counted: bool = False

    @property
    def n(self):
        return len(self.differences)

    @functools.cached_property
    def mean(self):
        return sum(self.differences) / self.n if self.n else math.nan

    @functools.cached_property
    def sd(self):
        """Sample standard deviation, or what the values' resolution leaves, unless all seeds agree to the last bit; NaN
        of fewer than two."""
        if self.n < 2:
            return math.nan
        if not any(self.differences):
            return 0.0
        found = math.sqrt(sum((value - self.mean) ** 2 for value in self.differences) / (self.n - 1))
        return max(found, math.sqrt(2) * self.least_sd)

    @property
    def error(self):
        """Standard error of the mean."""
        return self.sd / math.sqrt(self.n) if self.n > 1 else math.nan

    @property
    def exact(self):
        """Counts and bytes that always differ by the same: nothing is left to chance, and nothing is tested."""
        return self.counted and self.n > 1 and len(set(self.differences)) == 1

    @property
    def settled(self):
        """Nothing is to be tested, because counts say it, or because every seed has the same bits on both sides."""
        return self.exact or (self.n > 1 and not any(self.differences))

    def interval(self, confidence=1 - LEVEL):
        """Of the mean, from Student's t; infinite with fewer than two pairs."""
        if self.n < 2:
            return Interval(self.mean, -math.inf, math.inf, confidence)
        reach = float(special.stdtrit(self.n - 1, (1 + confidence) / 2)) * self.error
        return Interval(self.mean, self.mean - reach, self.mean + reach, confidence)

    def p_above(self, bound):
        """Of the hypothesis that the mean is at most `bound`, against that it is greater."""
        if self.n < 2:
            return 1.0
        if self.settled:
            return float(self.mean <= bound)
        return 1.0 if self.error == 0 else float(special.stdtr(self.n - 1, (bound - self.mean) / self.error))

    def p_below(self, bound):
        if self.n < 2:
            return 1.0
        if self.settled:
            return float(self.mean >= bound)
        return 1.0 if self.error == 0 else 1 - self.p_above(bound)

    @property
    def collapsed(self):
        """Whether one seed stands apart, which hides all else from a test of means."""
        middle = statistics.median(self.differences) if self.n else 0.0
        away = [abs(value - middle) for value in self.differences]
        return self.n >= LEAST_RANKED and max(away) > ALONE * max(statistics.median(away), self.least_sd) > 0

    def p_different(self):
        """By Student's t, or by Wilcoxon's signed ranks where a seed collapsed."""
        return self.p_ranks() if self.collapsed else min(1.0, 2 * min(self.p_above(0), self.p_below(0)))

    def p_ranks(self):
        """Of the hypothesis that differences are symmetric about 0; exact, with mean ranks of equal sizes."""
        sizes = sorted(abs(value) for value in self.differences)
        doubled = {size: sizes.index(size) + 1 + len(sizes) - sizes[::-1].index(size) for size in sizes}
        sums = {0: 1}  # of the ranks of positive differences -> number of choices of signs
        for value in self.differences:
            rank, more = doubled[abs(value)], {}
            for total, ways in sums.items():
                for reached in (total, total + rank):
                    more[reached] = more.get(reached, 0) + ways
            sums = more
        found = sum(doubled[abs(value)] * (1 if value > 0 else 0.5 if value == 0 else 0) for value in self.differences)
        centre = sum(doubled[abs(value)] for value in self.differences) / 2
        extreme = sum(ways for total, ways in sums.items() if abs(total - centre) >= abs(found - centre))
        return extreme / sum(sums.values())

    def p_equivalent(self, margin):
        """Of the hypothesis that the mean is at least `margin` away from 0."""
        return max(self.p_above(-margin), self.p_below(margin))

    def detectable(self, level=LEVEL, power=POWER):
        """The smallest mean that a two-sided test finds with this power, if the standard deviation is as measured."""
        if self.n < 2:
            return math.inf
        return self.error * shift_found(self.n, level, power)


def shift_found(n, level, power):
    """In standard errors: the mean that a two-sided t test of n pairs finds with a given power (noncentral t)."""
    critical = float(special.stdtrit(n - 1, 1 - level / 2))

    def missing(shift):
        return power - 1 + special.nctdtr(n - 1, shift, critical)

    most = critical + 1
    while missing(most) > 0:  # far beyond the root, nctdtr is NaN
        most *= 1.5
    return optimize.brentq(missing, 0, most)


def paired(ours, theirs, least_sd=0.0):
    """Of values by seed: `ours` minus `theirs`, for the seeds that both have; unknown values count as missing."""
    shared = [seed for seed in sorted(ours) if seed in theirs]
    differences = (ours[seed] - theirs[seed] for seed in shared)
    return Paired(tuple(value for value in differences if math.isfinite(value)), least_sd)


def logarithms(values):
    """Of positive values by seed; others are left out."""
    return {seed: math.log(value) for seed, value in values.items() if value > 0}


def paired_ratios(ours, theirs):
    """Of positive values by seed: differences of logarithms."""
    return paired(logarithms(ours), logarithms(theirs))


def least_sd_of(images):
    """Of an accuracy, a share of `images`: half an image."""
    return 0.5 / images if images and images > 0 else 0.0


def as_ratio(interval):
    """An interval of logarithms as one of ratios; its mean is the geometric one."""
    return Interval(*map(math.exp, (interval.mean, interval.low, interval.high)), interval.confidence)


def holm(p_values):
    """Adjusted for the number of tests, in the order given: each may be compared with the level of the family."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted, greatest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        greatest = max(greatest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = greatest
    return adjusted


def equivalence_intervals(comparisons, margin, level=LEVEL):
    """The intervals that two one-sided tests of a family compare with the margin, one for each of `comparisons`: it is
    equivalent if its interval lies within. Each has the share of the level that Holm's procedure gives it."""
    p_values = [of.p_equivalent(margin) for of in comparisons]
    order = sorted(range(len(comparisons)), key=lambda index: p_values[index])
    found, share = [None] * len(comparisons), None
    for rank, index in enumerate(order):
        if share is None or rejected:
            share = level / (len(comparisons) - rank)
        rejected = p_values[index] <= share
        found[index] = comparisons[index].interval(1 - 2 * share)
    return found


def simultaneous(count, level=LEVEL):
    """The confidence of each of `count` intervals that hold together with 1 - level (Bonferroni)."""
    return 1 - level / max(1, count)


@dataclasses.dataclass(frozen=True)
class Judgement:
    """Of one comparison in a family. `differs` is also known of what is equivalent: a difference may be certain and
    yet smaller than the margin."""

    verdict: str
    differs: bool
    pairs: Paired
    interval: Interval  # holds together with those of the family
    detectable: float = math.inf  # the smallest mean that the family's tests find with POWER, if they find nothing else
    by_ranks: bool = False  # a run collapsed: ranks were tested; interval and detectable are those of the values

    @property
    def judged(self):
        return self.verdict not in (UNDERPOWERED, TOO_FEW)


def verdict_of(low, high, margin):
    """(verdict, differs) of an interval of a mean; without a margin nothing is equivalent."""
    differs = low > 0 or high < 0
    if margin and -margin <= low and high <= margin:
        return EQUIVALENT, differs
    return (HIGHER if low > 0 else LOWER if differs else UNDERPOWERED), differs


def judge_family(comparisons, margin=None, level=LEVEL):
    """A Judgement for each of `comparisons` (Paired), which belong together. `margin` is one for all, or a list with
    one for each. Without a margin nothing is called equivalent."""
    margins = margin if isinstance(margin, list) else [margin] * len(comparisons)
    tested = [(of, bound) for of, bound in zip(comparisons, margins) if of.n >= LEAST_PAIRS]
    confidence = simultaneous(len(tested), level)
    different = iter(holm([of.p_different() for of, _ in tested]))
    equivalent = iter(holm([of.p_equivalent(bound) if bound else 1.0 for of, bound in tested]))
    found = []
    for of in comparisons:
        if of.n < LEAST_PAIRS:
            found.append(Judgement(TOO_FEW, False, of, of.interval(confidence)))
            continue
        differs, same = next(different) <= level, next(equivalent) <= level
        direction = HIGHER if (statistics.median(of.differences) if of.collapsed else of.mean) > 0 else LOWER
        verdict = EQUIVALENT if same else direction if differs else UNDERPOWERED
        interval = of.interval(confidence)
        found.append(Judgement(verdict, differs, of, interval, of.detectable(1 - confidence), of.collapsed))
    return found

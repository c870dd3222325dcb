"""Tests of all pairs of strategies in a row of a table: the same work, seeds and goal.

A row is one family: of rows in which nothing differs, at most LEVEL have a false "higher" or "lower". A pair differs
only if two tests agree, because each is wrong where the other is right:
- Tukey's range test, with the residual that all strategies of the row share. It finds most, and holds where a run
  collapses now and then, for such a run is in the residual of all. It fails if one strategy varies more than the
  others: its luck is then judged by their steadiness (25 % false of 12 strategies, if one varies 10 times as much).
- Games and Howell's, with the residuals of the two strategies alone. It holds there, and fails where residuals are
  few and vanish by chance: three runs that all collapsed look like a precise result (50 % false).
analysis/null_studies.py simulates both with what is known to break such tests. Residuals are those of a two-way layout:
runs with the same seed share initial parameters and order of samples.

A collapsed run leaves both tests without power. Then differences of mean ranks within seeds decide, by the
distribution that they have if all orders of the strategies are equally likely (Nemenyi's test, with exact quantiles).
Ranks are not used otherwise: where one strategy only varies more, up to 8 % of their verdicts are false."""

import dataclasses
import functools
import math

import numpy as np
from scipy import optimize, special

from .inference import LEAST_PAIRS, LEVEL, POWER, TOO_FEW, Interval, Judgement, Paired, paired, verdict_of

COLLAPSED = 10  # median deviations of all runs from the medians of strategy and seed
ALONE = 5  # median deviations of its strategy's runs: one that varies much has not collapsed
SHUFFLES = 20_000  # orders of strategies drawn for the distribution of ranks


@functools.lru_cache(maxsize=None)
def _range_of_normals(count):
    """(w, P(the range of `count` standard normal values is at most w)), tabulated."""
    z, w = np.linspace(-9, 9, 1801), np.linspace(0, 18, 1201)
    density = np.exp(-z**2 / 2) / math.sqrt(2 * math.pi)
    between = special.ndtr(z)[None, :] - special.ndtr(z[None, :] - w[:, None])
    return w, count * (density * between ** (count - 1)).sum(axis=1) * (z[1] - z[0])


@functools.lru_cache(maxsize=None)
def _critical_range(count, freedom, level):
    w, below = _range_of_normals(count)
    s = np.linspace(0, 8, 4001)[1:]  # estimated over true standard deviation, whose square is chi-squared / freedom
    log_density = (freedom - 1) * np.log(s) - freedom * s**2 / 2
    density = np.exp(log_density - log_density.max())
    density /= density.sum()

    def above(limit):
        return 1 - float(np.interp(limit * s, w, below) @ density) - level

    most = 10.0
    while above(most) > 0:
        most *= 2
    return optimize.brentq(above, 0, most, xtol=1e-4)


def critical_range(count, freedom, level=LEVEL):
    """Of Student's t for all pairs of `count` means: the studentized range over the root of 2. Degrees of freedom are
    rounded down to tenths."""
    return _critical_range(count, max(1.0, math.floor(10 * freedom) / 10), level) / math.sqrt(2)


@functools.lru_cache(maxsize=None)
def critical_ranks(count, seeds, level=LEVEL):
    """The least difference of mean ranks that a range reaches in at most `level` of random orders; infinite if
    none."""
    random = np.random.default_rng(0)
    ranks = random.random((SHUFFLES, seeds, count)).argsort(axis=2).sum(axis=1)
    ranges, shares = np.unique(ranks.max(axis=1) - ranks.min(axis=1), return_counts=True)
    reached = shares[::-1].cumsum()[::-1] / SHUFFLES
    rare = ranges[reached <= level]
    return rare[0] / seeds if len(rare) else math.inf


@dataclasses.dataclass(frozen=True)
class Row:
    """`table`: a line for each strategy, a column for each seed; NaN where there is no run; less is better.
    `least_sd`: of one value, which cannot be known better: accuracies are counts of images. `collapse`: no run that is
    less behind has collapsed."""

    names: tuple
    table: np.ndarray
    least_sd: float
    collapse: float

    @functools.cached_property
    def residuals(self):
        centred = self.table - np.nanmean(self.table, axis=1, keepdims=True)
        return centred - np.nanmean(centred, axis=0)

    @functools.cached_property
    def runs(self):
        """Of each strategy."""
        return np.isfinite(self.table).sum(axis=1)

    @property
    def freedom(self):
        """Of the residuals of all; seeds take the share of one strategy."""
        return (self.runs - 1).sum() * self.kept

    @property
    def kept(self):
        """The share of the degrees of freedom that is left when the effects of seeds are estimated."""
        return (len(self.names) - 1) / len(self.names)

    @functools.cached_property
    def variances(self):
        """Of one run of each strategy, from its own residuals."""
        return np.nansum(self.residuals**2, axis=1) / ((self.runs - 1) * self.kept)

    @property
    def pooled(self):
        return np.nansum(self.residuals**2) / self.freedom

    def errors(self, one, other, shared):
        """(standard error of the difference, degrees of freedom) of both tests."""
        own = self.variances[[one, other]]
        spread = (own**2 / ((self.runs[[one, other]] - 1) * self.kept)).sum()
        least = 2 * self.least_sd**2
        return (
            (math.sqrt(max(2 * self.pooled, least) / shared), self.freedom),
            (math.sqrt(max(own.sum(), least) / shared), own.sum() ** 2 / spread if spread else self.freedom),
        )

    @functools.cached_property
    def collapsed(self):
        """Whether a run is far behind its strategy's others, further than the whole seed is."""
        behind = self.table - np.nanmedian(self.table, axis=1, keepdims=True)
        own = np.nanmedian(np.abs(behind), axis=1, keepdims=True)
        behind = behind - np.nanmedian(behind, axis=0)
        usual = np.abs(behind[np.isfinite(behind) & (behind != 0)])
        if not len(usual):
            return False
        return bool((behind > np.maximum(ALONE * own, max(COLLAPSED * np.median(usual), self.collapse))).any())

    @functools.cached_property
    def mean_ranks(self):
        """Over the seeds that all have, and their number."""
        whole = self.table[:, np.isfinite(self.table).all(axis=0)]
        below = (whole[None, :, :] < whole[:, None, :]).sum(axis=1)
        level = (whole[None, :, :] == whole[:, None, :]).sum(axis=1)
        return (below + (level + 1) / 2).mean(axis=1) if whole.size else np.zeros(len(self.names)), whole.shape[1]

    def ranks_apart(self, one, other):
        """By how much the other's mean rank is greater; 0 where chance would do."""
        ranks, seeds = self.mean_ranks
        apart = float(ranks[other] - ranks[one])
        return apart if seeds and abs(apart) >= critical_ranks(len(self.names), seeds) - 1e-9 else 0.0


def row_of(values, least_sd, collapse):
    """Of {strategy: {seed: value}}: those that have enough runs, and the seeds that two of them share."""
    known = {
        name: {seed: value for seed, value in of.items() if math.isfinite(value)} for name, of in values.items()
    }
    names = tuple(name for name, of in known.items() if len(of) >= LEAST_PAIRS)
    seeds = sorted({seed for name in names for seed in known[name]})
    seeds = [seed for seed in seeds if sum(seed in known[name] for name in names) >= 2]
    table = np.array([[known[name].get(seed, math.nan) for seed in seeds] for name in names])
    table = table.reshape(len(names), len(seeds))
    enough = np.isfinite(table).sum(axis=1) >= LEAST_PAIRS
    return Row(tuple(name for name, of in zip(names, enough) if of), table[enough], least_sd, collapse)


def judge_pair(row, better, worse, margin, exact):
    """The Judgement of `worse` minus `better`."""
    places = [row.names.index(name) if name in row.names else None for name in (better, worse)]
    if None in places:
        return None
    one, other = places
    differences = row.table[other] - row.table[one]
    pairs = Paired(tuple(differences[np.isfinite(differences)].tolist()), row.least_sd, exact)
    if pairs.n < LEAST_PAIRS:
        return None
    if pairs.exact:
        exactly = Interval(*[pairs.mean] * 3, 1 - LEVEL)
        return Judgement(*verdict_of(pairs.mean, pairs.mean, margin), pairs, exactly, 0.0)
    errors = row.errors(one, other, pairs.n)
    reach = max(critical_range(len(row.names), freedom) * error for error, freedom in errors)
    found = max(
        (critical_range(len(row.names), freedom) + float(special.stdtrit(freedom, POWER))) * error
        for error, freedom in errors
    )
    interval = Interval(pairs.mean, pairs.mean - reach, pairs.mean + reach, 1 - LEVEL)
    verdict, differs = verdict_of(interval.low, interval.high, margin)
    if row.collapsed:
        apart = row.ranks_apart(one, other)
        verdict, differs = verdict_of(apart, apart, None)
    return Judgement(verdict, differs, pairs, interval, found, by_ranks=row.collapsed)


def judge_row(values, pairs, least_sd=0.0, exact=False, collapse=math.inf):
    """{(better, worse): Judgement} for `pairs`, {(better, worse): margin}. `values`: {strategy: {seed: value}}, of
    which less is better. `exact`: of counts and bytes; where they differ by the same in all seeds, nothing is left to
    chance, and nothing is tested. `collapse`: a run that is further behind may have collapsed."""
    row = row_of(values, least_sd, collapse)
    judged = {}
    for (better, worse), margin in pairs.items():
        found = judge_pair(row, better, worse, margin, exact)
        few = paired(values[worse], values[better])
        judged[better, worse] = found or Judgement(TOO_FEW, False, few, few.interval())
    return judged

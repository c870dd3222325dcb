"""Repetitions: a value with its range over seeds."""

import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Spread:
    """Median, minimum and maximum of `n` repetitions; all NaN if n is 0."""

    median: float
    low: float
    high: float
    n: int

    @property
    def known(self):
        return self.n > 0

    def overlaps(self, other):
        return self.low <= other.high and other.low <= self.high

    def scaled(self, factor):
        return Spread(self.median * factor, self.low * factor, self.high * factor, self.n)


UNKNOWN = Spread(math.nan, math.nan, math.nan, 0)


def spread(values):
    known = sorted(value for value in values if math.isfinite(value))
    if not known:
        return UNKNOWN
    middle = len(known) // 2
    median = known[middle] if len(known) % 2 else (known[middle - 1] + known[middle]) / 2
    return Spread(median, known[0], known[-1], len(known))


def reaching(times):
    """Of times until something was reached, infinite in runs that did not: these count as longer than all others.
    Unknown if none did."""
    ordered = sorted(times)
    if not ordered or math.isinf(ordered[0]):
        return UNKNOWN
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Spread(median, ordered[0], ordered[-1], len(ordered))


def ratio(a, b):
    """a / b; its range contains the quotients of all pairs."""
    if not a.known or not b.known or b.low <= 0:
        return UNKNOWN
    return Spread(a.median / b.median, a.low / b.high, a.high / b.low, min(a.n, b.n))


def difference(a, b):
    """a - b; its range contains the differences of all pairs."""
    if not a.known or not b.known:
        return UNKNOWN
    return Spread(a.median - b.median, a.low - b.high, a.high - b.low, min(a.n, b.n))

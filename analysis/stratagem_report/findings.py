"""The results of claims and checks, and how effects are written."""

import dataclasses
import math
import operator

from . import style
from .trace import PHASES

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
CONTRADICTED, UNTESTED, UNDERPOWERED = "contradicted by arithmetic", "not testable here", "underpowered"
HOLDS, FAILS = "holds", "does not hold"  # of checks
NOT_MADE = "not judged: an error"  # of this report
ARITHMETIC, RUNS = "the paper's own numbers", "matching runs"  # what a check rests on
LISTED = 4  # items of a list
ABOVE_0 = math.nextafter(0, 1)  # the end of a range that does not contain 0


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of a claim or a check."""

    number: str
    statement: str
    where: str  # in the paper
    verdict: str
    measured: str
    seen: str = ""  # what other cells show, without a verdict
    cause: str = ""
    basis: str = RUNS


@dataclasses.dataclass(frozen=True)
class Quantity:
    """What an effect is: a ratio, a difference, or a value itself. Of ratios, effects are logarithms."""

    measure: str
    name: str
    form: str = "ratio"
    unit: str = ""
    factor: float = 1.0  # from the measure's unit to `unit`
    digits: int = 2
    on_gpu: bool = True

    def text(self, effect):
        if self.form == "ratio":
            return f"{math.exp(effect):.{self.digits}f}x" if effect < 700 else "any ratio"
        sign = "+" if self.form == "difference" else ""
        return f"{self.factor * effect:{sign},.{self.digits}f} {self.unit}"

    def span(self, low, high):
        """A range of effects in words; a side without an end is not named."""
        if math.isinf(high):
            return "above 0" if low == ABOVE_0 else f"above {self.text(low)}"
        if math.isinf(low):
            return "below 0" if high == -ABOVE_0 else f"below {self.text(high)}"
        return f"{self.text(low)} to {self.text(high)}"

    def near(self, effect):
        """From half to double of a published effect; of a ratio, from half to double of what the greater side has
        more."""
        ends = effect / 2, 2 * effect
        if self.form == "ratio":
            more = math.expm1(abs(effect))
            ends = (math.copysign(math.log1p(share * more), effect) for share in (0.5, 2))
        return tuple(sorted(ends))

    def effect(self, ours, theirs):
        """Of two medians."""
        if self.form == "value":
            return ours
        if self.form == "difference":
            return ours - theirs
        return math.log(ours / theirs) if ours > 0 and theirs > 0 else math.nan


def not_made(number, statement="", where=""):
    """A function from a parts.Failure to the finding in place of one that could not be made."""
    return lambda failure: Finding(number, statement, where, NOT_MADE, failure.line)


def listing(items):
    """As many items as a reader looks at; the tables have all of them."""
    told = "; ".join(map(str, items[:LISTED]))
    return told + (f"; and {len(items) - LISTED} more" if len(items) > LISTED else "")


def phase_changes(medians):
    """The phases in which a step differs from another: "+1.2 ms: forward +0.2, ...". `medians`: of a measure, ours and
    theirs."""
    changes = {phase: operator.sub(*medians(f"{phase}_ms")) for phase in PHASES}
    if not all(map(math.isfinite, changes.values())):
        return ""
    told = ", ".join(
        f"{style.PHASE_LABELS.get(phase, phase)} {change:+.2f}"
        for phase, change in changes.items()
        if abs(change) >= 0.005
    )
    return f"{sum(changes.values()):+.2f} ms per step" + (f" ({told})" if told else "")

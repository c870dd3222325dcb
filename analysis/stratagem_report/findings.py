"""The results of claims and checks, and helpers to describe measurements."""

import dataclasses
import math

from . import published, style
from .spread import difference
from .trace import PHASES

CONFIRMED, REFUTED, UNTESTED = "confirmed", "refuted", "not testable here"
LISTED = 4  # comparisons of a claim


@dataclasses.dataclass(frozen=True)
class Finding:
    """The result of a claim or a check."""

    number: str
    statement: str
    where: str  # in the paper
    verdict: str
    measured: str
    cause: str = ""


@dataclasses.dataclass(frozen=True)
class Case:
    """One comparison that a claim is about; `holds` is None if it cannot be judged."""

    family: object
    workers: int
    holds: object
    text: str

    def __str__(self):
        count = f"{self.workers} worker" + ("" if self.workers == 1 else "s")
        return f"{self.family.title}, {count}: {self.text}"


def judge(number, statement, where, evidence, cases, cause):
    """A claim about all configurations is confirmed if all comparisons that can be judged support it, and refuted if
    one does not; the text says how many do. If evidence is missing, it is not judged."""
    judged = [case for case in cases if case.holds is not None]
    if evidence.missing or not judged:
        told = evidence.missing or f"no comparison can be judged. {listing(cases)}"
        return Finding(number, statement, where, UNTESTED, told)
    hold = sum(case.holds for case in judged)
    return Finding(
        number,
        statement,
        where,
        CONFIRMED if hold == len(judged) else REFUTED,
        f"It holds in {hold} of {len(judged)} comparisons. {listing(cases)}.",
        cause,
    )


def listing(cases):
    """As many items as a reader looks at; the tables have all of them."""
    told = "; ".join(map(str, cases[:LISTED]))
    return told + (f"; and {len(cases) - LISTED} more" if len(cases) > LISTED else "")


def span(low, high, form):
    return f" ({form.format(low)} to {form.format(high)})" if low < high else ""


def times(value):
    return f"{value.median:.2f}x" + span(value.low, value.high, "{:.2f}")


def smaller(value):
    """A ratio in words: "2.00x smaller", or "1.29x larger"."""
    if value.median >= 1:
        return f"{times(value)} smaller"
    return f"{1 / value.median:.2f}x" + span(1 / value.high, 1 / value.low, "{:.2f}") + " larger"


def points(value):
    return f"{100 * value.median:+.2f} points" + span(100 * value.low, 100 * value.high, "{:+.2f}")


def published_ratio(family, variant, base, workers):
    value = published.ratio(family.key, variant, base, workers)
    return f", published {value:.1f}x" if math.isfinite(value) else ""


def phase_changes(family, variant, base, workers):
    """The phases in which a variant's step differs from another's: "+1.2 ms: forward +0.2, ..."."""
    changes = {
        phase: (
            difference(
                family.spread(f"{phase}_ms", variant, workers),
                family.spread(f"{phase}_ms", base, workers),
            ).median
        )
        for phase in PHASES
    }
    told = ", ".join(
        f"{style.PHASE_LABELS.get(phase, phase)} {change:+.2f}"
        for phase, change in changes.items()
        if abs(change) >= 0.005
    )
    return f"{family.title}, {workers}: {sum(changes.values()):+.2f} ms per step ({told})"

"""How a published claim is judged by the cells that match it.

A claim has targets: published comparisons, each with the range of effects that counts as the published one. The range
is fixed before any run: from half to double of the published effect; or the range that the claim prints; or, for a
claim without numbers, its direction. An effect is a mean over seeds of paired differences. The intervals of all targets
of a claim hold together with 95 %. The claim is reproduced if all lie wholly within their ranges, and not reproduced if
one lies wholly outside.
"""

import dataclasses
import math
from collections.abc import Callable

from scipy import special

from . import inference
from .conditions import Experiment, Wanted
from .evidence import ACCURACY, mixture
from .findings import NOT_REPRODUCED, REPRODUCED, UNDERPOWERED, UNTESTED, Finding, Quantity, listing
from .style import workers_text

MOST_SEEDS = 200
INSIDE, OUTSIDE, OPEN, MISSING = "inside", "outside", "open", "missing"


@dataclasses.dataclass(frozen=True)
class Target:
    """A published comparison. `ours`, `theirs`: (variant, workers); `theirs` is None of a value itself."""

    model: str
    ours: tuple
    theirs: tuple
    low: float
    high: float
    published: float = math.nan  # effect


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim, or the part of one that has a verdict of its own. `cause` explains a target from the traces of the very
    cells that were judged: a function of their medians. `declared` is (verdict, reason) of a claim that no run can
    decide."""

    key: str  # of its row in claims.csv
    scope: str
    statement: str
    where: str
    experiment: Experiment
    quantity: Quantity
    targets: tuple
    cause: Callable = None
    declared: tuple = None

    @property
    def number(self):
        return self.key + (f", {self.scope}" if self.scope else "")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Of a target within a reading."""

    target: Target
    state: str
    text: str
    depth: int = 0
    sides: tuple = ()  # cells


def state_of(pairs, low, high, targets):
    """(state, interval) of one of several targets."""
    interval = pairs.interval(inference.simultaneous(targets))
    if pairs.n < inference.LEAST_PAIRS:
        return OPEN, interval
    return INSIDE if interval.within(low, high) else OUTSIDE if interval.outside(low, high) else OPEN, interval


def verdict_of(states):
    """Within a reading: one counterexample refutes a claim; its reproduction needs all targets."""
    if OUTSIDE in states:
        return NOT_REPRODUCED
    if MISSING in states:
        return UNTESTED
    return REPRODUCED if set(states) == {INSIDE} else UNDERPOWERED


def merged(verdicts):
    """Over the readings that can be judged. A verdict that depends on what the paper does not say is none."""
    found = set(verdicts) - {UNTESTED}
    if {REPRODUCED, NOT_REPRODUCED} <= found or not found:
        return UNTESTED
    return found.pop() if len(found) == 1 else UNDERPOWERED


def paired(quantity, values):
    """Of values by seed, of one side or of both."""
    if quantity.form == "ratio":
        return inference.paired_ratios(*values)
    return inference.paired(*values) if len(values) == 2 else inference.paired(values[0], dict.fromkeys(values[0], 0.0))


def outcome(evidence, claim, reading, target):
    """A target judged by the cells that match it within a reading."""
    quantity = claim.quantity
    matches = [
        evidence.match(
            Wanted(claim.experiment, target.model, *side, reading, quantity.on_gpu, quantity.measure == ACCURACY)
        )
        for side in (target.ours, target.theirs)
        if side
    ]
    missing = [match.missing for match in matches if match.missing]
    sides = tuple(match.cells for match in matches)
    if not missing and (mixed := mixture(*sides)):
        missing = [mixed]
    depth = sum(match.depth for match in matches)
    if missing:
        return Outcome(target, MISSING, " and ".join(dict.fromkeys(missing)), depth)
    values = [evidence.values(cells, quantity.measure, reading.epochs) for cells in sides]
    if not all(any(map(math.isfinite, of.values())) for of in values):
        return Outcome(target, MISSING, f"{quantity.name} was not measured", depth)
    pairs = paired(quantity, values)
    state, interval = state_of(pairs, target.low, target.high, len(claim.targets))
    text = told(quantity, target, pairs, interval)
    if state == OPEN and pairs.n >= inference.LEAST_PAIRS:
        text += lacking(target, pairs, len(claim.targets))
    return Outcome(target, state, text, depth, sides)


def seeds_needed(pairs, low, high, targets):
    """With which an interval of this mean and deviation lies wholly inside or outside the range, with the usual power;
    None if MOST_SEEDS do not suffice."""
    distance = min(abs(pairs.mean - end) for end in (low, high))
    level = (1 - inference.simultaneous(targets)) / 2
    for seeds in range(inference.LEAST_PAIRS, MOST_SEEDS + 1):
        errors = -special.stdtrit(seeds - 1, level) + special.stdtrit(seeds - 1, inference.POWER)
        if errors * pairs.sd / math.sqrt(seeds) <= distance:
            return seeds
    return None


def lacking(target, pairs, targets):
    """How many seeds would resolve what these did not."""
    seeds = seeds_needed(pairs, target.low, target.high, targets)
    if seeds is None:
        return f"; even {MOST_SEEDS} seeds would not tell this effect from an end of that range"
    return f"; would need {max(seeds, pairs.n + 1)} seeds, if effect and deviation are as measured"


def told(quantity, target, pairs, interval):
    text = target.model
    if pairs.n:
        text += f" {quantity.text(interval.mean)}"
    if pairs.n < inference.LEAST_PAIRS:
        return text + f" ({inference.LEAST_PAIRS} seeds that both sides have are needed, there are {pairs.n})"
    text += f" [{quantity.text(interval.low)}, {quantity.text(interval.high)}]"
    if math.isfinite(target.published):
        text += f", published {quantity.text(target.published)}"
    return text + f" (counts as reproduced: {quantity.span(target.low, target.high)})"


@dataclasses.dataclass(frozen=True)
class Judged:
    """A claim within a reading."""

    reading: object
    outcomes: tuple

    @property
    def verdict(self):
        return verdict_of([of.state for of in self.outcomes])

    @property
    def depth(self):
        return sum(of.depth for of in self.outcomes)

    @property
    def measured(self):
        return [of for of in self.outcomes if of.state != MISSING]

    def __str__(self):
        return f"Read as {self.reading}: {self.verdict}. {listing([of.text for of in self.measured])}."


def missing_text(judged, claim):
    """What the nearest reading lacks. Models that lack the same are named together."""
    lacks = {}
    for of in judged.outcomes:
        if of.state == MISSING:
            lacks.setdefault(of.text, []).append(of.target.model)
    told = ". ".join(f"{', '.join(dict.fromkeys(models))}: {text}" for text, models in lacks.items())
    have = ", ".join(of.target.model for of in judged.measured)
    matched = f"{len(judged.measured)} of {len(claim.targets)} published comparisons have matching runs"
    return f"{matched}{f' ({have})' if have else ''}. Missing, read as {judged.reading}: {told}."


def explained(verdict, readings):
    """The measured text of a claim that was compared with runs."""
    found = [of for of in readings if of.verdict != UNTESTED]
    if verdict == UNTESTED and found:
        return "It depends on what the paper does not say. " + " ".join(map(str, found))
    return listing(found).replace(".;", ".") if found else ""


def judge(evidence, claim, seen):
    """The Finding of a claim. `seen`: of a claim and the cells that were judged, what other cells show."""
    if claim.declared:
        return Finding(claim.number, claim.statement, claim.where, *claim.declared, seen=seen(claim, set()))
    readings = [
        Judged(reading, tuple(outcome(evidence, claim, reading, target) for target in claim.targets))
        for reading in claim.experiment.readings()
    ]
    verdict = merged([of.verdict for of in readings])
    text = explained(verdict, readings) or missing_text(max(readings, key=lambda of: of.depth), claim)
    used = {cell for of in readings for one in of.outcomes for cells in one.sides for cell in cells["cell"]}
    cause = causes(evidence, claim, readings) if verdict in (REPRODUCED, NOT_REPRODUCED) else ""
    return Finding(claim.number, claim.statement, claim.where, verdict, text, seen(claim, used), cause)


def causes(evidence, claim, readings):
    """From the traces of the cells that were judged, and of no others."""
    told = []
    for one in (one for of in readings for one in of.measured):
        cause = claim.cause(evidence.medians(one.sides)) if claim.cause else ""
        if cause:
            told.append(f"{one.target.model}, {workers_text(one.target.ours[1])}: {cause}")
    return listing(list(dict.fromkeys(told)))

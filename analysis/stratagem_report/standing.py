"""How a strategy stands to the best one: tested over the seeds that both have, or only described if these are few."""

import dataclasses
import math

from . import inference
from .inference import EQUIVALENT, HIGHER, LEAST_PAIRS, UNDERPOWERED

ESTABLISHED = "established"
APART, OVERLAP = "ranges apart", "ranges overlap"
ONE_RUN = "one run each: not judged"
WEAKEST_FIRST = (ONE_RUN, OVERLAP, UNDERPOWERED, APART, EQUIVALENT, ESTABLISHED)


@dataclasses.dataclass(frozen=True)
class Standing:
    """`level`: it is not shown to be worse than the best; of single runs, this is a hint. `detectable`: how much worse
    it would have to be for the tests to find it, as a difference or a logarithm of a ratio. `by_ranks`: a run
    collapsed."""

    word: str
    level: bool
    detectable: float = math.nan
    by_ranks: bool = False


def tested(judgement):
    """From the judgement of how far it is behind. One that is ahead, although its median is behind, is not settled."""
    word = {HIGHER: ESTABLISHED, EQUIVALENT: EQUIVALENT}.get(judgement.verdict, UNDERPOWERED)
    return Standing(word, word != ESTABLISHED, judgement.detectable, judgement.by_ranks)


def described(best, other, single_run):
    """From their spreads. Single runs within `single_run`, a share of the smaller one, are as good as each other."""
    if min(best.n, other.n) >= 2:
        level = best.overlaps(other)
        return Standing(OVERLAP if level else APART, level)
    near = single_run * min(abs(best.median), abs(other.median))
    return Standing(ONE_RUN, abs(best.median - other.median) <= near)


def standing(judgement, best, other, single_run):
    return tested(judgement) if judgement.pairs.n >= LEAST_PAIRS else described(best, other, single_run)


FALSE_SHARE = f"{100 * inference.LEVEL:.0f} %"
RULES = (
    "Strategies with the same work and workers are compared by paired differences over the seeds they share: of"
    " accuracies, and of logarithms of times and memory. As the best is chosen after the runs, all pairs of strategies"
    " of a row and goal are one family of tests, which use the residuals of all its strategies: of rows in which"
    f" nothing differs, at most {FALSE_SHARE} have a false `{ESTABLISHED}`, and of those in which all differ by the"
    f" margin at most {FALSE_SHARE} a false `{EQUIVALENT}`. This holds for each row alone: of many rows, expect a false"
    f" word in one of {1 / inference.LEVEL:.0f}. `{UNDERPOWERED}`: neither is shown; the number tells which difference"
    f" would be found with a probability of {100 * inference.POWER:.0f} %. Where a run collapsed, ranks within the"
    " seeds are tested. Memory that differs by the same in all seeds is not tested. With fewer than"
    f" {LEAST_PAIRS} shared seeds nothing is."
)

"""The claims of arXiv 2505.12832, each judged by the cells that match published ones."""

import functools
import math

from . import claims_servers, claims_sharding, published, style
from .errors import USAGE, ReportError
from .evidence import Evidence
from .findings import UNTESTED, Finding, listing, not_made
from .judging import judge

NINTH = "9"
KEYS = (*claims_sharding.KEYS, *claims_servers.KEYS, NINTH)


def check_rows(rows):
    """Every published claim has its rule, and every rule its claim."""
    file = published.FOLDER / published.CLAIMS
    for key in rows:
        if key not in KEYS:
            raise ReportError(f"{file}: no rule judges claim {key}: remove the row, or add a rule to claims*.py", USAGE)
    for key in KEYS:
        if key not in rows:
            raise ReportError(f"{file}: claim {key} has a rule but no row: add the row", USAGE)


def all_claims(rows):
    return [*claims_sharding.claims(rows), *claims_servers.claims(rows)]


def effect_in(family, quantity, sides):
    """Of medians; NaN if a side is missing."""
    medians = [family.spread(quantity.measure, *side).median for side in sides]
    if not all(map(math.isfinite, medians)):
        return math.nan
    return quantity.effect(*medians) if len(medians) == 2 else quantity.effect(medians[0], None)


def shown_elsewhere(comparison, claim, used):
    """What cells that were not judged show of a claim."""
    told = []
    for sides in dict.fromkeys((target.ours, target.theirs) for target in claim.targets):
        sides = [side for side in sides if side]
        for family in comparison.families:
            effect = effect_in(family, claim.quantity, sides)
            cells = {cell for side in sides for cell in family.of(*side)["cell"]}
            if math.isfinite(effect) and not cells <= used:
                against = " / ".join(f"{style.look_of(variant).label} on {workers}" for variant, workers in sides)
                told.append(f"{family.title}, {against}: {claim.quantity.text(effect)}")
    return f"{claim.quantity.name.capitalize()}: {listing(told)}" if told else ""


def best_of(family, workers, measure):
    medians = {variant: family.spread(measure, variant, workers).median for variant in family.variants_with(workers)}
    known = {variant: median for variant, median in medians.items() if math.isfinite(median)}
    return style.look_of(min(known, key=known.get)).label if len(known) > 1 else ""


def none_is_best(comparison, row):
    """The paper never ran all three on the same data and devices, so that no run can match."""
    told = []
    for family in comparison.families:
        for workers in family.workers:
            fastest, least = (best_of(family, workers, measure) for measure in ("epoch_s", "peak_B"))
            if fastest and least:
                told.append(
                    f"{family.title}, {style.workers_text(workers)}: fastest {fastest}, least memory {least}"
                )
    return Finding(
        NINTH,
        row["statement"],
        row["where"],
        UNTESTED,
        "No published cell compares the three: DDP and FSDP ran on CIFAR-10 and one kind of GPU, parameter servers on"
        " MNIST and another. Neither heterogeneity nor elasticity was measured.",
        listing(told),
    )


def findings(comparison, attempts):
    """Of all claims; `attempts` (parts.Attempts) makes each by itself."""
    rows = published.claims()
    check_rows(rows)
    evidence, seen = Evidence(comparison), functools.partial(shown_elsewhere, comparison)

    def attempted(number, row, function, *arguments):
        instead = not_made(number, row["statement"], row["where"])
        return attempts.make(f"claim {number}", function, *arguments, otherwise=instead)

    judged = [attempted(of.number, rows[of.key], judge, evidence, of, seen) for of in all_claims(rows)]
    return [*judged, attempted(NINTH, rows[NINTH], none_is_best, comparison, rows[NINTH])]

"""The list of claims of arXiv 2505.12832, each with the test for the measured cells; and the ninth claim itself."""

from . import claims_servers, claims_sharding, published, style
from .choices import GOALS, choose
from .evidence import SERVER, Needs, gather
from .findings import Case, judge


def winners(comparison, family, workers):
    """The choices whose best strategy is better than all others."""
    made = [choose(comparison, family, workers, goal) for goal in GOALS]
    return [choice for choice in made if choice is not None and choice.distinct]


def none_is_best(comparison):
    evidence = gather(comparison, Needs(published.ALL, ("ddp", "fsdp", SERVER), workers=2))
    cases = []
    for family, workers in evidence.pairs:
        won = winners(comparison, family, workers)
        told = ", ".join(
            f"{choice.goal.name}: {style.look_of(choice.best).label}" for choice in won
        )
        several = len({choice.goal.respect for choice in won}) >= 2
        holds = len({choice.best for choice in won}) > 1 if several else None
        cases.append(Case(family, workers, holds, told or "a tie in all respects"))
    return judge(
        "9",
        "No strategy is best in all respects: DDP for speed, FSDP for memory, a parameter server"
        " for heterogeneity and elasticity.",
        "v2, table 8 and section 7",
        evidence,
        cases,
        "T6 has the margins. Goals in which the best ones tie are not listed.",
    )


CLAIMS = [*claims_sharding.CLAIMS, *claims_servers.CLAIMS, none_is_best]


def findings(comparison):
    return [claim(comparison) for claim in CLAIMS]

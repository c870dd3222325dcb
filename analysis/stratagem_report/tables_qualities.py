"""What each strategy is like, in the terms of the paper's table 8: T15."""

from .figures_memory import at_most_workers
from .spread import difference, ratio
from .style import kind_of
from .table import Column, Note, Table
from .tables_training import WHAT, of_run

HIGH, MEDIUM = 0.8, 0.5  # least efficiency of a scalability
DIVIDED = ("zero1", "zero2", "fsdp")  # state is shared out
APART = ("local", "gossip", "fedavg")  # workers' parameters differ between exchanges
EVERY_STEP = "same parameters in every step"
RULES = (
    "Measured on the most workers that most strategies have; times and memory are over those of the best in the"
    " comparison, accuracies in points below it. Scalability: speed-up over workers,"
    f" {100 * HIGH:.0f} % or more is high, {100 * MEDIUM:.0f} % or more medium. Consistency: whether workers compute"
    " with the same parameters, by the greatest lag that was measured. Complexity: one point each for servers beside"
    " the workers, for state that is divided, and for parameters that are late or differ; none is low, one medium, more"
    " high. Settings: what a configuration can say of the strategy. The last three are the qualitative rows of table 8"
    " of arXiv 2505.12832, by rules that it does not have."
)


def scalability(family, variant, workers):
    efficiency = family.speed_up(variant, workers).median / workers
    if workers == 1 or not efficiency > 0:
        return None
    word = "high" if efficiency >= HIGH else "medium" if efficiency >= MEDIUM else "low"
    return Note(f"{word} ({100 * efficiency:.0f} %)")


def consistency(family, variant, workers):
    """(words, whether parameters are late or differ)."""
    if kind_of(variant) in APART:
        return "workers differ between exchanges", True
    lag = family.spread("lag_max", variant, workers)
    if lag.known and lag.high > 0:
        return f"gradients up to {lag.high:.0f} update{'' if lag.high == 1 else 's'} late", True
    return EVERY_STEP, False


def complexity(comparison, family, variant, workers):
    servers = int(family.of(variant, workers)["servers"].iloc[0])
    points = (servers > 0) + (kind_of(variant) in DIVIDED) + consistency(family, variant, workers)[1]
    config = comparison.first_run(family, variant, workers).config
    settings = sum(key.startswith("strategy.") and key != "strategy.name" for key in config)
    return Note(f"{('low', 'medium', 'high')[min(points, 2)]} ({settings} settings)")


def best_of(family, quantity, pairs, choose=min):
    """The Spread with the best median; None if nothing is known."""
    known = [value for pair in pairs if (value := family.spread(quantity, *pair)).known]
    return choose(known, key=lambda value: value.median) if known else None


def t15_qualities(comparison):
    """Time, memory and accuracy beside scalability, consistency and complexity."""
    table = Table(
        "T15",
        "What each strategy is like",
        [
            *WHAT,
            Column("time / fastest", 2),
            Column("memory / least", 2),
            Column("points below the best", 2, 100),
            Column("scalability", keep=True),
            Column("consistency", keep=True),
            Column("complexity", keep=True),
        ],
        note=RULES,
    )
    for family in comparison.drawn:
        pairs = at_most_workers(family)
        if len(pairs) > 1:
            for pair in pairs:
                table.add(*qualities_of(comparison, family, pairs, pair))
    return table


def qualities_of(comparison, family, pairs, pair):
    time, memory, learned = (family.spread(name, *pair) for name in ("epoch_s", "peak_B", "test_accuracy"))
    best = best_of(family, "test_accuracy", pairs, max)
    ratios = [
        ratio(value, least) if (least := best_of(family, name, pairs)) else None
        for name, value in (("epoch_s", time), ("peak_B", memory))
    ]
    return (
        *of_run(family, *pair),
        *ratios,
        difference(best, learned).median if best else None,
        scalability(family, *pair),
        consistency(family, *pair)[0],
        complexity(comparison, family, *pair),
    )

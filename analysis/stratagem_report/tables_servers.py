"""Tables of the parameter server: T3, T4, T11 and T16."""

from . import published
from .spread import difference, ratio
from .style import kind_of
from .table import Column, Note, Table
from .tables_training import MIB, WHAT, of_run, time_or_limit
from .yardstick import yardsticks_of


def with_servers(comparison):
    return [
        family
        for family in comparison.families
        if any(name.startswith("ps-") for name in family.variants)
    ]


def t3_servers(comparison):
    """Accuracy or perplexity, time and staleness of every mode, next to the synchronous strategies."""
    learned = yardsticks_of(with_servers(comparison))
    words = " or ".join(of.word for of in learned)
    targets = " or ".join(f"{100 * of.near:.0f} % of the final {of.word}" for of in learned)
    table = Table(
        "T3",
        f"Parameter servers: {words}, time, staleness",
        [
            *WHAT,
            *(of.column for of in learned),
            Column("published %", 1),
            Column("loss", 4),
            Column("training s", 2),
            Column("published s", 1),
            Column("s to target", 2),
            Column("lag mean", 2),
            Column("lag p95", 0),
            Column("lag max", 0),
            Column("dropped %", 1, 100),
            Column("updates/s", 1),
            Column("server busy %", 0, 100),
            Column("runs", 0),
        ],
        note=(
            "Lag: updates made since the parameters that a gradient was computed with, over all pushes."
            f" The target is {targets} of plain training (serial, else DDP, else PS sync) on the fewest"
            " workers that it ran on; a run that did not reach it counts as longer than all others."
            " Updates/s: versions of the parameters over the training time. Server busy: share of the"
            " training time in which servers computed, mean over servers. Training time leaves"
            " evaluation and saving out, and so does the limit behind `>` (run.max_time_s)."
        ),
    )
    for family in with_servers(comparison):
        dataset = family.key["dataset"]
        times, accuracies = published.times(dataset), published.accuracies(dataset)
        for variant, workers in family.pairs():
            quantities = (
                "lag_mean",
                "lag_p95",
                "lag_max",
                "dropped_share",
                "updates_per_s",
                "server_busy_share",
            )
            model = family.key["model"]
            table.add(
                *of_run(family, variant, workers),
                *(
                    family.spread(of.quantity, variant, workers) if of is family.yardstick else None
                    for of in learned
                ),
                published.lookup(accuracies, model, kind_of(variant), workers),
                family.spread("train_loss", variant, workers),
                time_or_limit(family, variant, workers),
                published.lookup(times, model, kind_of(variant), workers),
                comparison.time_to_target(family, variant, workers),
                *(family.spread(name, variant, workers) for name in quantities),
                len(family.of(variant, workers))
            )
    return table


def t4_modified(comparison):
    """Each improvement of asynchronous training, against plain async and sync."""
    table = Table(
        "T4",
        "What corrections of asynchronous training gain, and what they cost",
        [
            *WHAT,
            Column("points over async", 2, 100, sign=True),
            Column("published", 1, sign=True),
            Column("points over sync", 2, 100, sign=True),
            Column("time / async", 2),
            Column("time / sync", 2),
            Column("published / sync", 2),
            Column("lag mean", 2),
        ],
        note=(
            "Accuracy in percentage points, time per epoch as a ratio, on the same number of"
            " workers; positive points and ratios below 1 are gains. The published correction is"
            ' the "modified async" of arXiv 2505.12832.'
        ),
    )
    for family in with_servers(comparison):
        accuracies = published.accuracies(family.key["dataset"])
        for variant, workers in family.pairs():
            if variant.startswith("ps-") and kind_of(variant) not in ("ps-sync", "ps-async"):
                table.add(*modified_row(family, variant, workers, accuracies))
    return table


def modified_row(family, variant, workers, accuracies):
    def change(quantity, combine, base):
        own, other = (
            family.spread(quantity, of, workers) for of in (variant, family.find(base, workers))
        )
        return combine(own, other) if other.known else Note("not run")

    model = family.key["model"]
    gain = published.lookup(accuracies, model, kind_of(variant), workers) - published.lookup(
        accuracies, model, "ps-async", workers
    )
    return (
        *of_run(family, variant, workers),
        change("test_accuracy", difference, "ps-async"),
        gain,
        change("test_accuracy", difference, "ps-sync"),
        change("epoch_s", ratio, "ps-async"),
        change("epoch_s", ratio, "ps-sync"),
        published.ratio(family.key, kind_of(variant), "ps-sync", workers),
        family.spread("lag_mean", variant, workers),
    )


def with_equal_workers(comparison):
    """(family with servers, the family of the same work whose workers are equal, None if there is none) where some
    worker was slowed."""
    families = with_servers(comparison)
    work = {id(of): tuple(value for name, value in of.key.items() if name != "slow") for of in families}
    slowed = {work[id(of)] for of in families if of.key["slow"] > 1}
    even = {work[id(of)]: of for of in families if of.key["slow"] == 1}
    return [(of, even.get(work[id(of)])) for of in families if work[id(of)] in slowed]


def t16_unequal(comparison):
    """What a worker that computes longer costs with each mode."""
    table = Table(
        "T16",
        "Unequal workers: what a slow one costs",
        [
            *WHAT,
            Column("slowed by", 1, keep=True),
            Column("longest / shortest computing", 2),
            Column("s per epoch", 2),
            Column("time / equal workers", 2),
            Column("waiting for others %", 1, 100),
            Column("least share of samples %", 0, 100),
            Column("lag max", 0),
            *(of.column for of in yardsticks_of(with_servers(comparison))),
            Column("runs", 0),
        ],
        note=(
            "One worker sleeps after its passes as if it computed so many times as long (`experiment.slow`). Longest /"
            " shortest: measured, forward and backward of workers. Time / equal workers: of the same mode without a"
            " slow one; waiting for the slow one, it is the factor itself, and with W workers and perfect sharing"
            " W / (W - 1 + 1/factor). Least share of samples: of the worker that made fewest, over an even share."
            " A synchronous server stands for all synchronous strategies: each waits for the slowest."
        ),
    )
    for family, even in with_equal_workers(comparison):
        for variant, workers in family.pairs():
            table.add(*unequal_row(comparison, family, even, variant, workers))
    return table


def unequal_row(comparison, family, even, variant, workers):
    time, slow = family.spread("epoch_s", variant, workers), family.key["slow"]
    measured = "exposed_waiting_share", "fewest_samples_share", "lag_max"
    return (
        *of_run(family, variant, workers),
        slow,
        family.spread("compute_ratio", variant, workers),
        time,
        ratio(time, even.spread("epoch_s", variant, workers)) if slow > 1 and even else None,
        *(family.spread(name, variant, workers) for name in measured),
        *(
            family.spread(of.quantity, variant, workers) if of is family.yardstick else None
            for of in yardsticks_of(with_servers(comparison))
        ),
        len(family.of(variant, workers)),
    )


RESOURCES = ("epoch_s", "total_peak_B", "total_sent_per_step_B")


def t11_equal_resources(comparison):
    """Parameter servers against DDP on as many workers, and on as many ranks."""
    table = Table(
        "T11",
        "Parameter servers against DDP: on as many workers, and on as many ranks",
        [
            *WHAT,
            Column("ranks", 0, keep=True),
            Column("s per epoch", 2),
            Column("time / DDP, same workers", 2),
            Column("time / DDP, same ranks", 2),
            Column("peak of all ranks MiB", 1, MIB),
            Column("memory / DDP, same workers", 2),
            Column("memory / DDP, same ranks", 2),
            Column("sent by all ranks MiB/step", 2, MIB),
            Column("sent / DDP, same workers", 2),
            Column("sent / DDP, same ranks", 2),
        ],
        note=(
            "A server is a rank in addition to the workers. On as many workers, DDP has fewer ranks, so that"
            " the server's node, memory and links cost nothing; on as many ranks, DDP computes on the"
            " server's rank too. A dash: DDP was not run so. Peak: sum over all ranks. Sent: by all"
            " ranks in a step of a global batch; a server sends what workers pull."
        ),
    )
    for family in with_servers(comparison):
        for variant, workers in family.pairs():
            if variant.startswith("ps-"):
                table.add(*resources_row(family, variant, workers))
    return table


def resources_row(family, variant, workers):
    ranks = int(family.of(variant, workers)["ranks"].iloc[0])
    values = []
    for quantity in RESOURCES:
        own = family.spread(quantity, variant, workers)
        values += [own, *(ratio(own, family.spread(quantity, "ddp", count)) for count in (workers, ranks))]
    return (*of_run(family, variant, workers), ranks, *values)

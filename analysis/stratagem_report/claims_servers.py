"""Claims 4 to 8 of arXiv 2505.12832: modes of the parameter server."""

from . import published, style
from .evidence import SEEDS, Needs, gather
from .findings import Case, judge, phase_changes, points, published_ratio, times
from .spread import difference, ratio, separate

ASYNC_AND_SYNC = ("ps-async", "ps-sync")
TIME_NOISE = 0.1  # difference that single runs must exceed
APART = {True: "", False: ", a tie: the ranges overlap", None: ", one run: not judged"}


def spreads(family, quantity, variants, workers):
    return [family.spread(quantity, variant, workers) for variant in variants]


def async_is_faster(comparison):
    evidence = gather(comparison, Needs(published.SERVERS, ASYNC_AND_SYNC))
    cases, causes = [], []
    for family, workers in evidence.pairs:
        own, sync = spreads(family, "epoch_s", ASYNC_AND_SYNC, workers)
        apart = separate(own, sync, TIME_NOISE)
        told = f"async takes {times(ratio(own, sync))} of sync's time"
        told += published_ratio(family, *ASYNC_AND_SYNC, workers) + APART[apart]
        cases.append(Case(family, workers, own.median < sync.median and apart is True, told))
        busy = spreads(family, "server_busy_share", ASYNC_AND_SYNC, workers)
        causes.append(
            phase_changes(family, *ASYNC_AND_SYNC, workers)
            + f"; the server computed {100 * busy[0].median:.0f} % of the time in async,"
            f" {100 * busy[1].median:.0f} % in sync"
        )
    return judge(
        "4",
        "An asynchronous server is faster than a synchronous one, by 0.7 to 36 %.",
        "v2, table 5",
        evidence,
        cases,
        "; ".join(causes[-3:]),
    )


def learned(strategies, workers, gpu=False):
    """The evidence needed to judge accuracy. By itself, accuracy does not depend on the kind of device."""
    measures = ("test_accuracy",)
    return Needs(published.SERVERS, strategies, measures, workers, gpu, whole_epochs=True)


def async_costs_accuracy(comparison):
    evidence = gather(comparison, learned(ASYNC_AND_SYNC, workers=2))  # with one worker, no gradient is late
    cases, causes = [], []
    for family, workers in evidence.pairs:
        own, sync = spreads(family, "test_accuracy", ASYNC_AND_SYNC, workers)
        apart = separate(own, sync)
        told = f"async {points(difference(own, sync))} against sync{APART[apart]}"
        cases.append(Case(family, workers, apart is True and own.median < sync.median, told))
        mean, most = (
            family.spread(name, "ps-async", workers) for name in ("lag_mean", "lag_max")
        )
        causes.append(f"{family.title}, {workers}: mean lag {mean.median:.2f}, most {most.high:.0f}")
    return judge(
        "5",
        "Asynchronous updates cost accuracy, 4 to 19 points, because of staleness.",
        "v2, table 4",
        evidence,
        cases,
        "; ".join(causes[-4:]),
    )


def fewest(family, variant, workers):
    """The smallest number of workers, below `workers`, with enough evaluated seeds of a variant; or None."""
    counts = [
        count
        for count in family.workers
        if count < workers and family.spread("test_accuracy", variant, count).n >= SEEDS
    ]
    return counts[0] if counts else None


def accuracy_falls_with_workers(comparison):
    evidence = gather(comparison, learned(ASYNC_AND_SYNC, workers=4))
    cases = []
    for family, workers in evidence.pairs:
        for variant in reversed(ASYNC_AND_SYNC):
            label, count = style.look_of(variant).label, fewest(family, variant, workers)
            if count is None:
                told = f"{label}: {SEEDS} seeds on fewer workers are missing"
                cases.append(Case(family, workers, None, told))
                continue
            few, many = (
                family.spread("test_accuracy", variant, of_count) for of_count in (count, workers)
            )
            apart = separate(few, many)
            told = f"{label} {points(difference(many, few))} against {count}{APART[apart]}"
            cases.append(Case(family, workers, apart is True and many.median < few.median, told))
    return judge(
        "6",
        "Accuracy falls with more workers, for sync and async; VGG16 collapses at 4 in both.",
        "v2, table 4 and section 5.2.2",
        evidence,
        cases,
        "The global batch is kept here, so that a synchronous server computes the same mean"
        " gradient with any number of workers: what changes is rounding and, in models with"
        " BatchNorm, the images that each worker normalises together. A fall beyond that must come"
        " from elsewhere: from a batch that grows, gradients that are summed, a learning rate that"
        " is scaled; or, in async, from staleness.",
    )


def modified_case(family, workers):
    accuracy, base = spreads(family, "test_accuracy", ("ps-modified", "ps-async"), workers)
    time, sync = spreads(family, "epoch_s", ("ps-modified", "ps-sync"), workers)
    apart = separate(accuracy, base)
    better = accuracy.median > base.median and apart is True
    slower = time.median > sync.median and separate(time, sync, TIME_NOISE) is True
    told = (
        f"{points(difference(accuracy, base))} over async{APART[apart]}, {times(ratio(time, sync))}"
        " of sync's time" + published_ratio(family, "ps-modified", "ps-sync", workers)
    )
    return Case(family, workers, better and slower, told)


def modified_recovers(comparison):
    evidence = gather(
        comparison, learned(("ps-modified", *ASYNC_AND_SYNC), workers=4, gpu=True)  # time, too
    )
    causes = []
    for family, workers in evidence.pairs:
        own, base = spreads(family, "lag_mean", ("ps-modified", "ps-async"), workers)
        causes.append(
            f"{family.title}, {workers}: mean lag {own.median:.2f} against {base.median:.2f} in"
            f" async; {phase_changes(family, 'ps-modified', 'ps-async', workers)}"
        )
    return judge(
        "7",
        "Modified async (bounded staleness, weights by age, more frequent exchange) recovers 4.4 to"
        " 15.7 points at 4 GPUs, but takes longer than sync.",
        "v2, tables 6 and 7",
        evidence,
        [modified_case(family, workers) for family, workers in evidence.pairs],
        "; ".join(causes[-3:]),
    )


def sync_is_steadier(comparison):
    needs = Needs(published.SERVERS, ASYNC_AND_SYNC, ("utilization", "utilization_sd"))
    evidence = gather(comparison, needs)
    cases = []
    for family, workers in evidence.pairs:
        own, sync = (
            value.median for value in spreads(family, "utilization", ASYNC_AND_SYNC, workers)
        )
        own_sd, sync_sd = (
            value.median for value in spreads(family, "utilization_sd", ASYNC_AND_SYNC, workers)
        )
        told = f"sync {sync:.2f} ± {sync_sd:.2f}, async {own:.2f} ± {own_sd:.2f}"
        cases.append(Case(family, workers, sync > own and sync_sd < own_sd, told))
    return judge(
        "8",
        "A synchronous server's workers use the GPU more, and more steadily; memory stays below"
        " half of 24 GB.",
        "v2, figures 20, 21",
        evidence,
        cases,
        "",
    )


CLAIMS = [
    async_is_faster,
    async_costs_accuracy,
    accuracy_falls_with_workers,
    modified_recovers,
    sync_is_steadier,
]

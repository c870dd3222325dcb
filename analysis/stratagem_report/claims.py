"""The claims of arXiv 2505.12832, each with the test that the measured cells put it to.

A claim about all configurations is confirmed when every comparison that can be judged bears it out, and refuted by one
that does not; the text says how many did.
"""

import dataclasses
import math

from . import published, style
from .spread import difference, ratio, separate
from .tables_study import choices
from .trace import PHASES

CONFIRMED, REFUTED, UNTESTED = "confirmed", "refuted", "not testable here"
LISTED = 4  # comparisons of a claim
TIME_NOISE = 0.1  # what single runs must differ by


@dataclasses.dataclass(frozen=True)
class Finding:
    """What became of a claim or a check."""

    number: str
    statement: str
    where: str  # in the study
    verdict: str
    measured: str
    cause: str = ""


@dataclasses.dataclass(frozen=True)
class Case:
    """One comparison that a claim speaks of: `holds` is None where it cannot be judged."""

    family: object
    workers: int
    holds: object
    text: str

    def __str__(self):
        count = f"{self.workers} worker" + ("" if self.workers == 1 else "s")
        return f"{self.family.title}, {count}: {self.text}"


def both(comparison, *variants, least_workers=1, known="epoch_s"):
    """(family, workers) where all of the variants are complete and have a measure."""
    return [
        (family, workers)
        for family in comparison.families
        for workers in family.workers
        if workers >= least_workers
        and all(family.spread(known, variant, workers).known for variant in variants)
    ]


def judge(number, statement, where, cases, cause, missing):
    judged = [case for case in cases if case.holds is not None]
    if not judged:
        told = listing(cases) or missing
        return Finding(number, statement, where, UNTESTED, told, cause if cases else "")
    hold = sum(case.holds for case in judged)
    listed = listing(cases)
    return Finding(
        number,
        statement,
        where,
        CONFIRMED if hold == len(judged) else REFUTED,
        f"It holds in {hold} of {len(judged)} comparisons. {listed}.",
        cause,
    )


def listing(cases):
    """As many as a reader looks at; all of them stand in the tables."""
    told = "; ".join(map(str, cases[:LISTED]))
    return told + (f"; and {len(cases) - LISTED} more" if len(cases) > LISTED else "")


def times(value):
    return f"{value.median:.2f}x" + (
        f" ({value.low:.2f} to {value.high:.2f})" if value.low < value.high else ""
    )


def points(value):
    text = f"{100 * value.median:+.2f} points"
    return text + (
        f" ({100 * value.low:+.2f} to {100 * value.high:+.2f})" if value.low < value.high else ""
    )


def published_ratio(family, variant, base, workers):
    value = published.ratio(family.key, variant, base, workers)
    return f", published {value:.1f}x" if math.isfinite(value) else ""


def phase_changes(family, variant, base, workers):
    """By which phases a variant's step differs from another's: "+1.2 ms: forward +0.2, ..."."""
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


def worst(cases, count=3):
    """The comparisons to explain: those with the most workers of the first families."""
    seen, chosen = set(), []
    for case in sorted(cases, key=lambda case: -case.workers):
        if case.family.title not in seen:
            seen.add(case.family.title)
            chosen.append(case)
    return chosen[:count]


def fsdp_is_slower(comparison):
    cases = []
    for family, workers in both(comparison, "fsdp", "ddp"):
        slower = ratio(
            family.spread("epoch_s", "fsdp", workers), family.spread("epoch_s", "ddp", workers)
        )
        cases.append(
            Case(
                family,
                workers,
                slower.median >= 2,
                f"FSDP takes {times(slower)} as long"
                + published_ratio(family, "fsdp", "ddp", workers),
            )
        )
    cause = "; ".join(
        phase_changes(case.family, "fsdp", "ddp", case.workers) for case in worst(cases)
    )
    return judge(
        "1",
        "DDP is 2-3 times faster than FSDP in all configurations (its table: 2.1 to 5.8 times, also"
        " on one GPU).",
        "v2, table 3",
        cases,
        cause,
        "no pair of DDP and FSDP on as many workers is complete",
    )


def fsdp_needs_less(comparison):
    cases, causes = [], []
    for family, workers in both(comparison, "fsdp", "ddp", least_workers=2):
        peaks, states = (
            ratio(family.spread(name, "ddp", workers), family.spread(name, "fsdp", workers))
            for name in ("peak_B", "state_B")
        )
        cases.append(
            Case(
                family,
                workers,
                peaks.median >= 4,
                f"peak {times(peaks)} smaller, state {times(states)}",
            )
        )
        peak, state = (family.spread(name, "ddp", workers).median for name in ("peak_B", "state_B"))
        causes.append(
            f"{family.title}, {workers}: {100 * state / peak:.0f} % of DDP's peak is state, the"
            " rest cannot be sharded"
        )
    return judge(
        "2",
        "FSDP uses 4-6 times less GPU memory (version 1: more than 60 % less).",
        "v2, figures 7, 8, 15-19",
        cases,
        "; ".join(causes[-3:]),
        "no pair of DDP and FSDP on several workers is complete",
    )


def utilisation_is_comparable(comparison):
    cases = []
    for family, workers in both(comparison, "fsdp", "ddp"):
        used = [family.spread("utilization", variant, workers) for variant in ("ddp", "fsdp")]
        if all(value.known for value in used):
            near = abs(difference(*used).median) <= 0.1 if comparison.on_gpu else None
            cases.append(
                Case(
                    family,
                    workers,
                    near,
                    "DDP {:.2f}, FSDP {:.2f}".format(*(value.median for value in used))
                    + ("" if comparison.on_gpu else " cores in use"),
                )
            )
    return judge(
        "3",
        "GPU utilisation is comparable between DDP and FSDP (here: within 10 points).",
        "v2, figures 10-14",
        cases,
        "" if comparison.on_gpu else "These runs had no GPU; a process's use of cores stands in.",
        "no pair of DDP and FSDP is complete",
    )


def async_is_faster(comparison):
    cases, causes = [], []
    for family, workers in both(comparison, "ps-async", "ps-sync"):
        own, sync = (
            family.spread("epoch_s", variant, workers) for variant in ("ps-async", "ps-sync")
        )
        apart = separate(own, sync, TIME_NOISE)
        cases.append(
            Case(
                family,
                workers,
                own.median < sync.median and apart is True,
                f"async takes {times(ratio(own, sync))} of sync's time"
                + published_ratio(family, "ps-async", "ps-sync", workers)
                + ("" if apart else ", no significant difference"),
            )
        )
        busy = [
            family.spread("server_busy_share", variant, workers).median
            for variant in ("ps-async", "ps-sync")
        ]
        causes.append(
            phase_changes(family, "ps-async", "ps-sync", workers)
            + f"; the server computed {100 * busy[0]:.0f} % of the time in async,"
            f" {100 * busy[1]:.0f} % in sync"
        )
    return judge(
        "4",
        "An asynchronous server is faster than a synchronous one, by 0.7 to 36 %.",
        "v2, table 5",
        cases,
        "; ".join(causes[-3:]),
        "no pair of async and sync is complete",
    )


def async_costs_accuracy(comparison):
    cases, causes = [], []
    for family, workers in both(comparison, "ps-async", "ps-sync", known="test_accuracy"):
        own, sync = (
            family.spread("test_accuracy", variant, workers) for variant in ("ps-async", "ps-sync")
        )
        apart = separate(own, sync)
        cases.append(
            Case(
                family,
                workers,
                None if apart is None else bool(apart and own.median < sync.median),
                f"async {points(difference(own, sync))} against sync"
                + {True: "", False: ", no significant difference", None: ", one run: not judged"}[
                    apart
                ],
            )
        )
        lag = family.spread("lag_mean", "ps-async", workers)
        causes.append(
            f"{family.title}, {workers}: mean lag {lag.median:.2f}, most "
            f"{family.spread('lag_max', 'ps-async', workers).high:.0f}"
        )
    return judge(
        "5",
        "Asynchronous updates cost accuracy, 4 to 19 points, because of staleness.",
        "v2, table 4",
        cases,
        "; ".join(causes[-4:]),
        "no pair of async and sync is complete",
    )


def accuracy_falls_with_workers(comparison):
    cases = []
    for family in comparison.families:
        for variant in ("ps-sync", "ps-async"):
            counts = [
                workers
                for workers in family.workers
                if family.spread("test_accuracy", variant, workers).known
            ]
            if len(counts) < 2:
                continue
            few, many = (
                family.spread("test_accuracy", variant, workers)
                for workers in (counts[0], counts[-1])
            )
            apart = separate(few, many)
            cases.append(
                Case(
                    family,
                    counts[-1],
                    None if apart is None else bool(apart and many.median < few.median),
                    f"{style.look_of(variant).label} {points(difference(many, few))} against"
                    f" {counts[0]}"
                    + {
                        True: "",
                        False: ", no significant difference",
                        None: ", one run: not judged",
                    }[apart],
                )
            )
    return judge(
        "6",
        "Accuracy falls with more workers, for sync and async; VGG16 collapses at 4 in both.",
        "v2, table 4 and section 5.2.2",
        cases,
        "The global batch is kept here, so that a synchronous server computes the same mean"
        " gradient with any number of workers: what changes is rounding alone. A fall must come"
        " from elsewhere: from a batch that grows, gradients that are summed, a learning rate that"
        " is scaled; or, in async, from staleness.",
        "no server is complete with two numbers of workers",
    )


def modified_recovers(comparison):
    cases, causes = [], []
    for family, workers in both(
        comparison, "ps-modified", "ps-async", "ps-sync", known="test_accuracy"
    ):
        accuracy = {
            name: family.spread("test_accuracy", name, workers)
            for name in ("ps-modified", "ps-async", "ps-sync")
        }
        time = {
            name: family.spread("epoch_s", name, workers) for name in ("ps-modified", "ps-sync")
        }
        apart = separate(accuracy["ps-modified"], accuracy["ps-async"])
        slower = (
            time["ps-modified"].median > time["ps-sync"].median
            and separate(*time.values(), TIME_NOISE) is True
        )
        better = accuracy["ps-modified"].median > accuracy["ps-async"].median and apart is True
        gained = difference(accuracy["ps-modified"], accuracy["ps-async"])
        cases.append(
            Case(
                family,
                workers,
                None if apart is None else better and slower,
                f"{points(gained)} over async, {times(ratio(time['ps-modified'], time['ps-sync']))}"
                " of sync's time"
                + published_ratio(family, "ps-modified", "ps-sync", workers),
            )
        )
        lags = [
            family.spread("lag_mean", name, workers).median for name in ("ps-modified", "ps-async")
        ]
        causes.append(
            f"{family.title}, {workers}: mean lag {lags[0]:.2f} against {lags[1]:.2f} in async; "
            + phase_changes(family, "ps-modified", "ps-async", workers)
        )
    return judge(
        "7",
        "Modified async (bounded staleness, weights by age, more frequent exchange) recovers 4.4 to"
        " 15.7 points at 4 GPUs, but takes longer than sync.",
        "v2, tables 6 and 7",
        cases,
        "; ".join(causes[-3:]),
        "no cell of modified async is complete beside async and sync",
    )


def sync_is_steadier(comparison):
    cases = []
    for family, workers in both(comparison, "ps-async", "ps-sync"):
        (sync, own), (sync_sd, own_sd) = (
            [family.spread(name, variant, workers).median for variant in ("ps-sync", "ps-async")]
            for name in ("utilization", "utilization_sd")
        )
        if math.isfinite(sync) and math.isfinite(own):
            cases.append(
                Case(
                    family,
                    workers,
                    (sync > own and sync_sd < own_sd) if comparison.on_gpu else None,
                    f"sync {sync:.2f} ± {sync_sd:.2f}, async {own:.2f} ± {own_sd:.2f}"
                    + ("" if comparison.on_gpu else " cores in use"),
                )
            )
    return judge(
        "8",
        "A synchronous server's workers use the GPU more, and more steadily; memory stays below"
        " half of 24 GB.",
        "v2, figures 20, 21",
        cases,
        "" if comparison.on_gpu else "These runs had no GPU; a process's use of cores stands in.",
        "no pair of async and sync is complete",
    )


def none_is_best(comparison):
    cases = []
    made = [choice for choice in choices(comparison) if choice.distinct]
    for family in comparison.families:
        for workers in family.workers:
            won = [
                choice for choice in made if choice.family is family and choice.workers == workers
            ]
            respects = {choice.goal.respect for choice in won}
            if len(respects) >= 2:
                told = ", ".join(
                    f"{choice.goal.name}: {style.look_of(choice.best).label}" for choice in won
                )
                cases.append(Case(family, workers, len({choice.best for choice in won}) > 1, told))
    return judge(
        "9",
        "No strategy is best in all respects: DDP for speed, FSDP for memory, a parameter server"
        " for heterogeneity and elasticity.",
        "v2, table 8 and section 7",
        cases,
        "T6 has the margins. Only goals whose best is significantly better than the next are"
        " listed.",
        "no comparison has a significant winner in two respects",
    )


CLAIMS = [
    fsdp_is_slower,
    fsdp_needs_less,
    utilisation_is_comparable,
    async_is_faster,
    async_costs_accuracy,
    accuracy_falls_with_workers,
    modified_recovers,
    sync_is_steadier,
    none_is_best,
]


def findings(comparison):
    return [claim(comparison) for claim in CLAIMS]

"""Claims 1 to 3 of arXiv 2505.12832: DDP against FSDP."""

import math

from . import published
from .conditions import SHARDING
from .findings import CONTRADICTED, UNTESTED, Quantity, phase_changes
from .judging import Claim, Target
from .style import workers_text

TIME = Quantity("train_time_s", "training time")
MEMORY = Quantity("worker_peak_B", "peak memory")
USE = Quantity("utilization", "utilisation", "difference", "points", 100, 1)
COMPARABLE = 0.1  # what counts as comparable utilisation; the paper has no number
# Bytes per parameter that fp32 SGD with momentum keeps, and that DDP may hold in addition: buckets that are copies of
# the gradients, and autocast's copies of the weights in half precision.
STATE, COPIES = 12, 4 + 2


def of_each_model(variants, workers, range_of):
    """A target per model. `range_of`: (low, high[, published]) of a model."""
    sides = [(variant, workers) for variant in variants]
    return tuple(Target(model, *sides, *range_of(model)) for model in SHARDING.models)


def slower(workers):
    def range_of(model):
        fsdp, ddp = (published.value(published.TIMES, model, variant, workers) for variant in ("fsdp", "ddp"))
        effect = math.log(fsdp / ddp)
        return (*TIME.near(effect), effect)

    return of_each_model(("fsdp", "ddp"), workers, range_of)


def greatest_saving(workers):
    """How many times less a rank may hold with FSDP: (of what both hold, with the copies that DDP alone may hold)."""
    return workers, workers * (STATE + COPIES) / STATE


def bound_text(workers):
    same, copies = greatest_saving(workers)
    return (
        f"FSDP divides parameters, gradients and momentum by {workers} and activations not at all: at most {same} times"
        f" less. Even if DDP also holds a copy of the gradients in its buckets and autocast's half weights"
        f" ({STATE + COPIES} bytes per parameter against {STATE}), it is at most {copies:.1f} times, without any"
        " activations."
    )


def declared_saving(workers, low):
    """What arithmetic says about a saving of `low` times or more; None if runs can decide it."""
    same, copies = greatest_saving(workers)
    if low > copies:
        return CONTRADICTED, bound_text(workers)
    if low < same:
        return None
    return UNTESTED, bound_text(workers) + " DDP holds no such copies here, so no run here can reach it."


def saving(key, row, workers):
    low, high = (math.log(value) if value > 0 else math.inf for value in (row["low"], row["high"]))
    return Claim(
        key,
        workers_text(workers),
        row["statement"],
        row["where"],
        SHARDING,
        MEMORY,
        of_each_model(("ddp", "fsdp"), workers, lambda _: (low, high)),
        state_share,
        declared_saving(workers, row["low"]),
    )


def state_share(medians):
    peak, state = (medians(name)[0] for name in (MEMORY.measure, "worker_state_B"))
    share = state / peak
    return f"{100 * share:.0f} % of DDP's peak is state, which is all that sharding can divide" if share > 0 else ""


def claims(rows):
    made = []
    for workers in 1, 2, 4:
        row, scope = rows["1"], workers_text(workers)
        made.append(
            Claim("1", scope, row["statement"], row["where"], SHARDING, TIME, slower(workers), phase_changes)
        )
    made += [saving("2", rows["2"], workers) for workers in (2, 4)]
    made.append(saving("2 (v1)", rows["2 (v1)"], 4))
    for workers in 1, 2, 4:
        targets = of_each_model(("fsdp", "ddp"), workers, lambda _: (-COMPARABLE, COMPARABLE))
        row = rows["3"]
        made.append(Claim("3", workers_text(workers), row["statement"], row["where"], SHARDING, USE, targets))
    return made


KEYS = ("1", "2", "2 (v1)", "3")

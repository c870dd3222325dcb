"""Claims 4 to 8 of arXiv 2505.12832: modes of the parameter server."""

import dataclasses
import math

from . import published
from .claims_sharding import TIME, USE
from .conditions import SERVERS, WORKER
from .evidence import ACCURACY
from .findings import ABOVE_0, CONTRADICTED, UNTESTED, Quantity, phase_changes
from .judging import Claim, Target
from .style import workers_text

POINTS = Quantity(ACCURACY, "accuracy", "difference", "points", 100, on_gpu=False)
UNSTEADINESS = Quantity("utilization_sd", "standard deviation of the utilisation", "difference", "points", 100, 1)
PEAK = Quantity("device_used_B", "memory in use on the device", "value", "GB", 1e-9, 1)
MEMORY_OF_DEVICE = 24e9  # of the published experiments' GPUs
MODIFIED = "The mode here is a guess at what the paper describes: a mode like it. "
NORMALISED = ("resnet50", "densenet121")  # models with BatchNorm


def published_time(model, ours, theirs):
    times = [published.value(published.TIMES, model, *side) for side in (ours, theirs)]
    return math.log(times[0] / times[1])


def published_points(model, ours, theirs):
    accuracies = [published.value(published.ACCURACIES, model, *side) for side in (ours, theirs)]
    return (accuracies[0] - accuracies[1]) / 100


def near_published(quantity, ours, theirs, models=SERVERS.models):
    """A target per model: an effect near the published one."""
    effect_of = published_time if quantity is TIME else published_points
    effects = {model: effect_of(model, ours, theirs) for model in models}
    return tuple(Target(model, ours, theirs, *quantity.near(effect), effect) for model, effect in effects.items())


def within(low, high, ours, theirs=None):
    return tuple(Target(model, ours, theirs, low, high) for model in SERVERS.models)


def gap_of_async(model, workers):
    """Published points that async loses against sync."""
    return -100 * published_points(model, ("ps-async", workers), ("ps-sync", workers))


def gaps_of_one_worker():
    """With one worker, nothing is stale."""
    gaps = {model: gap_of_async(model, 1) for model in SERVERS.models}
    text = (
        "With one worker every gradient is computed with the parameters that it updates: async is sequential SGD, as"
        " sync is. The published losses of"
        f" {', '.join(f'{gap:.1f} ({model})' for model, gap in gaps.items())} points cannot come from staleness."
    )
    return (CONTRADICTED if min(gaps.values()) > 0 else UNTESTED), text


def fall_of_vgg16():
    """The published fall of sync without BatchNorm at the stated batch."""
    one, four = (published.value(published.ACCURACIES, "vgg16", "ps-sync", workers) for workers in (1, 4))
    text = (
        f"With the stated global batch of {SERVERS.batch}, a synchronous server's update is the mean gradient of the"
        f" same {SERVERS.batch} images for any number of workers, and VGG16 has no BatchNorm: only rounding and random"
        f" numbers change, so the expected accuracy does not. The fall from {one} to {four} % must come from a batch,"
        " a sum of gradients or a rate that grows with the workers, or from chance."
    )
    return (CONTRADICTED if four < one else UNTESTED), text


def waiting(medians):
    phases, (own, other) = phase_changes(medians), medians("server_busy_share")
    busy = f"the server computed {100 * own:.0f} % of the time against {100 * other:.0f} %"
    return f"{phases}; {busy}" if phases and own >= 0 and other >= 0 else phases


def lags(medians):
    own, other = medians("lag_mean")
    return f"mean lag {own:.2f} against {other:.2f}" if own >= 0 and other >= 0 else ""


@dataclasses.dataclass(frozen=True)
class Maker:
    """Makes claims of one row."""

    key: str
    row: object

    def claim(self, scope, quantity, targets, experiment=SERVERS, prefix="", **other):
        statement = prefix + self.row["statement"]
        alone = all(side is None or side[1] == 1 for of in targets for side in (of.ours, of.theirs))
        experiment = experiment.with_one_worker() if alone else experiment
        return Claim(self.key, scope, statement, self.row["where"], experiment, quantity, targets, **other)


def of_async(rows):
    time, points = Maker("4", rows["4"]), Maker("5", rows["5"])
    for workers in 1, 2, 4:
        sides = ("ps-async", workers), ("ps-sync", workers)
        yield time.claim(workers_text(workers), TIME, near_published(TIME, *sides), cause=waiting)
    for workers in 1, 2, 4:
        sides = ("ps-async", workers), ("ps-sync", workers)
        targets = near_published(POINTS, *sides)
        declared = gaps_of_one_worker() if workers == 1 else None
        yield points.claim(workers_text(workers), POINTS, targets, cause=lags, declared=declared)


def of_more_workers(rows):
    """Sync keeps the global batch as it is stated; with BatchNorm, workers then normalise fewer images each."""
    falls, per_worker = Maker("6", rows["6"]), dataclasses.replace(SERVERS, batch_of=(WORKER,))
    sides = [(("ps-sync", workers), ("ps-sync", 1)) for workers in (2, 4)]
    yield falls.claim(
        "sync, VGG16, 64 images per step",
        POINTS,
        near_published(POINTS, *sides[1], ("vgg16",)),
        declared=fall_of_vgg16(),
    )
    for ours, theirs in sides:
        of_vgg16 = near_published(POINTS, ours, theirs, ("vgg16",))
        yield falls.claim(f"sync, VGG16, 64 images per worker, {ours[1]} against 1", POINTS, of_vgg16, per_worker)
        with_norm = near_published(POINTS, ours, theirs, NORMALISED)
        yield falls.claim(f"sync, models with BatchNorm, {ours[1]} against 1", POINTS, with_norm)
    for workers in 2, 4:
        targets = near_published(POINTS, ("ps-async", workers), ("ps-async", 1))
        yield falls.claim(f"async, {workers} against 1", POINTS, targets, cause=lags)


def of_modified(rows):
    made, own, sync = Maker("7", rows["7"]), ("ps-modified", 4), ("ps-sync", 4)
    gain = near_published(POINTS, own, ("ps-async", 4))
    yield made.claim("accuracy, 4 workers", POINTS, gain, prefix=MODIFIED, cause=lags)
    longer = near_published(TIME, own, sync)
    yield made.claim("time, 4 workers", TIME, longer, prefix=MODIFIED, cause=waiting)


def of_devices(rows):
    made = Maker("8", rows["8"])
    for workers in 2, 4:
        sides = ("ps-sync", workers), ("ps-async", workers)
        yield made.claim(f"more use, {workers} workers", USE, within(ABOVE_0, math.inf, *sides))
        yield made.claim(f"steadier, {workers} workers", UNSTEADINESS, within(-math.inf, -ABOVE_0, *sides))
    for variant, name in ("ps-sync", "sync"), ("ps-async", "async"):
        targets = tuple(
            target for workers in (1, 2, 4) for target in within(0, MEMORY_OF_DEVICE / 2, (variant, workers))
        )
        yield made.claim(f"memory, {name}", PEAK, targets)


def claims(rows):
    return [*of_async(rows), *of_more_workers(rows), *of_modified(rows), *of_devices(rows)]


KEYS = ("4", "5", "6", "7", "8")

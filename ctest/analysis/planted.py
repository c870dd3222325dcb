"""Studies made by hand in which a published claim is true, false or undecided."""

import dataclasses
import math

import support  # noqa: F401 (paths, or a visible skip)
from made_cells import cell, comparison
from stratagem_report import checks, claims, published
from stratagem_report.evidence import Evidence
from stratagem_report.judging import judge

SEEDS = (1, 2, 3, 4, 5)
# All that runs can decide, with the one of the checks.
JUDGED = [of for of in claims.all_claims(published.claims()) if of.declared is None] + [checks.mnist_in_an_epoch()]


def claim_of(number):
    return next(of for of in JUDGED if of.number == number)


def in_one_reading(claim):
    """The first one."""
    stated = claim.experiment
    first = {name: getattr(stated, name)[:1] for name in ("batch_of", "epochs", "input_sizes")}
    return dataclasses.replace(claim, experiment=dataclasses.replace(stated, **first))


def inside(target):
    """An effect that counts as the published one."""
    if math.isinf(target.high):
        return target.low + 0.3
    return target.high - 0.3 if math.isinf(target.low) else (target.low + target.high) / 2


def outside(target):
    if math.isinf(target.high):
        return target.low - 0.3
    return target.high + (0.3 if math.isinf(target.low) else target.high - target.low)


def width(target):
    return 0.3 if math.isinf(target.low) or math.isinf(target.high) else target.high - target.low


def values_of(form, effect):
    """(ours, theirs) whose effect this is."""
    if form == "value":
        return effect, None
    return (0.5 + effect, 0.5) if form == "difference" else (10 * math.exp(effect), 10.0)


def cell_of(claim, reading, target, side, seed, value, **other):
    """A cell that matches one side of a target."""
    variant, workers = side
    batch, images = reading.global_batch(workers), float(published.TRAINING_IMAGES[claim.experiment.dataset])
    matching = {
        "dataset": claim.experiment.dataset,
        "images": images,
        "global_batch": batch,
        "planned_steps": float(reading.epochs * (images // batch)),
        "input_size": reading.input_size,
        "precision": "fp16",
        "at_epoch": reading.epochs,
        claim.quantity.measure: value,
    }
    row = {**cell(target.model, variant, workers, seed), **matching, **other}
    row["group"] = f"{target.model}-{variant}-w{workers}-{reading}"
    return {**row, "cell": f"{row['group']}-s{seed}"}


def plant(claim, effect_of, noise=0.001, reading=None, seeds=SEEDS, **other):
    """Cells that match all targets of a claim in one reading. `noise` alternates between seeds, in widths of the
    range."""
    reading = reading or claim.experiment.readings()[0]
    rows = []
    for target in claim.targets:
        for place, seed in enumerate(seeds):
            effect = effect_of(target) + (-1) ** place * noise * width(target)
            values = values_of(claim.quantity.form, effect)
            for side, value in zip((target.ours, target.theirs), values):
                if side:
                    rows.append(cell_of(claim, reading, target, side, seed, value, **other))
    return rows


def verdict(claim, rows, seen=lambda *_: ""):
    return judge(Evidence(comparison(rows)), claim, seen)

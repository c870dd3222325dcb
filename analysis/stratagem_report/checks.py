"""Checks of the paper's tables: arithmetic of its own numbers, and one that matching runs judge."""

import dataclasses

from . import checks_arithmetic, published
from .claims_servers import NORMALISED
from .conditions import SERVERS
from .evidence import ACCURACY, Evidence
from .findings import FAILS, HOLDS, NOT_REPRODUCED, REPRODUCED, Quantity, not_made
from .judging import Claim, Target, judge

FIRST_EPOCH = Quantity(ACCURACY, "test accuracy after one epoch", "value", "%", 100, 1, on_gpu=False)
WORDS = {REPRODUCED: HOLDS, NOT_REPRODUCED: FAILS}


def mnist_in_an_epoch():
    """A claim of this project about the paper's cells."""
    targets = []
    for model in NORMALISED:
        for variant in "ps-sync", "ps-async":
            for workers in 1, 2, 4:
                accuracy = published.value(published.ACCURACIES, model, variant, workers) / 100
                targets.append(Target(model, (variant, workers), None, accuracy, 1, accuracy))
    return Claim(
        "e",
        "",
        "The published final accuracies of ResNet50 and DenseNet121 on MNIST are below what runs reach in their first"
        " epoch.",
        "v2, table 4",
        dataclasses.replace(SERVERS, epochs=(1,)),
        FIRST_EPOCH,
        tuple(targets),
    )


def first_epochs(comparison):
    judged = judge(Evidence(comparison), mnist_in_an_epoch(), lambda claim, used: "")
    return dataclasses.replace(judged, verdict=WORDS.get(judged.verdict, judged.verdict))


def findings(comparison, attempts):
    """Of all checks; `attempts` (parts.Attempts) makes each by itself."""

    def attempted(function, *arguments):
        name = function.__name__.replace("_", " ")
        return attempts.make(f"check {name}", function, *arguments, otherwise=not_made(name))

    made = [attempted(function) for function in checks_arithmetic.CHECKS] + [attempted(first_epochs, comparison)]
    return sorted(made, key=lambda finding: finding.number)

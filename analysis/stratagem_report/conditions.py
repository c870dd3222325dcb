"""The set-up of the published experiments: what a measured cell must agree in with a published one.

What the paper leaves open, or says in words that can be read in two ways, has several readings. Cells are compared
within one reading. analysis/published/README.md says what is stated and what is assumed.
"""

import dataclasses
import itertools
import re

from . import published
from .style import workers_text

STEP, WORKER = "step", "worker"
# Of the optimizer. The paper states the first three; the others are what it would be odd not to mention.
SETTINGS = {
    "optimizer.name": "sgd",
    "optimizer.lr": 0.01,
    "optimizer.momentum": 0.9,
    "optimizer.nesterov": False,
    "optimizer.weight_decay": 0,
    "optimizer.clip_norm": 0,
    "optimizer.reduction": "mean",
    "optimizer.lr_scaling": "none",
    "optimizer.schedule": "constant",
    "optimizer.warmup_steps": 0,
    "model.weights": "",
    "data.augment": "none",
    "experiment.slow": 1,
}
PRECISION = "fp16"
# Models of data centres; a slice of one (MIG) is not the device.
DATA_CENTRE = re.compile(r"(?!.*\bMIG\b).*\b(A10G?|A30|A40|A100|H100|H200|H800|GH200|G?B200|V100|P100|L4|L40S?|T4)\b")


@dataclasses.dataclass(frozen=True)
class Reading:
    """One set-up that agrees with all that the paper states."""

    input_size: int
    batch: int
    batch_of: str
    epochs: int

    def __str__(self):
        epochs = f"{self.epochs} epoch" + ("" if self.epochs == 1 else "s")
        return f"{self.input_size} px, {self.batch} images per {self.batch_of}, {epochs}"

    def global_batch(self, workers):
        return self.batch * (workers if self.batch_of == WORKER else 1)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Models that were trained on a data set. Of what has several readings, all are here."""

    models: tuple
    dataset: str
    batch: int
    batch_of: tuple
    epochs: tuple
    input_sizes: tuple = (32, 224)

    def readings(self):
        return [
            Reading(size, self.batch, of, epochs)
            for size, of, epochs in itertools.product(self.input_sizes, self.batch_of, self.epochs)
        ]

    def with_one_worker(self):
        """A batch per step is one per worker."""
        return dataclasses.replace(self, batch_of=(STEP,))


SHARDING = Experiment(("vgg16", "efficientnetv2_l", "convnext_l"), "cifar10", 128, (STEP,), (10,))  # DDP and FSDP
SERVERS = Experiment(("resnet50", "densenet121", "vgg16"), "mnist", 64, (STEP, WORKER), (1, 3, 10))


def differing_settings(config):
    """The settings of a run that are not the paper's; a configuration has only the keys of what it chose."""
    return [key for key, stated in SETTINGS.items() if config.get(key, stated) != stated]


def whole_epochs(cells):
    """Of all images of the data set."""
    return cells["planned_steps"] // (cells["images"] // cells["global_batch"])


@dataclasses.dataclass(frozen=True)
class Wanted:
    """The measured cells that stand for one side of a published comparison."""

    experiment: Experiment
    model: str
    variant: str
    workers: int
    reading: Reading
    on_gpu: bool  # of a time, a memory or a utilisation
    until_epoch: bool  # longer runs serve as well, because their curve has the value of this epoch

    def conditions(self):
        """(what is missing where no cell passes, which of the cells pass), the coarse ones first."""
        reading, dataset = self.reading, self.experiment.dataset
        yield f"runs with {dataset}", lambda cells: (cells["model"] == self.model) & (cells["dataset"] == dataset)
        yield f"runs on {workers_text(self.workers)}", lambda cells: cells["workers"] == self.workers
        yield "runs of the strategy", lambda cells: (cells["variant"] == self.variant) & (cells["kind"] == self.variant)
        whole = published.TRAINING_IMAGES[dataset]
        yield f"all {whole:,} images", lambda cells: cells["images"] == whole
        if self.on_gpu:
            yield "a whole GPU of a data centre", lambda cells: cells["gpu"].eq(True) & cells["device"].map(
                lambda name: bool(DATA_CENTRE.match(str(name)))
            )
            yield f"precision {PRECISION}", lambda cells: cells["precision"] == PRECISION
        yield "the published optimizer's settings", lambda cells: cells["differing"] == ""
        yield f"{reading.input_size} px", lambda cells: cells["input_size"] == reading.input_size
        yield (
            f"{reading.batch} images per {reading.batch_of}",
            lambda cells: cells["global_batch"] == reading.global_batch(self.workers),
        )
        yield f"{reading.epochs} epochs", self.long_enough
        yield "seeds that all ended, without a time limit, with whole traces", lambda cells: ~cells["unsound"]

    def long_enough(self, cells):
        epochs = whole_epochs(cells)
        return epochs >= self.reading.epochs if self.until_epoch else epochs == self.reading.epochs

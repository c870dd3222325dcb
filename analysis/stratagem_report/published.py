"""The published figures of arXiv 2505.12832, and the models and data sets of its experiments."""

import dataclasses
import pathlib

import pandas as pd

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "published"
# The paper's names of models and strategies, and stratagem's.
MODELS = {"efficientnet_v2": "efficientnetv2_l", "convnext_large": "convnext_l"}
VARIANTS = {"ps_sync": "ps-sync", "ps_async": "ps-async", "ps_modified_async": "ps-modified"}
DATASETS = {"CIFAR-10": "cifar10", "MNIST": "mnist"}
TRAINING_IMAGES = {"cifar10": 50_000, "mnist": 60_000}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Models that were trained on each of several data sets."""

    models: tuple
    datasets: tuple


SHARDING = Experiment(("vgg16", "efficientnetv2_l", "convnext_l"), ("cifar10",))  # DDP and FSDP
SERVERS = Experiment(("resnet50", "densenet121", "vgg16"), ("mnist",))
ALL = Experiment(
    tuple(dict.fromkeys(SHARDING.models + SERVERS.models)), SHARDING.datasets + SERVERS.datasets
)


def read(file):
    """version, table, dataset, variant, model, workers, value (NaN above a limit), limited."""
    table = pd.read_csv(FOLDER / file)
    text = table["value"].astype(str)
    return pd.DataFrame(
        {
            "version": table["version"],
            "table": table["table"],
            "dataset": table["dataset"].replace(DATASETS),
            "variant": table["strategy"].replace(VARIANTS),
            "model": table["model"].replace(MODELS),
            "workers": table["gpus"],
            "value": pd.to_numeric(text.str.lstrip(">")),
            "limited": text.str.startswith(">"),
        }
    )


def times(dataset=None):
    """Training times [s], of one data set or of all."""
    return of_dataset(read("training_time_s.csv"), dataset)


def accuracies(dataset=None):
    """Test accuracies [%]."""
    return of_dataset(read("accuracy_pct.csv"), dataset)


def of_dataset(table, dataset):
    return table if dataset is None else table[table["dataset"] == dataset]


def lookup(table, model, variant, workers, version="v2"):
    """The published value, if there is exactly one; NaN if there is none, or only a bound."""
    found = table[
        (table["model"] == model)
        & (table["variant"] == variant)
        & (table["workers"] == workers)
        & (table["version"] == version)
        & ~table["limited"]
    ]
    return float(found["value"].iloc[0]) if len(found) else float("nan")


def ratio(family, variant, base, workers):
    """Published time of `variant` divided by that of `base`, for the model and data set in a family's key."""
    table, model = times(family["dataset"]), family["model"]
    return lookup(table, model, variant, workers) / lookup(table, model, base, workers)

"""The published figures and claims of arXiv 2505.12832."""

import functools
import pathlib

import pandas as pd

from .errors import USAGE, ReportError

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "published"
TIMES, ACCURACIES, CLAIMS = "training_time_s.csv", "accuracy_pct.csv", "claims.csv"
# The paper's names of models and strategies, and stratagem's.
MODELS = {"efficientnet_v2": "efficientnetv2_l", "convnext_large": "convnext_l"}
VARIANTS = {"ps_sync": "ps-sync", "ps_async": "ps-async", "ps_modified_async": "ps-modified"}
DATASETS = {"CIFAR-10": "cifar10", "MNIST": "mnist"}
TRAINING_IMAGES = {"cifar10": 50_000, "mnist": 60_000}


def numbers(file, column):
    """ReportError where a text is no number."""
    try:
        return pd.to_numeric(column)
    except ValueError as problem:
        raise ReportError(f"{FOLDER / file}: {problem}: correct the file", USAGE) from problem


def read_csv(file, columns):
    table = pd.read_csv(FOLDER / file)
    missing = [name for name in columns if name not in table]
    if missing:
        raise ReportError(f"{FOLDER / file} has no column {', '.join(missing)}: add it", USAGE)
    return table


def read(file):
    """version, table, dataset, variant, model, workers, value (NaN above a limit), limited."""
    return read_unchanged(file, FOLDER, (FOLDER / file).stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def read_unchanged(file, _folder, _changed):
    """Once for each state of the file: claims and tables look up hundreds of values."""
    table = read_csv(file, ("version", "table", "dataset", "strategy", "model", "gpus", "value"))
    text = table["value"].astype(str)
    return pd.DataFrame(
        {
            "version": table["version"],
            "table": table["table"],
            "dataset": table["dataset"].replace(DATASETS),
            "variant": table["strategy"].replace(VARIANTS),
            "model": table["model"].replace(MODELS),
            "workers": table["gpus"],
            "value": numbers(file, text.str.lstrip(">")),
            "limited": text.str.startswith(">"),
        }
    )


def times(dataset=None):
    """Training times [s], of one data set or of all."""
    return of_dataset(read(TIMES), dataset)


def accuracies(dataset=None):
    """Test accuracies [%]."""
    return of_dataset(read(ACCURACIES), dataset)


def of_dataset(table, dataset):
    return table if dataset is None else table[table["dataset"] == dataset]


def claims():
    """claim -> row: version, where, statement, and for claims without a table the printed range low, high, unit."""
    table = read_csv(CLAIMS, ("claim", "version", "where", "low", "high", "unit", "statement"))
    table["claim"] = table["claim"].astype(str)
    for column in "low", "high":
        table[column] = numbers(CLAIMS, table[column])
    twice = table["claim"][table["claim"].duplicated()]
    if len(twice):
        raise ReportError(f"{FOLDER / CLAIMS} has claim {twice.iloc[0]} twice: leave one out", USAGE)
    return {row["claim"]: row for _, row in table.iterrows()}


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


def value(file, model, variant, workers, version="v2"):
    """The published value that a rule needs. ReportError if it is not there."""
    found = lookup(read(file), model, variant, workers, version)
    if not found > 0:
        raise ReportError(
            f"{FOLDER / file} has no value of {version} for {model}, {variant}, {workers} GPUs, which a claim or a"
            " check needs: add the row",
            USAGE,
        )
    return found


def ratio(family, variant, base, workers):
    """Published time of `variant` divided by that of `base`, for the model and data set in a family's key."""
    table, model = times(family["dataset"]), family["model"]
    return lookup(table, model, variant, workers) / lookup(table, model, base, workers)

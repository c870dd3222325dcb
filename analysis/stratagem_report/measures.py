"""Each run in numbers. The program computes them (`stratagem collect --format json`; lib/study/measures.cpp declares
each with its unit and meaning). Here they are joined with facts from the manifest and the configuration. NaN if
something is unknown."""

import json

import numpy as np
import pandas as pd

from .study import settled_of
from .yardstick import ACCURACY

NAN = float("nan")


def numbers_of(row):
    """The numbers of a row that the program printed; null becomes NaN."""
    return {
        name: NAN if value is None else value
        for name, value in row.items()
        if not isinstance(value, (str, list, dict))
    }


def learning_curve(run):
    """epoch (from 1), time_s (training time so far, of rank 0), train_loss, test_loss, test_accuracy, perplexity."""
    curve = pd.DataFrame(
        run.row.get("curve", []), columns=["epoch", "time_s", "train_loss", "test_loss", "test_accuracy"]
    ).astype(float)
    return curve.assign(epoch=curve["epoch"] + 1, perplexity=np.exp(curve["test_loss"]))


def time_to(run, yardstick, target):
    """Training time until an evaluation first reached the target [s]; NaN if none did."""
    curve = learning_curve(run)
    reached = curve[yardstick.reached(curve[yardstick.quantity], target)]
    return float(reached["time_s"].iloc[0]) if len(reached) else NAN


def recipe_of(config):
    """The settings that two runs must share for synchronous strategies to give the same bits, as text."""
    shared = {
        key: value for key, value in settled_of(config).items() if not key.startswith("strategy.")
    }
    return json.dumps([sorted(shared.items()), config.get("strategy.micro_batches", 1)])


def facts_of(run):
    """{name: number or text} of a run, in addition to its measures."""
    trace, manifest = run.trace, run.manifest
    first = trace.ranks[0].process
    return {
        "parameters": manifest["model"]["parameters"],
        "digest": run.row["digest"],
        "recipe": recipe_of(run.config),
        "sharers": max(len(trace.workers), run.config.get("strategy.emulate_ranks", 1)),
        "limited": run.row["reason"] == "time_limit",
        "git_sha": run.row["git_sha"],
        "device": first["device"],
        "counted": manifest["dataset"].get("labels", ACCURACY.counted),
        "test_images": manifest["dataset"].get("test_images", NAN),
        "damaged": bool(trace.remarks),
        "gpu": manifest["build"]["flavour"] != "cpu" and run.config.get("run.device") != "cpu",
        "host": first["host"],
        "threads": first["threads"],
    }


def measure_all(study):
    """The study's cells with the measures of the complete ones."""
    rows = pd.DataFrame.from_dict(
        {cell: {**numbers_of(run.row), **facts_of(run)} for cell, run in study.runs.items()}, orient="index"
    )
    beside = [name for name in rows if name not in study.cells]
    return study.cells.merge(rows[beside], how="left", left_on="cell", right_index=True)

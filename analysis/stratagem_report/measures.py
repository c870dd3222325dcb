"""Each run in numbers. The program computes them (`stratagem collect --format json`; lib/study/measures.cpp declares
each with its unit and meaning). Here they are joined with facts from the manifest and the configuration. NaN if
something is unknown."""

import numpy as np
import pandas as pd

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
    for point in run.row.get("curve", []):
        learned = yardstick.learned(point)
        if learned is not None and point["time_s"] is not None and yardstick.reached(learned, target):
            return float(point["time_s"])
    return NAN


def column(cells, name):
    """A measure of cells; NaN, not measured, if the program has none of this name."""
    return cells[name] if name in cells else pd.Series(NAN, index=cells.index)


def measure_all(study):
    """The study's cells with the measures of the complete ones."""
    rows = pd.DataFrame.from_dict(
        {cell: {**numbers_of(run.row), **run.facts} for cell, run in study.runs.items()}, orient="index"
    )
    beside = [name for name in rows if name not in study.cells]
    return study.cells.merge(rows[beside], how="left", left_on="cell", right_index=True)

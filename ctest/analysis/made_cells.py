"""Cells made by hand, in place of runs. Their measures are the program's: a name that it has not is an error."""

import csv
import functools
import io
import statistics
import subprocess
import types

import support  # noqa: F401 (paths, or a visible skip)
import harness
import pandas as pd
from stratagem_report import compare, conditions, study
from stratagem_report.spread import UNKNOWN

MIB = 2**20
# What measures are if a test does not say; all others are not measured.
MEASURES = {
    "epoch_s": 1.0,
    "worker_peak_B": 100.0 * MIB,
    "worker_state_B": 60.0 * MIB,
    "peak_B": 100.0 * MIB,
    "state_B": 60.0 * MIB,
    "total_peak_B": 200.0 * MIB,
    "test_accuracy": 0.9,
    "utilization": 0.8,
    "utilization_sd": 0.1,
    "lag_mean": 0.0,
    "lag_max": 0.0,
    "server_busy_share": 0.1,
    "step_ms": 10.0,
    "exposed_comm_share": 0.1,
    "train_time_s": 10.0,
    "device_used_B": 300.0 * MIB,
    **{f"{phase}_ms": 2.0 for phase in ("data", "forward", "backward", "comm_exposed", "optimizer")},
}


# What the report knows of a cell beside its measures.
FACTS = (
    "state,limited,damaged,counted,gpu,device,git_sha,sharers,recipe,steps,slow,digest,parameters,planned_steps,images,"
    "test_images"
).split(",")
# What a test says of a cell that is in files of a run: the epoch of its accuracy, settings, the data's fingerprint.
IN_FILES = ("at_epoch", "config", "fingerprint")


@functools.cache
def names_of_measures():
    """Of the program that is tested."""
    words = [harness.ProgramTest.program, "list", "measures", "--format", "csv"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return tuple(row["measure"] for row in csv.DictReader(io.StringIO(printed)))


def checked(row):
    """With all measures. KeyError where the row has a name that neither the program nor the report has."""
    measures = names_of_measures()
    unknown = row.keys() - {*measures, *FACTS, *IN_FILES, *study.CELL_COLUMNS}
    if unknown:
        raise KeyError(f"the program has no measure {', '.join(sorted(unknown))}")
    return {**dict.fromkeys(measures, float("nan")), **row}


def cell(model, variant, workers, seed, **other):
    """A complete cell."""
    sharding = model in conditions.SHARDING.models
    server = variant.startswith("ps-")
    row = {
        "cell": f"{model}-{variant}-w{workers}-s{seed}",
        "group": f"{model}-{variant}-w{workers}",
        "part": "",
        "model": model,
        "dataset": "cifar10" if sharding else "mnist",
        "variant": variant,
        "strategy": "ps" if server else {"fsdp": "fsdp"}.get(variant, variant),
        "workers": workers,
        "servers": int(server),
        "seed": seed,
        "global_batch": 128,
        "input_size": 32,
        "precision": "fp32",
        "planned_steps": 3900.0,
        "images": 50_000.0 if sharding else 60_000.0,
        "state": "complete",
        "limited": False,
        "damaged": False,
        "counted": "images",
        "gpu": True,
        "device": "NVIDIA A100-SXM4-80GB",
        "git_sha": "c0ffee",
        "sharers": workers,
        "recipe": "",
        "steps": 3900,
        "digest": f"{model}-{seed}",
        "parameters": 1000,
        "slow": 1.0,
        **MEASURES,
    }
    # A run's own noise, so that seeds differ.
    row["epoch_s"] += 0.001 * seed
    row["test_accuracy"] += 0.0001 * seed
    return {**row, **other}


class Made(compare.Comparison):
    """A comparison of cells without traces."""

    def time_to_target(self, family, variant, workers):
        return UNKNOWN


def comparison(rows, kind=Made):
    """With groups as the program tells them."""
    rows, groups = list(map(checked, rows)), {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    told = {
        group: {name: spread_of([row[name] for row in of]) for name in names_of_measures()}
        for group, of in groups.items()
    }
    runs = {row["cell"]: run_of(row) for row in rows}
    return kind(types.SimpleNamespace(runs=runs, groups=told, marks=[], name="made"), pd.DataFrame(rows), {})


def run_of(row):
    """What the report reads of a run beside its numbers: as the paper says, unless the row says otherwise."""
    strategy = {"strategy.name": row["strategy"]}
    if row["strategy"] == "ps":
        strategy["strategy.mode"] = row["variant"].removeprefix("ps-").replace("-", "_")
    if row["strategy"] == "fsdp":
        strategy["strategy.shard"] = "full"
    point = {"epoch": row.get("at_epoch", 1) - 1, "time_s": 1.0, "train_loss": 1.0}
    return types.SimpleNamespace(
        config={**conditions.SETTINGS, **strategy, **row.get("config", {})},
        manifest={"dataset": {"fingerprint": row.get("fingerprint", "f")}},
        row={"curve": [{**point, "test_accuracy": row["test_accuracy"]}]},
    )


def spread_of(values):
    known = [value for value in values if value == value]
    if not known:
        return {"median": None, "least": None, "greatest": None, "n": 0}
    return {"median": statistics.median(known), "least": min(known), "greatest": max(known), "n": len(known)}

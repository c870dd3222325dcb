"""inputs/study/study.yaml as if all of it had been run: its cells as the program lists them; their configurations,
manifests, traces and rows of `collect` those of a few short runs, relabelled. Claims find the published values."""

import copy
import dataclasses
import json
import math
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile

import support
import harness
from stratagem_report import compare, predict, published, runs, study
from stratagem_report.program import collected
from stratagem_report.soundness import Told

STUDY = support.ROOT / "inputs" / "study" / "study.yaml"
# Short runs (variant, workers), of which each cell takes the one that is most like it.
SHORT = (("serial", 1), ("ddp", 2), ("fsdp", 2), ("ps-sync", 2), ("ps-async", 2))
EPOCHS, DEVICE = 10, "NVIDIA A100-SXM4-80GB"
GB = 1e9


class ShortRuns(support.StudyTest):
    """Made once, as support.StudyTest makes cells."""

    cells = [(variant, workers, 1) for variant, workers in SHORT]

    def runTest(self):
        """Nothing; the class is used for its runs."""


def short_runs():
    """{(variant, workers): (Run, plan)}."""
    ShortRuns.setUpClass()
    folder = ShortRuns.made / "study"
    names = {pair: f"head-lenet-{pair[0]}-w{pair[1]}-s1" for pair in SHORT}
    told = collected(folder, [folder / name for name in names.values()], ShortRuns.program)
    made = {}
    for pair, name in names.items():
        run = runs.read_run(folder / name, told.cells[name])
        ranks = pair[1] + pair[0].startswith("ps")
        plan = predict.ask(ShortRuns.program, folder / name / "config.yaml", "--ranks", ranks)
        made[pair] = run, plan
    ShortRuns.doClassCleanups()
    return made, told.measures


def listed_cells():
    """The cells of the study, as the program lists them."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stratagem-listed-"))
    words = [harness.ProgramTest.program, "sweep", STUDY, "--prepare", "--out", folder / "study", "-q"]
    subprocess.run(list(map(str, words)), check=True)
    _, cells, remarks = study.read_cells(folder / "study")
    shutil.rmtree(folder)
    assert not remarks, remarks
    return cells


def like(variant):
    """The kind of short run that a strategy's cells are made of."""
    if variant.startswith("ps-"):
        return "ps-sync" if variant in ("ps-sync", "ps-delayed-sync") else "ps-async"
    return {"zero1": "fsdp", "zero2": "fsdp"}.get(variant, variant)


class Row:
    """A row of `collect` in which only what it has can be changed."""

    def __init__(self, row):
        self.row = copy.deepcopy(row)

    def set(self, **values):
        for name, value in values.items():
            if name not in self.row:
                raise KeyError(f"`collect` tells no {name}")
            self.row[name] = value


def published_value(file, cell):
    found = published.read(file)
    of_data = found[found["dataset"] == cell["dataset"]]
    return published.lookup(of_data, cell["model"], cell["variant"], cell["workers"])


def factor_of(cell):
    """How long a strategy takes, by its name."""
    return 1 + (sum(map(ord, cell["variant"])) % 50) / 100


def relabelled(cell, short, noise):
    """The row of a cell. `noise`: of this seed, a factor."""
    made = Row(short.row)
    made.set(**{name: cell[name] for name in ("cell", "group", "part", "model", "dataset", "variant", "strategy")})
    made.set(**{name: int(cell[name]) for name in ("workers", "servers", "ranks", "seed")})
    known = published_value(published.TIMES, cell)
    seconds = (known if math.isfinite(known) else 600 * factor_of(cell) / cell["workers"]) * noise
    learned = published_value(published.ACCURACIES, cell)
    accuracy = (learned / 100 if math.isfinite(learned) else 0.8) + 0.01 * (noise - 1)
    peak = 16 * GB * (0.22 if cell["variant"] == "fsdp" and cell["workers"] == 4 else 1)
    evaluated = cell["max_steps"] == 0
    made.set(
        train_time_s=seconds,
        epoch_s=seconds / EPOCHS,
        images_per_s=50_000 * EPOCHS / seconds,
        test_accuracy=accuracy if evaluated else None,
        worker_peak_B=peak * noise,
        peak_B=peak * noise,
        device_used_B=11 * GB * noise,
        utilization=0.8 * noise,
        utilization_sd=0.1 * noise,
        energy_J=1e5 * noise,
    )
    point = {"train_loss": 1.0, "test_loss": 1.0, "test_accuracy": accuracy}
    curve = [{**point, "epoch": n, "time_s": (n + 1) * seconds / EPOCHS} for n in range(EPOCHS)]
    made.row["curve"] = curve if evaluated else []
    return made.row


def settings_of(cell):
    """Of a configuration, as the study has them; the optimizer is the published one."""
    settings = {"optimizer.lr": 0.01, "optimizer.momentum": 0.9, "optimizer.name": "sgd"}
    for name, key in (
        ("model", "model.name"),
        ("dataset", "data.dataset"),
        ("global_batch", "data.global_batch"),
        ("input_size", "data.input_size"),
        ("precision", "precision.compute"),
        ("seed", "run.seed"),
        ("epochs", "run.epochs"),
        ("max_steps", "run.max_steps"),
    ):
        settings[key] = cell[name]
    varied = (word.split("=") for word in str(cell["settings"]).split(";") if "optimizer." in word)
    settings |= {key: runs.parse_value(value) for key, value in varied}
    if cell["strategy"] == "ps":
        settings["strategy.mode"] = cell["variant"].removeprefix("ps-").replace("-", "_")
    if cell["strategy"] == "fsdp":
        settings["strategy.shard"] = {"zero1": "optimizer", "zero2": "gradients", "fsdp": "full"}[cell["variant"]]
    return settings


def run_of(cell, short, noise):
    images = published.TRAINING_IMAGES[cell["dataset"]]
    steps = int(cell["max_steps"]) or EPOCHS * (images // cell["global_batch"])
    row = relabelled(cell, short, noise)
    facts = {**short.facts, "planned_steps": steps, "images": images, "device": DEVICE, "gpu": True}
    facts |= {"digest": f"{cell['cell']}", "limited": False, "parameters": 1000 * len(cell["model"])}
    manifest = copy.deepcopy(short.manifest)
    manifest["dataset"]["name"] = cell["dataset"]
    config = {**short.config, **settings_of(cell)}
    return dataclasses.replace(short, config=config, manifest=manifest, row=row, facts=facts)


def spread_of(values):
    known = [value for value in values if value is not None]
    if not known:
        return {"median": None, "least": None, "greatest": None, "n": 0}
    return {"median": statistics.median(known), "least": min(known), "greatest": max(known), "n": len(known)}


def groups_of(rows, measures):
    groups = {}
    for row in rows.values():
        groups.setdefault(row["group"], []).append(row)
    return {
        group: {"group": group, **{name: spread_of([row[name] for row in of]) for name in measures}}
        for group, of in groups.items()
    }


class Planted:
    """`cells`, `runs`, `groups` and `predictions` of the complete study, or of the cells that `kept` keeps."""

    def __init__(self, kept=lambda cell: True):
        short, self.measures = short_runs()
        source = random.Random(1)
        cells = listed_cells()
        self.cells = cells[[kept(cell) for _, cell in cells.iterrows()]].reset_index(drop=True)
        self.runs, self.predictions = {}, {}
        for _, cell in self.cells.iterrows():
            kind = like(cell["variant"])
            of, plan = short[kind, 1 if kind == "serial" else 2]
            self.runs[cell["cell"]] = run_of(cell, of, math.exp(source.gauss(0, 0.002)))
            self.predictions[cell["cell"]] = plan
        self.groups = groups_of({name: run.row for name, run in self.runs.items()}, self.measures)

    def told(self):
        """As `collect --format json` prints it."""
        rows, groups = [run.row for run in self.runs.values()], list(self.groups.values())
        return json.loads(json.dumps({"cells": rows, "groups": groups}))

    def comparison(self, found=None):
        """Of what `collect` printed, if it is given, else of what is planted."""
        told, runs_of = Told(found or self.told()), {}
        for name, run in self.runs.items():
            if name in told.cells:
                runs_of[name] = dataclasses.replace(run, row=told.cells[name])
        cells = self.cells[self.cells["cell"].isin(list(runs_of))].assign(state="complete", reason="")
        cells["group"] = cells["cell"].map({name: run.row.get("group") for name, run in runs_of.items()}).fillna("")
        study.add_work(cells, runs_of)
        study.tell_apart(cells, runs_of)
        made = study.Study(pathlib.Path("planted"), "planted", cells, runs_of, told.groups, told.remarks, [])
        return compare.compare(made, self.predictions)

    def copy(self):
        """To plant a fault in: cells, runs and predictions may be replaced, not changed."""
        made = copy.copy(self)
        made.runs, made.predictions, made.cells = dict(self.runs), dict(self.predictions), self.cells.copy()
        return made

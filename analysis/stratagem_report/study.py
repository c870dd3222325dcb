"""The files of a study: the expected cells, the state of each, and its run if there is one."""

import dataclasses
import json
import pathlib
import re

import pandas as pd

from . import trace
from .program import collected, find_program
from .errors import ReportError, USAGE

SCHEMA = 1
CELL_COLUMNS = (
    "cell",
    "group",
    "part",
    "model",
    "dataset",
    "variant",
    "strategy",
    "workers",
    "servers",
    "ranks",
    "seed",
    "global_batch",
    "input_size",
    "precision",
    "epochs",
    "max_steps",
)
# Cells that agree in these are compared with each other: same work, different strategies. The last two are in each
# run's manifest: the planned steps, and the images of an epoch.
FAMILY = (
    "part",
    "model",
    "dataset",
    "input_size",
    "global_batch",
    "precision",
    "planned_steps",
    "images",
)
# Keys of a configuration that do not change what a run computes, or in which cells of a group differ.
BESIDE_THE_POINT = re.compile(
    r"run\.(name|seed|out|ranks|save_weights)|data\.root|trace\..*|comm\..*|checkpoint\..*|"
    r"watchdog\..*|expect\..*"
)


@dataclasses.dataclass
class Run:
    """The contents of a run directory."""

    path: pathlib.Path
    config: dict  # "section.key" -> value
    manifest: dict
    outcome: dict
    trace: trace.RunTrace
    row: dict  # the numbers that the program computed


@dataclasses.dataclass
class Study:
    """`cells` has a row for each expected cell: CELL_COLUMNS, state, reason; for complete cells, which are in
    `runs`, also planned_steps and images."""

    path: pathlib.Path
    name: str
    cells: pd.DataFrame
    runs: dict  # cell -> Run
    groups: dict  # group -> what the program computed of its complete cells
    remarks: list  # (cell, text)
    marks: list  # what was mixed, if that was allowed

    def complete(self):
        return self.cells[self.cells["state"] == "complete"]


def parse_config(text):
    """A configuration printed by the program, as {"section.key": value}. It has two levels and one value per line."""
    config, section = {}, ""
    for line in text.splitlines():
        name, _, value = line.strip().partition(": ")
        if line.startswith(" "):
            config[f"{section}.{name}"] = parse_value(value)
        elif value:
            config[name] = parse_value(value)
        else:
            section = name.rstrip(":")
    return config


def parse_value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_json(path):
    """{} if there is none, or a truncated one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def state_of(row):
    """(state, reason) of a cell, from the program."""
    if not row:
        return "missing", "not started"
    state, reason = row["status"], row["reason"]
    if state != "failed":
        return state, reason
    return state, f"{row['exit_code_meaning']} ({row['exit_code']}): {reason}"


def variant_of(config):
    """The name of a strategy in tables, for runs outside of a study."""
    name = config["strategy.name"]
    if name == "fsdp":
        label = {"optimizer": "zero1", "gradients": "zero2", "full": "fsdp"}[
            config["strategy.shard"]
        ]
    elif name == "ps":
        mode = config["strategy.mode"].replace("_", "-")
        label = f"ps-{mode}" + (str(config.get("strategy.staleness", 2)) if mode == "ssp" else "")
    else:
        label = name
    return label + ("" if config.get("strategy.overlap", True) else "-no-overlap")


def cell_of_run(path, config, manifest):
    """A row of CELL_COLUMNS for a run that is in no cells.csv."""
    plan, servers = manifest["plan"], config.get("strategy.servers", 0)
    ranks = len(manifest["ranks"])
    return {
        "cell": path.name,
        "group": "",  # the program tells it
        "part": "",
        "model": config["model.name"],
        "dataset": config["data.dataset"],
        "variant": variant_of(config),
        "strategy": config["strategy.name"],
        "workers": ranks - servers,
        "servers": servers,
        "ranks": ranks,
        "seed": config["run.seed"],
        "global_batch": plan["global_batch"],
        "input_size": config["data.input_size"],
        "precision": config["precision.compute"],
        "epochs": config["run.epochs"],
        "max_steps": config["run.max_steps"],
    }


def add_work(cells, runs):
    """How much each complete run had to do; NaN for the others."""
    for column, path in {
        "planned_steps": ("plan", "total_steps"),
        "images": ("dataset", "train_images"),
    }.items():
        known = {cell: run.manifest[path[0]][path[1]] for cell, run in runs.items()}
        cells[column] = cells["cell"].map(known)


def tell_apart(cells, runs):
    """Adds settings to the names of variants that would look the same but differ in a setting; the first keeps its
    name."""
    complete = cells[cells["cell"].isin(list(runs))]
    for _, alike in complete.groupby([*FAMILY, "variant", "workers"], sort=False):
        first = None
        for index, row in alike.iterrows():
            settled = settled_of(runs[row["cell"]].config)
            first = first or settled
            cells.loc[index, "variant"] += "".join(
                f" {key.split('.')[1]}={value}"
                for key, value in settled.items()
                if first.get(key) != value
            )


def settled_of(config):
    """The part of a configuration that decides what a run computes, without its seed."""
    return {key: value for key, value in config.items() if not BESIDE_THE_POINT.fullmatch(key)}


def cells_of_folder(folder):
    """Cells of a folder of runs, or of a single run, without a cells.csv."""
    rows = []
    for path in [folder, *sorted(folder.iterdir())]:
        config, manifest = path / "config.yaml", (
            read_json(path / "manifest.json") if path.is_dir() else {}
        )
        if config.exists() and manifest:
            rows.append(
                cell_of_run(path, parse_config(config.read_text(encoding="utf-8")), manifest)
            )
    return pd.DataFrame(rows, columns=CELL_COLUMNS)


def read_cells(folder):
    about = read_json(folder / "study.json")
    if about and about.get("schema") != SCHEMA:
        raise ReportError(
            f"{folder} is a study of schema {about.get('schema')}, this report reads {SCHEMA}: "
            "use the version of stratagem that made it",
            USAGE,
        )
    if not (folder / "cells.csv").exists():
        return about.get("name", folder.resolve().name), cells_of_folder(folder)
    cells = pd.read_csv(folder / "cells.csv", dtype={"settings": str}, keep_default_na=False)
    missing = [column for column in CELL_COLUMNS if column not in cells]
    if missing:
        raise ReportError(f"{folder / 'cells.csv'} has no column {', '.join(missing)}", USAGE)
    return about.get("name", folder.resolve().name), cells


def load(folder, allow_mixed=False, program=None):
    """ReportError if there is nothing to report, or if the cells cannot be compared. Without `program`,
    find_program() is used."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise ReportError(f"{folder} is no directory: name a study, or a folder of runs", USAGE)
    name, cells = read_cells(folder)
    single = list(cells["cell"]) == [folder.name] and (folder / "config.yaml").exists()
    runs, remarks, states = {}, [], []
    paths = {cell: folder if single else folder / cell for cell in cells["cell"]}
    begun = [path for path in paths.values() if (path / "trace").is_dir() or (path / "outcome.json").exists()]
    rows, groups = collected(folder, begun, program or find_program()) if begun else ({}, {})
    for cell, path in paths.items():
        if cell not in rows and path in begun:
            states.append(("unreadable", why_unreadable(path)))
            continue
        state, reason = state_of(rows.get(cell, {}))
        if state == "complete":
            try:
                runs[cell] = read_cell(path, rows[cell])
                remarks += [(cell, remark) for remark in runs[cell].trace.remarks]
            except ReportError as problem:
                state, reason = "unreadable", str(problem)
        states.append((state, reason))
    cells[["state", "reason"]] = pd.DataFrame(
        states, columns=["state", "reason"], index=cells.index
    )
    told = cells["cell"].map({cell: row["group"] for cell, row in rows.items()})
    cells["group"] = told.fillna(cells["group"])
    add_work(cells, runs)
    tell_apart(cells, runs)
    study = Study(folder, name, cells, runs, groups, remarks, [])
    if not runs:
        raise ReportError(f"no complete cell in {folder}" + summary_of_states(cells), USAGE)
    study.marks = mixtures(study)
    if study.marks and not allow_mixed:
        raise ReportError(
            f"the cells of {folder} cannot be compared: {'; '.join(study.marks)}. "
            "Run the odd ones again, or mark them with --allow-mixed",
            USAGE,
        )
    return study


def read_cell(path, row):
    config = parse_config((path / "config.yaml").read_text(encoding="utf-8"))
    return Run(
        path,
        config,
        read_json(path / "manifest.json"),
        read_json(path / "outcome.json"),
        trace.read_run(path),
        row,
    )


def why_unreadable(path):
    """Why the program left a run out."""
    try:
        trace.read_run(path)
    except ReportError as problem:
        return str(problem)
    return "stratagem collect leaves it out"


def summary_of_states(cells):
    counts = cells["state"].value_counts()
    return (
        "".join(f", {count} {state}" for state, count in counts.items())
        if len(cells)
        else ": it holds no runs"
    )


def mixtures(study):
    """Differences between the complete cells that should not exist, one line each."""
    told = []
    shas = {}
    for cell, run in study.runs.items():
        shas.setdefault(run.row["git_sha"], []).append(cell)
    if len(shas) > 1:
        told.append(
            "they were made by different programs: "
            + "; ".join(
                f"{sha} ({len(of)} cells, such as {of[0]})" for sha, of in sorted(shas.items())
            )
        )
    for cell, run in study.runs.items():
        expected = study.path / "configs" / f"{cell}.yaml"
        if not expected.exists():
            continue
        planned = parse_config(expected.read_text(encoding="utf-8"))
        odd = [
            key
            for key in sorted({*planned, *run.config})
            if planned.get(key) != run.config.get(key)
            and not re.fullmatch(r"run\.(out|threads|ranks)|data\.root", key)
        ]
        if odd:
            told.append(f"{cell} was run with another {', '.join(odd)} than its study says")
    return told

"""The files of a study: the expected cells, the state of each, and its run if there is one."""

import dataclasses
import pathlib
import re

import pandas as pd

from . import work
from .errors import ReportError, USAGE
from .program import collected, find_program
from .runs import cell_of_run, parse_config, read_json, read_run, settled_of, why_unreadable

SCHEMA = 1
TEXTS = ("cell", "group", "part", "model", "dataset", "variant", "strategy", "precision")
WHOLE_NUMBERS = ("workers", "servers", "ranks", "seed", "global_batch", "input_size", "epochs", "max_steps")
CELL_COLUMNS = (*TEXTS, *WHOLE_NUMBERS)
# Cells that agree in these are compared with each other: same work, different strategies. The last three are known of
# runs: the planned steps, the images of an epoch, and by what a worker is slowed.
FAMILY = (
    "part",
    "model",
    "dataset",
    "input_size",
    "global_batch",
    "precision",
    "planned_steps",
    "images",
    "slow",
)


@dataclasses.dataclass
class Study:
    """`cells` has a row for each expected cell: CELL_COLUMNS, state, reason; for complete cells, which are in
    `runs`, also planned_steps, images and slow."""

    path: pathlib.Path
    name: str
    cells: pd.DataFrame
    runs: dict  # cell -> Run
    groups: dict  # group -> what the program computed of its complete cells
    remarks: list  # (cell, text)
    marks: list  # what was mixed, if that was allowed

    def complete(self):
        return self.cells[self.cells["state"] == "complete"]


def state_of(row):
    """(state, reason) of a cell, from the program."""
    if not row:
        return "missing", "not started"
    state, reason = row.get("status", "unreadable"), row.get("reason", "")
    if state != "failed":
        return state, reason
    return state, f"{row.get('exit_code_meaning')} ({row.get('exit_code')}): {reason}"


def add_work(cells, runs):
    """How much each complete run had to do, and with which workers; NaN for the others."""
    for column in "planned_steps", "images", "slow":
        cells[column] = cells["cell"].map({cell: run.facts[column] for cell, run in runs.items()})


def axes_of(row):
    """{key: text} of the keys that the study varies, but for the seed: also of those that change no result."""
    settings = (setting.partition("=") for setting in str(row.get("settings", "")).split(";"))
    return {key: value for key, _, value in settings if "." in key and key != "run.seed"}


def tell_apart(cells, runs):
    """Adds settings to the names of variants that would look the same but differ in a setting; the first keeps its
    name."""
    complete = cells[cells["cell"].isin(list(runs))]
    for _, alike in complete.groupby([*FAMILY, "variant", "workers"], sort=False):
        first = None
        for index, row in alike.iterrows():
            settled = {**settled_of(runs[row["cell"]].config), **axes_of(row)}
            first = first or settled
            cells.loc[index, "variant"] += "".join(
                f" {key.split('.')[1]}={value}"
                for key, value in settled.items()
                if first.get(key) != value
            )


def cells_of_folder(folder):
    """(cells, remarks) of a folder of runs, or of a single run, without a cells.csv."""
    rows, remarks = [], []
    for path in [folder, *sorted(folder.iterdir())]:
        config, manifest = path / "config.yaml", (
            read_json(path / "manifest.json") if path.is_dir() else {}
        )
        if config.exists() and not manifest:
            remarks.append((path.name, "left out: its manifest.json is missing or damaged"))
        elif config.exists():
            try:
                rows.append(cell_of_run(path, parse_config(config.read_text(encoding="utf-8")), manifest))
            except (KeyError, TypeError, ValueError, OSError) as problem:
                remarks.append((path.name, f"left out: {type(problem).__name__}: {problem}"))
    return pd.DataFrame(rows, columns=CELL_COLUMNS), remarks


def is_whole(text):
    return re.fullmatch(r"\d+", str(text)) is not None


def sound_cells(cells, file):
    """(rows that can be used, remarks on the others)."""
    remarks, kept, names = [], [], set()
    for index, row in cells.iterrows():
        odd = [f"{name} is {row[name]!r}" for name in WHOLE_NUMBERS if not is_whole(row[name])]
        odd += [f"it has no {name}" for name in ("cell", "model", "variant", "strategy") if not row[name]]
        odd += ["it is there twice, and the first counts"] if row["cell"] in names else []
        if odd:
            remarks.append((str(row["cell"]), f"left out of {file}: {'; '.join(odd)}"))
        else:
            kept.append(index)
            names.add(row["cell"])
    return cells.loc[kept].reset_index(drop=True).astype(dict.fromkeys(WHOLE_NUMBERS, int)), remarks


def read_cells(folder):
    """(name of the study, its cells, remarks)."""
    about = read_json(folder / "study.json")
    if about and about.get("schema") != SCHEMA:
        raise ReportError(
            f"{folder} is a study of schema {about.get('schema')}, this report reads {SCHEMA}: "
            "use the version of stratagem that made it",
            USAGE,
        )
    name, file = about.get("name", folder.resolve().name), folder / "cells.csv"
    if not file.exists():
        return name, *cells_of_folder(folder)
    try:
        cells = pd.read_csv(file, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as problem:
        raise ReportError(f"{file} cannot be read ({problem}): `stratagem sweep` writes it", USAGE) from problem
    missing = [column for column in CELL_COLUMNS if column not in cells]
    if missing:
        raise ReportError(f"{file} has no column {', '.join(missing)}", USAGE)
    return name, *sound_cells(cells, file.name)


def run_of_cell(path, row, begun):
    """(Run or None, state, reason)."""
    if not row and begun:
        return None, "unreadable", why_unreadable(path)
    state, reason = state_of(row)
    if state != "complete":
        return None, state, reason
    try:
        return read_run(path, row), state, reason
    except ReportError as problem:
        return None, "unreadable", str(problem)


def load(folder, allow_mixed=False, program=None):
    """ReportError if there is nothing to report, or if the cells cannot be compared. Without `program`,
    find_program() is used."""
    folder = pathlib.Path(folder)
    if not folder.is_dir():
        raise ReportError(f"{folder} is no directory: name a study, or a folder of runs", USAGE)
    name, cells, remarks = read_cells(folder)
    single = list(cells["cell"]) == [folder.name] and (folder / "config.yaml").exists()
    paths = {cell: folder if single else folder / cell for cell in cells["cell"]}
    begun = [path for path in paths.values() if (path / "trace").is_dir() or (path / "outcome.json").exists()]
    told = collected(folder, begun, program or find_program())
    runs, states = {}, []
    for cell, path in paths.items():
        run, *state = run_of_cell(path, told.cells.get(cell, {}), path in begun)
        states.append(state)
        if run:
            runs[cell] = run
            remarks += [(cell, remark) for remark in run.trace.remarks]
    cells[["state", "reason"]] = pd.DataFrame(states, columns=["state", "reason"], index=cells.index)
    groups = cells["cell"].map({cell: row.get("group") for cell, row in told.cells.items()})
    cells["group"] = groups.fillna(cells["group"])
    add_work(cells, runs)
    work.tell_apart(cells, runs)
    tell_apart(cells, runs)
    study = Study(folder, name, cells, runs, told.groups, remarks + told.remarks, [])
    if not runs:
        why = f" ({' '.join(told.message.split())})" if told.message else ""
        why += "".join(f"; {cell}: {remark}" for cell, remark in remarks[:3])
        raise ReportError(f"no complete cell in {folder}" + summary_of_states(cells) + why, USAGE)
    study.marks = mixtures(study)
    if study.marks and not allow_mixed:
        raise ReportError(
            f"the cells of {folder} cannot be compared: {'; '.join(study.marks)}. "
            "Run the odd ones again, or mark them with --allow-mixed",
            USAGE,
        )
    return study


def summary_of_states(cells):
    counts = cells["state"].value_counts()
    return (
        "".join(f", {count} {state}" for state, count in counts.items())
        if len(cells)
        else ": it holds no runs"
    )


def mixtures(study):
    """Differences between the complete cells that should not exist, one line each."""
    told = work.replaced(study.runs)[:1]
    shas = {}
    for cell, run in study.runs.items():
        shas.setdefault(run.facts["git_sha"], []).append(cell)
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

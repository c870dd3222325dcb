"""The stratagem program, which computes every measure and prediction that the report shows."""

import json
import pathlib
import shutil
import subprocess

from .errors import ReportError, USAGE
from .soundness import Told

BUILT = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "stratagem"
SAVED = "measures.json"


def find_program(given=None):
    """The given program, the one on PATH, or the one built next to these files; None if there is none."""
    for candidate in [given] if given else [shutil.which("stratagem"), BUILT]:
        if candidate and pathlib.Path(candidate).is_file():
            return pathlib.Path(candidate).resolve()
    return None


def run(program, *arguments):
    """(JSON that it prints, or None if it prints none; its messages)."""
    done = subprocess.run(
        [str(program), *map(str, arguments)], capture_output=True, text=True, errors="replace", check=False
    )
    try:
        return json.loads(done.stdout), done.stderr.strip()
    except ValueError:
        return None, done.stderr.strip() or f"{program} {arguments[0]} ended with {done.returncode} and printed no JSON"


def collected(folder, runs, program):
    """What `stratagem collect --format json` tells of a study, or of these run directories, as soundness.Told; from
    FOLDER/measures.json where there is no program."""
    nothing = {"cells": [], "groups": []}
    if not runs:
        return Told(nothing)
    if program is None:
        return Told(saved(folder))
    whole = (folder / "study.json").exists()
    what = [folder, "--allow-mixed"] if whole else runs
    found, message = run(program, "collect", *what, "--no-write", "--format", "json")
    return Told(nothing, message) if found is None else Told(found)


def saved(folder):
    path = folder / SAVED
    cure = (
        f"name it with --program, or save its numbers where it is: stratagem collect {folder} --format json"
        f" --allow-mixed > {path}"
    )
    if not path.is_file():
        raise ReportError(f"no stratagem on PATH or in build/, and no {path}: {cure}", USAGE)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ReportError(f"{path} is no JSON ({problem}): {cure}", USAGE) from problem

"""The stratagem program, which computes every measure and prediction that the report shows."""

import json
import pathlib
import shutil
import subprocess

from .errors import ReportError, USAGE

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
        [str(program), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    return (json.loads(done.stdout) if done.stdout else None), done.stderr.strip()


def collected(folder, runs, program):
    """What `stratagem collect --format json` tells of a study, or of these run directories, as ({cell: row of the
    cell}, {group: row of the group}); from FOLDER/measures.json where there is no program."""
    if program is not None:
        whole = (folder / "study.json").exists()
        what = [folder, "--allow-mixed"] if whole else runs
        found = run(program, "collect", *what, "--no-write", "--format", "json")[0] if what else None
    else:
        found = saved(folder)
    found = found or {"cells": [], "groups": []}
    return tuple({row[name]: row for row in found[rows]} for rows, name in (("cells", "cell"), ("groups", "group")))


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

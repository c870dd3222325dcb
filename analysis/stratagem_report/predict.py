"""What the program would have predicted: `stratagem plan` on the study, or on the configuration of each run."""

import json
import pathlib
import shutil
import subprocess

from .errors import ReportError, USAGE

BUILT = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "stratagem"


def find_program(given=None):
    """The program that is named, on PATH, or built beside these files; None when there is none."""
    for candidate in [given] if given else [shutil.which("stratagem"), BUILT]:
        if candidate and pathlib.Path(candidate).is_file():
            return pathlib.Path(candidate).resolve()
    return None


def ask(program, *arguments):
    """What `stratagem plan` prints as JSON; {} when it refuses all of it. A file that is no calibration is no case of
    that."""
    done = subprocess.run(
        [str(program), "plan", *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout and "calibration" in done.stderr:
        raise ReportError(done.stderr.strip(), USAGE)
    return json.loads(done.stdout) if done.stdout else {}


def calibration_of(study, given=None):
    """Options that let the program predict times: the calibration that is named, or lies in the study's folder."""
    path = pathlib.Path(given) if given else study.path / "calibration.json"
    if given and not path.is_file():
        raise ReportError(f"no calibration {path}", USAGE)
    return ["--calibration", path] if path.is_file() else []


def predict(study, program, calibration=None):
    """{cell: plan} of the complete cells."""
    cells, how = study.complete(), calibration_of(study, calibration)
    if program is None:
        return {}
    if (study.path / "study.json").exists():
        plans = ask(program, study.path, *how).get("cells", {})
    else:
        plans = {
            cell: ask(program, study.runs[cell].path / "config.yaml", "--ranks", ranks, *how)
            for cell, ranks in zip(cells["cell"], cells["ranks"])
        }
    return {
        cell: plans[cell]
        for cell in cells["cell"]
        if plans.get(cell) and "problem" not in plans[cell]
    }

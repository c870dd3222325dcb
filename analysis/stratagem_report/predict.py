"""The program's predictions: `stratagem plan` for the study, or for the configuration of each run."""

import pathlib

from .errors import ReportError, USAGE
from .program import run


def ask(program, *arguments):
    """What `stratagem plan` prints as JSON; {} if it refuses everything. A file that is not a calibration is an
    error."""
    plans, told = run(program, "plan", *arguments, "--json")
    if plans is None and "calibration" in told:
        raise ReportError(told, USAGE)
    return plans or {}


def calibration_of(study, given=None):
    """The options with which the program predicts times: the given calibration, or the one in the study's folder."""
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

"""What the program would have predicted: `stratagem plan` on the study, or on the configuration of each run."""

import json
import pathlib
import shutil
import subprocess

BUILT = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "stratagem"


def find_program(given=None):
    """The program that is named, on PATH, or built beside these files; None when there is none."""
    for candidate in [given] if given else [shutil.which("stratagem"), BUILT]:
        if candidate and pathlib.Path(candidate).is_file():
            return pathlib.Path(candidate).resolve()
    return None


def ask(program, *arguments):
    """What `stratagem plan` prints as JSON; {} when it refuses all of it."""
    done = subprocess.run(
        [str(program), "plan", *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    return json.loads(done.stdout) if done.stdout else {}


def predict(study, program):
    """{cell: plan} of the complete cells."""
    if program is None:
        return {}
    cells = study.complete()
    if (study.path / "study.json").exists():
        plans = ask(program, study.path).get("cells", {})
    else:
        plans = {
            cell: ask(program, study.runs[cell].path / "config.yaml", "--ranks", ranks)
            for cell, ranks in zip(cells["cell"], cells["ranks"])
        }
    return {
        cell: plans[cell]
        for cell in cells["cell"]
        if plans.get(cell) and "problem" not in plans[cell]
    }

"""What the program would have predicted: `stratagem plan` on the configuration of each cell."""

import concurrent.futures
import itertools
import json
import pathlib
import shutil
import subprocess

AT_ONCE = 2  # plans; one of a large model holds a gigabyte
BUILT = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "stratagem"


def find_program(given=None):
    """The program that is named, on PATH, or built beside these files; None when there is none."""
    for candidate in [given] if given else [shutil.which("stratagem"), BUILT]:
        if candidate and pathlib.Path(candidate).is_file():
            return pathlib.Path(candidate).resolve()
    return None


def plan(program, config, ranks):
    """The plan as the program prints it as JSON; {} when it refuses the configuration."""
    done = subprocess.run(
        [str(program), "plan", str(config), "--ranks", str(ranks), "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return json.loads(done.stdout) if done.returncode == 0 else {}


def predict(study, program):
    """{cell: plan} of the complete cells; one call for cells that differ in their seed alone."""
    if program is None:
        return {}
    cells = study.complete()
    first = cells.drop_duplicates("group")
    configs = [study.runs[cell].path / "config.yaml" for cell in first["cell"]]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        plans = dict(
            zip(first["group"], pool.map(plan, itertools.repeat(program), configs, first["ranks"]))
        )
    return {
        cell: plans[group] for cell, group in zip(cells["cell"], cells["group"]) if plans[group]
    }

"""The parts of a report. Each is made by itself: what fails is named in its place, and the others stand."""

import dataclasses
import pathlib
import platform
import traceback

PACKAGE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Failure:
    """A part that could not be made, and where it failed."""

    part: str  # "T5", "claim 2, 4 workers"
    kind: str
    message: str
    place: str  # "tables_training.py:153"

    def __str__(self):
        return f"{self.part} could not be made: {self.kind}: {self.message}"

    @property
    def line(self):
        """For a report of the fault."""
        return f"{self.part}: {self.kind}: {self.message} at {self.place}, Python {platform.python_version()}"


def failure_of(part, problem):
    """The place is the innermost one in this package."""
    frames = traceback.extract_tb(problem.__traceback__)
    own = [frame for frame in frames if pathlib.Path(frame.filename).resolve().parent == PACKAGE] or frames
    message = " ".join(str(problem).split())
    return Failure(part, type(problem).__name__, message, f"{pathlib.Path(own[-1].filename).name}:{own[-1].lineno}")


class Attempts:
    """Makes parts one by one, and collects what failed."""

    def __init__(self):
        self.failures = []

    def make(self, part, function, *arguments, otherwise=None):
        """What `function` returns; `otherwise`, or what it makes of the failure, if the part cannot be made."""
        try:
            return function(*arguments)
        except Exception as problem:  # whatever it is, the other parts stand
            self.failures.append(failure_of(part, problem))
            return otherwise(self.failures[-1]) if callable(otherwise) else otherwise


def name_of(function):
    """The name of the table or figure that a function makes: "T6" of t6_decision."""
    return function.__name__.split("_")[0].upper()

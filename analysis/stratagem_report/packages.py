"""Checks for the packages that the scripts need, before any is imported: a new user's Python has none of them."""

import importlib.util
import pathlib
import sys

REQUIREMENTS = pathlib.Path(__file__).resolve().parent.parent / "requirements.txt"
NEEDED = ("h5py", "jinja2", "matplotlib", "numpy", "pandas", "scipy")
ENVIRONMENT = 3  # the same exit code as that of `stratagem`


def missing():
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def require(script):
    """Ends the program with a message if packages are missing."""
    names = missing()
    if names:
        print(
            f"{script}: error: {sys.executable} lacks {', '.join(names)}; install them with"
            f" `{sys.executable} -m pip install -r {REQUIREMENTS}` (in a virtual environment where"
            " the system's Python refuses)",
            file=sys.stderr,
        )
        sys.exit(ENVIRONMENT)

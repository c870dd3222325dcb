"""Checks for the packages that the scripts need, before any is imported: a new user's Python has none of them, and a
system's may be too old."""

import importlib.metadata
import importlib.util
import pathlib
import re
import sys
import sysconfig

REQUIREMENTS = pathlib.Path(__file__).resolve().parent.parent / "requirements.txt"
NEEDED = ("h5py", "jinja2", "matplotlib", "numpy", "pandas", "scipy")
ENVIRONMENT = 3  # the same exit code as that of `stratagem`


def missing():
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def numbers(version):
    """(3, 10, 8) of "3.10.8.post1"; what follows the first part without a number does not count."""
    return tuple(int(part) for part in re.match(r"[\d.]*", version)[0].split(".") if part)


def too_old(version_of=importlib.metadata.version):
    """What is installed, but older than requirements.txt asks: "matplotlib 3.6.3 (needs 3.7)"."""
    told = []
    for name, least in re.findall(r"(?m)^(\w+)>=([\d.]+)", REQUIREMENTS.read_text()):
        try:
            version = version_of(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if numbers(version) < numbers(least):
            told.append(f"{name} {version} (needs {least})")
    return told


def cure():
    """Where the system manages its Python (PEP 668), packages go into a virtual environment."""
    install = f"-m pip install -r {REQUIREMENTS}"
    managed = pathlib.Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").exists()
    if managed and sys.prefix == sys.base_prefix:
        return f"`{sys.executable} -m venv venv && venv/bin/python {install}`, then start it with venv/bin/python"
    return f"`{sys.executable} {install}`"


def require(script):
    """Ends the program with a message if packages are missing or too old."""
    problems = [f"lacks {', '.join(names)}" for names in [missing()] if names]
    problems += [f"has {', '.join(old)}" for old in [too_old()] if old]
    if problems:
        print(f"{script}: error: {sys.executable} {', and '.join(problems)}; {cure()}", file=sys.stderr)
        sys.exit(ENVIRONMENT)

"""Shared code of the lints: which files there are, and how findings are printed."""

import sys
from pathlib import Path


def sources(root, folders, suffixes):
    """Files in `folders` of `root` that end with one of `suffixes`, sorted."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.name.endswith(tuple(suffixes)) and "__pycache__" not in path.parts:
                yield path


def run(find_problems):
    """Main program of a lint: prints `file:line: finding` lines for the given tree, and fails if there are any."""
    problems = find_problems(Path(sys.argv[1]))
    print("\n".join(problems) or "nothing found")
    sys.exit(1 if problems else 0)

#!/usr/bin/env python3
"""Tables in documents that are made from recorded data: writes them again, or checks that they are what the data says.

  python3 analysis/recorded.py             checks the documents of this folder
  python3 analysis/recorded.py --write     writes the tables again

In a document, a table stands between two marks. The first names the command that prints it, run in analysis/:

  <!-- recorded: bench/report.py bench/data/ddp_vs_torch.json -->
  <!-- end of recorded -->

The commands only read files; nothing is measured or trained again. Exits with 1 if a table differs, or if one of
RECORDED has a table of numbers without marks.
"""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MARK, END = "<!-- recorded:", "<!-- end of recorded -->"
RECORDED = [HERE / "PS.md", HERE / "bench/RESULTS.md"]  # all their tables of numbers have marks
BLOCK = re.compile(rf"(?P<begin>{MARK} (?P<command>.+?) -->\n)(?P<table>.*?)(?P<end>{END})", re.DOTALL)
TABLE = re.compile(r"(?:^ *\|.*\n)+", re.MULTILINE)


class RecordedError(Exception):
    pass


def printed_by(command):
    """What the command prints; the first word is a script of analysis/."""
    words = shlex.split(command)
    ended = subprocess.run([sys.executable, "-B", *words], cwd=HERE, capture_output=True, text=True)
    if ended.returncode != 0:
        raise RecordedError(f"{command}: exit code {ended.returncode}\n{ended.stderr}")
    return ended.stdout


def renewed(text):
    """A document with its tables made again."""
    found = list(BLOCK.finditer(text))
    if len(found) != text.count(MARK):
        raise RecordedError(f"{text.count(MARK)} tables begin, {len(found)} of them end: add '{END}'")
    return BLOCK.sub(lambda block: block["begin"] + printed_by(block["command"]) + block["end"], text)


def unmarked(path, text):
    """Shows the tables that have digits below their titles, but no marks."""
    tables = TABLE.findall(BLOCK.sub("", text))
    of_numbers = [table for table in tables if any(re.search(r"\d", line) for line in table.splitlines()[2:])]
    return "".join(f"{path}: a table of numbers without '{MARK} ...':\n{table}" for table in of_numbers)


def differences(path, old, new):
    lines = (text.splitlines(keepends=True) for text in (old, new))
    return "".join(difflib.unified_diff(*lines, f"{path}, as it is", f"{path}, from the data", n=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", nargs="*", type=pathlib.Path, help="default: all below analysis/, and README.md")
    parser.add_argument("--write", action="store_true", help="write the tables again")
    options = parser.parse_args()
    code = 0
    for path in options.documents or [*sorted(HERE.rglob("*.md")), HERE.parent / "README.md"]:
        old = path.read_text(encoding="utf-8")
        try:
            new = renewed(old)
        except RecordedError as problem:
            sys.exit(f"{path}: {problem}")
        if options.write and new != old:
            path.write_text(new, encoding="utf-8")
            print(f"{path}: written")
            old = new
        told = differences(path, old, new) + (unmarked(path, new) if path.resolve() in RECORDED else "")
        print(told, end="")
        code = code or int(told != "")
    return code


if __name__ == "__main__":
    sys.exit(main())

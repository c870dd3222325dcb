#!/usr/bin/env python3
"""Sizes, and details that formatting does not decide."""

import re

from common import run, sources

FOLDERS = ["lib", "app", "ctest", "analysis", "modules", "inputs", "slurm"]
SUFFIXES = [".hpp", ".cpp", ".cpp.in", ".py", ".sh", ".cmake", ".txt", ".yaml", ".sbatch", ".md"]
LONGEST_FILE = {".hpp": 300, ".cpp": 600, ".py": 600, ".sh": 300}
LONGEST_LINE = 120
# Folders of one person's machine, and notes instead of code.
FORBIDDEN = [r"(?<![\w.$}/-])/(?:work|home|root)/\w", r"\b" + "TO" + r"DO\b", r"\b" + "FIX" + r"ME\b"]


def style_problems(path, text):
    if not text:
        yield f"{path}:1: empty file"
        return
    lines = text.split("\n")
    if lines[-1] != "":
        yield f"{path}:{len(lines)}: no newline at the end"
    elif len(lines) > 1 and lines[-2] == "":
        yield f"{path}:{len(lines) - 1}: empty line at the end"
    longest = LONGEST_FILE.get(path.suffix)
    if longest and len(lines) - 1 > longest:
        yield f"{path}:{longest}: {len(lines) - 1} lines, at most {longest}"
    for number, line in enumerate(lines, 1):
        if "\t" in line:
            yield f"{path}:{number}: tab"
        if line != line.rstrip():
            yield f"{path}:{number}: space at the end"
        if len(line) > LONGEST_LINE and path.suffix not in (".md", ".txt"):
            yield f"{path}:{number}: {len(line)} columns, at most {LONGEST_LINE}"
        for pattern in FORBIDDEN:
            if match := re.search(pattern, line):
                yield f"{path}:{number}: forbidden: {match[0]}"


def suite_problems(path, text):
    """CTest runs the suite that has the file's name, and no other."""
    suite = "".join(word[:1].upper() + word[1:] for word in path.stem.split("_"))
    for found in re.finditer(r"^TEST(?:_[FP])?\((\w+),", text, re.MULTILINE):
        if found[1] != suite:
            yield f"{path}:{text[: found.start()].count(chr(10)) + 1}: suite {found[1]} never runs: name it {suite}"


def find_problems(root):
    problems = []
    for path in sources(root, FOLDERS, SUFFIXES):
        name, text = path.relative_to(root), path.read_text(encoding="utf-8")
        problems += style_problems(name, text)
        if name.parts[0] == "ctest" and path.suffix == ".cpp":
            problems += suite_problems(name, text)
    return problems


if __name__ == "__main__":
    run(find_problems)

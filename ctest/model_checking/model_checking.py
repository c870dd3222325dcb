"""Checks the model of the parameter server in every reachable state, and that the check finds planted errors.

`model_checking.py [CASE...]` runs the named cases, or all. Exits with 77, which ctest shows as skipped, if spin or a C
compiler is missing.
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

MODEL = pathlib.Path(__file__).with_name("parameter_server.pml")
MOST_MB = 3000
SKIPPED = 77


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    macros: tuple
    finds: str = ""  # the error that must be found; empty: there must be none
    checker: tuple = ()


ANY_GATE = ("STALENESS=0", "SHARES=7")
LATE = ("STALENESS=1", "SHARES=4")
CACHED = ("STALENESS=1", "SHARES=9", "SERVERS=1", "CACHED")
CASES = [
    Case("synchronous", ("SYNC", "SHARES=6")),
    Case("staleness 0", ("STALENESS=0", "SHARES=7")),
    Case("staleness 1", ("STALENESS=1", "SHARES=4")),
    # With a second server there are too many orders to check within a minute; each server gates by its own clock.
    Case("staleness 2", ("STALENESS=2", "SHARES=7", "SERVERS=1")),
    Case("no gate", ("SHARES=3",)),
    Case("cached reads", CACHED),
    Case("cached reads of two servers", ("STALENESS=1", "SHARES=3", "CACHED")),
    Case("fewer shares than workers", ("STALENESS=0", "SHARES=2")),
    Case("ends early", (*ANY_GATE, "STOP")),
    Case("crash", ("STALENESS=0", "SHARES=3", "CRASH"), checker=("-E",)),
    Case("planted: gate off by one", (*LATE, "GATE_OFF_BY_ONE"), "assertion violated"),
    Case("planted: the finished count", (*ANY_GATE, "THE_FINISHED_COUNT"), "invalid end state"),
    Case("planted: finishing releases nobody", (*ANY_GATE, "FINISHING_RELEASES_NOBODY"), "invalid end state"),
    Case("planted: told before it landed", (*LATE, "TOLD_BEFORE_IT_LANDED"), "assertion violated"),
    Case("planted: offered before it is there", (*LATE, "OFFERED_BEFORE_IT_IS_THERE"), "assertion violated"),
    Case("planted: a cached read too many", (*CACHED, "READS_OFF_BY_ONE"), "assertion violated"),
    Case("planted: pushes without pulling", (*LATE, "PUSHES_WITHOUT_PULLING"), "assertion violated", ("-E",)),
]


def run(words, folder):
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def check(case):
    """What is wrong with the outcome of a case, or nothing; and its figures."""
    with tempfile.TemporaryDirectory(prefix="stratagem-model-") as folder:
        macros = [f"-D{macro}" for macro in case.macros]
        for words in (
            ["spin", *macros, "-a", str(MODEL)],
            ["cc", "-O0" if case.finds else "-O1", "-w", "-DSAFETY", f"-DMEMLIM={MOST_MB}", "-o", "pan", "pan.c"],
        ):
            code, told = run(words, folder)
            if code != 0:
                return f"{' '.join(words)}: {told}", ""
        _, told = run(["./pan", "-m200000", *case.checker], folder)
    errors = re.search(r"errors: (\d+)", told)
    states = re.search(r"(\d+) states, stored", told)
    figures = f"{int(states[1]):,} states" if states else "no figures"
    whole = "Search not completed" not in told and "max search depth too small" not in told
    if case.finds:
        wrong = "" if errors and errors[1] != "0" and case.finds in told else "the error was not found"
    else:
        wrong = "" if errors and errors[1] == "0" and whole else "it does not hold, or not all was searched"
    return wrong and f"{wrong}\n{told}", figures


def main():
    for tool in "spin", "cc":
        if shutil.which(tool) is None:
            print(f"needs {tool}")
            sys.exit(SKIPPED)
    wanted = sys.argv[1:]
    failed = 0
    for case in CASES:
        if wanted and case.name not in wanted:
            continue
        begin = time.monotonic()
        wrong, figures = check(case)
        took = f"{time.monotonic() - begin:.1f} s"
        print(f"{case.name}: {figures}, {took}", f"FAILED: {wrong}" if wrong else "", flush=True)
        failed += bool(wrong)
    sys.exit(failed > 0)


main()

"""Runs one fuzz target: replays its corpus, then looks for new inputs.

`fuzz.py TARGET CORPUS SECONDS [libFuzzer's options]`. Exits with 1 on a crash, a leak, an input that takes longer than
10 s, or more than 256 MB of memory in addition to what the program takes without input (mostly LibTorch). The failing
input is kept in fuzz-failures/. The last line is a row of a table:
target | executions | executions/s | edges | additional memory [MB] | slowest input [s]
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

MOST_MB = 256
MOST_SECONDS = 10  # wall time, on a machine that may be busy


def run(words, scratch):
    # Sanitizers keep freed memory to detect its use; too much of it would hide what a reader takes.
    environment = os.environ | {"TMPDIR": scratch, "ASAN_OPTIONS": "quarantine_size_mb=8"}
    ended = subprocess.run(
        words, env=environment, stderr=subprocess.PIPE, text=True, errors="replace", check=False
    )
    figures = {name: int(value) for name, value in re.findall(r"stat::(\w+): +(\d+)", ended.stderr)}
    return ended, figures


def main():
    target, corpus, seconds, *options = sys.argv[1:]
    corpus = pathlib.Path(corpus)
    if not any(corpus.iterdir()):
        sys.exit(f"no seeds in {corpus}")
    failures = pathlib.Path("fuzz-failures")
    failures.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stratagem-fuzz-") as scratch:
        found = pathlib.Path(scratch) / "found"
        found.mkdir()
        ended, idle = run([target, "-runs=1", "-print_final_stats=1", *options], scratch)
        if ended.returncode != 0:
            sys.exit(f"{target} does not even start:\n{ended.stderr}")
        ended, figures = run(
            [
                target,
                found,
                corpus,
                f"-max_total_time={seconds}",
                f"-timeout={MOST_SECONDS}",
                f"-rss_limit_mb={idle['peak_rss_mb'] + MOST_MB}",
                f"-malloc_limit_mb={MOST_MB}",
                f"-artifact_prefix={failures}/",
                "-print_final_stats=1",
                *options,
            ],
            scratch,
        )
    if ended.returncode != 0:
        print(ended.stderr[-20000:])
        sys.exit(f"failed; replay it with {target} {failures}/<file>")
    edges = re.findall(r" cov: (\d+)", ended.stderr)[-1]
    row = [
        corpus.name,
        f"{figures['number_of_executed_units']:,}",
        f"{figures['average_exec_per_sec']:,}",
        edges,
        max(0, figures["peak_rss_mb"] - idle["peak_rss_mb"]),
        figures["slowest_unit_time_sec"],
    ]
    print("| " + " | ".join(str(cell) for cell in row) + " |")


main()

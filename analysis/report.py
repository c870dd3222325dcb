#!/usr/bin/env python3
"""Makes a report of runs: the best strategy and its cost, tables, figures, and the claims of arXiv 2505.12832.

    analysis/report.py runs/study-mini

DIR is a folder written by `stratagem sweep` or `stratagem demo`, or any folder of run directories. The report is
written to DIR/report: report.html (one file), report.md, tables/ and figures/. Needs the packages in requirements.txt.
"""

import argparse
import pathlib
import sys

import outputs
from stratagem_report import packages
from stratagem_report.errors import UNEXPECTED, ReportError
from stratagem_report.program import find_program


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", metavar="DIR", type=pathlib.Path)
    parser.add_argument(
        "-o", "--output", type=pathlib.Path, help="folder of the report; default DIR/report"
    )
    parser.add_argument(
        "--allow-mixed",
        action="store_true",
        help="compare cells of different programs or configurations, and mark the report",
    )
    parser.add_argument(
        "--program",
        help="stratagem, which computes what the report shows; default: on PATH, or ../build/stratagem",
    )
    parser.add_argument(
        "--calibration",
        help="what `stratagem calibrate` measured, for predicted times; default: DIR/calibration.json",
    )
    return parser.parse_args()


def make_report(options):
    """Returns what to print: the first sentence of the report and its path; and what could not be made."""
    from stratagem_report import compare, document, predict, study  # these import the packages

    program = find_program(options.program)
    loaded = study.load(options.directory, options.allow_mixed, program)
    comparison = compare.compare(loaded, predict.predict(loaded, program, options.calibration))
    output = options.output or options.directory / "report"
    headline, failures = document.write(comparison, output)
    told = f"{headline}\n{len(loaded.runs)} of {len(loaded.cells)} cells are complete; wrote {output / 'report.html'}"
    return told, failures


def main():
    options = parse_arguments()
    packages.require("report")
    try:
        told, failures = make_report(options)
    except ReportError as problem:
        print(f"report: error: {problem}", file=sys.stderr)
        return problem.code
    print(told)
    for failure in failures:
        print(f"report: not made, a fault of this report, please tell it: {failure.line}", file=sys.stderr)
    return UNEXPECTED if failures else 0


if __name__ == "__main__":
    sys.exit(outputs.run("report", main))

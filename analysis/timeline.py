#!/usr/bin/env python3
"""Draws one training step of a run: one row per rank and kind of work, on rank 0's clock.

    analysis/timeline.py runs/mnist-lenet-ddp [-o step.svg] [--step N]

The name of the output decides the format: svg, png or pdf. Only steps with recorded spans can be drawn
(trace.spans_every). Without --step, the step with the median duration is drawn. Needs the packages in requirements.txt.
"""

import argparse
import pathlib
import sys

import outputs
from stratagem_report import packages
from stratagem_report.errors import IO, USAGE, ReportError


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="run directory")
    parser.add_argument("-o", "--output", default="step.svg", type=pathlib.Path)
    parser.add_argument("--step", type=int)
    return parser.parse_args()


def draw(options):
    """Returns what to print: the step that was drawn, and where."""
    from stratagem_report import timeline, trace  # these import the packages

    if problem := outputs.taken(options.output, outputs.is_picture, "picture of matplotlib"):
        raise ReportError(problem, USAGE)
    there = options.output.exists()
    figure, step = timeline.draw_run(trace.read_run(options.run), options.step)
    try:
        figure.savefig(options.output)
    except (OSError, ValueError) as problem:
        raise ReportError(f"{options.output} cannot be written: {problem}", IO) from problem
    return f"step {step}: {options.output}{' (replaced)' if there else ''}"


def main():
    options = parse_arguments()
    packages.require("timeline")
    try:
        told = draw(options)
    except ReportError as problem:
        print(f"timeline: error: {problem}", file=sys.stderr)
        return problem.code
    print(told)
    return 0


if __name__ == "__main__":
    sys.exit(outputs.run("timeline", main))

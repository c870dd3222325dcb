#!/usr/bin/env python3
"""Draws one training step of a run: a row per rank and kind of work, on rank 0's clock.

    analysis/timeline.py runs/mnist-lenet-ddp [-o step.svg] [--step N]

Writes what the name of the output ends with: svg, png or pdf. Only steps whose spans were kept can be drawn
(trace.spans_every); without --step the one of median duration is. Needs the packages in requirements.txt.
"""

import argparse
import sys

from stratagem_report import timeline, trace
from stratagem_report.errors import ReportError


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="run directory")
    parser.add_argument("-o", "--output", default="step.svg")
    parser.add_argument("--step", type=int)
    options = parser.parse_args()
    try:
        figure, step = timeline.draw_run(trace.read_run(options.run), options.step)
    except ReportError as problem:
        print(f"timeline: error: {problem}", file=sys.stderr)
        return problem.code
    figure.savefig(options.output)
    print(f"step {step}: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

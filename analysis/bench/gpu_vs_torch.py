#!/usr/bin/env python3
"""stratagem on one GPU against PyTorch, with the same work in turn: as it comes, as a CUDA graph of the whole step, and
compiled (torch.compile in its default mode, for which a start may take 15 minutes; or with kernels found by trial).
stratagem without its graph is measured, too. `--control` has the opponent on both sides.

  python3 analysis/bench/gpu_vs_torch.py --program build-cuda-release/stratagem --models resnet50 --precision bf16

All programs of a row exist at the same time and get the GPU in turn (see paired.py). A ratio above 1 means that
stratagem is faster. Needs Python with torch, torchvision, numpy and h5py.
"""

import contextlib
import functools
import importlib.metadata
import signal
import statistics
import sys
import tempfile
from pathlib import Path

import paired
import programs
import report
import traces

TORCH = {
    "eager": ["--strong"],
    "graph": ["--strong", "--graph"],
    "compiled": ["--strong", "--compile", "--compile-mode", "default", "--graph"],
    "tuned": ["--strong", "--compile", "--graph"],  # max-autotune, which tries kernels
}
OWN = "own without graph"


def starts_of(options, cell):
    """{name: what starts it in a folder}; the first one is compared with all others."""
    ours = functools.partial(programs.Stratagem, options=options, cell=cell, strategy="{name: serial}")
    opponents = {
        name: functools.partial(ours, run=", graph: off") if name == OWN else functools.partial(
            programs.Torch, options=options, cell=cell, script="torch_ddp.py", script_arguments=TORCH[name])
        for name in options.opponents
    }
    return {"ours": opponents[options.opponents[0]] if options.control else ours, **opponents}


def measured_once(options, cell, starts):
    """(phases of the first program, mean step times of all in each turn), of one start."""
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as name, contextlib.ExitStack() as stack:
        running = []
        for number, start in enumerate(starts.values()):
            folder = Path(name) / str(number)
            folder.mkdir()
            running.append(stack.enter_context(start(folder)))
        for program in running:
            program.wait_for_steps(1, options.timeout)
        for program in running:
            program.signal(signal.SIGSTOP)
        windows, times = paired.compare(options, *running)
        own = getattr(running[0], "traces", None)
        phases = traces.phases_ms(own[0], [of_turn[0] for of_turn in windows]) if own else None
    if not times:
        sys.exit(f"{cell}: no window held two steps; raise --min-window")
    return phases, times


def measure(options, cell):
    """The rows of a model: one per opponent."""
    starts = starts_of(options, cell)
    found = [measured_once(options, cell, starts) for _ in range(options.starts)]
    for number, opponent in enumerate(list(starts)[1:], 1):
        of_starts = [[(of_turn[0], of_turn[number]) for of_turn in times] for _, times in found]
        pairs = [pair for of_start in of_starts for pair in of_start]
        yield {**paired.row_of(cell, of_starts, control=options.control), "opponent": opponent,
               "precision": options.precision, "pixels": options.size, "ours_phases_ms": found[-1][0],
               "ours_ms": 1e3 * statistics.median(a for a, _ in pairs),
               "theirs_ms": 1e3 * statistics.median(b for _, b in pairs)}


def main():
    parser = programs.arguments(__doc__, ranks=[1], batches=[128])
    paired.add_pairing(parser)
    parser.add_argument("--opponents", nargs="+", choices=[*TORCH, OWN], default=["eager", "graph", OWN])
    parser.add_argument("--precisions", nargs="+", default=["tf32", "bf16"])
    parser.set_defaults(device="cuda", warm_up=20, starts=3, pairs=6, min_window=0.6, steps=10, timeout=900)
    options = parser.parse_args()
    columns = {"model": "{model}", "images": "{batch_per_rank}", "pixels": "{pixels}", "precision": "{precision}",
               "opponent": "{opponent}", "ours ms": "{ours_ms:.2f}", "theirs ms": "{theirs_ms:.2f}",
               "ratio": "{ratio:.3f}", "interval (coverage)": "{ratio_low:.3f} to {ratio_high:.3f} ({coverage:.1%})",
               "medians of starts": "{least_of_starts:.3f} to {greatest_of_starts:.3f}", "starts": "{starts}",
               "pairs": "{pairs}"}
    facts = programs.machine(options, torch=importlib.metadata.version("torch"))
    table = report.Table(options, columns, machine=facts)
    for precision in options.precisions:
        options.precision = precision
        for cell in programs.cells(options):
            for row in measure(options, cell):
                table.add(row)


if __name__ == "__main__":
    main()

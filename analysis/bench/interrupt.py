#!/usr/bin/env python3
"""How soon a run that receives USR1 has saved and reports it, compared with the limit: two steps and the save. Open
MPI's launcher takes one or two seconds more to exit with the code of its ranks.

  python3 analysis/bench/interrupt.py --models resnet50 --ranks 2

The signal goes to mpirun or to one rank alone, at a random moment of a step. Needs Python with numpy and h5py, and
`build/stratagem`.
"""

import dataclasses
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import programs
import report

COLUMNS = {"model": "{model}", "strategy": "{strategy}", "workers": "{ranks}", "USR1 to": "{target}",
           "step s": "{step_s:.2f}", "saved in s": "{save_s:.2f}", "steps begun after it": "{begun}",
           "SAVED after s": "{told_s:.2f}", "2 steps + saving s": "{limit_s:.2f}",
           "launcher gone after s": "{gone_s:.2f}"}
STRATEGIES = {"DDP": (0, "{name: ddp}"), "ZeRO-3": (0, "{name: fsdp, shard: full}"), "PS sync": (1, "{name: ps}")}
SAVED = 75
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1}


def main():
    parser = programs.arguments(__doc__, ranks=[2], batches=[16])
    options = parser.parse_args()
    table = report.Table(options, COLUMNS, machine=programs.machine(options))
    draw = random.Random(1)
    for cell in programs.cells(options):
        for strategy in STRATEGIES:
            for target in "mpirun", "the last rank":
                table.add(measure(options, cell, strategy, target, draw))


def measure(options, cell, strategy, target, draw):
    servers, mapping = STRATEGIES[strategy]
    cell = dataclasses.replace(cell, servers=servers)
    with tempfile.TemporaryDirectory(dir=".") as name:
        with programs.Stratagem(Path(name), options, cell, mapping) as run:
            launcher = run.processes[0]
            run.wait_for_steps(4, 300)
            step_s = float(np.median(np.diff(run.steps()))) * 1e-9
            pids = sorted(run.ranks())
            time.sleep(draw.random() * step_s)
            begin_ns, begin_wall_ns = time.monotonic_ns(), time.time_ns()
            os.kill(launcher.pid if target == "mpirun" else pids[-1], signal.SIGUSR1)
            code = launcher.wait()
            gone_s = (time.monotonic_ns() - begin_ns) * 1e-9
            outcome = json.loads((Path(name) / "run/outcome.json").read_text())
            begun = int(np.sum(run.steps()[:, 0] > begin_ns))
        said = (Path(name) / "output-0.txt").read_text()
        saved = re.search(r"checkpoint of step \d+: .* in ([\d.]+) (\w+), training waited", said)
        if code != SAVED or not saved:
            sys.exit(f"exit {code}\n{said}")
        save_s = float(saved[1]) * SECONDS[saved[2]]
        return {"model": cell.model, "strategy": strategy, "ranks": cell.ranks, "target": target, "step_s": step_s,
                "save_s": save_s, "begun": begun, "told_s": (outcome["updated_wall_ns"] - begin_wall_ns) * 1e-9,
                "limit_s": 2 * step_s + save_s, "gone_s": gone_s}


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The cost of a checkpoint: how long training waits, how fast bytes reach the disk, and how many bytes there are.

  python3 analysis/bench/checkpoint_cost.py --models vgg16 convnext_l --ranks 1 2 4

The size is compared with the formula (8 bytes per fp32 parameter with momentum, plus the running statistics of every
worker). The bandwidth is compared with that of `dd` with fsync, on the same file system and in the same minute. Needs
Python with numpy, and `build/stratagem`.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import programs
import report

COLUMNS = {"model": "{model}", "ranks": "{ranks}", "strategy": "{strategy}", "size MiB": "{size_mib:.1f}",
           "size / formula": "{size_ratio:.5f}", "training waited s": "{waited_s:.3f}",
           "written after s": "{written_s:.2f}", "MiB/s": "{bandwidth:.0f}", "dd MiB/s": "{dd_bandwidth:.0f}"}
STRATEGIES = {"DDP": "{name: ddp}", "ZeRO-3": "{name: fsdp, shard: full}"}
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}


def main():
    parser = programs.arguments(__doc__, ranks=[1, 2, 4], batches=[2])
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    options = parser.parse_args()
    table = report.Table(options, COLUMNS, machine=programs.machine(options))
    for cell in programs.cells(options):
        for strategy in options.strategies:
            table.add(measure(options, cell, strategy))


def measure(options, cell, strategy):
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        config, out = folder / "config.yaml", folder / "run"
        programs.write_config(config, options, cell, STRATEGIES[strategy], spans_every=0)
        # Three steps, saved after the second.
        command = [*programs.launch(options, cell.ranks), "run", config, "--out", out, "--max-steps", "3",
                   "-s", "checkpoint.every_steps=2", "--progress", "none"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        told = re.search(r"checkpoint of step 2: .* in ([\d.]+) (\w+), training waited ([\d.]+) (\w+)", done.stderr)
        written, waited = (float(told[i]) * SECONDS[told[i + 1]] for i in (1, 3))
        checkpoint = out / "checkpoint" / "step-000000002"
        size = sum(part.stat().st_size for part in checkpoint.glob("*.safetensors"))
        plan = subprocess.run([options.program, "plan", config, "--ranks", str(cell.ranks), "--json"],
                              capture_output=True, text=True, check=True)
        formula = expected_bytes(json.loads(plan.stdout), cell)
        return {"model": cell.model, "ranks": cell.ranks, "strategy": strategy, "size_mib": size / 2**20,
                "size_ratio": size / formula, "waited_s": waited, "written_s": written,
                "bandwidth": size / 2**20 / (written - waited), "dd_bandwidth": dd_bandwidth(folder, size)}


def expected_bytes(plan, cell):
    return 8 * plan["parameters"] + cell.ranks * plan["memory_B"]["buffers"]


def dd_bandwidth(folder, size):
    """Bandwidth [MiB/s] of one writer of as many bytes."""
    blocks = max(size // 2**20, 1)
    begin = time.monotonic()
    subprocess.run(["dd", "if=/dev/zero", f"of={folder / 'dd'}", "bs=1M", f"count={blocks}", "conv=fsync"], check=True,
                   capture_output=True)
    return blocks / (time.monotonic() - begin)


if __name__ == "__main__":
    main()

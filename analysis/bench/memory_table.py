#!/usr/bin/env python3
"""Memory and traffic of each strategy: predicted by `stratagem plan`, and measured in a short run.

  python3 analysis/bench/memory_table.py --models resnet50 --ranks 1 2 4 --markdown MEMORY.md

Exits with 1 if the lasting bytes of a rank (parameters, gradients, optimizer, buffers) or the bytes sent per step
differ from the prediction. Needs Python with numpy and h5py, and `build/stratagem`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import programs
import report
import traces

STRATEGIES = {"DDP": "{{name: ddp}}", "ZeRO-1": "{{name: fsdp, shard: optimizer{more}}}",
              "ZeRO-2": "{{name: fsdp, shard: gradients{more}}}", "ZeRO-3": "{{name: fsdp, shard: full{more}}}"}
COLUMNS = {"model": "{model}", "images/rank": "{batch_per_rank}", "ranks": "{ranks}", "strategy": "{strategy}",
           **{f"{category} B": f"{{{category}}}" for category in traces.LASTING},
           "peak plan MiB": "{peak_plan_mib:.1f}", "peak MiB": "{peak_mib:.1f}", "difference": "{peak_difference:+.2%}",
           "growth live B": "{growth_allocated:+,}", "growth reserved B": "{growth_reserved:+,}",
           "sent per step B": "{sent}"}
ABOUT = """\
# Memory and traffic per rank: predicted and measured
CIFAR-10 at 32x32, fp32, SGD with momentum.
{machine}
```
python3 analysis/bench/memory_table.py --models {models} --batches {batches} --ranks {ranks} \\
    --strategies {strategies} --steps {steps}{more}
```
- **parameters, gradients, optimizer, buffers**: lasting bytes, predicted by `stratagem plan`. Every sample of every
  rank must be equal to the byte; if one is not, the cell shows `predicted ≠ measured`.
- **peak**: the most live tensor bytes during the steps, without the data, on the rank with the highest peak; and the
  difference from the plan.
- **growth**: by how many bytes a later step exceeds the third at most, sampled where backward passes begin, on the
  rank that grew most: live tensor bytes, and bytes that the heap took from the system.
- **sent per step**: mean over ranks, of the steps between the first and the last.

"""


def plan_and_run(options, cell, strategy, folder):
    """The plan, as JSON, and the traces of a short run."""
    config, out = folder / "config.yaml", folder / "run"
    programs.write_config(config, options, cell, strategy, spans_every=1)
    plan = [options.program, "plan", config, "--ranks", str(cell.ranks), "--json"]
    run = [*programs.launch(options, cell.ranks), "run", config, "--out", out, "--max-steps", str(options.steps),
           "--progress", "none"]
    told = []
    for command in (plan, run):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        told.append(done.stdout)
    return json.loads(told[0]), sorted(out.glob("trace/a0/rank-*.h5"))


def compared(predicted, measured):
    """Text of a prediction, and of the measured values that differ from it: there should be none."""
    wrong = sorted(set(measured) - {predicted})
    return f"{predicted:,}" + (f" ≠ {' or '.join(f'{value:,}' for value in wrong)}" if wrong else "")


def growth(path, samples):
    """Bytes (live, reserved) by which the maximum of a later step exceeds that of the third. The last two steps are
    left out: the loader then holds fewer batches ready."""
    steps = [(samples["t"] >= begin) & (samples["t"] <= end) for begin, end in traces.steps(path)[2:-2]]
    grown = []
    for kind in ("allocated", "reserved"):
        third, *later = (samples[kind][step].max() for step in steps)
        grown.append(int(max(later) - third))
    return grown


def sent_bytes(paths, predicted):
    """Bytes sent in each step between the first and the last, mean over the ranks. The prediction rounds each operation
    down; a difference that rounding explains counts as equal."""
    of_ranks = [traces.sent_per_step(path) for path in paths]
    found = []
    for step in sorted(of_ranks[0])[1:-1]:
        sent, operations = np.mean([of_rank[step] for of_rank in of_ranks], axis=0)
        rounded = 0 <= sent - predicted < max(operations, 1)
        found.append(predicted if rounded else round(sent))
    return found


def measure(options, cell, name):
    """A row of the table."""
    strategy = STRATEGIES[name].format(more=f", {options.fsdp}" if options.fsdp else "")
    with tempfile.TemporaryDirectory(prefix="stratagem-memory-") as folder:
        plan, paths = plan_and_run(options, cell, strategy, Path(folder))
        samples = [traces.memory(path) for path in paths]
        grown = np.max([growth(path, of_rank) for path, of_rank in zip(paths, samples)], axis=0)
        peak, sent = max(map(traces.peak_bytes, paths)), plan["bytes_sent_per_step"]
        row = {"model": cell.model, "batch_per_rank": cell.batch, "ranks": cell.ranks, "strategy": name,
               "peak_mib": peak / 2**20, "growth_allocated": int(grown[0]), "growth_reserved": int(grown[1]),
               "sent": compared(sent, sent_bytes(paths, sent))}
    for category in traces.LASTING:
        measured = {int(value) for of_rank in samples for value in of_rank[category]}
        row[category] = compared(plan["memory_B"][category], measured)
    if "peak_B" in plan:
        row |= {"peak_plan_mib": plan["peak_B"] / 2**20, "peak_difference": peak / plan["peak_B"] - 1}
    return row


def about(options, machine):
    """The text above the table, with the command line that reproduces it."""
    lists = {key: " ".join(map(str, getattr(options, key))) for key in ("models", "batches", "ranks", "strategies")}
    more = f" --fsdp '{options.fsdp}'" if options.fsdp else ""
    return ABOUT.format(machine=json.dumps(machine), steps=options.steps, more=more, **lists)


def main():
    parser = programs.arguments(__doc__, ranks=[1, 2, 4], batches=[4])
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--fsdp", default="", help="further options of FSDP, as YAML")
    parser.add_argument("--steps", type=int, default=7, help="at least 6")
    parser.add_argument("--markdown", help="also write the table to this file")
    options = parser.parse_args()
    if options.steps < 6:
        parser.error("--steps: the third is compared with later ones but for the last two, so at least 6")

    machine = programs.machine(options)
    table = report.Table(options, COLUMNS, machine=machine)
    for cell in programs.cells(options):
        for name in options.strategies:
            table.add(measure(options, cell, name))
            if options.markdown:
                Path(options.markdown).write_text(about(options, machine) + table.markdown(), encoding="utf-8")
    wrong = [row for row in table.rows if any("≠" in str(value) for value in row.values())]
    if wrong:
        sys.exit(f"{len(wrong)} of {len(table.rows)} rows are not as predicted")


if __name__ == "__main__":
    main()

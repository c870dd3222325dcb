#!/usr/bin/env python3
"""Steps with compressed gradients against steps in fp32, or of local SGD against DDP: two ranks on two nodes that a
link of a given rate joins.

  python3 analysis/bench/compressed_links.py --model lenet --rates 100mbit --codes int8 int4 sign local:16
  ... --strategies "name: fsdp, shard: full" "name: ps, mode: sync"   codes of others than DDP
  ... --strategies "name: fsdp" --codes int8 int8/int8                also of parameters that are gathered
  ... --control          compares fp32 with fp32

Both nodes are inside this machine (linked_nodes.py): needs root. The two programs take turns, each started `--pairs`
times; of each start the median step counts, without the first ones; of local:H the mean of whole rounds of H steps. A
ratio above 1 means that the code, or local SGD, is faster. Codes have error feedback.
"""

import contextlib
import statistics
import subprocess
import tempfile
from pathlib import Path

import linked_nodes
import programs
import report
import traces

CONFIG = """\
schema: 1
run: {{name: bench, device: cpu, threads: 1, max_steps: {steps}, evaluate_every: 0}}
data: {{dataset: {dataset}, global_batch: {images}}}
model: {{name: {model}}}
strategy: {{{strategy}}}
watchdog: {{floor_s: 600}}
trace: {{spans_every: 0, device_sample_hz: 0}}
"""


def strategy_of(code, plain="name: ddp"):
    """Of a code's name, for the strategy in fp32; of GRADIENTS/PARAMETERS, two codes; or of local:H."""
    if code.startswith("local:"):
        return f"name: local, inner_steps: {code.removeprefix('local:')}"
    gradients, _, parameters = code.partition("/")
    coded = "" if gradients == "none" else f", compression: {gradients}, error_feedback: true"
    return plain + coded + (f", parameter_compression: {parameters}" if parameters else "")


@contextlib.contextmanager
def trained(options, nodes, strategy, settings=()):
    """The trace of rank 0 of a run with further settings, KEY=VALUE; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as name:
        folder = Path(name)
        (folder / "config.yaml").write_text(CONFIG.format(strategy=strategy, **vars(options)))
        words = [Path(options.program).resolve(), "run", folder / "config.yaml", "--out", folder / "run", "-q",
                 *programs.set_words(settings)]
        subprocess.run(nodes.mpirun(1, words), stdin=subprocess.DEVNULL, capture_output=True, check=True,
                       timeout=options.timeout)
        yield folder / "run/trace/a0/rank-0000.h5"


def step_of(options, nodes, code, plain="name: ddp"):
    """Time of a step [s]."""
    with trained(options, nodes, strategy_of(code, plain)) as trace:
        seconds = [1e-9 * (end - begin) for begin, end in traces.steps(trace)]
    if not code.startswith("local:"):
        return statistics.median(seconds[options.warm_up:])
    of_round = int(code.removeprefix("local:"))
    return statistics.fmean(seconds[of_round : len(seconds) // of_round * of_round])


def measure(options, nodes, rate, plain, code):
    found = linked_nodes.compare(options, code, "none", lambda way: step_of(options, nodes, way, plain))
    return {"model": options.model, "strategy": plain, "rate": rate, "code": code, **found}


def main():
    parser = linked_nodes.arguments(__doc__, pairs=5)
    parser.add_argument("--model", default="lenet")
    parser.add_argument("--dataset", default="synthetic-digits")
    parser.add_argument("--images", type=int, default=64, help="of all ranks together")
    parser.add_argument("--rates", nargs="+", default=["100mbit"])
    parser.add_argument("--codes", nargs="+", default=["bf16", "int8", "int4", "ternary", "sign"],
                        metavar="CODE", help="or GRADIENTS/PARAMETERS, or local:H")
    parser.add_argument("--strategies", nargs="+", default=["name: ddp"], help="each as YAML")
    parser.add_argument("--steps", type=int, default=20, help="of each start")
    parser.add_argument("--warm-up", type=int, default=4, help="steps that do not count")
    options = parser.parse_args()
    columns = {"model": "{model}", "strategy": "{strategy}", "code": "{code}", "link": "{rate}",
               "step ms": "{ours_ms:.1f}", "fp32 ms": "{theirs_ms:.1f}", **linked_nodes.RATIO_COLUMNS}
    table = report.Table(options, columns, machine=programs.machine(options))
    with linked_nodes.LinkedNodes() as nodes:
        for rate in options.rates:
            nodes.rate(rate)
            for plain in options.strategies:
                for code in options.codes:
                    table.add(measure(options, nodes, rate, plain, code))


if __name__ == "__main__":
    main()

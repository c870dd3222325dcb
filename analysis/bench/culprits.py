#!/usr/bin/env python3
"""Injects faults into running jobs. Counts how often the right rank is named, and how soon the job ends.

A fault hits a random rank under a random strategy: SIGSTOP or SIGKILL at a random moment, or an endless loop in a
random phase of a random step. The named rank is read from outcome.json, as a scheduler's script would do. Needs a build
with failpoints (`-D STRATAGEM_FAILPOINTS=ON`, the default with tests) and h5dump.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

CONFIG = """schema: 1
run: {name: fault, threads: 1, epochs: 1000000, evaluate_every: 0, out: out}
data: {dataset: synthetic-digits, global_batch: 12, subset: 1200}
model: {name: lenet}
strategy: {name: ddp}
checkpoint: {every_minutes: 0}
"""
PHASES = ["data", "forward", "backward", "comm_exposed", "optimizer"]
# Strategy: (numbers of ranks, settings, phases of a worker's step).
STRATEGIES = {
    "ddp": ([2, 3, 4], [], PHASES),
    "fsdp": ([2, 3, 4], ["strategy.name=fsdp", "strategy.unit_mb=0.05"], PHASES),
    "ps": ([3, 4], ["strategy.name=ps"], PHASES[:4]),
}
SIGNALS = {"stop": signal.SIGSTOP, "kill": signal.SIGKILL}
# Exit code of the launcher, and code in outcome.json.
CODES = {"stop": (81, 81), "spin": (81, 81), "kill": (137, 80)}
LIMIT_S = 60


@dataclasses.dataclass(frozen=True)
class Fault:
    strategy: str
    ranks: int
    victim: int
    kind: str
    phase: str  # of a spin
    step: int  # of a spin
    wait_s: float  # until a signal is sent

    @staticmethod
    def draw(chance):
        strategy = chance.choice(list(STRATEGIES))
        counts, _, phases = STRATEGIES[strategy]
        ranks = chance.choice(counts)
        victim = chance.randrange(ranks)
        serves = strategy == "ps" and victim == ranks - 1
        return Fault(
            strategy=strategy,
            ranks=ranks,
            victim=victim,
            kind=chance.choice(list(CODES)),
            phase="serve" if serves else chance.choice(phases),
            step=chance.randrange(2, 200),
            wait_s=chance.uniform(0.2, 3),
        )


@dataclasses.dataclass(frozen=True)
class Result:
    fault: Fault
    right: bool  # only the culprit was named, and both codes are right
    seconds: float  # from the fault until the last process was gone
    told: str


def lives(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return re.search(r"^State:\s+[ZX]", status, re.MULTILINE) is None


def await_all(condition, what):
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.01)


def pids_of(run, ranks):
    await_all(lambda: len(list(run.glob("trace/a0/rank-*.h5"))) == ranks, "the run does not start")
    return [row["process"] for row in json.loads((run / "manifest.json").read_text())["ranks"]]


def last_step_ns(run):
    """When the last step in the traces of the workers began."""
    begins = [0]
    for path in run.glob("trace/a0/rank-*.h5"):
        words = ["h5dump", "-y", "-w", "0", "-d", "/steps/t_begin_ns", str(path)]
        dumped = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        values = re.search(r"^   DATA \{\n(.*?)^   \}", dumped, re.MULTILINE | re.DOTALL)
        begins += [int(number) for number in re.findall(r"\d+", values[1])] if values else []
    return max(begins)


def inject(program, fault, folder):
    run = folder / "out"
    (folder / "config.yaml").write_text(CONFIG)
    words = ["mpirun", "--bind-to", "none", "-n", str(fault.ranks), program, "run", "config.yaml"]
    for setting in STRATEGIES[fault.strategy][1]:
        words += ["-s", setting]
    environment = dict(os.environ)
    if fault.kind == "spin":
        environment["STRATAGEM_FAIL"] = f"{fault.phase}:{fault.victim}:{fault.step}:spin"
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        [*words, "--progress", "none"], cwd=folder, env=environment, start_new_session=True, **quiet
    ) as job:
        try:
            pids = pids_of(run, fault.ranks)
            if fault.kind in SIGNALS:
                time.sleep(fault.wait_s)
                begin = time.monotonic_ns()
                os.kill(pids[fault.victim], SIGNALS[fault.kind])
            await_all(lambda: job.poll() is not None, "the job does not end")
            await_all(lambda: not any(map(lives, pids)), "a rank does not end")
        except TimeoutError as problem:
            os.killpg(job.pid, signal.SIGKILL)
            return Result(fault, False, float("inf"), str(problem))
        end = time.monotonic_ns()
    if fault.kind == "spin":
        begin = last_step_ns(run)
    outcome = json.loads((run / "outcome.json").read_text())
    named = [int(rank) for rank in re.findall(r"rank (\d+) \(process", outcome["reason"])]
    codes = (job.returncode, outcome["exit_code"])
    right = named == [fault.victim] and codes == CODES[fault.kind]
    return Result(fault, right, (end - begin) * 1e-9, f"{codes} {outcome['reason']}")


def table(results):
    lines = [
        "| strategy | fault | injections | named right | median s | longest s |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    groups = collections.defaultdict(list)
    for result in results:
        groups[result.fault.strategy, result.fault.kind].append(result)
    for (strategy, kind), group in [*sorted(groups.items()), (("all", ""), results)]:
        seconds = [result.seconds for result in group]
        lines.append(
            f"| {strategy} | {kind} | {len(group)} | {sum(result.right for result in group)} | "
            f"{statistics.median(seconds):.1f} | {max(seconds):.1f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--injections", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1, help="of the faults; the n-th has seed + n")
    options = parser.parse_args()
    results = []
    for number in range(options.injections):
        fault = Fault.draw(random.Random(options.seed + number))
        folder = pathlib.Path(tempfile.mkdtemp(prefix="stratagem-culprits-"))
        result = inject(str(options.program.resolve()), fault, folder)
        shutil.rmtree(folder, ignore_errors=True)
        results.append(result)
        verdict = "right" if result.right else f"WRONG: {result.told}"
        print(f"{number} {fault} {result.seconds:.1f} s {verdict}", flush=True)
    print(table(results))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""stratagem's DDP against PyTorch's on Gloo, on the same work at the same time.

Both programs run all along; SIGSTOP and SIGCONT let one of them at a time have the machine, for windows of
several steps in the order ABBA. Only steps that begin and end within a window count, but for its first. A
pair of windows gives one ratio of mean step times; shown is the median of the ratios and an interval that
holds the true median with a probability of at least 95 % (order statistics, no assumption on the
distribution). A ratio above 1 means that stratagem is faster.

  python3 analysis/bench/ddp_vs_torch.py --data $STRATAGEM_DATA/cifar-10-batches-bin --models resnet50
  ... --control     the opponent against itself: what the method can tell apart

Needs Python with torch, torchvision, numpy and h5py, and `build/stratagem`.
"""

import argparse
import json
import math
import os
import platform
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import torch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Our name of a model, torchvision's.
MODELS = {"vgg16": "vgg16", "resnet50": "resnet50", "densenet121": "densenet121",
          "efficientnetv2_l": "efficientnet_v2_l", "convnext_l": "convnext_large"}

CONFIG = """\
schema: 1
run: {{name: bench, device: cpu, ranks: {ranks}, threads: {threads}, epochs: 100000, evaluate_every: 0}}
data: {{dataset: cifar10, root: "{root}", global_batch: {global_batch}}}
model: {{name: {model}}}
strategy: {{name: ddp}}
trace: {{spans_every: 0, device_sample_hz: 0}}
"""


class Program:
    """Processes that train until they are stopped; `steps()` are (begin, end) of rank 0 in ns."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []

    def start(self, command, environment=None):
        output = open(self.folder / f"output-{len(self.processes)}.txt", "wb")
        with output:
            self.processes.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                                                   stdin=subprocess.DEVNULL, env=environment))

    def ranks(self):
        return [process.pid for process in self.processes]

    def signal(self, number):
        for pid in self.ranks():
            os.kill(pid, number)

    def wait_for_steps(self, count, timeout_s):
        end = time.monotonic() + timeout_s
        while len(self.steps()) < count:
            ended = [process.args for process in self.processes if process.poll() is not None]
            if ended or time.monotonic() > end:
                told = "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("output-*.txt")))
                sys.exit(f"{'ended early' if ended else 'too slow'}: {ended or self.folder}\n{told[-3000:]}")
            time.sleep(0.2)

    def end(self):
        for pid in self.ranks():
            os.kill(pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()


class Stratagem(Program):
    def __init__(self, folder, options, model, batch):
        super().__init__(folder)
        config = folder / "config.yaml"
        config.write_text(CONFIG.format(ranks=options.ranks, threads=options.threads, model=model,
                                        root=Path(options.data).resolve().parent,
                                        global_batch=batch * options.ranks))
        self.program = os.path.realpath(options.program)
        launcher = options.launcher.format(ranks=options.ranks).split()
        self.start([*launcher, options.program, "run", config, "--out", folder / "run", "--progress", "none"])

    def ranks(self):
        """The launcher's descendants that are the program itself."""
        found, open_ends = [], [process.pid for process in self.processes]
        while open_ends:
            pid = open_ends.pop()
            try:
                open_ends += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
                if os.path.realpath(f"/proc/{pid}/exe") == self.program:
                    found.append(pid)
            except OSError:
                pass  # it has just ended
        return found

    def steps(self):
        try:
            with h5py.File(self.folder / "run/trace/a0/rank-0000.h5", "r", libver="latest", swmr=True) as trace:
                begin, duration = trace["/steps/t_begin_ns"], trace["/steps/dur_step_ns"]
                count = min(len(begin), len(duration))
                return np.stack([begin[:count], begin[:count] + duration[:count]], axis=1)
        except (OSError, KeyError):
            return np.empty((0, 2), np.int64)  # not written yet


class TorchDdp(Program):
    def __init__(self, folder, options, model, batch, strong):
        super().__init__(folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        for rank in range(options.ranks):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(options.ranks), MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(port), OMP_NUM_THREADS=str(options.threads))
            self.start([sys.executable, HERE / "torch_ddp.py", "--model", MODELS[model], "--data", options.data,
                        "--batch", str(batch), "--threads", str(options.threads), "--log", folder / f"steps-{rank}.txt",
                        *(["--strong"] if strong else [])], environment)

    def steps(self):
        log = self.folder / "steps-0.txt"
        lines = log.read_text().splitlines(keepends=True) if log.exists() else []
        pairs = [line.split() for line in lines if line.endswith("\n")]
        return np.array(pairs, np.int64).reshape(-1, 2)


def mean_step(steps, window):
    """Mean duration [s] of the steps within `window`, but for the first, whose caches were cold."""
    inside = steps[(steps[:, 0] >= window[0]) & (steps[:, 1] <= window[1])][1:]
    return 1e-9 * float(np.mean(inside[:, 1] - inside[:, 0])) if len(inside) else math.nan


def median_interval(values):
    """(median, low, high): low and high enclose the true median with at least 95 %, or are the extremes."""
    ordered, n = sorted(values), len(values)
    outside = 0
    while outside < n // 2 and 2 * sum(math.comb(n, i) for i in range(outside + 1)) <= 0.05 * 2**n:
        outside += 1
    outside = max(outside - 1, 0)
    return statistics.median(ordered), ordered[outside], ordered[n - 1 - outside]


def window_of(program, seconds):
    program.signal(signal.SIGCONT)
    begin = time.monotonic_ns()
    time.sleep(seconds)
    end = time.monotonic_ns()
    program.signal(signal.SIGSTOP)
    return begin, end


def compare(options, ours, theirs):
    """Paired windows of two programs that have both just been started, the second one stopped."""
    seconds = options.min_window
    for program in (ours, theirs):
        program.signal(signal.SIGCONT)
        program.wait_for_steps(options.warm_up, options.timeout)
        recent = program.steps()[-2:]
        seconds = max(seconds, options.steps * 1e-9 * float(np.mean(recent[:, 1] - recent[:, 0])))
        program.signal(signal.SIGSTOP)
    windows = []
    for pair in range(options.pairs):
        first, second = (ours, theirs) if pair % 2 == 0 else (theirs, ours)
        spans = {first: window_of(first, seconds), second: window_of(second, seconds)}
        windows.append((spans[ours], spans[theirs]))
    ours.signal(signal.SIGCONT)
    time.sleep(2.5)  # its trace reaches the file every second
    all_ours, all_theirs = ours.steps(), theirs.steps()
    times = [(mean_step(all_ours, a), mean_step(all_theirs, b)) for a, b in windows]
    return [(a, b) for a, b in times if not math.isnan(a + b)]


def measure(options, model, batch, opponent):
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as name:
        folders = [Path(name) / part for part in ("ours", "theirs")]
        for folder in folders:
            folder.mkdir()
        strong = opponent == "strong"
        ours = (TorchDdp(folders[0], options, model, batch, strong) if options.control
                else Stratagem(folders[0], options, model, batch))
        theirs = None
        try:
            ours.wait_for_steps(1, options.timeout)
            ours.signal(signal.SIGSTOP)
            theirs = TorchDdp(folders[1], options, model, batch, strong)
            times = compare(options, ours, theirs)
        finally:
            ours.end()
            if theirs:
                theirs.end()
    if not times:
        sys.exit(f"{model}, {batch} images per rank: no window held two steps; raise --min-window")
    images = batch * options.ranks
    ratio, low, high = median_interval([b / a for a, b in times])
    return {"model": model, "batch_per_rank": batch, "opponent": opponent, "pairs": len(times),
            "ours_images_per_s": images / statistics.median(a for a, _ in times),
            "theirs_images_per_s": images / statistics.median(b for _, b in times),
            "ratio": ratio, "ratio_low": low, "ratio_high": high, "step_times_s": times}


def machine(options):
    """What the figures were taken on."""
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    version = subprocess.run([options.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"processor": cpu, "cores": os.cpu_count(), "stratagem": version, "torch": torch.__version__,
            "ranks": options.ranks, "threads_per_rank": options.threads}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.path.join(os.environ.get("STRATAGEM_DATA", ""), "cifar-10-batches-bin"))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 16], help="images per rank")
    parser.add_argument("--opponents", nargs="+", choices=["default", "strong"], default=["strong", "default"])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="per rank")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=float, default=5, help="least window, in steps of the slower program")
    parser.add_argument("--min-window", type=float, default=4, help="least window [s]")
    parser.add_argument("--warm-up", type=int, default=3, help="steps before measuring")
    parser.add_argument("--timeout", type=float, default=600, help="for starting and warming up [s]")
    parser.add_argument("--program", default=str(ROOT / "build/stratagem"))
    parser.add_argument("--launcher", default="mpirun --bind-to none -n {ranks}")
    parser.add_argument("--control", action="store_true", help="the opponent against itself")
    parser.add_argument("--json", help="also write everything, raw step times too, to this file")
    options = parser.parse_args()

    results = {"machine": machine(options), "control": options.control, "rows": []}
    print(json.dumps(results["machine"]))
    print("| model | images/rank | opponent | ours images/s | theirs images/s | ratio | 95 % interval | pairs |")
    print("| --- | ---: | --- | ---: | ---: | ---: | --- | ---: |")
    for model in options.models:
        for batch in options.batches:
            for opponent in options.opponents:
                row = measure(options, model, batch, opponent)
                results["rows"].append(row)
                print(f"| {model} | {batch} | {opponent} | {row['ours_images_per_s']:.1f} | "
                      f"{row['theirs_images_per_s']:.1f} | {row['ratio']:.3f} | "
                      f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f} | {row['pairs']} |", flush=True)
                if options.json:
                    Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

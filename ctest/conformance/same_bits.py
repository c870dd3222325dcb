#!/usr/bin/env python3
"""Shows whether a change of the program changes any bit: final digests of runs with every strategy and mode.

    python3 ctest/conformance/same_bits.py build/stratagem > before.txt
    python3 ctest/conformance/same_bits.py build/stratagem --compare before.txt

A digest depends on the processor's instructions. With --portable only instructions of every x86-64 processor are used,
so that tables of different machines can be compared. Asynchronous modes are simulated and replayed, because their real
runs differ by chance. Strategies that an older program lacks are left out.
"""

import argparse
import functools
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CONFIG = """schema: 1
run: {name: bits, threads: 1, epochs: 100, evaluate_every: 0, out: out}
data: {dataset: synthetic-digits, global_batch: 24, subset: 240}
model: {name: mlp}
trace: {spans_every: 0}
"""
PORTABLE = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"}
LARGE = ["vgg16", "resnet50", "densenet121", "efficientnetv2_l", "convnext_l"]
STRATEGIES = {
    "serial": [],
    "ddp": ["strategy.bucket_mb=0.5"],
    "ddp-no-overlap": ["strategy.name=ddp", "strategy.overlap=false"],
    "zero1": ["strategy.name=fsdp", "strategy.shard=optimizer", "strategy.unit_mb=0.25"],
    "zero2": ["strategy.name=fsdp", "strategy.shard=gradients", "strategy.unit_mb=0.25"],
    "zero3": ["strategy.name=fsdp", "strategy.shard=full", "strategy.unit_mb=0.25"],
    "zero3-reshard-late": ["strategy.name=fsdp", "strategy.reshard_after_forward=false", "strategy.unit_mb=0.25"],
    "local": ["strategy.workers=6", "strategy.inner_steps=4"],
    "gossip": ["strategy.workers=6"],
    "gossip-push-sum": ["strategy.name=gossip", "strategy.workers=6", "strategy.graph=star", "strategy.push_sum=true"],
    "fedavg": ["strategy.clients=20", "strategy.per_round=6", "strategy.split=shards", "strategy.server_momentum=0.9",
               "data.global_batch=12"],
    "ps-sync": ["strategy.name=ps", "strategy.chunk_mb=0.5"],
    "ps-sync-two-servers": ["strategy.name=ps", "strategy.servers=2", "strategy.chunk_mb=0.25"],
    "ps-delayed-sync": ["strategy.name=ps", "strategy.mode=delayed_sync"],
}
SYNCHRONOUS = ["ddp", "zero2", "zero3", "ps-sync"]
MODES = ["async", "ssp", "modified", "lag_cap", "dana", "dc", "dc_adaptive", "gap_aware", "softsync", "backup"]


def named(name):
    """Settings of a strategy in STRATEGIES, with its name."""
    settings = STRATEGIES[name]
    has_name = any(text.startswith("strategy.name=") for text in settings)
    return settings if has_name else [f"strategy.name={name}", *settings]


def ranks_of(settings, workers):
    servers = next((int(text.split("=")[1]) for text in settings if text.startswith("strategy.servers=")), 1)
    return workers + (servers if "strategy.name=ps" in settings else 0)


def trainings():
    """(name, ranks, settings) of ordinary runs."""
    for name in STRATEGIES:
        for workers in (1,) if name == "serial" else (1, 2, 3):
            settings = [*named(name), "model.name=lenet", "run.max_steps=12"]
            yield f"lenet {name} w{workers}", ranks_of(settings, workers), settings
    residual = ["model.name=resnet50", "data.dataset=synthetic-shapes", "data.global_batch=4", "run.max_steps=2"]
    for name in SYNCHRONOUS:
        yield f"resnet50 {name} w2", ranks_of(named(name), 2), [*named(name), *residual]
    for model in LARGE:
        settings = [*named("serial"), *residual, f"model.name={model}", "data.input_size=32"]
        yield f"{model} serial", 1, settings
    for what, more in {
        "bf16": ["precision.compute=bf16", "precision.loss_scale=none"],
        "scaled bf16": ["precision.compute=bf16", "precision.loss_scale=dynamic"],
        "clipped": ["optimizer.clip_norm=0.1"],
        "nesterov": ["optimizer.nesterov=true", "optimizer.weight_decay=0.001"],
        "cosine": ["optimizer.schedule=cosine", "optimizer.warmup_steps=3"],
        "recomputed": ["model.recompute=all"],
    }.items():
        for name in ["serial", *SYNCHRONOUS[1:]]:
            settings = [*named(name), "model.name=lenet", "run.max_steps=8", *more]
            yield f"lenet {what} {name}", ranks_of(settings, 1 if name == "serial" else 2), settings
    for name in SYNCHRONOUS:
        micro = [*named(name), "strategy.micro_batches=2", "run.max_steps=8"]
        yield f"mlp micro-batches {name}", ranks_of(micro, 2), micro


class Program:
    def __init__(self, program, folder, portable):
        self.program, self.folder = program, folder
        self.environment = {**os.environ, **(PORTABLE if portable else {})}

    def run(self, *words, ranks=1):
        launcher = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
        done = subprocess.run(
            [*launcher, self.program, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: code {done.returncode}\n{done.stderr}")
        return done.stdout + done.stderr

    @functools.cached_property
    def strategies(self):
        return {line.split()[0] for line in self.run("list", "strategies").splitlines() if line.strip()}

    def knows(self, settings):
        """Whether it has the strategy of these settings."""
        return all(text.split("=")[1] in self.strategies for text in settings if text.startswith("strategy.name="))

    def train(self, out, ranks, settings, *more):
        words = ["run", "config.yaml", *(word for text in settings for word in ("-s", text))]
        self.run(*words, "--out", out, "-q", *more, ranks=ranks)
        return json.loads((self.folder / out / "outcome.json").read_text())["digest"]

    def as_if_interrupted(self, out):
        """After its last checkpoint; a run that is complete would not be resumed."""
        path = self.folder / out / "outcome.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "SAVED"}))


def digests(program):
    """(name, digest) of all runs."""
    for index, (name, ranks, settings) in enumerate(trainings()):
        if program.knows(settings):
            yield name, program.train(f"t{index}", ranks, settings)
    for name in [*SYNCHRONOUS, "local", "gossip-push-sum", "fedavg"]:
        if not program.knows(named(name)):
            continue
        settings = [*named(name), "model.name=lenet", "checkpoint.every_steps=5"]
        program.train(f"r-{name}", ranks_of(settings, 2), [*settings, "run.max_steps=6"])
        program.as_if_interrupted(f"r-{name}")
        resumed = [*settings, "run.max_steps=12"]
        yield f"lenet resumed {name}", program.train(f"r-{name}", ranks_of(settings, 2), resumed, "--resume")
    for mode in MODES:
        settings = ["strategy.name=ps", f"strategy.mode={mode}", "run.max_steps=20"]
        words = [word for text in settings for word in ("-s", text)]
        told = json.loads(program.run("simulate", "config.yaml", *words, "--workers", "3", "--json"))
        learned = f"{told['train_loss']} {told['test_accuracy']} {told['lag_mean']}"  # with all digits
        yield f"mlp simulated {mode}", hashlib.sha256(learned.encode()).hexdigest()[:16]
        program.train(f"a-{mode}", 3, settings)
        program.run("replay", f"a-{mode}")  # fails if the digest differs from the run's
        yield f"mlp replayed {mode}", "as the run"


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--compare", type=pathlib.Path, metavar="FILE", help="what an earlier program printed")
    parser.add_argument("--portable", action="store_true", help="with the instructions that every x86-64 has")
    return parser.parse_args()


def main():
    options = parse_arguments()
    before = {}
    if options.compare:
        before = dict(line.rsplit("  ", 1) for line in options.compare.read_text().splitlines())
    moved = []
    with tempfile.TemporaryDirectory(prefix="same-bits-") as folder:
        (pathlib.Path(folder) / "config.yaml").write_text(CONFIG)
        for name, digest in digests(Program(options.program.resolve(), pathlib.Path(folder), options.portable)):
            print(f"{name}  {digest}", flush=True)
            if options.compare and before.pop(name, digest) != digest:
                moved.append(name)
    moved += before
    if moved:
        print(f"moved: {', '.join(moved)}", file=sys.stderr)
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())

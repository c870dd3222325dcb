"""Exported models under every synchronous strategy: the final parameters have the same bits as when one process plays
all workers, with dropout and stochastic depth. Then an exported ResNet50 against the built-in one, with the same
weights.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import safetensors.torch
import torch
import torchvision

import exported

CONFIG = """\
schema: 1
run: {{name: net, threads: 1, max_steps: 3, evaluate_every: 0, out: run}}
data: {{dataset: synthetic-shapes, input_size: {pixels}, global_batch: 12, subset: 48}}
model: {{{model}}}
optimizer: {{name: sgd, lr: 0.001, momentum: 0.9}}
strategy: {{name: serial}}
"""
FAMILIES = "mobilenet_v2", "convnext_tiny", "efficientnet_b0", "swin_t"
STRATEGIES = {
    "ddp": ["name=ddp", "bucket_mb=1"],
    "zero1": ["name=fsdp", "shard=optimizer"],
    "zero2": ["name=fsdp", "shard=gradients"],
    "zero3": ["name=fsdp", "shard=full"],
    "ps": ["name=ps", "mode=sync"],
}
RANKS = {2: tuple(STRATEGIES), 4: ("ddp", "zero3")}  # that compute
FURTHER_RANKS = {1: ("ddp", "zero3"), 3: ("zero2", "ps")}  # of the first family


class Runs:
    def __init__(self, options, folder):
        self.options, self.folder, self.count = options, folder, 0

    def digest(self, *words, ranks=1):
        """Of the parameters in the end."""
        self.count += 1
        out = self.folder / f"run-{self.count}"
        launcher = [self.options.mpiexec, "--bind-to", "none", "-n", ranks]
        self.start(*launcher, self.options.program, "run", *words, "--out", out)
        return json.loads((out / "outcome.json").read_text())["digest"]

    def start(self, *words):
        command = [str(word) for word in (*words, "-q")]
        return subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def settings(strategy):
    return [word for key in STRATEGIES[strategy] for word in ("-s", f"strategy.{key}")]


def check_family(runs, name, strategies_of):
    make, shape = exported.MODELS[name]
    torch.manual_seed(1)
    exported.export(make().train(), torch.randn(2, *shape), runs.folder / f"{name}.pt2")
    config = CONFIG.format(pixels=shape[-1], model=f"file: {name}.pt2")
    (runs.folder / "net.yaml").write_text(config)
    for workers, strategies in strategies_of.items():
        expected = runs.digest("net.yaml", "-s", f"strategy.emulate_ranks={workers}")
        for strategy in strategies:
            ranks = workers + (strategy == "ps")
            found = runs.digest("net.yaml", *settings(strategy), ranks=ranks)
            print(f"{name:16} {workers} workers  {strategy:6} {found}", flush=True)
            assert found == expected, f"{name}, {workers} workers, {strategy}: {found}, one process: {expected}"


def check_resnet50(runs):
    """The operators are the same, so the bits are."""
    torch.manual_seed(1)
    model = torchvision.models.resnet50(num_classes=10).train()
    safetensors.torch.save_file(model.state_dict(), runs.folder / "resnet50.safetensors")
    exported.export(model, torch.randn(2, 3, 64, 64), runs.folder / "resnet50.pt2")
    digests = []
    for kind in ("file: resnet50.pt2", "name: resnet50, weights: resnet50.safetensors"):
        (runs.folder / "net.yaml").write_text(CONFIG.format(pixels=64, model=kind))
        digests.append(runs.digest("net.yaml", "-s", "run.max_steps=5", "-s", "data.subset=60"))
    print(f"resnet50: exported {digests[0]}, built in {digests[1]}")
    assert digests[0] == digests[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpiexec", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(options, Path(folder))
        check_resnet50(runs)
        for number, name in enumerate(FAMILIES):
            check_family(runs, name, RANKS if number else RANKS | FURTHER_RANKS)


if __name__ == "__main__":
    main()

"""A checkpoint, and the weights exported from it, in Python: safetensors reads both. torchvision's model loads the
weights and computes the same as stratagem."""

import argparse
import subprocess
import tempfile
from pathlib import Path

import safetensors.torch
import torch
import torchvision

CONFIG = """\
schema: 1
run: {name: saved, threads: 1, max_steps: 2, evaluate_every: 0, out: run}
data: {dataset: synthetic-shapes, global_batch: 8, subset: 16}
model: {name: densenet121}
strategy: {name: fsdp}
checkpoint: {every_steps: 1}
"""
RANKS = 2


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpiexec", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(options, Path(folder))


def run(folder, *words):
    subprocess.run([str(word) for word in words], cwd=folder, check=True)


def check(options, folder):
    (folder / "config.yaml").write_text(CONFIG)
    # Stopped after its second step, and saved after the first.
    run(folder, options.mpiexec, "--bind-to", "none", "-n", RANKS, options.program, "run", "config.yaml",
        "--progress", "none")
    checkpoint = folder / "run" / "checkpoint" / "step-000000001"
    tensors = {}
    for part in sorted(checkpoint.glob("*.safetensors")):
        read = safetensors.torch.load_file(part)
        assert not tensors.keys() & read.keys(), "every tensor is saved once"
        tensors.update(read)

    run(folder, options.program, "export-weights", checkpoint, "weights.safetensors")
    weights = safetensors.torch.load_file(folder / "weights.safetensors")
    model = torchvision.models.densenet121(num_classes=10)
    model.load_state_dict(weights, strict=True)
    trained = dict(model.named_parameters())
    assert {f"parameters/{name}" for name in trained} == {n for n in tensors if n.startswith("parameters/")}
    assert {f"momentum/{name}" for name in trained} == {n for n in tensors if n.startswith("momentum/")}
    for name, parameter in trained.items():
        assert torch.equal(parameter, tensors[f"parameters/{name}"]), name
    for name, buffer in model.named_buffers():
        of_workers = [tensors[f"buffers/{worker}/{name}"] for worker in range(RANKS)]
        mean = sum(of_workers) / RANKS if buffer.is_floating_point() else of_workers[0]
        assert torch.equal(buffer, mean), name
    print(f"{len(tensors)} tensors of the checkpoint, {len(weights)} of the weights file")


if __name__ == "__main__":
    main()

"""Compares models exported by torch.export with the same models in Python, in float64, with the same weights and inputs.

The file is exported in float32, as a user would. Checks the names and shapes of the state, then logits, loss and every
gradient: in evaluation, in training without dropout and stochastic depth, and in training with them, where Python uses
the masks that stratagem made. Then checks three steps of SGD with momentum.
"""

import argparse
import copy
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch
import torchvision
from safetensors import safe_open
from safetensors.torch import save_file

import oracle

CLASSES, BATCH = 10, 6
PIXELS = {"maxvit_t": 224, "googlenet": 64, "alexnet": 64, "squeezenet1_1": 64}  # of the others 32
OPTIONS = {
    "vit_b_32": {"image_size": 64},
    "googlenet": {"init_weights": False},
}
FAMILIES = [
    "alexnet", "resnet18", "resnext50_32x4d", "wide_resnet50_2", "densenet121", "mobilenet_v2", "mobilenet_v3_small",
    "mnasnet0_5", "efficientnet_b0", "efficientnet_v2_s", "convnext_tiny", "regnet_y_400mf", "shufflenet_v2_x0_5",
    "squeezenet1_1", "googlenet", "vit_b_32", "swin_t", "maxvit_t", "resnet50",
]


def make(name):
    torch.manual_seed(1)
    return getattr(torchvision.models, name)(num_classes=CLASSES, **OPTIONS.get(name, {})).train()


def export(model, example, path):
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, (example,), dynamic_shapes=({0: batch},), strict=False)
    torch.export.save(program, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="path of oracle_program")
    parser.add_argument("--models", nargs="+", default=FAMILIES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    passed = True
    for name in arguments.models:
        with tempfile.TemporaryDirectory(prefix="stratagem-oracle-") as folder:
            print(name, flush=True)
            passed = check(arguments.program, name, Path(folder)) and passed
    sys.exit(0 if passed else 1)


def check(program, name, folder):
    model, pixels = make(name), PIXELS.get(name, 64)
    file = folder / f"{name}.pt2"
    export(model, torch.randn(2, 3, pixels, pixels), file)
    model = model.double()
    oracle.scramble(model)
    images = torch.randn(BATCH, 3, pixels, pixels, dtype=torch.float64)
    labels = torch.arange(BATCH) * 3 % CLASSES
    start, output = folder / "input.safetensors", folder / "output.safetensors"
    state = copy.deepcopy(model.state_dict())
    save_file({"input.images": images, "input.labels": labels} | dict(state), start)
    table = oracle.Table()
    for mode in ("eval", "train"):
        steps = 3 if mode == "train" else 0
        subprocess.run([program, file, mode, str(steps), start, output], check=True)
        model.load_state_dict(state)
        model.train(mode != "eval").zero_grad()
        oracle.use_masks(model, {})
        with safe_open(output, "pt") as ours, safe_open(start, "pt") as before:
            oracle.compare(table, mode, model, images, labels, ours)
    return table.passed


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""stratagem training a model exported by torch.export: against its own built-in model, and against PyTorch DDP.

  python3 analysis/bench/exported_speed.py built-in                  ResNet50 and DenseNet121
  python3 analysis/bench/exported_speed.py torch --models resnet18   any model of torchvision that takes num_classes

DDP on both sides; PyTorch is the strong opponent of ddp_vs_torch.py. A ratio above 1 means that the exported model is
faster. Needs Python with numpy, h5py, torch and torchvision.
"""

import dataclasses
import functools
import importlib.metadata
import pathlib
import sys
import tempfile

import torch
import torchvision

import ddp_vs_torch
import paired
import programs
import report

sys.path.insert(0, str(programs.HERE.parent))

from model_export.file import save  # noqa: E402
from model_export.graph import export as traced  # noqa: E402

BUILT_IN = ["resnet50", "densenet121"]
FAMILIES = ["resnet18", "mobilenet_v2", "regnet_y_400mf", "shufflenet_v2_x1_0", "squeezenet1_1", "convnext_tiny"]
DDP = "{name: ddp}"


def export(name, size, folder):
    model = getattr(torchvision.models, programs.MODELS[name])(num_classes=10).train()
    program, _ = traced(model, torch.randn(2, 3, size, size))
    file = folder / f"{name}.pt2"
    save(program, file)
    return file


def options_of():
    programs.MODELS.update({name: name for name in torchvision.models.list_models()})
    parser = paired.arguments(__doc__, ranks=[2])
    parser.set_defaults(models=None)
    parser.add_argument("what", choices=["built-in", "torch"])
    options = parser.parse_args()
    options.models = options.models or (BUILT_IN if options.what == "built-in" else FAMILIES)
    return options


def main():
    options = options_of()
    columns = {"model": "{model}", "images/rank": "{batch_per_rank}", "ranks": "{ranks}", "exported / theirs": "{name}",
               **paired.speed_columns()}
    facts = programs.machine(options, torch=importlib.metadata.version("torch"))
    table = report.Table(options, columns, machine=facts)
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as name:
        for cell in programs.cells(options):
            exported = dataclasses.replace(cell, file=str(export(cell.model, options.size, pathlib.Path(name))))
            ours = functools.partial(programs.Stratagem, options=options, cell=exported, strategy=DDP)
            if options.what == "built-in":
                theirs = functools.partial(programs.Stratagem, options=options, cell=cell, strategy=DDP)
            else:
                theirs = functools.partial(programs.Torch, options=options, cell=cell, script="torch_ddp.py",
                                           script_arguments=ddp_vs_torch.OPPONENTS["strong"])
            table.add({**paired.measure(options, cell, ours, theirs), "name": options.what})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""One rank of PyTorch FSDP2 on Gloo: the opponent of `fsdp_vs_torch.py`.

Freed heap pages are kept, and images are channels_last where that is faster. Weights are contiguous and SGD is the
foreach version, because FSDP2 refuses others on the CPU. Units are by default the model's blocks: layers of VGG,
bottlenecks, dense layers and transitions, MBConvs, ConvNeXt blocks, stems and heads. Single norms belong to the root
unit. `--units equal` joins neighbouring blocks until they have 4 MiB, as stratagem does; `--units one` leaves all to
the root.
"""

import torch
import torchvision
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torchvision.models.densenet import _DenseBlock

import torch_training

UNIT_BYTES = 4 * 2**20  # stratagem's default
NORMS = (torch.nn.BatchNorm2d, torch.nn.LayerNorm)


def blocks(module):
    """The units below `module`, in the order of the forward pass."""
    for child in module.children():
        if type(child) in (torch.nn.Sequential, _DenseBlock):
            yield from blocks(child)
        elif not isinstance(child, NORMS) and any(True for _ in child.parameters()):
            yield child


def joined(modules, least_bytes):
    """Neighbouring blocks in lists that have at least `least_bytes`; the last may have less."""
    units, size = [[]], 0
    for module in modules:
        if units[-1] and size >= least_bytes:
            units.append([])
            size = 0
        units[-1].append(module)
        size += sum(parameter.numel() * parameter.element_size() for parameter in module.parameters())
    return units if units[-1] else []


def units_of(model, wanted):
    """Lists of modules that are gathered together, below the root."""
    if wanted == "one":
        return []
    return joined(blocks(model), UNIT_BYTES if wanted == "equal" else 0)


def main():
    parser = torch_training.arguments(__doc__)
    parser.add_argument("--units", choices=["blocks", "equal", "one"], default="blocks")
    options = parser.parse_args()
    torch_training.keep_heap()
    torch_training.join(options)
    model = getattr(torchvision.models, options.model)(num_classes=10)
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for unit in [*units_of(model, options.units), model]:
        fully_shard(unit, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
    torch_training.train(options, model, optimizer, torch_training.faster_format(options.model))


if __name__ == "__main__":
    torch_training.run(main)

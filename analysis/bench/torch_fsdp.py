#!/usr/bin/env python3
"""One rank of PyTorch FSDP2 on Gloo: the opponent of `fsdp_vs_torch.py`.

Freed heap pages are kept, and images are channels_last where that is faster. Weights are contiguous and SGD is the
foreach version, because FSDP2 refuses others on the CPU. Units are the model's blocks: layers of VGG, bottlenecks,
dense layers and transitions, MBConvs, ConvNeXt blocks, stems and heads. Single norms belong to the root unit.
"""

import torch
import torchvision
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torchvision.models.densenet import _DenseBlock

import torch_training

NORMS = (torch.nn.BatchNorm2d, torch.nn.LayerNorm)


def blocks(module):
    """The units below `module`, in the order of the forward pass."""
    for child in module.children():
        if type(child) in (torch.nn.Sequential, _DenseBlock):
            yield from blocks(child)
        elif not isinstance(child, NORMS) and any(True for _ in child.parameters()):
            yield child


def main():
    options = torch_training.arguments(__doc__).parse_args()
    torch_training.keep_heap()
    torch_training.join(options)
    model = getattr(torchvision.models, options.model)(num_classes=10)
    mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
    for unit in [*blocks(model), model]:
        fully_shard(unit, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=True)
    torch_training.train(options, model, optimizer, torch_training.faster_format(options.model))


if __name__ == "__main__":
    torch_training.run(main)

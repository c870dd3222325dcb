#!/usr/bin/env python3
"""One rank of PyTorch DDP on Gloo or, on GPUs, NCCL: the opponent of `ddp_vs_torch.py`. A single rank does not use DDP.

  default  contiguous tensors, foreach SGD, gradients as views of the buckets
  strong   in addition keeps freed heap pages, and uses fused SGD, channels_last where it is faster, and the fastest
           convolutions of cuDNN
  compiled a compiled model; with a graph, of a whole step, on a GPU
"""

import torch
import torchvision
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

import torch_training


def compress(model, hook):
    """Gradients travel as PyTorch's hook writes them; PowerSGD from the second step on, as its least."""
    if hook == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif hook:
        model.register_comm_hook(None, getattr(default_hooks, f"{hook}_compress_hook"))


def main():
    parser = torch_training.arguments(__doc__)
    parser.add_argument("--strong", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--compile-mode", default="max-autotune-no-cudagraphs", help="of torch.compile; or default")
    parser.add_argument("--hook", choices=["fp16", "bf16", "powersgd"], help="of DDP, for gradients")
    options = parser.parse_args()
    if options.strong:
        torch_training.keep_heap()
    torch_training.join(options)

    torch.backends.cudnn.benchmark = options.strong
    memory_format = torch_training.faster_format(options.model) if options.strong else torch.contiguous_format
    model = getattr(torchvision.models, options.model)(num_classes=10)
    model = model.to(options.device, memory_format=memory_format)
    if torch.distributed.get_world_size() > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        compress(model, options.hook)
    if options.compile:
        model.compile(mode=options.compile_mode)
    kind = {"fused": True} if options.strong else {"foreach": True}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **kind)
    torch_training.train(options, model, optimizer, memory_format)


if __name__ == "__main__":
    torch_training.run(main)

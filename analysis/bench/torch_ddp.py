#!/usr/bin/env python3
"""One rank of PyTorch DDP on Gloo: what `ddp_vs_torch.py` compares with.

  default  contiguous tensors, foreach SGD, gradients as views of the buckets
  strong   the same with freed heap pages kept, fused SGD, and channels_last where it is faster
"""

import torch
import torchvision

import torch_training


def main():
    parser = torch_training.arguments(__doc__)
    parser.add_argument("--strong", action="store_true")
    options = parser.parse_args()
    if options.strong:
        torch_training.keep_heap()
    torch_training.join(options)

    memory_format = torch_training.faster_format(options.model) if options.strong else torch.contiguous_format
    model = getattr(torchvision.models, options.model)(num_classes=10).to(memory_format=memory_format)
    model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    kind = {"fused": True} if options.strong else {"foreach": True}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **kind)
    torch_training.train(options, model, optimizer, memory_format)


if __name__ == "__main__":
    torch_training.run(main)

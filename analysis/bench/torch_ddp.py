#!/usr/bin/env python3
"""One rank of PyTorch DDP on Gloo, training until it is killed: what `ddp_vs_torch.py` compares with.

Needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Every rank writes `begin end` (CLOCK_MONOTONIC, ns)
of each step, a line each, to its log.

  default  contiguous tensors, foreach SGD, gradients as views of the buckets
  strong   the same with freed heap pages kept, fused SGD, and channels_last where it is faster
"""

import argparse
import ctypes
import os
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torchvision


def keep_heap():
    """glibc keeps freed pages instead of returning them to the kernel and faulting them in again."""
    libc = ctypes.CDLL("libc.so.6")
    m_trim_threshold, m_mmap_threshold = -1, -3
    libc.mallopt(m_mmap_threshold, 1 << 30)
    libc.mallopt(m_trim_threshold, (1 << 31) - 1)


def read_cifar(folder):
    """All training images as floats of zero mean and unit variance, and their labels."""
    files = sorted(Path(folder).glob("data_batch_*.bin"))
    records = np.concatenate([np.fromfile(f, np.uint8).reshape(-1, 3073) for f in files])
    images = torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()).float() / 255
    mean, std = images.mean((0, 2, 3), keepdim=True), images.std((0, 2, 3), keepdim=True)
    return (images - mean) / std, torch.from_numpy(records[:, 0].astype(np.int64))


def batches(count, per_rank, rank, world):
    """Indices of this rank's samples, epoch after epoch; the last short batch is dropped."""
    epoch = 0
    while True:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))
        for begin in range(0, count - world * per_rank + 1, world * per_rank):
            yield order[begin + rank * per_rank : begin + (rank + 1) * per_rank]
        epoch += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", required=True, help="cifar-10-batches-bin")
    parser.add_argument("--batch", type=int, required=True, help="images per rank")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--strong", action="store_true")
    parser.add_argument("--log", required=True)
    options = parser.parse_args()

    if options.strong:
        keep_heap()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()

    channels_last = options.strong and not options.model.startswith("convnext")
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    model = getattr(torchvision.models, options.model)(num_classes=10).to(memory_format=memory_format)
    model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    kind = {"fused": True} if options.strong else {"foreach": True}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **kind)
    images, labels = read_cifar(options.data)

    with open(options.log, "w", buffering=1, encoding="ascii") as log:
        for indices in batches(len(labels), options.batch, rank, world):
            begin = time.monotonic_ns()
            x = images[indices].contiguous(memory_format=memory_format)
            loss = torch.nn.functional.cross_entropy(model(x), labels[indices])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.write(f"{begin} {time.monotonic_ns()}\n")


if __name__ == "__main__":
    try:
        main()
    finally:
        os._exit(0)  # a thread of Gloo may otherwise abort while the interpreter ends

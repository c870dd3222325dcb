"""Shared code of the PyTorch benchmarks: data, the step, and how processes start and end.

Needs RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Every rank trains until it is killed, and writes a line `begin end`
(CLOCK_MONOTONIC, ns) for each step to its log.
"""

import argparse
import collections
import ctypes
import os
import time
import traceback
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="torchvision's name")
    parser.add_argument("--data", required=True, help="cifar-10-batches-bin")
    parser.add_argument("--batch", type=int, required=True, help="images per rank")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--size", type=int, default=32, help="of the images [pixels]")
    parser.add_argument("--graph", action="store_true", help="the whole step is one CUDA graph")
    parser.add_argument("--log", required=True)
    return parser


def keep_heap():
    """Makes glibc keep freed pages, instead of returning them to the kernel and faulting them in again."""
    libc = ctypes.CDLL("libc.so.6")
    m_trim_threshold, m_mmap_threshold = -1, -3
    libc.mallopt(m_mmap_threshold, 1 << 30)
    libc.mallopt(m_trim_threshold, (1 << 31) - 1)


def faster_format(model):
    """The faster memory format of images for this model."""
    return torch.contiguous_format if model.startswith("convnext") else torch.channels_last


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


def join(options):
    """Makes this process a rank of the group."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    rounds = options.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = rounds
    dist.init_process_group("gloo" if options.device == "cpu" else "nccl")


class Ahead:
    """On a GPU, the host is at most two steps ahead."""

    def __init__(self, device):
        self.on_gpu = device == "cuda"
        self.pending = collections.deque()

    def wait(self):
        if not self.on_gpu:
            return
        self.pending.append(torch.cuda.Event())
        self.pending[-1].record()
        if len(self.pending) > 2:
            self.pending.popleft().synchronize()


def captured(step):
    """The same step of (images, labels) as one CUDA graph, after a few that are not captured."""
    inputs, graph, count = None, torch.cuda.CUDAGraph(), 0

    def run(*given):
        nonlocal inputs, count
        count += 1
        if inputs is None:
            inputs = [tensor.clone(memory_format=torch.preserve_format) for tensor in given]
        for tensor, value in zip(inputs, given, strict=True):
            tensor.copy_(value)
        if count <= 5:
            aside = torch.cuda.Stream()
            aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                step(*inputs)
            torch.cuda.current_stream().wait_stream(aside)
            return
        if count == 6:
            with torch.cuda.graph(graph):
                step(*inputs)
        graph.replay()

    return run


def train(options, model, optimizer, memory_format):
    """Trains forever. On a GPU, all images are on it."""
    images, labels = (tensor.to(options.device) for tensor in read_cifar(options.data))
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.precision)
    scaler = torch.amp.GradScaler(options.device, enabled=half == torch.float16)

    def step(x, y):
        # A cache of weights in half precision would outlive the graph that wrote it.
        with torch.autocast(options.device, dtype=half, enabled=half is not None, cache_enabled=not options.graph):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    if options.graph:
        step = captured(step)
    ahead = Ahead(options.device)
    with open(options.log, "w", buffering=1, encoding="ascii") as log:
        for indices in batches(len(labels), options.batch, dist.get_rank(), dist.get_world_size()):
            begin = time.monotonic_ns()
            indices = indices.to(options.device)
            x = images[indices].contiguous(memory_format=memory_format)
            if options.size != x.shape[-1]:
                x = torch.nn.functional.interpolate(x, size=(options.size, options.size), mode="bilinear")
            step(x, labels[indices])
            ahead.wait()
            log.write(f"{begin} {time.monotonic_ns()}\n")


def run(main):
    """Runs `main` and ends the process at once: a thread of Gloo may abort during the interpreter's normal end."""
    try:
        main()
    except Exception:
        traceback.print_exc()
    os._exit(1)  # a training ends by a signal

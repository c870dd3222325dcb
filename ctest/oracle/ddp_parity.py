"""Compares the losses of a DDP run of stratagem with PyTorch's DDP on Gloo: same weights, same batches, same memory
format, one thread per rank.

Both start from the weights that `stratagem run` saves before any step. `order_program`, which runs the sampler alone,
prints the images of each batch. Training is chaotic in fp32, so only the first steps are compared; in fp32 a BatchNorm
whose maps have one pixel loses what differs between samples, so a model with such maps is compared in fp64. Exits with
1 if a loss differs too much.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

MODELS = {"vgg16": "vgg16", "resnet50": "resnet50"}
RANKS, BATCH = 2, 16
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
LEARNING_RATE, MOMENTUM = 0.01, 0.9


def run_stratagem(options, folder, *overrides):
    config = folder / "config.yaml"
    config.write_text(
        f'run: {{name: parity, threads: 1, epochs: 1, evaluate_every: 0, device: cpu}}\n'
        f'data: {{dataset: cifar10, root: "{options.data}", global_batch: {BATCH}}}\n'
        f'model: {{name: {options.model}, dropout: false}}\n'
        f'optimizer: {{lr: {LEARNING_RATE}, momentum: {MOMENTUM}}}\n'
        f'precision: {{compute: {options.precision}}}\n'
        f'strategy: {{name: ddp}}\n', encoding="utf-8")
    command = [options.mpiexec, "--bind-to", "none", "-n", str(RANKS), options.program, "run", str(config),
               "--progress", "none"]
    subprocess.run(command + [word for override in overrides for word in ("-s", override)], check=True)


def our_losses(folder):
    with h5py.File(folder / "trace/a0/rank-0000.h5", "r") as trace:
        return trace["steps/loss"][:]


def read_cifar(data):
    files = [Path(data) / "cifar-10-batches-bin" / f"data_batch_{i}.bin" for i in range(1, 6)]
    records = np.concatenate([np.fromfile(file, np.uint8).reshape(-1, 3073) for file in files])
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)


def train_rank(options):
    """One rank of the opponent; prints its losses."""
    import torch
    import torch.distributed as dist
    import torchvision
    from safetensors.torch import load_file

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = getattr(torchvision.models, MODELS[options.model])(num_classes=10)
    number = {"fp32": torch.float32, "fp64": torch.float64}[options.precision]
    model.to(number).load_state_dict(load_file(options.weights))
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model = torch.nn.parallel.DistributedDataParallel(model.to(memory_format=torch.channels_last))
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    images, labels = read_cifar(options.data)
    order = [int(line) for line in Path(options.order).read_text(encoding="ascii").split()]
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    share = BATCH // RANKS
    for step in range(options.steps):
        begin = step * BATCH + dist.get_rank() * share
        chosen = order[begin : begin + share]
        pixels = torch.from_numpy(images[chosen]).float() / 255
        x = ((pixels - mean) / std).to(number).contiguous(memory_format=torch.channels_last)
        loss = torch.nn.functional.cross_entropy(model(x), torch.from_numpy(labels[chosen]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if dist.get_rank() == 0:
            print(f"{total.item() / RANKS:.17g}", flush=True)


def their_losses(options, weights, order):
    """Starts the ranks; rank 0 prints the losses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    base = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(RANKS), OMP_NUM_THREADS="1")
    command = [sys.executable, __file__, "--rank-of", str(weights), "--order", str(order), "--model", options.model,
               "--steps", str(options.steps), "--data", options.data, "--precision", options.precision,
               "--program", "-"]
    ranks = [subprocess.Popen(command, env=dict(base, RANK=str(rank)), stdout=subprocess.PIPE, text=True)
             for rank in range(RANKS)]
    told = [rank.communicate()[0] for rank in ranks]
    return np.array([float(line) for line in told[0].split()])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--order-program")
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--precision", choices=["fp32", "fp64"], default="fp32")
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--data", default=os.environ.get("STRATAGEM_DATA", ""))
    parser.add_argument("--rank-of", dest="weights")
    parser.add_argument("--order")
    options = parser.parse_args()
    if options.weights:
        train_rank(options)
        os._exit(0)  # a thread of Gloo may otherwise abort while the interpreter ends
    if not options.data:
        print("SKIPPED: needs STRATAGEM_DATA")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        weights, order = folder / "initial.safetensors", folder / "order.txt"
        run_stratagem(options, folder, f"run.out={folder / 'initial'}", "run.epochs=0", f"run.save_weights={weights}")
        run_stratagem(options, folder, f"run.out={folder / 'run'}", f"run.max_steps={options.steps}")
        images = len(read_cifar(options.data)[1])
        order.write_text(subprocess.run([options.order_program, "1", "0", str(images)], check=True, text=True,
                                        stdout=subprocess.PIPE).stdout, encoding="ascii")
        ours, theirs = our_losses(folder / "run"), their_losses(options, weights, order)
    difference = np.abs(ours - theirs) / np.abs(theirs)
    print(f"{'step':>4} {'stratagem':>12} {'PyTorch DDP':>12} {'relative':>10}")
    for step, row in enumerate(zip(ours, theirs, difference)):
        print(f"{step:4} {row[0]:12.7f} {row[1]:12.7f} {row[2]:10.1e}")
    good = len(ours) == len(theirs) == options.steps and bool((difference <= options.tolerance).all())
    verdict = "ok" if good else "FAILED"
    print(f"{options.model}: largest difference {difference.max():.1e}, limit {options.tolerance:.0e}: {verdict}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""One rank of a simple parameter server in Python: the opponent of `ps_speed.py`.

The last rank is the server. A worker sends all its gradients as one tensor and receives all parameters. The server
applies SGD with momentum, to the mean over the workers (sync) or to each gradient when it arrives (async).

  gloo    send and recv of torch.distributed
  mpi4py  Send and Recv of numpy arrays; started by mpirun
"""

import time

import torch
import torch.distributed as dist
import torchvision

import torch_training


class Gloo:
    def __init__(self):
        dist.init_process_group("gloo")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def send(self, tensor, rank):
        dist.send(tensor, rank)

    def receive(self, tensor, rank=None):
        """Receives from `rank`, or from any rank if it is None; returns the sender."""
        return dist.recv(tensor, rank)


class Mpi:
    def __init__(self):
        from mpi4py import MPI  # pylint: disable=import-outside-toplevel  # it starts MPI
        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size

    def send(self, tensor, rank):
        self.comm.Send(tensor.numpy(), rank)

    def receive(self, tensor, rank=None):
        status = self.mpi.Status()
        self.comm.Recv(tensor.numpy(), self.mpi.ANY_SOURCE if rank is None else rank, status=status)
        return status.Get_source()


def serve(link, parameters, workers, sync, log):
    """Each line of the log is one update from all workers (sync), or as many updates as there are workers (async)."""
    gradient, momentum = torch.empty_like(parameters), torch.zeros_like(parameters)
    for worker in range(workers):
        link.send(parameters, worker)
    while True:
        begin, total = time.monotonic_ns(), torch.zeros_like(parameters)
        for worker in range(workers):
            sender = link.receive(gradient, worker if sync else None)
            if sync:
                total.add_(gradient, alpha=1 / workers)
                if worker < workers - 1:
                    continue
            momentum.mul_(0.9).add_(total if sync else gradient)
            parameters.add_(momentum, alpha=-0.01)
            for receiver in range(workers) if sync else [sender]:
                link.send(parameters, receiver)
        log.write(f"{begin} {time.monotonic_ns()}\n")


def flatten(parameters):
    """Moves all parameters, and all gradients, into one tensor each; they become views of it."""
    flat = [torch.zeros(sum(p.numel() for p in parameters)) for _ in range(2)]
    begin = 0
    for p in parameters:
        values, gradient = (part[begin : begin + p.numel()].as_strided(p.shape, p.stride()) for part in flat)
        values.copy_(p.detach())
        p.data, p.grad = values, gradient
        begin += p.numel()
    return flat


def work(link, model, memory_format, options):
    images, labels = torch_training.read_cifar(options.data)
    server = link.size - 1
    parameters, gradients = flatten(list(model.parameters()))
    for indices in torch_training.batches(len(labels), options.batch, link.rank, server):
        link.receive(parameters, server)
        x = images[indices].contiguous(memory_format=memory_format)
        gradients.zero_()
        torch.nn.functional.cross_entropy(model(x), labels[indices]).backward()
        link.send(gradients, server)


def main():
    parser = torch_training.arguments(__doc__)
    parser.add_argument("--transport", choices=("gloo", "mpi4py"), required=True)
    parser.add_argument("--mode", choices=("sync", "async"), required=True)
    options = parser.parse_args()
    torch_training.keep_heap()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    link = Gloo() if options.transport == "gloo" else Mpi()
    memory_format = torch_training.faster_format(options.model)
    model = getattr(torchvision.models, options.model)(num_classes=10).to(memory_format=memory_format)
    if link.rank < link.size - 1:
        work(link, model, memory_format, options)
    flat, _ = flatten(list(model.parameters()))
    with open(options.log, "w", buffering=1, encoding="ascii") as log:
        serve(link, flat, link.size - 1, options.mode == "sync", log)


if __name__ == "__main__":
    torch_training.run(main)

"""Nets of two layers with a buffer that forward() writes and reads. They take images of 3x8x8."""

import torch
from torch import nn


class Reads(nn.Module):
    """Two layers, and a buffer that forward() reads. `change` is what it does in training."""

    def __init__(self, change, type_of_buffer=torch.float32):
        super().__init__()
        self.body, self.head, self.change = nn.Conv2d(3, 8, 3), nn.Linear(8, 10), change
        self.register_buffer("seen", (torch.rand(8) * 4).to(type_of_buffer))
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x):
        z = self.body(x).mean((2, 3))
        now = self.change(self, z.detach().mean(0)) if self.training else None
        return self.head(z - (self.seen if now is None else now).to(z.dtype))


def move(net, mean):
    net.seen.mul_(0.9).add_(mean, alpha=0.1)


def move_in_two(net, mean):
    net.seen.mul_(0.9)
    net.seen.add_(mean, alpha=0.1)


def move_without_gradients(net, mean):
    with torch.no_grad():
        net.seen.mul_(0.9).add_(mean, alpha=0.1)
        net.count += 1


def move_half(net, mean):
    net.seen[:4] = mean[:4]


def move_views(net, mean):
    net.seen.view(2, 4)[1].unsqueeze(0).mul_(0.5).add_(mean[:4])
    first, second = net.seen.chunk(2)
    first.sub_(mean[4:])
    second[torch.tensor([1, 3])] = 0.25


def move_views_without_gradients(net, mean):
    with torch.no_grad():
        part = net.seen[2:6]
        part *= 0.5
        part += mean[2:6]
        return net.seen * 1  # a region without results is not loaded by torch


def average(net, mean):
    net.count += 1
    net.seen += (mean - net.seen) / net.count


def assign(net, mean):
    net.seen = 0.9 * net.seen + 0.1 * mean


def assign_twice(net, mean):
    net.seen = 0.9 * net.seen
    net.seen = net.seen + 0.1 * mean


def assign_without_gradients(net, mean):
    with torch.no_grad():
        net.seen = 0.9 * net.seen + 0.1 * mean


def copy_and_use(net, mean):
    net.seen.copy_(mean)
    return mean


def assign_and_use_another(net, mean):
    net.seen = 0.9 * net.seen + 0.1 * mean
    return mean


def fill_with_noise(net, mean):
    net.seen.bernoulli_(0.5)


IN_TRAINING = (move, move_in_two, move_without_gradients, move_half, move_views, move_views_without_gradients, average,
               assign, assign_twice, assign_without_gradients, copy_and_use)
TYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
         torch.float64)


class AlwaysMoves(Reads):
    def __init__(self, change):
        super().__init__(change)

    def forward(self, x):
        z = self.body(x).mean((2, 3))
        self.change(self, z.detach().mean(0))
        return self.head(z - self.seen)


class WritesACopy(Reads):
    """stratagem tells by the operators, not by strides, whether memory may be shared."""

    def __init__(self):
        super().__init__(move)

    def forward(self, x):
        z = self.body(x).mean((2, 3))
        return self.head(z - self.seen.view(2, 4).t().contiguous().add_(1).flatten())


class OfType(Reads):
    def __init__(self, kind):
        super().__init__(lambda net, mean: None, kind)

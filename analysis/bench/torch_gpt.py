#!/usr/bin/env python3
"""One rank of PyTorch DDP on Gloo that trains a GPT on the bytes of a file: the opponent of `gpt_vs_torch.py`.

Freed heap pages are kept, AdamW is the fused one, and gradients are views of DDP's buckets. Every rank draws its
sequences from random places of the file. In the shared options, `--size` is the length of a sequence [tokens],
`--batch` counts sequences, and `--data` is the file; `--model` is only a name. A single rank does not use DDP.
"""

import math
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

import torch_training

STDDEV = 0.02  # of initial weights


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        n, length, width = x.shape
        query, key, value = (part.view(n, length, self.heads, -1).transpose(1, 2)
                             for part in self.inputs(x).split(width, dim=-1))
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.output(seen.transpose(1, 2).reshape(n, length, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inputs = nn.Linear(width, 4 * width)
        self.output = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.output(functional.gelu(self.inputs(x), approximate="tanh"))


class Layer(nn.Module):
    """Each half adds to the stream what it makes of the normalised stream."""

    def __init__(self, width, heads):
        super().__init__()
        self.halves = nn.ModuleList([Attention(width, heads), Mlp(width)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in self.halves])

    def forward(self, x):
        for norm, half in zip(self.norms, self.halves):
            x = x + half(norm(x))
        return x


class Gpt(nn.Module):
    """Tokens [n, T] to logits [n, T, vocabulary]; the head shares the token embedding's weight."""

    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList([Layer(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.initialise()

    def initialise(self):
        """As GPT-2: what adds to the stream is smaller, the more layers add to it."""
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                adds = name.endswith("output.weight")
                nn.init.normal_(parameter, std=STDDEV / math.sqrt(2 * len(self.layers)) if adds else STDDEV)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(places)
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.norm(x), self.tokens.weight)


def adamw(model, capturable):
    """Decays matrices, but no biases and norms."""
    parameters = list(model.parameters())
    groups = [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in parameters if p.dim() == 1], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), fused=True, capturable=capturable)


def draw(text, count, length, source):
    """Sequences of the text, and for each token the one that follows it."""
    begins = torch.randint(len(text) - length, (count, 1), generator=source).to(text.device)
    rows = text[begins + torch.arange(length + 1, device=text.device)].long()
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def step(model, optimizer, inputs, labels, half):
    """One update; the loss before it."""
    # A graph would outlive autocast's cache of rounded weights.
    with torch.autocast(inputs.device.type, dtype=half, enabled=half is not None, cache_enabled=inputs.is_cpu):
        loss = functional.cross_entropy(model(inputs).flatten(0, 1), labels.flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def train(options, model, optimizer):
    """Trains forever."""
    text = torch.from_numpy(np.fromfile(options.data, np.uint8)).to(options.device)
    source = torch.Generator().manual_seed(dist.get_rank())
    half = {"bf16": torch.bfloat16}.get(options.precision)
    ahead = torch_training.Ahead(options.device)

    def update(inputs, labels):
        step(model, optimizer, inputs, labels, half)

    if options.graph:
        update = torch_training.captured(update)
    with open(options.log, "w", buffering=1, encoding="ascii") as log:
        while True:
            begin = time.monotonic_ns()
            update(*draw(text, options.batch, options.size, source))
            ahead.wait()
            log.write(f"{begin} {time.monotonic_ns()}\n")


def main():
    parser = torch_training.arguments(__doc__)
    for name in ("layers", "heads", "width", "vocabulary"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch_training.keep_heap()
    torch_training.join(options)
    model = Gpt(options.layers, options.heads, options.width, options.size, options.vocabulary)
    model = model.to(options.device)
    if options.compile:
        model.compile(mode="max-autotune-no-cudagraphs")
    optimizer = adamw(model, capturable=options.graph)
    if dist.get_world_size() > 1:
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    train(options, model, optimizer)


if __name__ == "__main__":
    torch_training.run(main)

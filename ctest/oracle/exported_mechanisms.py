"""Small nets, each with one mechanism that users' models have, against Python: five steps of two workers with momentum
and weight decay, in float64, or in float32 where a net asks for float32 itself.

Files are those of torch.export.save. What a file trains, what stays as it is, and what buffers become must be what
Python makes of the module: parameters and buffers are compared by their values, frozen ones bit for bit.
"""

import argparse
import contextlib
import copy
import dataclasses
import json
import subprocess
import sys
import tempfile
import typing
from pathlib import Path

import h5py
import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

CLASSES, PIXELS, BATCH, WORKERS, STEPS = 4, 8, 6, 2, 5
LEARNING_RATE, MOMENTUM, DECAY = 0.05, 0.9, 0.1
TOLERANCE = {"fp64": 1e-9, "fp32": 1e-5}
CONFIG = f"""\
schema: 1
run: {{name: net, threads: 1, max_steps: {STEPS}, evaluate_every: 0, out: run, save_weights: weights.safetensors}}
data: {{path: data, input_size: {PIXELS}, global_batch: {BATCH * WORKERS}, mean: [0, 0, 0], stddev: [1, 1, 1]}}
model: {{file: net.pt2, dropout: false}}
optimizer: {{name: sgd, lr: {LEARNING_RATE}, momentum: {MOMENTUM}, weight_decay: {DECAY}}}
strategy: {{name: serial, emulate_ranks: {WORKERS}}}
checkpoint: {{every_minutes: 0}}
"""
EVERYWHERE = {
    "ddp": (WORKERS, ["strategy.name=ddp"]),
    "fsdp": (WORKERS, ["strategy.name=fsdp"]),
    "recompute": (1, ["model.recompute=all"]),
}
NETS = {}


@dataclasses.dataclass(frozen=True)
class Net:
    make: typing.Callable
    precision: str = "fp64"
    everywhere: tuple = ()  # also under these, with the same bits
    dtype: torch.dtype = torch.float32  # of the exported module
    change: typing.Callable = lambda model: None  # of the module, before it is exported


def net(*values, **named):
    """Of this module's nets; its class makes it."""
    def keep(made):
        NETS[made.__name__] = Net(made, *values, **named)
        return made
    return keep


class Base(nn.Module):
    """Two convolutions with norms, a mean over pixels, and a linear layer."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3))
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x):
        return self.head(self.mix(self.body(x)))

    def mix(self, y):
        return y.mean((2, 3))


# Writes through views. A view of a map in channels_last may need a copy, and a copy loses the write.
@net()
class WriteToSlices(Base):
    def mix(self, y):
        y = y * 1.0
        v = y.view(y.shape[0], -1)
        v[:, ::2] *= 0.5
        return y.mean((2, 3))


@net()
class ReluOfAView(Base):
    def mix(self, y):
        y.view(y.shape[0], -1).relu_()
        return y.mean((2, 3))


@net()
class ViewOfWhatIsWritten(Base):
    def mix(self, y):
        v = y.reshape(y.shape[0], -1)
        y.mul_(torch.linspace(0.1, 1, 4, dtype=y.dtype))
        return v.unflatten(1, (8, -1)).mean(2) + y.amax((2, 3))


@net()
class FlattenedAndFilled(Base):
    def mix(self, y):
        y = y + 1
        y.flatten(1)[:, 3:20] = 0.25
        return y.sum((2, 3))


@net()
class ContiguousAndWritten(Base):
    def mix(self, y):
        y.contiguous().add_(y.detach().amax(), alpha=0.5)
        return y.std((2, 3))


@net()
class PartsAndViews(Base):
    def mix(self, y):
        first, second = y[:, :4], y[:, 4:]
        first.reshape(y.shape[0], 4, -1)[:, 1:3].mul_(0.1)
        y.view(y.shape[0], -1).masked_fill_(y.view(y.shape[0], -1) > 1, 0.5)
        return torch.cat([first.mean((2, 3)), second.amax((2, 3))], 1)


@net()
class IndexedView(Base):
    def mix(self, y):
        y = y.clone()
        y.view(y.shape[0], -1)[:, torch.tensor([1, 5, 9])] = 0.125
        return y.mean((2, 3))


@net()
class Strided(Base):
    def mix(self, y):
        return torch.as_strided(y, (y.shape[0], 8), (128, 3)) * 1.0


@net()
class ViewsThatAlwaysShare(Base):
    def mix(self, y):
        y = y * 1.0
        y.diagonal(0, 2, 3).zero_()
        y[:, 1].mul_(0.5)
        y.transpose(2, 3)[:, :, 1].add_(0.1)
        y.squeeze(0).narrow(1, 2, 2).mul_(3)
        y.unfold(2, 2, 2)[..., 0].mul_(0.7)
        return y.mean((2, 3))


@net()
class Spectrum(Base):
    def mix(self, y):
        f = torch.fft.fft2(y, norm="ortho")
        return f.abs().mean((2, 3)) + torch.view_as_real(f)[..., 0].amax((2, 3))


# What is trained.
@net(everywhere=tuple(EVERYWHERE))
class FrozenBody(Base):
    def __init__(self):
        super().__init__()
        self.body.requires_grad_(False)


@net(everywhere=tuple(EVERYWHERE))
class FrozenBetween(Base):
    def __init__(self):
        super().__init__()
        self.body[3].requires_grad_(False)
        self.body[1].requires_grad_(False)
        self.head.bias.requires_grad_(False)


@net()
class Unused(Base):
    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.ones(7))
        self.other = nn.Linear(3, 5)


@net(everywhere=tuple(EVERYWHERE))
class DetachedFeatures(Base):
    def mix(self, y):
        return super().mix(y.detach())


@net()
class DetachedBranch(Base):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 8)

    def mix(self, y):
        f = super().mix(y)
        return f * torch.sigmoid(self.gate(f)).detach() + torch.zeros_like(self.gate(f))


@net()
class WithoutGradients(Base):
    def mix(self, y):
        with torch.no_grad():
            scale = y.abs().amax((1, 2, 3), keepdim=True)
            with torch.enable_grad():
                again = y * 2
        with torch.autocast("cpu", enabled=False):
            y = y / scale
        return (y + again).mean((2, 3))


@net()
class FeaturesWithoutGradients(Base):
    def forward(self, x):
        with torch.no_grad():
            y = self.body(x)
        return self.head(y.mean((2, 3)))


@net()
class InAList(Base):
    def __init__(self):
        super().__init__()
        self.w, self.v = nn.Parameter(torch.randn(8, 8)), nn.Parameter(torch.randn(8))
        self.ws = [self.w, {"v": self.v}]

    def mix(self, y):
        return super().mix(y) @ self.ws[0] * self.ws[1]["v"]


# Buffers.
class WithBuffer(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(8))
        self.register_buffer("steps", torch.tensor(0))


@net(everywhere=tuple(EVERYWHERE))
class OwnMean(WithBuffer):
    def mix(self, y):
        f = super().mix(y)
        self.seen.mul_(0.9).add_(f.detach().mean(0), alpha=0.1)
        self.steps += 1
        return f


@net(everywhere=("ddp", "fsdp"))
class Centred(WithBuffer):
    def mix(self, y):
        f = super().mix(y)
        f = f - self.seen
        self.seen = 0.9 * self.seen + 0.1 * f.detach().mean(0)
        return f + self.seen


@net()
class Written(WithBuffer):
    def mix(self, y):
        f = super().mix(y)
        with torch.no_grad():
            self.seen[1:3] = f[:, 1:3].amax(0)
            self.seen.view(2, 4)[1].copy_(f[0, :4])
        return f * (1 + self.seen)


@net(everywhere=tuple(EVERYWHERE))
class Positions(Base):
    """A buffer that nobody writes: its mean over workers is itself."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.randn(8) / 3)

    def mix(self, y):
        return super().mix(y) + self.places


# Recurrent layers.
class Recurrent(nn.Module):
    def __init__(self, layer, width):
        super().__init__()
        self.layer, self.head = layer, nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.layer(x.flatten(2))[0].mean(1))


NETS |= {name: Net(lambda make=make: Recurrent(*make())) for name, make in {
    "Lstm": lambda: (nn.LSTM(64, 6, batch_first=True), 6),
    "LstmOfThree": lambda: (nn.LSTM(64, 6, 3, batch_first=True, bidirectional=True, proj_size=4), 8),
    "Gru": lambda: (nn.GRU(64, 6, 2, batch_first=True, bidirectional=True), 12),
    "Rnn": lambda: (nn.RNN(64, 6, batch_first=True, nonlinearity="relu"), 6),
    "OneLayerThatWouldDrop": lambda: (nn.LSTM(64, 6, 1, batch_first=True, dropout=0.5), 6),
}.items()}


# Modes as texts.
@net()
class Modes(Base):
    def mix(self, y):
        rows, columns = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
        y = nn.functional.pad(y, (1, 1, 1, 1), mode="reflect")[:, :, 1:5, 1:5] * (rows - columns).to(y.dtype)
        y = nn.functional.gelu(y, approximate="tanh")
        best = y.flatten(2).scatter_reduce(2, torch.zeros_like(y.flatten(2), dtype=torch.long), y.flatten(2), "amax")
        return torch.fft.rfft2(y, norm="forward").real.mean((2, 3)) + best[..., 0]


# Where samples are, in what is dropped. Nothing is, here: masks are not Python's.
class Attending(nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        self.first = batch_first
        self.layer = nn.MultiheadAttention(64, 4, dropout=0.1, batch_first=batch_first)
        self.head = nn.Linear(64, CLASSES)

    def forward(self, x):
        x = x.flatten(2) if self.first else x.flatten(2).transpose(0, 1)
        y = nn.functional.dropout(self.layer(x, x, x)[0], 0.1, self.training)
        return self.head(y.mean(1 if self.first else 0))


NETS["AttentionFirst"] = Net(lambda: Attending(True), everywhere=tuple(EVERYWHERE))
NETS["AttentionSecond"] = Net(lambda: Attending(False), everywhere=tuple(EVERYWHERE))


@net(everywhere=tuple(EVERYWHERE))
class DropPath(Base):
    def mix(self, y):
        keep = y.new_empty((y.shape[0], 1, 1, 1)).bernoulli_(0.5) if self.training else 1
        table = nn.functional.dropout(torch.linspace(0.5, 1, 8, dtype=y.dtype), 0.2, self.training)
        return nn.functional.dropout2d(y.div(1.0) * keep.div_(0.5), 0.2, self.training, True).mean((2, 3)) * table


# What torch.export writes of models in other types and layouts.
def transpose(model):
    model.head.weight = nn.Parameter(torch.randn(8, CLASSES).t())


def channels_last(model):
    model.to(memory_format=torch.channels_last)


@net(change=transpose)
class TransposedWeight(Base):
    pass


@net(change=channels_last)
class ChannelsLast(Base):
    pass


@net(dtype=torch.float64)
class OfFloat64(Base):
    def mix(self, y):
        return super().mix(y) + torch.zeros(8, dtype=torch.float64)


@net("fp32", dtype=torch.bfloat16)
class OfBfloat16(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.head = nn.Linear(192, 16), nn.Linear(16, CLASSES)

    def forward(self, x):
        y = torch.tanh(self.first(x.flatten(1)))
        return self.head(y + torch.zeros(16, dtype=y.dtype))


@net("fp32")
class Asserting(Base):
    def mix(self, y):
        f = super().mix(y.to(torch.float32)).float()
        return torch.softmax(f, 1, dtype=torch.float32).type_as(f).to(f.dtype)


# What `stratagem model` says of others: (what makes it, shape of a sample, words, exit code).
class Casting(Base):
    def mix(self, y):
        with torch.autocast("cpu", torch.bfloat16):
            return nn.functional.linear(y.mean((2, 3)), torch.eye(8))


class Learning(WithBuffer):
    def mix(self, y):
        f = super().mix(y)
        self.seen.copy_(f.mean(0))
        return f


class Mixing(Base):
    def mix(self, y):
        heads = y.mean((2, 3)).view(-1, 2, 4).transpose(0, 1).reshape(-1, 4)
        return nn.functional.dropout(heads, 0.5, self.training).view(2, -1, 4).transpose(0, 1).flatten(1)


class Twins(Base):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))
        self.all = [self.scale]

    def mix(self, y):
        return super().mix(y) * self.all[0]


def plain(*layers):
    return lambda: nn.Sequential(*layers)


IMAGE = (3, PIXELS, PIXELS)
TOLD = {
    "autocast": (Casting, IMAGE, ["wrap_with_autocast", "exported_mechanisms.py", "precision.compute"], 5),
    "buffer with a gradient": (Learning, IMAGE, ["it writes seen with what needs a gradient", "detach()"], 5),
    "mixed samples": (Mixing, IMAGE, ["aten::dropout", "mixed with another dimension"], 5),
    "a parameter that may be a constant": (Twins, IMAGE, ["nothing uses parameter scale", "ParameterList"], 5),
    "LSTM that drops": (lambda: Recurrent(nn.LSTM(64, 6, 2, batch_first=True, dropout=0.2), 6), IMAGE,
                        ["aten::lstm", "drops between its layers"], 5),
    "vectors": (plain(nn.Linear(12, 3)), (12,), ["does not take square images", "[samples, 12] of Float"], 2),
    "series": (plain(nn.Conv1d(2, 8, 3), nn.Flatten(), nn.Linear(64, 3)), (2, 10), ["[samples, 2, 10] of Float"], 2),
    "no square": (plain(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(96, 3)), (3, 8, 10), ["[samples, 3, 8, 10]"], 2),
    "pixels": (plain(nn.Conv2d(3, 2, 3)), IMAGE, ["first output has shape [samples, 2, 6, 6]"], 5),
    "all frozen": (lambda: Base().requires_grad_(False), IMAGE, ["nothing to train", "frozen, or no gradient"], 5),
    "evaluating": (lambda: Base().eval(), IMAGE, ["warning: the only batch norm of", "call model.train()"], 0),
    "frozen": (FrozenBody, IMAGE, ["36 parameters, 824 frozen", "body.0.weight"], 0),
    "unused": (Unused, IMAGE, ["27 without a gradient", "unused, other.weight, other.bias"], 0),
}


def reference(model, images, labels, order, precision):
    """The module after five steps of two workers, each with its own buffers."""
    numbers = {"fp64": torch.float64, "fp32": torch.float32}[precision]
    model = copy.deepcopy(model).to(numbers)
    for module in model.modules():
        if isinstance(module, (nn.MultiheadAttention, nn.LSTM)):
            module.dropout = 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, weight_decay=DECAY)
    start = {name: buffer.clone() for name, buffer in model.named_buffers()}
    buffers = [copy.deepcopy(start) for _ in range(WORKERS)]
    for step in range(STEPS):
        optimizer.zero_grad(set_to_none=True)
        for worker in range(WORKERS):
            begin = (step * WORKERS + worker) * BATCH
            chosen = order[begin : begin + BATCH]
            load_buffers(model, buffers[worker])
            pixels = torch.from_numpy(images[chosen]).permute(0, 3, 1, 2).contiguous() / 255
            loss = nn.functional.cross_entropy(model(pixels.to(numbers)), torch.from_numpy(labels[chosen]))
            (loss / WORKERS).backward()
            buffers[worker] = {name: buffer.detach().clone() for name, buffer in model.named_buffers()}
        optimizer.step()
    means = {name: sum(own[name] for own in buffers) / WORKERS if buffer.is_floating_point() else buffers[0][name]
             for name, buffer in start.items()}
    return {name: parameter.detach() for name, parameter in model.named_parameters()} | means


def load_buffers(model, values):
    with torch.no_grad():
        for name, value in values.items():
            place, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(place), leaf, value.clone())


@contextlib.contextmanager
def without_dropping():
    """Dropout, and what drop path draws, as `dropout: false` has them."""
    functional = nn.functional
    plain = functional.dropout, functional.dropout2d, torch.Tensor.bernoulli_
    functional.dropout = functional.dropout2d = lambda x, *_: x
    torch.Tensor.bernoulli_ = lambda noise, p=0.5: noise.fill_(p)
    try:
        yield
    finally:
        functional.dropout, functional.dropout2d, torch.Tensor.bernoulli_ = plain


class Check:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        count = STEPS * BATCH * WORKERS
        generator = np.random.default_rng(1)
        self.images = generator.integers(0, 256, (count, PIXELS, PIXELS, 3), dtype=np.uint8)
        self.labels = generator.permutation(np.arange(count) % CLASSES)
        (folder / "data").mkdir()
        for part in "train", "val":
            with h5py.File(folder / "data" / f"{part}.h5", "w") as file:
                file["images"], file["labels"] = self.images, self.labels
        (folder / "net.yaml").write_text(CONFIG)
        words = [options.order_program, "1", "0", str(count)]
        self.order = np.array(subprocess.run(words, check=True, text=True, stdout=subprocess.PIPE).stdout.split(), int)
        self.runs = 0

    def run(self, *settings, ranks=1):
        self.runs += 1
        words = [self.options.mpiexec, "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
        words += [self.options.program, "run", "net.yaml", "-q", "--progress", "none"]
        for setting in (*settings, f"run.out=run-{self.runs}"):
            words += ["-s", setting]
        subprocess.run(words, cwd=self.folder, check=True)
        return load_file(self.folder / "weights.safetensors")

    def net(self, name):
        of = NETS[name]
        torch.manual_seed(1)
        model = of.make().train()
        of.change(model)
        model = model.to(of.dtype)
        before = copy.deepcopy(model)
        example = torch.randn(2, 3, PIXELS, PIXELS, dtype=of.dtype)
        dynamic = ({0: torch.export.Dim("batch")},)
        program = torch.export.export(model, (example,), dynamic_shapes=dynamic, strict=False)
        torch.export.save(program, self.folder / "net.pt2")
        ours = self.run(f"precision.compute={of.precision}")
        with without_dropping():
            theirs = reference(before, self.images, self.labels, self.order, of.precision)
        error = self.compare(name, before, ours, theirs, TOLERANCE[of.precision])
        print(f"{name:26} {of.precision} {error:.1e}", flush=True)
        self.everywhere(name, of.precision, of.everywhere)

    def told(self, name):
        make, shape, words, code = TOLD[name]
        model = make()
        program = torch.export.export(model, (torch.randn(2, *shape),), strict=False,
                                      dynamic_shapes=({0: torch.export.Dim("batch")},))
        torch.export.save(program, self.folder / "net.pt2")
        words_of = [self.options.program, "model", "net.pt2"]
        done = subprocess.run(words_of, cwd=self.folder, text=True, capture_output=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == code, f"{name}: {done.returncode}, {said}"
        for word in words:
            assert word in said, f"{name}: {word!r} is not in {said}"
        print(f"{name}: told", flush=True)

    def compare(self, name, before, ours, theirs, tolerance):
        frozen = {key for key, parameter in before.named_parameters() if not parameter.requires_grad}
        assert ours.keys() == theirs.keys(), (name, ours.keys() ^ theirs.keys())
        largest = 0.0
        for key, value in theirs.items():
            if key in frozen:
                assert torch.equal(ours[key].to(value.dtype), value), f"{name}: {key} is frozen, and moved"
            scale = max(value.double().abs().max().item(), 1e-3)
            error = (ours[key].double() - value.double()).abs().max().item() / scale
            assert error <= tolerance, f"{name}: {key} is off by {error:.1e}"
            largest = max(largest, error)
        return largest

    def everywhere(self, name, precision, cases):
        """The same bits, with what is dropped."""
        settings = f"precision.compute={precision}", "model.dropout=true"
        expected = self.run(*settings) if cases else {}
        for case in cases:
            ranks, words = EVERYWHERE[case]
            found = self.run(*settings, *words, ranks=ranks)
            for key, value in expected.items():
                assert torch.equal(found[key], value), f"{name}, {case}: {key}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--order-program", required=True)
    parser.add_argument("--mpiexec", default="mpirun")
    parser.add_argument("--nets", nargs="+", choices=NETS, default=list(NETS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    failed = []
    with tempfile.TemporaryDirectory(prefix="stratagem-oracle-") as folder:
        check = Check(options, Path(folder))
        for name in [*options.nets, *TOLD]:
            try:
                check.net(name) if name in NETS else check.told(name)
            except Exception as problem:  # the other nets are still compared
                print(f"{name:26} FAILED {problem}", flush=True)
                failed.append(name)
    print(json.dumps({"failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""The nets of exported_mechanisms.py: each has one mechanism that users' models have."""

import dataclasses
import typing

import torch
from torch import nn

CLASSES, PIXELS = 4, 8
WORKERS = 2
# {case: (ranks, settings)} in which nets end with the same bits as one process that plays all workers.
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


# A float32 that the user asks for, in a pass of bf16: loss of the first step, as of the module in bf16.
class Wide(nn.Module):
    """What is added and taken away again would be lost in bf16."""

    def __init__(self, mix):
        super().__init__()
        self.first, self.head = nn.Linear(192, 16), nn.Linear(16, CLASSES)
        self.weight, self.mix = nn.Parameter(torch.rand(16) + 0.5), mix

    def forward(self, x):
        return self.head(self.mix(self, self.first(x.flatten(1))))


layer_norm = nn.functional.layer_norm


def rms_norm(self, x):
    kind, wide = x.dtype, x.to(torch.float32) + 1000 - 1000
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return self.weight * wide.to(kind)


FLOAT32 = {
    "cumsum": lambda self, x: (torch.cumsum(x, 1, dtype=torch.float32) * 10 + 1000 - 1000).to(x.dtype),
    "softmax": lambda self, x: ((torch.softmax(x, 1, dtype=torch.float32) + 1000).log() * 1000 - 6907).to(x.dtype),
    "sum": lambda self, x: x * (x.sum(1, dtype=torch.float32, keepdim=True) + 1000 - 1000).to(x.dtype),
    "float": lambda self, x: (x.float() * 3 + 1000 - 1000).to(x.dtype),
    "arange": lambda self, x: x + (torch.arange(16, dtype=torch.float32) + 1001 - 1001).to(x.dtype),
    "layer norm": lambda self, x: (layer_norm(x.float(), (16,), self.weight.float()) + 500 - 500).type_as(x),
    "RMS norm": rms_norm,
    "literal": lambda self, x: x * (torch.tensor([1000.25]) - 1000).to(x.dtype),
    "logits": lambda self, x: torch.tanh(x.double() + 1000 - 1000).to(x.dtype),
}


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
    "autocast": (Casting, IMAGE, ["wrap_with_autocast", "mechanism_nets.py", "precision.compute"], 5),
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
    "evaluating": (lambda: Base().eval(), IMAGE, ["warning: the only batch norm of", "model.frozen: true"], 0),
    "frozen": (FrozenBody, IMAGE, ["36 parameters, 824 frozen", "body.0.weight"], 0),
    "unused": (Unused, IMAGE, ["27 without a gradient", "unused, other.weight, other.bias"], 0),
}

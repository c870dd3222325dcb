"""Nets of a few layers, each with something that torch.export or a file may lose. They take images of 3x8x8."""

import functools

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        )
        self.head = nn.Linear(16, 10)

    def features(self, x):
        return self.body(x).mean((2, 3))

    def forward(self, x):
        return self.head(self.features(x))


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.LazyConv2d(8, 3, padding=1), nn.LazyBatchNorm2d(), nn.ReLU())
        self.head = nn.LazyLinear(10)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


class LazyOfOtherShape(Lazy):
    def forward(self, x):
        return super().forward(x.flatten(1))


class LazyUnused(Base):
    def __init__(self):
        super().__init__()
        self.unused = nn.LazyLinear(4)


class NamedOutputs(Base):
    def forward(self, x):
        features = self.features(x)
        return {"logits": self.head(features), "features": features}


def not_finite():
    net = Base()
    net.head.bias.data[3] = float("nan")
    return net


class ViewWrite(Base):
    def forward(self, x):
        y = self.body(x) * 1.0
        y.view(y.shape[0], -1)[:, ::2].mul_(0.5)
        return self.head(y.mean((2, 3)))


class ConvolutionViewWrite(Base):
    def forward(self, x):
        y = self.body[0](x)
        y.view(y.shape[0], -1).relu_()
        return self.head(self.body[4:](self.body[3](y)).mean((2, 3)))


class Strided(Base):
    def forward(self, x):
        y = self.body(x) * 1.0
        return self.head(torch.as_strided(y, (y.shape[0], 16, 8), (256, 16, 2)).mean(2))


class SumInFloat32(Base):
    def forward(self, x):
        z = self.features(x)
        return self.head(torch.cumsum(z, 1, dtype=torch.float32) * 10 + 1000 - 1000)


class Drops(Base):
    def forward(self, x):
        return self.head(functional.dropout(self.features(x), 0.3, self.training))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(24, 16, 2, batch_first=True, dropout=0.2)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.lstm(x.transpose(1, 2).flatten(2))[0][:, -1])


class Encoder(nn.Module):
    """In evaluation, PyTorch computes the layer in one operator, which rounds otherwise."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.encoder(x.flatten(2)).mean(1))


class Depth(Base):
    """Stochastic depth, as torchvision's, row by row."""

    def forward(self, x):
        z = self.features(x)
        if self.training:
            noise = torch.empty((z.shape[0], 1), dtype=z.dtype).bernoulli_(0.7)
            z = z + z.tanh() * noise.div_(0.7)
        else:
            z = z + z.tanh()
        return self.head(z)


def forward_hook():
    net = Base()
    net.body[4].register_forward_hook(lambda module, inputs, output: output * 0.5)
    return net


class Auxiliary(Base):
    def forward(self, x):
        y = super().forward(x)
        return (y, y * 2) if self.training else y


class Tied(Base):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.head(self.second(self.first(self.features(x)).tanh()))


class NoGrad(Base):
    def forward(self, x):
        with torch.no_grad():
            y = self.body(x)
        return self.head(y.mean((2, 3)))


def frozen(part):
    def make():
        net = Base()
        net.get_submodule(part).requires_grad_(False)
        return net

    return make


class Average(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(16))

    def forward(self, x):
        z = self.features(x)
        if self.training:
            self.seen.mul_(0.9).add_(z.detach().mean(0), alpha=0.1)
        return self.head(z)


class Counts(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x):
        self.count += 1
        return super().forward(x)


class Replaced(Average):
    def forward(self, x):
        z = self.features(x)
        self.seen = 0.9 * self.seen + 0.1 * z.detach().mean(0)
        return self.head(z)


class Checkpoints(Base):
    def features(self, x):
        return checkpoint(self.body, x, use_reentrant=False).mean((2, 3))


def mean_of_all_batches():
    net = Base()
    net.body[1].momentum = None
    return net


class ReadsANumber(Base):
    def forward(self, x):
        return super().forward(x) * float(self.head.bias.detach().abs().sum())


class WithWeight(Base):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(16, 16) / 4)

    def weight(self):
        return self.w

    def forward(self, x):
        return self.head(self.features(x) @ self.weight())


class InList(WithWeight):
    def __init__(self):
        super().__init__()
        self.ws = [self.w]

    def weight(self):
        return self.ws[0]


class InDictionary(WithWeight):
    def __init__(self):
        super().__init__()
        self.ws = {"w": self.w}

    def weight(self):
        return self.ws["w"] + self.w


class InTuple(WithWeight):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.full((16,), 0.5))
        self.both = self.w, self.scale

    def weight(self):
        return self.both[0] * self.both[1]


class InClosure(WithWeight):
    def __init__(self):
        super().__init__()
        w = self.w
        self.weight_of = lambda: w

    def weight(self):
        return self.weight_of()


class InPartial(WithWeight):
    def __init__(self):
        super().__init__()
        self.times = functools.partial(torch.matmul, other=self.w)

    def forward(self, x):
        return self.head(self.times(self.features(x)))


class Transposed(WithWeight):
    def __init__(self):
        super().__init__()
        self.wt = self.w.t()

    def weight(self):
        return self.wt


class Nobodys(WithWeight):
    def __init__(self):
        super().__init__()
        self.ws = [nn.Parameter(torch.randn(16, 16) / 4)]

    def weight(self):
        return self.ws[0] @ self.w


class ListOfModules(Base):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(16, 16)]

    def forward(self, x):
        return self.head(self.layers[0](self.features(x)))


def frozen_norm():
    net = Base()
    net.body[1].eval()
    return net


class KeepsFrozen(Base):
    def train(self, mode=True):
        super().train(mode)
        self.body[1].eval()
        return self


def compiled_in_place():
    net = Base()
    net.compile()
    return net


def compiled_part():
    net = Base()
    net.body = torch.compile(net.body)
    return net


def distributed():
    if not torch.distributed.is_initialized():
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(Base())


class CompiledFunction(Base):
    @torch.compile
    def forward(self, x):
        return super().forward(x)


class TransposedParameter(WithWeight):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter((torch.randn(16, 16) / 4).t())


class Flat(WithWeight):
    """Two parameters that are parts of one tensor, and do not overlap."""

    def __init__(self):
        super().__init__()
        flat = torch.randn(512) / 4
        self.w = nn.Parameter(flat[:256].view(16, 16))
        self.w2 = nn.Parameter(flat[256:].view(16, 16))

    def weight(self):
        return self.w @ self.w2


class UpTo63(Base):
    def forward(self, x):
        y = super().forward(x)
        return y * 2 if x.shape[0] < 64 else y


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-1e-3, 1e-3)


class AddLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient + 0.01 * ctx.saved_tensors[0]


class Rounds(Base):
    function = Round

    def forward(self, x):
        return self.head(self.function.apply(self.body(x)).mean((2, 3)))


class Reverses(Rounds):
    function = Reverse


class Clamps(Rounds):
    function = Clamp


class AddsLoss(Rounds):
    function = AddLoss


class TensorHook(Base):
    def forward(self, x):
        z = self.features(x)
        if z.requires_grad:
            z.register_hook(lambda gradient: gradient * 0.1)
        return self.head(z)


def module_hook():
    net = Base()
    net.body[4].register_full_backward_hook(lambda module, inputs, outputs: tuple(0.1 * each for each in inputs))
    return net


def module_pre_hook():
    net = Base()
    net.head.register_full_backward_pre_hook(lambda module, outputs: tuple(0.1 * each for each in outputs))
    return net


def parameter_hook():
    net = Base()
    net.head.weight.register_hook(lambda gradient: gradient * 0.1)
    return net


def accumulated_hook():
    net = Base()

    def shrink(parameter):
        parameter.grad.mul_(0.1)

    net.head.weight.register_post_accumulate_grad_hook(shrink)
    return net


class SoftmaxInEvaluation(Base):
    def forward(self, x):
        y = super().forward(x)
        return y if self.training else y.softmax(1)


class AlwaysDrops(Base):
    def forward(self, x):
        return self.head(functional.dropout(self.features(x), 0.3, True))


class AveragesInEvaluation(Base):
    def forward(self, x):
        y = super().forward(x)
        return y if self.training else (y + super().forward(x.flip(3))) / 2


class FeaturesInEvaluation(Base):
    def forward(self, x):
        return super().forward(x) if self.training else self.features(x)


class Alternates(Base):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        y = super().forward(x)
        return y * 2 if self.calls % 2 else y


class Selected(WithWeight):
    def __init__(self):
        super().__init__()
        self.row = self.w[0]

    def weight(self):
        return self.w * self.row


class TwoInOne(WithWeight):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(torch.randn(16, 16) / 4)
        self.b = nn.Parameter(self.a.data.t())

    def weight(self):
        return self.a @ self.b


class BufferOfParameter(WithWeight):
    def __init__(self):
        super().__init__()
        self.register_buffer("copy", self.w.detach())

    def weight(self):
        return self.w + self.copy


class Length(Base):
    def forward(self, x):
        return super().forward(x).view(len(x), 10)


class RoundedSamples(Base):
    def forward(self, x):
        return super().forward(x)[: int(x.shape[0] / 1)]


class DataBranch(Base):
    def forward(self, x):
        y = super().forward(x)
        return y * 2 if y.mean() > 0 else y


class TwoInputs(Base):
    def forward(self, ids, mask):
        return super().forward(ids * mask)


class Image(Base):
    def forward(self, x):
        return self.body(x)


class OneLogit(Base):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(16, 1)


class FailsInEvaluation(Base):
    def forward(self, x):
        if not self.training:
            raise NotImplementedError("later")
        return super().forward(x)


def converts_inside():
    class Converts(Base):
        def forward(self, x):
            return super().forward(x.bfloat16())

    return Converts().bfloat16()


class Complex(Base):
    def __init__(self):
        super().__init__()
        self.c = nn.Parameter(torch.randn(16, dtype=torch.complex64))

    def forward(self, x):
        return self.head(self.features(x) * self.c.abs())

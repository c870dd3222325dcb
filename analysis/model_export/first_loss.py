"""The first loss of a program, on a batch that needs no data. stratagem computes it again, before it trains."""

import contextlib

import torch

from .graph import first_of, limits_of
from .quiet import Quiet, RandomNumbers

SAMPLES = 4
NUDGE = 2.0**-20  # relative: what rounding may do to all values of a network
LEAST, LEAST_16_BIT = 5e-5, 2e-2  # tolerances, as shares of the loss


def batch(shape, tokens, samples=SAMPLES):
    """Inputs and labels are functions of their place: numbers from -1 to 1, exact in float32, or tokens."""
    bits = mixed(torch.arange(samples * torch.Size(shape).numel(), dtype=torch.int64)).view(samples, *shape)
    return bits % tokens if tokens else (bits >> 8).float() * 2.0**-23 - 1


def mixed(bits):
    """The 32-bit finaliser of MurmurHash3."""
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        bits = ((bits ^ (bits >> shift)) * factor) & 0xFFFFFFFF
    return bits ^ (bits >> 16)


def samples_of(program):
    least, most = limits_of(program)
    return max(least, SAMPLES if most is None else min(SAMPLES, most))


@contextlib.contextmanager
def kept(tensors):
    """Afterwards they have the values of before, and no gradients."""
    tensors = list(tensors)
    saved = {}
    for tensor in tensors:
        if place_of(tensor) not in saved:
            saved[place_of(tensor)] = tensor.detach().clone()
    places = [place_of(tensor) for tensor in tensors]
    try:
        yield
    finally:
        for tensor, place in zip(tensors, places):
            tensor.data.copy_(saved[place])
            tensor.grad = None


def place_of(tensor):
    return tensor.data_ptr(), tensor.shape


def state_of(program):
    constants = [value for value in program.constants.values() if isinstance(value, torch.Tensor)]
    return [*program.state_dict.values(), *constants]


def first_loss(program, shape, tokens):
    """What the file tells of it. Of what stratagem cannot compute, as random numbers, there is none."""
    found = {"samples": samples_of(program), "shape": list(shape), "tokens": tokens or 0}
    x = batch(shape, tokens, found["samples"])
    for mode in "training", "evaluation":
        with contextlib.suppress(RandomNumbers):
            if measured := loss_and_tolerance(program, x, mode == "training"):
                found[mode] = measured
    return found


def loss_and_tolerance(program, x, training):
    """As far as the loss changes when all weights and inputs change by what rounding may do to them."""
    module = program.module()
    state = state_of(program)
    with kept(state):
        loss = loss_of(module, x, training)
    off = 0.0
    for seed in 1, 2:
        with kept(state):
            random = torch.Generator().manual_seed(seed)
            for tensor in {place_of(tensor): tensor for tensor in state}.values():
                tensor.data.copy_(nudged(tensor.data, random))
            off = max(off, abs(loss_of(module, nudged(x, random), training) - loss))
    tolerance = max(least_tolerance(program) * max(1.0, abs(loss)), 10 * off)
    if not torch.isfinite(torch.tensor([loss, tolerance])).all():
        return None
    return {"loss": loss, "tolerance": tolerance}


def nudged(tensor, random):
    if not tensor.is_floating_point():
        return tensor
    return tensor * (1 + NUDGE * (2 * torch.rand(tensor.shape, generator=random) - 1))


def loss_of(module, x, training):
    with torch.no_grad():
        logits = first_of(Quiet(module, training).run(x.clone())).double()
    labels = torch.arange(len(x)) % logits.shape[1]
    return float(torch.nn.functional.cross_entropy(logits, labels))


def least_tolerance(program):
    values = (node.meta.get("val") for node in program.graph.nodes)
    narrow = any(isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16) for value in values)
    return LEAST_16_BIT if narrow else LEAST

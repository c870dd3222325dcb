"""Compares every optimizer of stratagem with PyTorch's, in float64: five updates of a matrix and a vector.

Moves of parameters and what an optimizer keeps must agree; with `decay: weights` the vector is in a parameter group of
PyTorch's that does not decay. PyTorch's defaults are compared as well: a case without settings has ours.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

STEPS, TOLERANCE = 5, 1e-8

# Name, settings of ours, PyTorch's optimizer with its settings, names of ours and of PyTorch's state.
MOMENTUM = {"momentum": "momentum_buffer"}
MEANS = {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
CASES = [
    ("sgd", {}, torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}, MOMENTUM),
    ("sgd", {"momentum": 0}, torch.optim.SGD, {"lr": 0.01}, {}),
    ("sgd", {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.05, "nesterov": "true"}, torch.optim.SGD,
     {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.05, "nesterov": True}, MOMENTUM),
    ("adamw", {}, torch.optim.AdamW, {}, MEANS),
    ("adamw", {"lr": 0.02, "weight_decay": 0.3, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3}, torch.optim.AdamW,
     {"lr": 0.02, "weight_decay": 0.3, "betas": (0.8, 0.9), "eps": 1e-3}, MEANS),
]


def tensors():
    """Parameters, and gradients of each step: of all sizes, with zeros."""
    torch.manual_seed(1)
    shapes = {"weight": (97, 31), "bias": (53,)}
    parameters = {name: torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()}
    gradients = []
    for _ in range(STEPS):
        gradients.append({name: torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()})
        for gradient in gradients[-1].values():
            gradient *= 10.0 ** torch.randint(-4, 3, gradient.shape)
            gradient[torch.rand(gradient.shape) < 0.1] = 0
    return parameters, gradients


def by_torch(make, settings, decay, parameters, gradients):
    """Parameters and state after all steps."""
    parameters = {name: tensor.clone().requires_grad_() for name, tensor in parameters.items()}
    groups = [{"params": [tensor]} | ({"weight_decay": 0} if decay == "weights" and tensor.dim() == 1 else {})
              for tensor in parameters.values()]
    optimizer = make(groups, foreach=False, **settings)
    for step in gradients:
        for name, tensor in parameters.items():
            tensor.grad = step[name].clone()
        optimizer.step()
    return parameters, {name: optimizer.state[tensor] for name, tensor in parameters.items()}


def relative(ours, theirs):
    return (torch.linalg.vector_norm(ours - theirs) / torch.linalg.vector_norm(theirs)).item()


def check(program, case, decay, folder):
    name, ours, make, theirs, kinds = case
    before, gradients = tensors()
    source, target = folder / "input.safetensors", folder / "output.safetensors"
    inputs = {f"parameter.{key}": tensor for key, tensor in before.items()}
    inputs |= {f"gradient.{i}.{key}": tensor for i, step in enumerate(gradients) for key, tensor in step.items()}
    save_file(inputs, source)
    settings = [f"{key}={value}" for key, value in (ours | {"decay": decay}).items()]
    subprocess.run([program, name, str(STEPS), source, target, *settings], check=True)
    found = load_file(target)
    assert len(found) == (1 + len(kinds)) * len(before), sorted(found)
    after, state = by_torch(make, theirs, decay, before, gradients)
    errors = {}
    for key, tensor in before.items():
        errors[f"move of {key}"] = relative(found[f"parameter.{key}"] - tensor, after[key].detach() - tensor)
        for kind, other in kinds.items():
            errors[f"{kind} of {key}"] = relative(found[f"{kind}.{key}"], state[key][other])
    worst = max(errors, key=lambda what: (errors[what] != errors[what], errors[what]))
    good = errors[worst] <= TOLERANCE
    print(f"{name:8} {' '.join(settings):60} {errors[worst]:10.2e} {'ok' if good else 'FAILED':7} {worst}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="path of optimizer_program")
    program = parser.parse_args().program
    torch.set_num_threads(1)
    print(f"against torch {torch.__version__}, limit {TOLERANCE:.0e}")
    with tempfile.TemporaryDirectory(prefix="stratagem-oracle-") as folder:
        good = [check(program, case, decay, Path(folder)) for case in CASES for decay in ("all", "weights")]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()

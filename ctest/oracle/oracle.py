"""Compares one model of stratagem with torchvision's, or GPT-2 with that of Hugging Face, in float64, with the same
weights and inputs.

Checks names, order and shapes of the state, then logits, loss and every gradient: in evaluation, in training without
dropout and stochastic depth, and in training with them, where the other side uses the masks that stratagem made. Then
checks five steps without dropout and stochastic depth: of SGD with momentum, or of AdamW for transformers.
"""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torchvision
from safetensors import safe_open
from safetensors.torch import load_file, save_file

TOKENS, VOCABULARY = 11, 97


def make_vit(num_classes, layers, heads, width, patch, size, dropout_rate):
    return torchvision.models.VisionTransformer(
        image_size=size, patch_size=patch, num_layers=layers, num_heads=heads, hidden_dim=width, mlp_dim=4 * width,
        dropout=dropout_rate, num_classes=num_classes)


def make_gpt2(num_classes, layers, heads, width, context, dropout_rate):
    import transformers

    transformers.logging.set_verbosity_error()
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=num_classes, n_positions=context, n_embd=width, n_layer=layers, n_head=heads, attn_pdrop=0.0,
        embd_pdrop=dropout_rate, resid_pdrop=dropout_rate, attn_implementation="eager"))


class Case:
    """A model: who makes it, its name and keys here."""

    def __init__(self, make, name=None, **keys):
        self.make, self.name, self.keys = make, name, keys
        self.is_text = "context" in keys
        self.classes = VOCABULARY if self.is_text else CLASSES

    def model(self):
        return self.make(num_classes=self.classes, **self.keys)

    def arguments(self):
        keys = self.keys | {"classes": self.classes} | ({"tokens": TOKENS} if self.is_text else {})
        return [f"{key}={value}" for key, value in keys.items()] if self.keys else []

    def batch(self):
        if self.is_text:
            text = torch.randint(VOCABULARY, (BATCH, TOKENS + 1))
            return text[:, :-1].contiguous(), text[:, 1:].contiguous()
        return torch.randn(BATCH, 3, PIXELS, PIXELS, dtype=torch.float64), torch.arange(BATCH) * 3 % CLASSES


# With 32 pixels, the last maps have one value per image. Batch norm of fewer images is so ill conditioned that rounding
# differences between processors exceed the tolerance.
CLASSES, BATCH, PIXELS = 10, 8, 32
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY, STEPS = 1e-5, 0.9, 0.1, 5  # the first three as in oracle_program.cpp
TOLERANCE, STATE_TOLERANCE = 1e-9, 1e-8
SMALLEST_SHARE = 1e-6  # a gradient smaller than this share of all of them is measured against that
CASES = {
    "vgg16": Case(torchvision.models.vgg16),
    "resnet50": Case(torchvision.models.resnet50),
    "densenet121": Case(torchvision.models.densenet121),
    "efficientnetv2_l": Case(torchvision.models.efficientnet_v2_l),
    "convnext_l": Case(torchvision.models.convnext_large),
    "vit": Case(make_vit, "vit_b_16", layers=3, heads=4, width=48, patch=8, size=PIXELS, dropout_rate=0.1),
    "gpt2": Case(make_gpt2, "gpt2", layers=3, heads=4, width=48, context=16, dropout_rate=0.1),
}


class Table:
    """Rows of the largest relative errors; remembers whether all were within their limits."""

    def __init__(self):
        self.passed = True
        print(f"{'mode':8} {'what':12} {'tensors':>7} {'worst error':>12} {'limit':>8}  verdict  at")

    def row(self, mode, what, errors, limit):
        """errors: {name: relative error}; NaN fails."""
        name, worst = max(errors.items(), key=lambda item: (item[1] != item[1], item[1]))
        good = worst <= limit
        self.passed = self.passed and good
        verdict = "ok" if good else "FAILED"
        print(f"{mode:8} {what:12} {len(errors):7} {worst:12.2e} {limit:8.0e}  {verdict:7}  {name}")

    def equal(self, what, ours, theirs):
        good = ours == theirs
        self.passed = self.passed and good
        verdict = "ok" if good else "FAILED"
        print(f"{'-':8} {what:12} {len(theirs):7} {'-':>12} {'equal':>8}  {verdict}")
        for mine, other in zip(ours, theirs):
            if mine != other:
                print(f"         first difference: {mine}, Python: {other}")
                break


def droppers(model):
    """Names and modules of the layers that draw random masks."""
    kinds = (torch.nn.Dropout, torchvision.ops.StochasticDepth)
    return {name: module for name, module in model.named_modules() if isinstance(module, kinds)}


def scramble(model):
    """Moves norms, statistics and layer scales away from values that could hide a mistake."""
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name.endswith("running_var"):
                tensor.copy_(0.5 + torch.rand_like(tensor))
            elif name.endswith("layer_scale"):
                tensor.copy_(0.1 + 0.1 * torch.rand_like(tensor))
            elif tensor.is_floating_point() and tensor.dim() == 1:
                tensor.add_(0.1 * torch.randn_like(tensor))


def mask_sizes(model, images):
    """Elements per sample, and probability, of every layer that drops."""
    sizes = {}

    def note(name, module):
        def hook(_, inputs):
            per_sample = 1 if module.__class__ is torchvision.ops.StochasticDepth else inputs[0][0].numel()
            sizes["mask." + name] = torch.tensor([per_sample, module.p], dtype=torch.float64)

        return module.register_forward_pre_hook(hook)

    hooks = [note(name, module) for name, module in droppers(model).items()]
    with torch.no_grad():
        model.eval()(images)
    for hook in hooks:
        hook.remove()
    return sizes


def state_of(model):
    """Without further names of tied tensors."""
    state, seen = {}, set()
    for name, tensor in model.state_dict().items():
        if tensor.numel() == 0 or tensor.data_ptr() not in seen:
            state[name] = tensor
            seen.add(tensor.data_ptr())
    return state


def write_input(case, path):
    torch.manual_seed(1)
    model = case.model().double()
    scramble(model)
    images, labels = case.batch()
    sizes = mask_sizes(model, images)
    save_file({"input.images": images, "input.labels": labels} | sizes | state_of(model), path)
    return images, labels, bool(sizes)


def read_model(case, path):
    state = {key: tensor for key, tensor in load_file(path).items() if not key.startswith(("input.", "mask."))}
    if case.is_text:  # assigning tensors would untie them
        model = case.model().double()
        model.load_state_dict(state | {"lm_head.weight": state["transformer.wte.weight"]})
        return model
    with torch.device("meta"):  # nothing is initialised twice
        model = case.model()
    model.load_state_dict(state, assign=True)
    return model


def logits_of(model, inputs):
    outputs = model(inputs)
    return outputs if torch.is_tensor(outputs) else outputs.logits


def loss_of(logits, labels):
    return torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())


def header_of(path):
    """Names and shapes in the order of the file."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
    return [(name, tuple(entry["shape"])) for name, entry in header.items() if name != "__metadata__"]


def use_masks(model, masks):
    """Every layer that drops multiplies by its given mask; without masks, it passes its input on."""
    for name, module in droppers(model).items():
        def forward(x, name=name, p=module.p):
            if not masks or p == 0:
                return x
            mask = masks["mask." + name].double() / (1 - p)
            return x * mask.reshape([len(x)] + ([1] * (x.dim() - 1) if mask[0].numel() == 1 else list(x.shape[1:])))

        module.forward = forward


def relative(ours, theirs, floor=0.0):
    scale = max(torch.linalg.vector_norm(theirs).item(), floor)
    return torch.linalg.vector_norm(ours - theirs).item() / scale


def gradient_of(parameter):
    """0 for one that is not used."""
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def compare(table, mode, model, images, labels, ours):
    """One forward and backward pass of `model`, compared with the results in the open file `ours`."""
    logits = logits_of(model, images)
    loss = loss_of(logits, labels)
    loss.backward()
    table.row(mode, "logits", {"logits": relative(ours.get_tensor("logits"), logits.detach())}, TOLERANCE)
    table.row(mode, "loss", {"loss": relative(ours.get_tensor("loss"), loss.detach())}, TOLERANCE)
    parameters = {name: p for name, p in model.named_parameters()
                  if p.grad is not None or f"gradient.{name}" in ours.keys()}  # the others get none
    gradients = {name: gradient_of(parameter) for name, parameter in parameters.items()}
    total = sum(torch.linalg.vector_norm(g).item() ** 2 for g in gradients.values()) ** 0.5
    errors = {
        name: relative(ours.get_tensor("gradient." + name), gradient, SMALLEST_SHARE * total)
        for name, gradient in gradients.items()
    }
    table.row(mode, "gradients", errors, TOLERANCE)


def steady(gradient):
    """Elements whose first step of AdamW, which is the gradient's sign, does not depend on rounding."""
    return gradient.abs() >= SMALLEST_SHARE * gradient.abs().max()


def compare_state(table, mode, model, ours, start, only=None):
    """Compares parameters by their change since the open file `start`, and statistics by their values. `only`: the
    elements to look at, by name; all of parameters that are not there."""
    parameters = dict(model.named_parameters())
    moves = {name: p.detach() - start.get_tensor(name) for name, p in parameters.items()}
    total = sum(torch.linalg.vector_norm(move).item() ** 2 for move in moves.values()) ** 0.5
    errors = {}
    for name, move in moves.items():
        here = (only or {}).get(name, ...)
        mine = ours.get_tensor("state." + name) - start.get_tensor(name)
        errors[name] = relative(mine[here], move[here], SMALLEST_SHARE * total)
    table.row(mode, "moves", errors, STATE_TOLERANCE)
    buffers = {
        name: relative(ours.get_tensor("state." + name).double(), buffer.double(), 1e-300)
        for name, buffer in model.named_buffers()
    }
    if buffers:
        table.row(mode, "statistics", buffers, STATE_TOLERANCE)


def train(model, images, labels, adamw):
    """The steps after a first backward pass."""
    if adamw:
        optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    optimizer.step()
    for _ in range(STEPS - 1):
        optimizer.zero_grad()
        loss_of(logits_of(model, images), labels).backward()
        optimizer.step()


def check(program, name, folder):
    case = CASES[name]
    start, output = folder / "input.safetensors", folder / "output.safetensors"
    images, labels, drops = write_input(case, start)
    table = Table()
    for mode in ("eval", "train", "masked") if drops else ("eval", "train"):
        steps = STEPS if mode == "train" else 0
        subprocess.run([program, case.name or name, mode, str(steps), start, output] + case.arguments(), check=True)
        model = read_model(case, start).train(mode != "eval")
        with safe_open(output, "pt") as ours, safe_open(start, "pt") as before:
            masks = {key: ours.get_tensor(key) for key in ours.keys() if key.startswith("mask.")}
            use_masks(model, masks)
            if steps:
                state = [(key[6:], shape) for key, shape in header_of(output) if key.startswith("state.")]
                table.equal("state", state, [(key, tuple(v.shape)) for key, v in state_of(model).items()])
            compare(table, mode, model, images, labels, ours)
            if steps:
                adamw = bool(case.keys)
                firsts = {key: steady(parameter.grad) for key, parameter in model.named_parameters()} if adamw else {}
                train(model, images, labels, adamw)
                compare_state(table, mode, model, ours, before, firsts)
        output.unlink()
    return table.passed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="path of oracle_program")
    parser.add_argument("--model", required=True, choices=CASES)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{arguments.model}: stratagem against torchvision {torchvision.__version__}, torch {torch.__version__}")
    with tempfile.TemporaryDirectory(prefix="stratagem-oracle-") as folder:
        sys.exit(0 if check(arguments.program, arguments.model, Path(folder)) else 1)


if __name__ == "__main__":
    main()

"""Compares models exported by analysis/export_model.py with the same models in Python, in float64, with the same
weights and inputs.

The file is exported in float32, as a user would. Checks the names and shapes of the state, then logits, loss and every
gradient: in evaluation, in training without dropout and stochastic depth, and in training with them, where Python uses
the masks that stratagem made. Then checks three steps of SGD with momentum.
"""

import argparse
import collections
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import torch
import torchvision
from safetensors import safe_open
from safetensors.torch import save_file

import oracle

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "analysis")]

from model_export.file import save  # noqa: E402
from model_export.graph import export as export_graph  # noqa: E402
from model_export.module import separate  # noqa: E402

CLASSES, BATCH, STEPS = 10, 4, 3
TOKENS, WORDS = 12, 40  # of a text, of the vocabulary


class TextClassifier(torch.nn.Module):
    """An encoder of two layers. Tokens are integers, and the attention drops its weights."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, 16)
        self.places = torch.nn.Parameter(0.1 * torch.randn(TOKENS, 16))
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(16, CLASSES)

    def forward(self, tokens):
        return self.head(self.encoder(self.words(tokens) + self.places).mean(1))


class Tied(torch.nn.Module):
    """One layer is called twice, and one weight belongs to two layers."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(64, 32)
        self.back = torch.nn.Linear(32, 64, bias=False)
        self.back.weight = torch.nn.Parameter(torch.randn(64, 32) / 8)
        self.again = torch.nn.Linear(32, 64, bias=False)
        self.again.weight = self.back.weight
        self.head = torch.nn.Linear(64, CLASSES)

    def forward(self, x):
        x = x.flatten(1)
        for _ in range(2):
            x = self.back(torch.tanh(self.first(x)))
        return self.head(self.again(torch.tanh(self.first(x))))


class OtherNorms(torch.nn.Module):
    """An instance norm that keeps running statistics, and a group norm."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3)
        self.instance = torch.nn.InstanceNorm2d(8, affine=True, track_running_stats=True)
        self.second = torch.nn.Conv2d(8, 8, 3)
        self.group = torch.nn.GroupNorm(2, 8)
        self.head = torch.nn.Linear(8, CLASSES)

    def forward(self, x):
        x = torch.relu(self.instance(self.first(x)))
        return self.head(torch.relu(self.group(self.second(x))).mean((2, 3)))


def of_torchvision(name, **options):
    return lambda: getattr(torchvision.models, name)(num_classes=CLASSES, **options)


# {name: (what makes it, shape of a sample)}. Images are the smallest that the model, and batch norm, can take.
MODELS = {
    "text": (TextClassifier, (TOKENS,)),
    "tied": (Tied, (1, 8, 8)),
    "other_norms": (OtherNorms, (3, 12, 12)),
    **{
        name: (of_torchvision(name, **options), (3, pixels, pixels))
        for name, pixels, options in (
            ("alexnet", 64, {}),
            ("convnext_tiny", 32, {}),
            ("densenet121", 64, {}),
            ("efficientnet_b0", 64, {}),
            ("efficientnet_v2_s", 64, {}),
            ("googlenet", 64, {"init_weights": False}),
            ("maxvit_t", 224, {}),
            ("mnasnet0_5", 64, {}),
            ("mobilenet_v2", 64, {}),
            ("mobilenet_v3_small", 64, {}),
            ("regnet_y_400mf", 64, {}),
            ("resnet18", 64, {}),
            ("resnext50_32x4d", 64, {}),
            ("shufflenet_v2_x0_5", 64, {}),
            ("squeezenet1_1", 64, {}),
            ("swin_t", 64, {}),
            ("vit_b_32", 64, {"image_size": 64}),
            ("wide_resnet50_2", 64, {}),
            ("resnet50", 64, {}),
        )
    },
}
RANDOM = {"dropout", "dropout_", "bernoulli_", "scaled_dot_product_attention"}


def export(model, example, path):
    program, _ = export_graph(model, example)
    separate(model, program)
    save(program, path)


def random_nodes(path):
    """[(operator, name)] of what draws random numbers, in the order of the graph; without auxiliary heads."""
    with zipfile.ZipFile(path) as archive:
        (graph,) = (name for name in archive.namelist() if name.endswith("models/model.json"))
        nodes = json.loads(archive.read(graph))["graph_module"]["graph"]["nodes"]
    found = []
    for node in nodes:
        operator = node["target"].removeprefix("torch.ops.aten.").split(".")[0]
        module = node["metadata"]["nn_module_stack"].split(";")[-1].split(",")[1]
        if operator in RANDOM and not module.startswith("aux"):
            found.append((operator, node.get("name") or node["outputs"][0]["as_tensor"]["name"]))
    return found


class Masks:
    """Takes the place of PyTorch's random operators: their calls, in the order of the graph, are first counted, and
    then use stratagem's masks."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.sizes = {}  # elements per sample and probability, by name of the mask
        self.masks = None
        self.turn = 0

    def next(self, operator, shape, p):
        """The scaled mask for the next call; 1 while they are counted, and where nothing is dropped."""
        kind, name = self.nodes[self.turn]
        assert kind.rstrip("_") == operator.rstrip("_"), (kind, operator)
        self.turn = (self.turn + 1) % len(self.nodes)
        if p == 0:
            return 1
        per_sample = int(torch.tensor(shape[1:]).prod())
        self.sizes[f"mask.{name}"] = torch.tensor([per_sample, p], dtype=torch.float64)
        return self.masks[f"mask.{name}"].double().view(shape) / (1 - p) if self.masks else 1

    def __enter__(self):
        functional = torch.nn.functional
        self.plain = functional.dropout, torch.Tensor.bernoulli_, functional.scaled_dot_product_attention
        functional.dropout = self.dropout
        torch.Tensor.bernoulli_ = lambda noise, p: self.bernoulli(noise, p)
        functional.scaled_dot_product_attention = self.attention
        self.turn = 0
        return self

    def __exit__(self, *_):
        functional = torch.nn.functional
        functional.dropout, torch.Tensor.bernoulli_, functional.scaled_dot_product_attention = self.plain

    def dropout(self, x, p=0.5, training=True, inplace=False):
        return x * self.next("dropout", x.shape, p if training else 0)

    def bernoulli(self, noise, p):
        return noise.copy_(self.next("bernoulli_", noise.shape, 1 - p) * torch.ones_like(noise) * p)

    def attention(self, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
        assert attn_mask is None and not is_causal and scale is None
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1)
        return (weights * self.next("scaled_dot_product_attention", weights.shape, dropout_p)) @ v


def without_masks(model):
    """Dropout and stochastic depth pass their input on."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.forward = lambda x: x
        if isinstance(module, torch.nn.MultiheadAttention):
            module.dropout = 0.0
    return model


def train(model, images, labels):
    """The steps after a first backward pass."""
    optimizer = torch.optim.SGD(model.parameters(), lr=oracle.LEARNING_RATE, momentum=oracle.MOMENTUM)
    for step in range(STEPS):
        if step:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def without_heads(model):
    """Only the first output, without running auxiliary heads."""
    plain = type(model).forward
    model.aux1.forward = model.aux2.forward = lambda x: x
    model.forward = lambda x: plain(model, x)[0]


def check(program, name, folder):
    make, shape = MODELS[name]
    torch.manual_seed(1)
    model = make().train()
    text = len(shape) == 1
    example = torch.randint(WORDS, (2, *shape)) if text else torch.randn(2, *shape)
    file, start, output = folder / f"{name}.pt2", folder / "input.safetensors", folder / "output.safetensors"
    export(model, example, file)
    model = model.double()
    oracle.scramble(model)
    inputs = torch.randint(WORDS, (BATCH, *shape)) if text else torch.randn(BATCH, *shape, dtype=torch.float64)
    labels = torch.arange(BATCH) * 3 % CLASSES
    state = copy.deepcopy(model.state_dict())
    masks = Masks(random_nodes(file))
    if masks.nodes:
        with torch.no_grad(), masks:
            copy.deepcopy(model).train()(inputs)
    several = {key: tensor.clone() for key, tensor in state.items()}
    save_file({"input.images": inputs, "input.labels": labels} | masks.sizes | several, start)

    table = oracle.Table()
    for mode in ("eval", "train", "masked") if masks.sizes else ("eval", "train"):
        steps = STEPS if mode == "train" else 0
        subprocess.run([program, file, mode, str(steps), start, output], check=True)
        theirs = copy.deepcopy(model)
        theirs.load_state_dict(state)
        theirs.train(mode != "eval").zero_grad()
        theirs = theirs if mode == "masked" else without_masks(theirs)
        if name == "googlenet" and mode != "eval":
            without_heads(theirs)
        with safe_open(output, "pt") as ours, safe_open(start, "pt") as before:
            if mode == "masked":
                masks.masks = {key: ours.get_tensor(key) for key in ours.keys() if key.startswith("mask.")}
                with masks:
                    oracle.compare(table, mode, theirs, inputs, labels, ours)
            else:
                oracle.compare(table, mode, theirs, inputs, labels, ours)
            if steps:
                shapes = {key[6:]: tuple(ours.get_tensor(key).shape) for key in ours.keys() if key.startswith("state.")}
                table.equal("state", sorted(shapes.items()), sorted((k, tuple(v.shape)) for k, v in trained(theirs)))
                train(theirs, inputs, labels)
                oracle.compare_state(table, mode, theirs, ours, before)
    return table.passed


def trained(model):
    """What a file has of a state_dict: of tensors with several names, the first one alone."""
    seen = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="path of oracle_program")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    passed = collections.Counter()
    for name in arguments.models:
        print(f"{name}: stratagem against Python, torch {torch.__version__}", flush=True)
        with tempfile.TemporaryDirectory(prefix="stratagem-oracle-") as folder:
            passed[check(arguments.program, name, pathlib.Path(folder))] += 1
    sys.exit(0 if passed[False] == 0 else 1)


if __name__ == "__main__":
    main()

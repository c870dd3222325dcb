#!/usr/bin/env python3
"""Writes inputs/calibrations/*.json: calibrations of known kinds of node for `stratagem plan --calibration`, computed
from published figures with the formulas of inputs/calibrations/README.md. Nothing in them was measured on such a node.

  python3 analysis/calibrations.py            writes the files
  python3 analysis/calibrations.py --check    checks that the files are up to date
  python3 analysis/calibrations.py --count    counts the work of the models again (needs torch and torchvision)
"""

import argparse
import dataclasses
import json
import math
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "inputs" / "calibrations"
SAMPLES = [1, 8, 32, 128, 512]
MESSAGES = [1 << 10, 1 << 16, 1 << 20, 1 << 25, 1 << 30]
ELEMENTS = [1 << 16, 1 << 22]
SAVED = [1 << 16, 1 << 29]


@dataclasses.dataclass(frozen=True)
class Work:
    """Work of a model at one image size, with 10 classes. A backward pass makes twice as many multiplications as a
    forward pass."""

    channels: int
    size: int  # of the images [pixels]
    gflop: float  # of a forward pass of one image
    forward: float  # elements that the operators read and write for one image [millions]
    backward: float
    parameters: float  # [millions]
    operators: tuple  # forward and backward
    memory_format: str = "channels_last"


# From --count with torchvision's models, whose layers are the same as ours.
WORK = {
    "mlp": [
        Work(1, 28, 0.00047, 0.003, 0.004, 0.235, (7, 13), "contiguous"),
        Work(1, 32, 0.00059, 0.003, 0.004, 0.296, (7, 13), "contiguous"),
        Work(3, 32, 0.00164, 0.005, 0.006, 0.821, (7, 13), "contiguous"),
    ],
    "lenet": [
        Work(1, 28, 0.007, 0.10, 0.15, 0.656, (11, 16)),
        Work(1, 32, 0.010, 0.13, 0.20, 0.931, (11, 16)),
        Work(3, 32, 0.012, 0.14, 0.20, 0.932, (11, 16)),
    ],
    "vgg16": [
        Work(3, 32, 0.866, 1.34, 1.95, 134.302, (45, 48)),
        Work(3, 224, 30.932, 59.07, 87.72, 134.302, (45, 48)),
    ],
    "resnet50": [
        Work(3, 32, 0.167, 1.66, 2.32, 23.529, (229, 179)),
        Work(3, 224, 8.174, 81.09, 113.53, 23.529, (229, 179)),
    ],
    "densenet121": [
        Work(3, 32, 0.116, 2.20, 3.30, 6.964, (553, 908)),
        Work(3, 224, 5.666, 107.77, 161.66, 6.964, (553, 908)),
    ],
    "efficientnetv2_l": [
        Work(3, 32, 0.542, 7.17, 9.73, 117.247, (1658, 1252)),
        Work(3, 224, 24.460, 316.18, 437.96, 117.247, (1658, 1284)),
    ],
    "convnext_l": [
        Work(3, 32, 1.402, 4.25, 7.88, 196.246, (371, 529), "contiguous"),
        Work(3, 224, 68.720, 207.56, 399.34, 196.246, (371, 563), "contiguous"),
    ],
}


@dataclasses.dataclass(frozen=True)
class Link:
    """Collectives among ranks: seconds = latency + bus factor x bytes / bandwidth."""

    ranks: int
    on_node: int
    latency_us: float
    gb_s: float  # bus bandwidth


@dataclasses.dataclass(frozen=True)
class Node:
    name: str
    host: str
    device: str
    on_gpu: bool
    cores: int
    tflops: dict  # by precision, of the device: a GPU, or all cores
    gb_s: float  # memory bandwidth of the device
    multiplies: float  # share of the peak that convolutions and matrix products get
    moves: float  # share of the bandwidth that operators get
    operator_us: float  # of the host, to launch one
    threads: tuple  # ranks of a node with these, which share the device; a GPU belongs to one rank
    links: tuple
    message_us: float  # between a worker and a server
    message_gb_s: float
    published: str


def published(*sentences):
    return " ".join(sentences)


FORMULAS = (
    "Passes: counted operations and traffic of the models over these peaks times an efficiency, beside the host's "
    "time per operator; collectives: latency + bus factor x bytes / bandwidth; servers: 10 GB/s of one thread; saving: "
    "0.5 GB/s per rank. inputs/calibrations/README.md has formulas, efficiencies and how far off they are."
)

LAUNCHES = (
    "These times count a launch per operator; a run keeps its steps as a graph: below 64 pixels, expect times that are "
    "5 to 15 times too long for models of many small operators."
)

NODES = [
    Node(
        name="a100-sxm4",
        host="4 x A100 80 GB SXM4 with NVLink, one HDR InfiniBand adapter (200 Gb/s)",
        device="NVIDIA A100-SXM4-80GB",
        on_gpu=True,
        cores=64,
        tflops={"fp32": 19.5, "tf32": 156, "bf16": 312, "fp16": 312},
        gb_s=2039,
        multiplies=0.45,
        moves=0.80,
        operator_us=36,
        threads=(1,),
        links=(
            Link(2, 2, 12, 75),
            Link(4, 4, 20, 225),
            Link(8, 4, 35, 23.5),
            Link(16, 4, 45, 23.5),
            Link(32, 4, 55, 23.5),
        ),
        message_us=15,
        message_gb_s=7,
        published=published(
            "NVIDIA A100 Tensor Core GPU data sheet (19.5 TFLOP/s fp32, 156 tf32, 312 bf16 and fp16, 2,039 GB/s, NVLink"
            " 600 GB/s); ResNet50 v1.5 for PyTorch in NVIDIA/DeepLearningExamples (one A100 80 GB: 2,470 images/s with"
            " mixed precision, 938 with tf32); NVIDIA/nccl-tests issues 331 (72 GB/s between two of four GPUs), 149 and"
            " 119 (8 GPUs; four HDR adapters give 96 GB/s).",
            LAUNCHES,
            FORMULAS,
        ),
    ),
    Node(
        name="h100-sxm5",
        host="8 x H100 80 GB SXM5 with NVSwitch, eight NDR InfiniBand adapters (400 Gb/s)",
        device="NVIDIA H100 80GB HBM3",
        on_gpu=True,
        cores=96,
        tflops={"fp32": 66.9, "tf32": 494.7, "bf16": 989.4, "fp16": 989.4},
        gb_s=3350,
        multiplies=0.45,
        moves=0.55,
        operator_us=36,
        threads=(1,),
        links=(
            Link(2, 2, 15, 370),
            Link(4, 4, 20, 370),
            Link(8, 8, 25, 370),
            Link(16, 8, 40, 350),
            Link(32, 8, 50, 350),
        ),
        message_us=15,
        message_gb_s=7,
        published=published(
            "NVIDIA H100 Tensor Core GPU data sheet, without sparsity (66.9 TFLOP/s fp32, 494.7 tf32, 989.4 bf16",
            "and fp16, 3,350 GB/s, NVLink 900 GB/s); NVIDIA/nccl-tests issues 212 (370 GB/s of NVLink remain) and",
            "290 (46 to 48 GB/s per NDR adapter). Efficiencies fit runs on one H100 (analysis/bench/RESULTS.md);",
            "nothing was measured on a node with several.",
            LAUNCHES,
            FORMULAS,
        ),
    ),
    Node(
        name="cpu-2x24",
        host="2 x Intel Xeon Gold 6240R (24 cores each), HDR100 InfiniBand (100 Gb/s)",
        device="Intel Xeon Gold 6240R",
        on_gpu=False,
        cores=48,
        tflops={"fp32": 48 * 2.4 * 64 / 1000},
        gb_s=281.6,
        multiplies=0.30,
        moves=0.60,
        operator_us=50,
        threads=(1, 2, 3, 4, 6, 8, 12, 16, 24, 48),
        links=(
            Link(2, 2, 5, 5),
            Link(4, 4, 10, 5),
            Link(8, 8, 15, 5),
            Link(16, 16, 20, 4),
            Link(48, 48, 30, 2),
            Link(96, 48, 40, 0.25),
            Link(192, 48, 50, 0.25),
        ),
        message_us=5,
        message_gb_s=5,
        published=published(
            "Intel's data for the Xeon Gold 6240R: 24 cores at 2.4 GHz, two AVX-512 units (64 operations a cycle), six"
            " channels of DDR4-2933 (140.8 GB/s per socket). Times are of a full node, whose ranks share memory and"
            " network.",
            FORMULAS,
        ),
    ),
]


def rounded(seconds):
    """Four digits: more would mean nothing."""
    return float(f"{seconds:.4g}")


def curve(sizes, size_name, seconds):
    return [{size_name: size, "seconds": rounded(seconds(size))} for size in sizes]


def element_bytes(precision):
    return 2 if precision in ("bf16", "fp16") else 4


def pass_seconds(node, work, precision, samples, threads, backward):
    """The device works while the host launches the next operators, so neither alone decides."""
    share = 1 if node.on_gpu else threads / node.cores
    # Memory traffic keeps vector units busy in time, but not tensor cores.
    multiplies = 0.7 if node.on_gpu and precision == "fp32" else node.multiplies
    flop = samples * work.gflop * 1e9 * (2 if backward else 1)
    elements = samples * (work.backward if backward else work.forward) + work.parameters * (2 if backward else 1)
    device = flop / (node.tflops[precision] * 1e12 * share * multiplies)
    device += elements * 1e6 * element_bytes(precision) / (node.gb_s * 1e9 * share * node.moves)
    casts = 1.4 if element_bytes(precision) == 2 else 1  # more operators, for weights and activations
    host = work.operators[1 if backward else 0] * casts * node.operator_us * 1e-6
    return math.hypot(device, host) if node.on_gpu else device + host


def update_seconds(node, work, threads):
    """Reads parameters, gradients and momentum, and writes two of them."""
    share = 1 if node.on_gpu else threads / node.cores
    return 50e-6 + 5 * 4 * work.parameters * 1e6 / (node.gb_s * 1e9 * share * node.moves)


def passes(node):
    for model, works in WORK.items():
        for work in works:
            for precision in node.tflops:
                for threads in node.threads:
                    for recompute in (0, 1):
                        yield pass_entry(node, model, work, precision, threads, recompute)


def pass_entry(node, model, work, precision, threads, recompute):
    def forward(samples):
        return pass_seconds(node, work, precision, samples, threads, False)

    def backward(samples):
        again = forward(samples) if recompute else 0
        return pass_seconds(node, work, precision, samples, threads, True) + again

    return {
        "model": model,
        "classes": 10,
        "channels": work.channels,
        "size": work.size,
        "memory_format": work.memory_format,
        "precision": precision,
        "recompute": recompute,
        "dropout": True,
        "threads": threads,
        "ranks_on_node": 1 if node.on_gpu else node.cores // threads,
        "optimizer_s": rounded(update_seconds(node, work, threads)),
        "forward": curve(SAMPLES, "samples", forward),
        "backward": curve(SAMPLES, "samples", backward),
    }


def operations(node):
    for link in node.links:
        others = (link.ranks - 1) / link.ranks
        for operation, factor in (("all_reduce", 2 * others), ("reduce_scatter", others), ("all_gather", others)):
            yield {
                "operation": operation,
                "backend": "nccl" if node.on_gpu else "mpi",
                "ranks": link.ranks,
                "ranks_per_node": link.on_node,
                "time": curve(
                    MESSAGES, "bytes", lambda b, f=factor, k=link: k.latency_us * 1e-6 + f * b / (k.gb_s * 1e9)
                ),
            }
    # Two ranks at once, each sending and receiving, in the host's memory.
    yield {
        "operation": "send_receive",
        "backend": "mpi",
        "ranks": 2,
        "ranks_per_node": 2,
        "time": curve(MESSAGES, "bytes", lambda b: node.message_us * 1e-6 + 2 * b / (node.message_gb_s * 1e9)),
    }


def servers():
    """Bytes per element that a push moves: gradient and sum, parameters and momentum, and what a correction needs."""
    for work, moved in (("sum", 20), ("each", 24), ("corrected", 32), ("look_ahead", 32)):
        yield {"work": work, "push": curve(ELEMENTS, "elements", lambda n, m=moved: 20e-6 + m * n / 10e9)}


def savings(node):
    most = max(link.on_node for link in node.links)
    for ranks in (1, most):
        yield {"ranks_on_node": ranks, "time": curve(SAVED, "bytes", lambda b: 0.02 + b / 0.5e9)}


def document(node):
    return {
        "schema_name": "stratagem-calibration",
        "schema_version": 2,
        "published": node.published,
        "host": node.host,
        "device": node.device,
        "on_gpu": node.on_gpu,
        "cores": node.cores,
        "version": "",
        "libtorch": "",
        "mpi": "",
        "measured": "",
        "passes": list(passes(node)),
        "operations": list(operations(node)),
        "servers": list(servers()),
        "savings": list(savings(node)),
        "activations": [],
    }


def text_of(node):
    """JSON with one list item per line."""
    lines = []
    for key, value in document(node).items():
        if isinstance(value, list) and value:
            items = ",\n".join("  " + json.dumps(item) for item in value)
            lines.append(f" {json.dumps(key)}: [\n{items}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


# ---- counting ----------------------------------------------------------------------------------------


def count():
    """Counts what torch's operators do in a forward and a backward pass, without computing it."""
    import torch
    import torchvision
    from torch import nn
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import FlopCounterMode

    views = {
        *["view", "t", "transpose", "expand", "permute", "slice", "select", "detach", "_unsafe_view", "unsqueeze"],
        *["squeeze", "as_strided", "empty", "empty_like", "alias", "reshape", "split", "split_with_sizes"],
    }

    class Traffic(TorchDispatchMode):
        operators = elements = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if function._schema.name.split("::")[1] not in views:
                self.operators += 1
                tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
                self.elements += sum(tensor.numel() for tensor in tensors)
            return result

    def mlp(channels, size):
        widths = [channels * size * size, 256, 128, 10]
        layers = [nn.Linear(widths[0], widths[1]), nn.ReLU(), nn.Linear(widths[1], widths[2]), nn.ReLU()]
        return nn.Sequential(nn.Flatten(), *layers, nn.Linear(widths[2], widths[3]))

    def lenet(channels, size):
        left = (size // 2 - 4) // 2
        stages = [nn.Conv2d(channels, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU()]
        head = [nn.MaxPool2d(2), nn.Flatten(), nn.Linear(50 * left * left, 500), nn.ReLU(), nn.Linear(500, 10)]
        return nn.Sequential(*stages, *head)

    def made(model, work):
        if model in ("mlp", "lenet"):
            return {"mlp": mlp, "lenet": lenet}[model](work.channels, work.size)
        names = {"efficientnetv2_l": "efficientnet_v2_l", "convnext_l": "convnext_large"}
        return getattr(torchvision.models, names.get(model, model))(num_classes=10)

    def passed(model, work, samples):
        with torch.device("meta"):
            network = made(model, work).train()
            images = torch.empty(samples, work.channels, work.size, work.size)
            labels = torch.zeros(samples, dtype=torch.long)
            with FlopCounterMode(display=False) as flop, Traffic() as traffic:
                loss = nn.functional.cross_entropy(network(images), labels)
                forward = (flop.get_total_flops(), traffic.elements, traffic.operators)
                loss.backward()
                both = (traffic.elements, traffic.operators)
        return forward, both, sum(parameter.numel() for parameter in network.parameters())

    for model, works in WORK.items():
        for work in works:
            (few, few_both, parameters), (many, many_both, _) = (passed(model, work, n) for n in (8, 16))
            forward = (many[1] - few[1]) / 8e6
            yield model, Work(
                work.channels,
                work.size,
                (many[0] - few[0]) / 8e9,
                forward,
                (many_both[0] - few_both[0]) / 8e6 - forward,
                parameters / 1e6,
                (few[2], few_both[1] - few[2]),
                work.memory_format,
            )


def differs(counted, written):
    """Whether two values differ by more than the digits that are written."""
    names = ["gflop", "forward", "backward", "parameters"]
    pairs = [(getattr(counted, name), getattr(written, name)) for name in names]
    pairs += zip(counted.operators, written.operators)
    return any(not math.isclose(new, old, rel_tol=0.02, abs_tol=0.006) for new, old in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, only check")
    parser.add_argument("--count", action="store_true", help="count the models' work")
    arguments = parser.parse_args()
    wrong = []
    if arguments.count:
        written = [(model, work) for model, works in WORK.items() for work in works]
        for (model, counted), (_, work) in zip(count(), written):
            print(model, counted)
            if differs(counted, work):
                wrong.append(f"{model} at {work.size} pixels")
    for node in [] if arguments.count else NODES:
        path = FOLDER / f"{node.name}.json"
        if not arguments.check:
            path.write_text(text_of(node))
        elif not path.exists() or path.read_text() != text_of(node):
            wrong.append(str(path))
    if wrong:
        sys.exit("not what this program says: " + ", ".join(wrong))


if __name__ == "__main__":
    main()

"""The nets of mechanism_nets.py against Python: five steps of two workers with momentum
and weight decay, in float64, or in float32 where a net asks for float32 itself.

Files are those of torch.export.save. What a file trains, what stays as it is, and what buffers become must be what
Python makes of the module: parameters and buffers are compared by their values, frozen ones bit for bit.
"""

import argparse
import contextlib
import copy
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn

from mechanism_nets import CLASSES, EVERYWHERE, FLOAT32, IMAGE, NETS, PIXELS, TOLD, WORKERS, Wide

BATCH, STEPS = 6, 5
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

    def narrow(self, name):
        torch.manual_seed(1)
        model = Wide(FLOAT32[name])
        self.export(model, IMAGE)
        self.run("precision.compute=bf16", "precision.loss_scale=none", "run.max_steps=1", "strategy.emulate_ranks=1")
        with h5py.File(self.folder / f"run-{self.runs}" / "trace" / "a0" / "rank-0000.h5", "r") as trace:
            ours = trace["steps/loss"][0]
        chosen = self.order[: BATCH * WORKERS]
        x = torch.from_numpy(self.images[chosen]).permute(0, 3, 1, 2).contiguous() / 255
        logits = copy.deepcopy(model).bfloat16()(x.bfloat16()).float()
        theirs = nn.functional.cross_entropy(logits, torch.from_numpy(self.labels[chosen])).item()
        print(f"{name:26} bf16 {abs(ours - theirs) / theirs:.1e}", flush=True)
        assert abs(ours - theirs) <= 1e-3 * theirs, f"{name}: {ours}, in Python {theirs}"

    def export(self, model, shape):
        program = torch.export.export(model, (torch.randn(2, *shape),), strict=False,
                                      dynamic_shapes=({0: torch.export.Dim("batch")},))
        torch.export.save(program, self.folder / "net.pt2")

    def told(self, name):
        make, shape, words, code = TOLD[name]
        self.export(make(), shape)
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
        checks = [(check.net, name) for name in options.nets]
        checks += [(check.narrow, name) for name in FLOAT32] + [(check.told, name) for name in TOLD]
        for function, name in checks:
            try:
                function(name)
            except Exception as problem:  # the other nets are still compared
                print(f"{name:26} FAILED {problem}", flush=True)
                failed.append(name)
    print(json.dumps({"failed": failed}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

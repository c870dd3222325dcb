"""Weights of GPT-2 between stratagem and Hugging Face's transformers: what each writes the other loads, with the same
loss, whole or in several files. Ten steps of AdamW from the same weights have the same losses as in PyTorch, with and
without clipping. With the published weights of GPT-2 (124M), they have the losses that llm.c publishes."""

import argparse
import csv
import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

SHAPE = {"layers": 2, "heads": 4, "width": 48, "context": 16, "num_classes": 256}
CONFIG = """\
schema: 1
run: {name: text, threads: 1, epochs: 1, max_steps: 4, evaluate_every: 1}
data: {path: text, global_batch: 4, seq_len: 16}
optimizer: {name: adamw, lr: 1e-3}
strategy: {name: serial}
"""


def make_text(folder):
    (folder / "text").mkdir()
    torch.manual_seed(3)
    for part, size in {"train": 2000, "val": 400}.items():
        (folder / "text" / f"{part}.txt").write_bytes(bytes(torch.randint(32, 127, (size,)).tolist()))
    (folder / "batch").mkdir()
    for part in ("train", "val"):
        (folder / "batch" / f"{part}.txt").write_bytes(bytes(torch.randint(32, 127, (65,)).tolist()))


# Recipe of ten steps, and the losses that llm.c publishes for it (test_gpt2.c and test_gpt2.cu, commit f1e2ace) with
# the published weights and the batch of gpt2_124M_debug_state.bin, 4 x 64 tokens.
RECIPES = [
    ({"lr": 1e-4, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "clip_norm": 0},
     [5.270007, 4.059707, 3.375123, 2.800783, 2.315382, 1.849029, 1.394656, 0.999147, 0.624080, 0.376511]),
    ({"lr": 1e-4, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.0, "clip_norm": 1},
     [5.270009, 4.060681, 3.320085, 2.717550, 2.181066, 1.653923, 1.168050, 0.736873, 0.401021, 0.187493]),
]
LLM_C_TOLERANCE = 1e-2  # its own, in fp32


def hugging_face():
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=256, n_positions=16, n_embd=48, n_layer=2, n_head=4, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
        bos_token_id=None, eos_token_id=None)).eval()


def train(model, text, recipe):
    """The losses of ten steps on all of `text`."""
    tokens = torch.frombuffer(bytearray(text.read_bytes()), dtype=torch.uint8).long()
    inputs, labels = tokens[:-1].view(-1, 16), tokens[1:].view(-1, 16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe["lr"], betas=(recipe["beta1"], recipe["beta2"]),
                                  weight_decay=recipe["weight_decay"])
    losses = []
    for _ in range(10):
        loss = torch.nn.functional.cross_entropy(model(inputs).logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        if recipe["clip_norm"]:
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe["clip_norm"])
        optimizer.step()
        losses.append(loss.item())
    return losses


class Check:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        shape = ", ".join(f"{key}: {value}" for key, value in SHAPE.items())
        (folder / "config.yaml").write_text(CONFIG + f"model: {{name: gpt2, {shape}}}\n")

    def start(self, *overrides):
        words = [self.options.program, "run", "config.yaml", "--progress", "none"]
        return subprocess.run(words + [word for override in overrides for word in ("-s", override)], cwd=self.folder,
                              check=False, capture_output=True, text=True)

    def run(self, *overrides):
        ended = self.start(*overrides)
        assert ended.returncode == 0, ended.stderr
        return ended

    def evaluated(self, weights, name):
        """The test loss of the weights, as stratagem computes it."""
        self.run(f"run.out=runs/{name}", "run.epochs=0", f"model.weights={weights}")
        return json.loads((self.folder / "runs" / name / "outcome.json").read_text())["test_loss"]

    def expected(self, model):
        """The same, in Python."""
        text = torch.frombuffer(bytearray((self.folder / "text" / "val.txt").read_bytes()), dtype=torch.uint8).long()
        count = (len(text) - 1) // 16
        inputs = text[: count * 16].view(count, 16)
        labels = text[1 : count * 16 + 1].view(count, 16)
        with torch.inference_mode():
            logits = model(inputs).logits
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()).item()

    def same_loss(self, weights, name, model):
        ours, theirs = self.evaluated(weights, name), self.expected(model)
        assert abs(ours - theirs) < 1e-5, (name, ours, theirs)
        print(f"{name}: loss {ours:.6f}, transformers {theirs:.6f}")

    def losses(self, name, recipe, *overrides):
        """Of ten steps of one batch, which is the whole text."""
        self.run(f"run.out=runs/{name}", "run.epochs=10", "run.max_steps=0", "run.evaluate_every=0",
                 *(f"optimizer.{key}={value}" for key, value in recipe.items()), *overrides)
        with open(self.folder / "runs" / name / "metrics.csv", encoding="ascii") as file:
            return [float(row["train_loss"]) for row in csv.DictReader(file)]

    def ten_steps(self):
        """In PyTorch and here, from the same weights."""
        for number, (recipe, _) in enumerate(RECIPES):
            recipe = recipe | {"lr": 1e-2}
            ours = self.losses(f"steps-{number}", recipe, "data.path=batch", "model.weights=theirs/model.safetensors")
            theirs = train(hugging_face(), self.folder / "batch" / "train.txt", recipe)
            worst = max(abs(mine - other) for mine, other in zip(ours, theirs, strict=True))
            print(f"ten steps {number}: {ours[0]:.6f} to {ours[-1]:.6f}, largest difference {worst:.1e}")
            assert worst < 1e-4, (ours, theirs)
            assert ours[-1] < ours[0] - 0.5, "they learn"

    def published(self, given):
        """The losses of llm.c, with GPT-2's weights."""
        state = np.fromfile(given / "gpt2_124M_debug_state.bin", np.int32, 256 + 2 * 4 * 64)
        assert state[:4].tolist()[0] == 20240327 and state[2:4].tolist() == [4, 64], state[:4]
        inputs, labels = state[256:512], state[512:768]
        assert (inputs[1:] == labels[:-1]).all(), "the four sequences stand one behind the other"
        (self.folder / "gpt2").mkdir()
        tokens = np.append(inputs, labels[-1]).astype(np.uint16)
        header = np.zeros(256, np.int32)
        header[:3] = 20240520, 1, len(tokens)
        for part in ("train", "val"):
            (self.folder / "gpt2" / f"{part}.bin").write_bytes(header.tobytes() + tokens.tobytes())
        shape = [f"model.{key}=0" for key in SHAPE]
        for number, (recipe, expected) in enumerate(RECIPES):
            ours = self.losses(f"gpt2-{number}", recipe, "data.path=gpt2", "data.seq_len=64", *shape,
                               f"model.weights={given / 'model.safetensors'}")
            worst = max(abs(mine - other) for mine, other in zip(ours, expected, strict=True))
            print(f"GPT-2 {number}: largest difference from llm.c {worst:.1e}")
            assert worst < LLM_C_TOLERANCE, (ours, expected)

    def theirs(self):
        model = hugging_face()
        model.save_pretrained(self.folder / "theirs")
        self.same_loss("theirs/model.safetensors", "theirs", model)
        model.save_pretrained(self.folder / "parts", max_shard_size="60KB")
        parts = sorted(path.name for path in (self.folder / "parts").glob("model-*.safetensors"))
        assert len(parts) > 1, parts
        self.same_loss("parts/model.safetensors.index.json", "parts", model)
        # As the published files are: without "transformer.", with the masks of attention.
        state = load_file(self.folder / "theirs" / "model.safetensors")
        bare = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
        bare["h.0.attn.bias"] = torch.ones(1, 1, 16, 16)
        save_file(bare, self.folder / "bare.safetensors")
        self.same_loss("bare.safetensors", "bare", model)
        matrices = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
        save_file({name: tensor.t().contiguous() if name.endswith(matrices) else tensor
                   for name, tensor in state.items()}, self.folder / "transposed.safetensors")
        ended = self.start("run.out=runs/transposed", "model.weights=transposed.safetensors")
        assert ended.returncode == 5 and "transposed" in ended.stderr, ended.stderr

    def ours(self):
        (self.folder / "ours").mkdir()
        self.run("run.out=runs/trained", "run.save_weights=ours/model.safetensors")
        model = transformers.GPT2LMHeadModel.from_pretrained(self.folder / "ours").eval()
        assert model.config.vocab_size == 256 and model.config.n_layer == 2
        assert model.lm_head.weight is model.transformer.wte.weight
        self.same_loss("ours/model.safetensors", "ours", model)
        trained = json.loads((self.folder / "runs" / "trained" / "outcome.json").read_text())
        assert abs(trained["test_loss"] - self.expected(model)) < 1e-5, trained


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_text(folder)
        check = Check(options, folder)
        check.theirs()
        check.ours()
        check.ten_steps()
        if "STRATAGEM_GPT2" in os.environ:
            check.published(Path(os.environ["STRATAGEM_GPT2"]).absolute())
        else:
            print("not compared with llm.c: STRATAGEM_GPT2 names no folder of model.safetensors (GPT-2, 124M) and"
                  " gpt2_124M_debug_state.bin")


if __name__ == "__main__":
    main()

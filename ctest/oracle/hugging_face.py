"""Weights of GPT-2 between stratagem and Hugging Face's transformers: what each writes the other loads, with the same
logits, whole or in several files. And a checkpoint's weights, and what nanoGPT's matrices lack."""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

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
        (folder / "text" / f"{part}.txt").write_bytes(bytes(torch.randint(256, (size,)).tolist()))


def hugging_face():
    torch.manual_seed(1)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=256, n_positions=16, n_embd=48, n_layer=2, n_head=4, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
        bos_token_id=None, eos_token_id=None)).eval()


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


if __name__ == "__main__":
    main()

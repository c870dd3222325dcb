"""Text of the user's own and transformers, wherever a data set can be named: data, plan, run, resume, collect,
sample."""

import json
import random
import struct

import harness
from harness import Refusal, mpirun, overridden

USAGE, BAD_DATA = 2, 5
FAILS_LATE = "forward:*:*:delay=200,forward:0:5:exit"  # when the checkpoint after step 3 is whole
CONFIG = """schema: 1
run: {name: text, threads: 1, max_steps: 6, evaluate_every: 1, out: out}
data: {path: book.txt, global_batch: 12}
model: {name: gpt2, layers: 2, heads: 2, width: 16, context: 8}
optimizer: {name: adamw, lr: 0.003, decay: weights, clip_norm: 1, warmup_steps: 2, schedule: cosine, final_lr: 1e-4,
  decay_steps: 4}
strategy: {name: ddp}
checkpoint: {every_steps: 3}
"""
WORDS = "in the beginning was a word and it was good ".split()


def book(words=600, seed=1):
    source = random.Random(seed)
    return " ".join(source.choices(WORDS, k=words)) + "\n"


def shard(tokens, magic=20240520, version=1):
    """As llm.c writes them."""
    return struct.pack("<3i", magic, version, len(tokens)).ljust(1024, b"\0") + struct.pack(f"<{len(tokens)}H", *tokens)


WITH_BOOK = {"text.yaml": CONFIG, "book.txt": book()}
SHARDS = {"text.yaml": CONFIG, "tokens/train_0.bin": shard(range(500)), "tokens/val_0.bin": shard(range(60))}
RUN = ["run", "text.yaml"]


def with_text(*settings):
    return overridden(*settings, config="text.yaml")


REFUSED = [
    Refusal("a model of images", with_text("model.name=lenet", "model.layers=0", "model.heads=0", "model.width=0",
                                           "model.context=0"),
            USAGE, ["model lenet takes images, and the data are text"], WITH_BOOK, ranks=(1, 2)),
    Refusal("images for a model of text", overridden("model.name=gpt2"), USAGE,
            ["model gpt2 takes text, and the data are images"], ranks=(1, 2)),
    Refusal("a sequence longer than the context", with_text("data.seq_len=9"), USAGE,
            ["data.seq_len: 9 tokens are more than the context of 8"], WITH_BOOK, ranks=(1, 2)),
    Refusal("heads that do not divide the width", with_text("model.heads=3"), USAGE,
            ["3 heads cannot share a width of 16"], WITH_BOOK),
    Refusal("a length for a model of images", overridden("data.seq_len=8"), USAGE,
            ["data.seq_len: is of text, which needs a model of text"]),
    Refusal("momentum under AdamW", with_text("optimizer.momentum=0.9"), USAGE, ["optimizer.momentum"], WITH_BOOK),
    Refusal("a fresh head that is tied", with_text("model.head=fresh", "model.weights=w"), USAGE, ["model.head: fresh"],
            WITH_BOOK),
    Refusal("too small a vocabulary", with_text("model.num_classes=255"), USAGE,
            ["model.num_classes is 255", "book has 256 different tokens"], {**WITH_BOOK, "book": "x" * 999} | {
                "text.yaml": CONFIG.replace("book.txt", "book")}),
    Refusal("an empty book", RUN, BAD_DATA, ["book.txt", "too short for a sequence", "9 tokens or more"],
            {**WITH_BOOK, "book.txt": ""}, ranks=(1, 2)),
    Refusal("a folder without text", with_text("data.path=none"), BAD_DATA, ["data.path: none is missing"],
            {**WITH_BOOK}),
    Refusal("no shard", with_text("data.path=tokens"), BAD_DATA, ["tokens/train_0.bin", "20240326 (a model of llm.c)"],
            {**SHARDS, "tokens/train_0.bin": shard([1], magic=20240326)}, ranks=(1, 2)),
    Refusal("a shard that is cut", with_text("data.path=tokens"), BAD_DATA,
            ["the size does not fit the 60 tokens of its header"],
            {**SHARDS, "tokens/val_0.bin": shard(range(60))[:-1]}),
    Refusal("notes that are damaged", with_text("data.path=tokens"), BAD_DATA, ["tokens.json: damaged notes"],
            {**SHARDS, "tokens/tokens.json": "{"}),
    Refusal("tokens that cannot be", ["data", "stats", "tokens"], BAD_DATA,
            ["1 file holds tokens that the vocabulary does not have"],
            {**SHARDS, "tokens/tokens.json": '{"vocabulary": 400, "val": {"tokens": 9, "bytes": 9}}'}),
    Refusal("how fast text is read", ["data", "rate", "book.txt"], USAGE, ["data rate is of images"], WITH_BOOK),
    Refusal("a sample of nothing", ["sample", "none"], USAGE, ["none"]),
]


class Text(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.new_folder({**WITH_BOOK, **SHARDS})

    def digest(self, *settings, **how):
        return super().digest(*settings, config="text.yaml", **how)

    def test_refusals(self):
        self.check_refusals(REFUSED)

    def test_every_strategy_ends_with_the_same_bits(self):
        for name, settings, ranks_of in [("bytes", [], (1, 4)), ("experts", ["model.experts=4"], (2,)),
                                         ("tokens", ["data.path=tokens", "data.global_batch=24"], (2,))]:
            for ranks in ranks_of:
                alone = self.digest(*settings, "strategy.name=serial", f"strategy.emulate_ranks={ranks}",
                                    out=f"{name}-serial-{ranks}")
                self.assertEqual(self.digest(*settings, out=f"{name}-ddp-{ranks}", ranks=ranks), alone, name)
                zero3 = self.digest(*settings, "strategy.name=fsdp", out=f"{name}-fsdp-{ranks}", ranks=ranks)
                self.assertEqual(zero3, alone, name)
            servers = self.digest(*settings, "strategy.name=ps", out=f"{name}-ps", ranks=ranks + 1)
            self.assertEqual(servers, alone, name)

    def test_it_goes_on_under_another_strategy(self):
        whole = self.digest(out="whole", ranks=2)
        words = [self.program, *with_text("run.out=part"), "-q"]
        killed = self.wait(self.start(mpirun(2, words), environment={"STRATAGEM_FAIL": FAILS_LATE}), timeout=120)
        if killed.code == 0:
            self.skipTest("built without failpoints")
        self.succeed(*words[1:], "-s", "strategy.name=fsdp", "--resume", ranks=2)
        resumed = json.loads((self.folder / "part/outcome.json").read_text())
        self.assertEqual((resumed["digest"], resumed["began_after"]), (whole, 3))

    def test_what_a_run_of_text_tells(self):
        ended = self.succeed(*RUN, ranks=2)
        for words in "perplexity", "bits/byte", "tokens/s":
            self.assertIn(words, ended.stderr)
        outcome = json.loads((self.folder / "out/outcome.json").read_text())
        manifest = json.loads((self.folder / "out/manifest.json").read_text())
        self.assertEqual(manifest["dataset"]["labels"], "tokens")
        self.assertEqual(manifest["dataset"]["train_labels"], 8 * manifest["dataset"]["train_images"])
        row = json.loads(self.succeed("collect", "out", "--format", "json").stdout)
        row = row["cells"][0]
        bits = outcome["test_loss"] / 0.6931471805599453
        self.assertAlmostEqual(row["bits_per_byte"], bits, places=9)
        self.assertIsNone(row["mfu"], "no GPU")
        table = self.succeed("collect", "out").stdout
        for title in "tokens/s", "perplexity", "bits/byte":
            self.assertIn(title, table)

    def test_sample(self):
        self.succeed(*RUN, "-q")
        words = ["sample", "out", "--prompt", "in the", "--tokens", "20"]
        text = self.succeed(*words).stdout
        self.assertTrue(text.startswith("in the"), text)
        self.assertEqual(self.succeed(*words).stdout, text, "the same again")
        self.assertNotEqual(self.succeed(*words, "--seed", "2").stdout, text)
        likeliest = self.succeed(*words, "--temperature", "0").stdout
        self.assertEqual(self.succeed(*words, "--top-k", "1", "--seed", "5").stdout, likeliest)
        self.digest("data.path=tokens", out="of-tokens")
        numbers = self.succeed("sample", "of-tokens", "--prompt-tokens", "3 4", "--tokens", "3").stdout.split()
        self.assertEqual((numbers[:2], len(numbers)), (["3", "4"], 5))
        words = [b"<%d>" % token for token in range(500)]
        (self.folder / "tokens/tokenizer.bin").write_bytes(
            struct.pack("<3I", 20240328, 1, len(words)).ljust(1024, b"\0")
            + b"".join(bytes([len(word)]) + word for word in words))
        text = self.succeed("sample", "of-tokens", "--prompt-tokens", "3 4", "--tokens", "1").stdout
        self.assertTrue(text.startswith("<3><4>"), text)
        for refused, told in {("--prompt", "x"): "--prompt is of models whose tokens are bytes",
                              ("--prompt-tokens", "3 50257"): "--prompt-tokens: 50257",
                              ("--prompt-tokens", "3,4"): "--prompt-tokens: 3,4",
                              ("--temperature", "-1"): "--temperature -1"}.items():
            ended = self.run_program("sample", "of-tokens", *refused)
            self.assertEqual(ended.code, USAGE, str(ended))
            self.assertIn(told, ended.stderr)

    def test_statistics(self):
        table = self.succeed("data", "stats", "book.txt").stdout
        self.assertIn(f"{len(book()):,}", table)
        self.assertIn("a run evaluates the last tenth of train", " ".join(table.split()))
        table = self.succeed("data", "stats", "tokens", "--format", "csv").stdout
        self.assertEqual([line.split(",")[:2] for line in table.splitlines()[1:]], [["train", "1"], ["val", "1"]])

    def test_plan(self):
        plan = self.succeed("plan", "text.yaml", "--ranks", "2", "-s", "strategy.name=fsdp").stdout
        self.assertIn("8 tokens", plan)
        self.assertIn("sequences", plan)
        self.assertNotIn("images", plan)
        self.succeed("plan", "text.yaml", "--ranks", "2", "--compare")
        self.succeed("list", "models")
        self.assertIn("transformer.h.11.attn", self.succeed("model", "gpt2").stdout)


LEARNS = """schema: 1
run: {name: learns, threads: 1, epochs: 2, evaluate_every: 1, out: out}
data: {dataset: synthetic-text, global_batch: 12}
optimizer: {name: adamw, lr: 0.003, beta2: 0.99, weight_decay: 0.1, decay: weights, clip_norm: 1}
strategy: {name: ddp}
"""
ENTROPY = 1.2080  # of synthetic-text, per token [nats]


class Training(harness.ProgramTest):
    """The entropy is a bound that only a model that sees what it should predict can pass."""

    def loss(self, *settings):
        self.folder = self.new_folder({"learns.yaml": LEARNS})
        self.succeed(*overridden(*settings, config="learns.yaml"), "-q", ranks=2)
        return json.loads((self.folder / "out/outcome.json").read_text())["test_loss"]


class Learns(Training):
    def test_a_small_model_learns_and_sees_nothing_of_the_future(self):
        loss = self.loss("model.name=gpt2", "model.layers=2", "model.heads=4", "model.width=64", "model.context=32",
                         "run.max_steps=400")
        self.assertGreater(loss, ENTROPY)
        self.assertLess(loss, 2.4)


class LearnsAll(Training):
    def test_it_comes_near_the_entropy(self):
        loss = self.loss("model.name=gpt2", "model.layers=4", "model.heads=4", "model.width=128", "model.context=64",
                         "optimizer.lr=0.001", "run.max_steps=1000")
        self.assertGreater(loss, 1.22)
        self.assertLess(loss, 1.33)


if __name__ == "__main__":
    harness.main()

"""A small program that stands in for `stratagem`, with made results, and what tests of scripts that run it need."""

import json
import sys

import support
import harness

# Accuracy falls with the distance of the rate from 0.08 (times 1 - momentum), and differs between seeds and modes.
# Every training is written to asked.jsonl.
FAKE = """#!{python} -SE
import json, math, sys, zlib

words = sys.argv[1:]
if words[0] == "--version":
    print({version!r})
    sys.exit()
if words[0] == "collect":
    print(open("collected.json").read())
    sys.exit()
settings = dict(word.split("=", 1) for flag, word in zip(words, words[1:]) if flag == "-s")
settings["workers"] = words[words.index("--workers") + 1]
with open("asked.jsonl", "a") as file:
    file.write(json.dumps(settings) + "\\n")
lr, seed = float(settings["optimizer.lr"]), int(settings["run.seed"])
momentum = float(settings.get("optimizer.momentum") or settings["optimizer.beta1"])
mode = settings["strategy.mode"]
if mode == "dc" and seed == 2:
    sys.exit(84)
if mode == "ssp":
    sys.exit("error: refused by the program")
noise = (zlib.crc32(repr(settings).encode()) % 100 - 50) / 1500
loss = {{"sync": 0, "dana": 0, "async": 5, "dc": 0}}[mode] - (settings.get("optimizer.nesterov") == "true")
accuracy = 94 - loss - abs(math.log2(lr / (1 - momentum) / {best})) + seed % 7 / 10 + noise
curve = [{{"epoch": n, "test_accuracy": accuracy / 100 - (3 - n) / 100, "train_loss": 1 / n, "predicted_time": 10 * n}}
         for n in (1, 2, 3)]
counts = {{"predicted_time": 30, "lag_mean": 1, "pulls": 9, "pushes": 9}}
print(json.dumps({{"test_accuracy": accuracy / 100, "test_loss": (100 - accuracy) / 10, "curve": curve, **counts}}))
"""


class Scripts(harness.ProgramTest):
    best = 0.2  # the best lr / (1 - momentum)

    def setUp(self):
        super().setUp()
        self.fake = self.folder / "fake"
        self.make_fake("fake 1")

    def make_fake(self, version):
        self.fake.write_text(FAKE.format(python=sys.executable, best=self.best, version=version))
        self.fake.chmod(0o755)

    def script(self, name, *arguments, code=0):
        words = [sys.executable, "-B", support.ANALYSIS / name, *arguments, "--program", self.fake]
        ended = self.run_words(list(map(str, words)))
        self.assertEqual(ended.code, code, str(ended))
        return ended

    def rows(self, ended):
        return support.rows_of(ended.stdout)

    def asked(self):
        return [json.loads(line) for line in (self.folder / "asked.jsonl").read_text().splitlines()]

    def accuracy(self, *arguments, code=0):
        return self.script("ps_accuracy.py", *arguments, code=code)

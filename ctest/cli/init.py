"""`stratagem init`: a first configuration that can run, and what to do with it."""

import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import unittest
import zlib

import harness
from harness import Refusal

USAGE, IO = 2, 6


def chunk(kind, content):
    body = kind + content
    return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))


# Of 32 x 32 black pixels.
PNG = b"\x89PNG\r\n\x1a\n" + b"".join(
    [chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)), chunk(b"IDAT", zlib.compress(bytes(32 * 97))),
     chunk(b"IEND", b"")])  # fmt: skip
MODELS = ["mlp", "lenet", "vgg16", "resnet50", "densenet121", "efficientnetv2_l", "convnext_l"]
STRATEGIES = ["serial", "ddp", "fsdp", "local", "gossip", "fedavg", "ps"]
DATASETS = {"mlp": ["synthetic-shapes"], "resnet50": ["mnist", "cifar10"]}
SITE = {"slurm/sites/near.env": "site_scheduler=slurm\n"}
MISTAKES = [
    Refusal("no file", ["init"], USAGE, ["FILE is missing", "my.yaml"]),
    Refusal("a file that is there", ["init", "config.yaml"], USAGE, ["config.yaml is there already"]),
    Refusal("unknown model", ["init", "my.yaml", "--model", "resnet5"], USAGE, ['did you mean "resnet50"']),
    Refusal("unknown dataset", ["init", "my.yaml", "--dataset", "cifar1"], USAGE, ['did you mean "cifar10"']),
    Refusal("unknown strategy", ["init", "my.yaml", "--strategy", "dpp"], USAGE, ['did you mean "ddp"']),
    Refusal(
        "a batch that cannot be divided",
        ["init", "my.yaml", "--ranks", "3", "--batch", "64"],
        USAGE,
        ["64", "63"],
    ),
    Refusal("a folder that is not there", ["init", "none/my.yaml"], IO, ["none/my.yaml"]),
    Refusal("unknown site", ["init", "my.yaml", "--site", "nearr"], USAGE, ['did you mean "near"'], SITE),
]


class Init(harness.ProgramTest):
    def test_mistakes(self):
        self.check_refusals(MISTAKES)

    def test_what_it_writes_can_run(self):
        cases = [(model, "ddp", None) for model in MODELS]
        cases += [("lenet", strategy, None) for strategy in STRATEGIES]
        cases += [(model, "ddp", dataset) for model, sets in DATASETS.items() for dataset in sets]
        for model, strategy, dataset in cases:
            with self.subTest(model=model, strategy=strategy, dataset=dataset):
                words = ["--dataset", dataset] if dataset else []
                self.expect(0, "init", "my.yaml", "--model", model, "--strategy", strategy, *words)
                told = self.expect(0, "plan", "my.yaml", "--no-activations").stdout
                self.assertIn(f"{model}-{strategy}", told)
                (self.folder / "my.yaml").unlink()

    def test_every_comment_is_a_key_that_could_be_said(self):
        for strategy in STRATEGIES:
            ranks = 1 if strategy == "serial" else 2
            self.expect(0, "init", "my.yaml", "--strategy", strategy, "--ranks", ranks)
            text = (self.folder / "my.yaml").read_text()
            self.assertGreater(len(re.findall(r"^ *# +\w+: ", text, re.MULTILINE)), 10)
            self.assertLessEqual(max(map(len, text.splitlines())), 120)
            said = re.sub(r"^( *)# (?= *\w+:)", r"\1", text, flags=re.MULTILINE)
            (self.folder / "said.yaml").write_text(said)
            with self.subTest(strategy):
                plain, full = (self.expect(0, "plan", name, "--no-activations", "--json") for name in
                               ("my.yaml", "said.yaml"))  # fmt: skip
                self.assertEqual(plain.stdout, full.stdout)
            (self.folder / "my.yaml").unlink()

    def test_what_is_next(self):
        told = self.expect(0, "init", "my.yaml", "--strategy", "ps", "--ranks", "4").stdout
        self.assertIn("stratagem plan my.yaml", told)
        self.assertIn("mpirun --bind-to none -n 4 stratagem run my.yaml", told)
        self.assertIn("stratagem collect runs/lenet-ps", told)
        self.assertRegex((self.folder / "my.yaml").read_text(), r"\n  ranks: 4 +#.*\n(.*\n)*  global_batch: 63 ")
        told = self.expect(0, "init", "real.yaml", "--dataset", "mnist").stdout
        self.assertIn("modules/fetch-data.sh", told)

    def test_the_command_for_a_site(self):
        folder = self.new_folder(SITE)
        told = self.expect(0, "init", "my.yaml", "--ranks", "2", "--site", "near", folder=folder).stdout
        self.assertIn("slurm/submit.sh --site near --workers 2 run my.yaml", told)

    def test_of_ones_own(self):
        (self.folder / "data").mkdir()
        (self.folder / "data/book.txt").write_text("In the beginning was the word. " * 400)
        images = self.folder / "photos"
        for part in "train", "val":
            for kind in "cat", "dog", "owl":
                for number in range(4):
                    (images / part / kind).mkdir(parents=True, exist_ok=True)
                    (images / part / kind / f"{number}.png").write_bytes(PNG)
        small = ["-s", "model.layers=1", "-s", "model.heads=2", "-s", "model.width=16", "-s", "model.context=16"]
        for file, words, said, more in [
            ("text.yaml", ["--dataset", "data/book.txt", "--batch", "8"], 'path: "data/book.txt"', small),
            ("images.yaml", ["--dataset", "photos/", "--model", "mlp", "--batch", "4"], "num_classes: 3 ", []),
        ]:
            with self.subTest(file):
                self.expect(0, "init", file, "--strategy", "serial", *words)
                self.assertIn(said, (self.folder / file).read_text())
                self.expect(0, "run", file, "--max-steps", "2", "-q", *more)
        self.expect(0, "init", "large.yaml", "--dataset", "photos/", "--batch", "4")
        self.assertRegex((self.folder / "large.yaml").read_text(), r"\n  name: resnet50 ")
        ended = self.run_program("init", "my.yaml", "--dataset", "photos")
        self.check_refused(ended, USAGE, ["photos", "a path has a / or a ."])
        ended = self.run_program("init", "my.yaml", "--model", "net.pt2")
        self.check_refused(ended, USAGE, ["cannot open model file net.pt2"])
        self.assertFalse((self.folder / "my.yaml").exists())

    def test_a_model_file(self):
        file = pathlib.Path(__file__).parents[1] / "model" / "files" / "tiny-2.11.pt2"
        self.expect(0, "init", "my.yaml", "--model", file, "--strategy", "serial", "--batch", "8")
        told = (self.folder / "my.yaml").read_text()
        self.assertIn(f'file: "{file}"', told)
        self.expect(0, "run", "my.yaml", "--max-steps", "1", "-q")

    def test_it_trains(self):
        self.expect(0, "init", "my.yaml", "--model", "mlp", "--strategy", "serial")
        self.expect(0, "run", "my.yaml", "--max-steps", "3", "-q")
        self.assertTrue((self.folder / "runs/mlp-serial/outcome.json").exists())


class Completion(harness.ProgramTest):
    """With a real bash, called as readline calls it."""

    def complete(self, line, shell="bash"):
        """The possible continuations at the end of the line."""
        if not hasattr(self, "script"):
            self.script = self.folder / "completion.bash"
            self.script.write_text(self.expect(0, "completion", "bash").stdout)
        ask = """
            compopt() { printf 'compopt %s\\n' "$*" >&2; }
            source "$1"
            COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:' COMP_LINE=$2 COMP_POINT=${#2}
            _stratagem
            printf '%s\\n' "${COMPREPLY[@]}"
        """
        ended = subprocess.run(
            ["bash", "--norc", "-c", ask, "bash", self.script, line], cwd=self.folder, capture_output=True, text=True
        )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.options = ended.stderr
        return ended.stdout.split()

    def test_commands(self):
        self.assertEqual(self.complete("stratagem ex"), ["export-weights", "export-trace"])
        shown = re.findall(r"^  ([a-z][a-z-]+) ", self.expect(0, "--help").stdout, re.MULTILINE)
        self.assertGreater(len(shown), 16)
        self.assertLessEqual(set(shown), set(self.complete("stratagem ")))
        self.assertEqual(self.complete("build/stratagem li"), ["list"])

    def test_options_are_those_of_help(self):
        for command in self.complete("stratagem "):
            with self.subTest(command):
                told = self.expect(0, command, "--help").stdout
                shown = set(re.findall(r"^ {2,6}(?:-\w, )?(--[a-z-]+)", told, re.MULTILINE))
                self.assertEqual(set(self.complete(f"stratagem {command} -")), shown)
        self.assertEqual(self.complete("stratagem run config.yaml --max"), ["--max-steps"])

    def test_keys_and_their_values(self):
        learning = ["optimizer.lr=", "optimizer.lr_scaling="]
        self.assertEqual(self.complete("stratagem run c.yaml -s optimizer.l"), learning)
        self.assertIn("compopt -o nospace", self.options)
        self.assertEqual(self.complete("stratagem run c.yaml -s run.device="), ["auto", "cpu", "cuda"])
        self.assertEqual(self.complete("stratagem run c.yaml --set model.name=res"), ["resnet50"])
        self.assertEqual(self.complete("stratagem run c.yaml -s strategy.server_ranks="), ["last", "first", "spread"])
        keys = self.expect(0, "list", "keys").stdout
        listed = {f"{key}=" for key in re.findall(r"^([a-z]+\.\w+) ", keys, re.MULTILINE)}
        self.assertEqual(set(self.complete("stratagem plan c.yaml -s ")), listed)

    def test_words_and_files(self):
        self.assertEqual(self.complete("stratagem list m"), ["models", "measures"])
        self.assertEqual(self.complete("stratagem completion "), ["bash", "zsh"])
        self.assertEqual(self.complete("stratagem init my.yaml --strategy f"), ["fsdp", "fedavg"])
        (self.folder / "notes.txt").write_text("")
        (self.folder / "studies").mkdir()
        self.assertEqual(sorted(self.complete("stratagem run ")), ["config.yaml", "studies"])
        self.assertIn("compopt -o filenames", self.options)
        self.assertEqual(self.complete("stratagem collect "), [], "any file, which bash itself completes")
        self.assertEqual(self.complete("stratagem run --out "), [])

    def check_interactive(self, shell, *setting_up):
        """With bash's own key bindings, words and quoting: the line after <Tab> and <Enter>."""
        mine, theirs = pty.openpty()
        process = subprocess.Popen(
            shell, cwd=self.folder, stdin=theirs, stdout=theirs, stderr=theirs,
            env={**os.environ, "PS1": "> ", "TERM": "dumb", "INPUTRC": "/dev/null"}, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        lines = [*setting_up, 'stratagem() { echo "<$*>"; }', "stratagem list mo\t"]
        lines += ["stratagem run conf\t-s run.dev\tcu\t", "stratagem run --max\t 3", "exit"]
        os.write(mine, "".join(f"{line}\n" for line in lines).encode())
        screen = b""
        while True:
            try:
                piece = os.read(mine, 4096)
            except OSError:  # the shell has exited
                break
            screen += piece
        os.close(mine)
        process.wait(20)
        for line in ("<list models>", "<run config.yaml -s run.device=cuda>", "<run --max-steps 3>"):
            self.assertIn(line, re.sub(r" +>", ">", screen.decode()))

    def test_in_an_interactive_bash(self):
        self.complete("stratagem ")
        self.check_interactive(["bash", "--norc", "--noprofile", "-i"], f"source {self.script}")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_in_an_interactive_zsh(self):
        script = self.expect(0, "completion", "zsh").stdout
        (self.folder / "completion.zsh").write_text(script)
        self.check_interactive(["zsh", "-f"], "source ./completion.zsh")

    def test_mistakes(self):
        self.check_refusals(
            [
                Refusal("no shell", ["completion"], USAGE, ["SHELL is missing", "bash", "zsh"]),
                Refusal("unknown shell", ["completion", "bsh"], USAGE, ['did you mean "bash"']),
            ]
        )


if __name__ == "__main__":
    harness.main()

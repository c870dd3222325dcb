"""Every example that the program or a guide prints, and every name that the program lists, is run. The lists come from
the program and from the guides themselves.

    examples.py PROGRAM [ORACLE_PYTHON ANALYSIS_PYTHON] [unittest's arguments]
"""

import csv
import os
import pathlib
import re
import shutil
import sys

import harness

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from images import folder_files  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMOKE = "inputs/smoke/digits-lenet-ddp.yaml"
WRITERS = ("run", "calibrate", "sweep", "init")  # commands whose examples write what those of others read

# Stands in for a study of hours.
STUDY = """schema: 1
name: {name}
base:
  run: {{threads: 1, max_steps: 2, evaluate_every: 0}}
  data: {{dataset: synthetic-digits, global_batch: 16, subset: 64}}
variants: {{ddp: {{strategy: {{name: ddp}}}}, fsdp: {{strategy: {{name: fsdp}}}}}}
parts: {{head: {{matrix: {{model.name: [mlp], variant: [ddp, fsdp], workers: [1, 2], run.seed: [{seeds}]}}}}}}
"""
TEXT = """schema: 1
run: {name: king-james, threads: 1, max_steps: 4}
data: {path: book.txt, global_batch: 4}
model: {name: gpt2, layers: 1, heads: 2, width: 16, context: 16}
strategy: {name: serial}
checkpoint: {every_steps: 2}
"""
BOOK = "in the beginning was a word, and it was good. " * 100

# Commands of guides that are run elsewhere, by their beginning.
ELSEWHERE = {
    "modules/bootstrap.sh": "what CI runs, and modules/check-in-chroot.sh",
    "sudo modules/check-in-chroot.sh": "by hand: half an hour",
    "modules/fetch-data.sh": "loads from the network; cli.safety has a server for it",
    "slurm/": "ctest/slurm",
    "module ": "ctest/slurm",
    "ssh ": "by hand",
    "git clone": "by hand",
    "cmake ": "install.works",
    "python3 -m pip": "modules/bootstrap.sh installs the same",
    "python3 -m venv": "modules/bootstrap.sh installs the same packages",
    "apt-get ": "a book is written instead",
    "export STRATAGEM_DATA": "CI has another folder",
    "analysis/tokenize_text.py": "analysis.tokenize_text",
}
INIT = "stratagem init my.yaml --model mlp --dataset synthetic-digits"
# What a test measures is smaller than what a reader does.
SMALLER = {r"commbench$": "commbench -e 16K", r" -e 16M ": " -e 16K "}
# What the reader of a guide has before its first command; each is a command, too.
BEFORE = {
    "README.md": [INIT, "stratagem run my.yaml --out runs/demo-1 -q --max-steps 20"],
    "inputs/YOUR_IMAGES.md": [INIT],
    "analysis/README.md": ["stratagem sweep inputs/study/study-mini.yaml --all"],
    "slurm/README.md": [
        INIT,
        "mkdir -p runs/preflight",
        "stratagem calibrate my.yaml -o runs/preflight/calibration.json",
        "stratagem sweep inputs/study/study.yaml --index 1 --out scratch/stratagem/study",
    ],
}
GUIDES = [
    *("README.md", "slurm/README.md", "modules/README.md", "analysis/README.md", "inputs/README.md"),
    *("inputs/PLANNING.md", "inputs/SERVERS.md"),
    *("inputs/YOUR_IMAGES.md", "inputs/YOUR_MODEL.md", "inputs/YOUR_TEXT.md"),
]


def examples_of(help_text):
    """The commands below "examples:", each on one line."""
    _, _, examples = help_text.partition("\nexamples:\n")
    lines = examples.replace(" \\\n      ", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("      #")]


def blocks_of(guide):
    return re.findall(r"^```\n(.*?)^```", (ROOT / guide).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def is_command(line):
    begins = ("build/stratagem ", "stratagem ", "mpirun ", "for ", "python3 ", "analysis/", *ELSEWHERE)
    return line.startswith(begins)


def commands_of(guide):
    """Behind "$ "; or, in a block without it, all lines that are commands."""
    found = []
    for block in blocks_of(guide):
        lines = re.sub(r" *\\\n *", " ", block).splitlines()
        found += [line[2:] for line in lines if line.startswith("$ ")] or list(filter(is_command, lines))
    return [re.sub(r"\s+#.*", "", line).strip() for line in found]


def files_of(guide):
    """{name: content} of the files that it shows: the first line is a comment with the name, or `schema: 1`."""
    files = {}
    for block in blocks_of(guide):
        if named := re.match(r"# (\S+\.(?:py|yaml))\n", block):
            files[named[1]] = block
        elif block.startswith("schema: 1\n") and "\nstrategy:" in block:
            files["my.yaml"] = block
    return {name: shortened(text) if name.endswith(".yaml") else text for name, text in files.items()}


def shortened(configuration):
    """A configuration, or the base of a study, of two steps."""
    text = re.sub(r"(?:, )?(?:max_steps|epochs|evaluate_every): \d+", "", configuration)
    short = "max_steps: 2, evaluate_every: 0"
    if "run: {" not in text:
        return f"{text}run: {{{short}}}\n"
    return re.sub(r"run: \{(, )?", f"run: {{{short}, ", text)


class Examples(harness.ProgramTest):
    pythons = []  # what `python3 analysis/export_model.py` and other scripts are run with

    def setUp(self):
        super().setUp()
        if "STRATAGEM_DATA" not in os.environ:
            self.skipTest("needs STRATAGEM_DATA")
        self.enter_folder()

    def enter_folder(self):
        """Of a user who has cloned the project and built the program."""
        self.folder = self.new_folder()
        for folder in "inputs", "analysis", "slurm":
            shutil.copytree(ROOT / folder, self.folder / folder, ignore=shutil.ignore_patterns("bench", "data"))
        for path in (self.folder / "inputs/smoke").glob("*-lenet-*.yaml"):
            path.write_text(re.sub(r"(\n *dataset: .*)", r"\1\n  subset: 256", path.read_text()))
        for name, seeds in (("study-mini", "1"), ("study", "1, 2, 3, 4, 5")):
            self.write({f"inputs/study/{name}.yaml": STUDY.format(name=name, seeds=seeds)})
        for place in self.folder / "bin", self.folder / "build":
            place.mkdir()
            (place / "stratagem").symlink_to(self.program)
        self.write({"book.txt": BOOK, "kjv.txt": BOOK})
        self.write({**folder_files(8, 4, path="flowers"), **folder_files(40, 8, path="photos")})
        self.environment = {
            "STRATAGEM_DATA": os.environ["STRATAGEM_DATA"],
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "SCRATCH": "scratch",
        }
        if len(self.pythons) == 2:
            oracle, analysis = self.pythons
            script = f'#!/bin/sh\ncase $1 in *export_model.py) exec {oracle} "$@";; *) exec {analysis} "$@";; esac\n'
            self.write({"bin/python3": script})
            (self.folder / "bin/python3").chmod(0o755)

    def write(self, files):
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def example(self, line, code=0):
        with self.subTest(line):
            command = line
            for words, smaller in SMALLER.items():
                command = re.sub(words, smaller, command)
            ended = self.wait(self.start(["bash", "-c", command], environment=self.environment), timeout=300)
            self.assertEqual(ended.code, code, f"{line}\n{ended}")

    def test_of_help(self):
        self.write({"king.yaml": TEXT, "net.pt2": (ROOT / "ctest/model/files/tiny-2.11.pt2").read_bytes()})
        self.example("stratagem run king.yaml -q")
        self.example("mpirun --bind-to none -n 3 stratagem run inputs/smoke/digits-lenet-ps.yaml"
                     " -s strategy.mode=async --max-steps 6 --out runs/async")
        names = re.findall(r"^  ([a-z-]+) +[A-Z]", self.succeed("--help").stdout, re.MULTILINE)
        examples = {name: examples_of(self.succeed("help", name).stdout) for name in names}
        self.assertEqual([name for name in names if not examples[name]], [], "commands without an example")
        for name in sorted(names, key=lambda name: name not in WRITERS):
            for line in examples[name]:
                if line != "stratagem demo":  # cli.demo
                    self.example(line)

    def names_in(self, what):
        """The first column of a list."""
        rows = csv.reader(self.succeed("list", what, "--format", "csv").stdout.splitlines())
        names = [row[0] for row in rows][1:]
        self.assertGreater(len(names), 1, what)
        return names

    def test_of_lists(self):
        for name in self.names_in("models"):
            self.example(f"stratagem model {name}")
        for name in set(self.names_in("datasets")) - {"your own"}:
            model = "gpt2 -s model.context=32" if "text" in name else "lenet"
            self.example(f"stratagem plan config.yaml -s data.dataset={name} -s model.name={model}")
        for name in self.names_in("strategies"):
            ranks = 1 if name == "serial" else 3
            self.example(f"stratagem plan {SMOKE} --ranks {ranks} -s data.global_batch=60 -s strategy.name={name}")
        for name in self.names_in("calibrations"):
            self.example(f"stratagem plan {SMOKE} --calibration {name}")
        for section in sorted({name.partition(".")[0] for name in self.names_in("keys")}):
            self.example(f"stratagem list keys {section}")

    def test_of_guides(self):
        """Of each guide in a folder of its own, with the files that it shows."""
        unused = set(ELSEWHERE)
        planned = set()  # commands that write nothing are run once
        for guide in GUIDES:
            self.enter_folder()
            self.write(files_of(guide))
            for line in BEFORE.get(guide, []) + commands_of(guide):
                elsewhere = {begin for begin in ELSEWHERE if line.startswith(begin)}
                unused -= elsewhere
                if line in planned:
                    continue
                if line.startswith("build/stratagem plan inputs/"):
                    planned.add(line)
                if not elsewhere and (len(self.pythons) == 2 or "analysis/" not in line):
                    self.example(line)
        self.assertEqual(unused, set(), "no guide has these any longer")


if __name__ == "__main__":
    while len(sys.argv) > 2 and sys.argv[2].startswith("/"):
        Examples.pythons.append(sys.argv.pop(2))
    harness.main()

"""The commands: help, lists, plans, and words and options that do not exist."""

import csv
import io
import json
import os
import pathlib
import re
import shlex
import signal

import harness
from harness import Refusal, comes_true, overridden

USAGE, ENVIRONMENT, DOES_NOT_FIT, SAVED = 2, 3, 4, 75
SMOKE = pathlib.Path(__file__).resolve().parents[2] / "inputs" / "smoke"
COMMANDS = [
    *["run", "plan", "demo", "info", "list", "commbench", "calibrate"],
    *["sweep", "status", "collect", "replay", "simulate", "validate"],
    *["checkpoint", "export-weights", "export-trace", "help", "init", "completion", "model"],
]
PLAN = ["plan", "config.yaml"]
MISTAKES = [
    Refusal(
        "unknown command",
        ["rum", "config.yaml"],
        USAGE,
        ['unknown command "rum"', 'did you mean "run"', "--help"],
        ranks=(1, 2),
    ),
    Refusal(
        "unknown option",
        ["run", "config.yaml", "--resumee"],
        USAGE,
        ["--resumee", 'did you mean "--resume"'],
        ranks=(1, 2),
    ),
    Refusal(
        "abbreviated option",
        [*PLAN, "--rank", "4"],
        USAGE,
        ["unknown option --rank", 'did you mean "--ranks"'],
    ),
    Refusal(
        "option without its value", ["run", "config.yaml", "--out"], USAGE, ["--out", "--help"]
    ),
    Refusal(
        "number that is none", [*PLAN, "--ranks", "two"], USAGE, ["--ranks two", "whole number"]
    ),
    Refusal("number out of range", [*PLAN, "--ranks", "0"], USAGE, ["--ranks 0", "from 1"]),
    Refusal(
        "size that is none", [*PLAN, "--gpu-memory", "much"], USAGE, ["--gpu-memory much", "80GiB"]
    ),
    Refusal(
        "choice that is none",
        ["run", "config.yaml", "--progress", "pie"],
        USAGE,
        ["--progress pie", "bar, line or none"],
    ),
    Refusal(
        "size without a unit",
        [*PLAN, "--gpu-memory", "24"],
        USAGE,
        ["--gpu-memory 24 has no unit", "24GiB"],
    ),
    Refusal("device for a size", [*PLAN, "--gpu-memory", "A100"], USAGE, ["A100", "such as 80GiB"]),
    Refusal(
        "unit by itself", [*PLAN, "--gpu-memory", "24", "GiB"], USAGE, ['"GiB" is not an option or its value', "24GiB"]
    ),
    Refusal(
        "override without -s",
        ["run", "optimizer.lr=0.1", "config.yaml"],
        USAGE,
        ["write -s optimizer.lr=0.1"],
    ),
    Refusal("letters swapped", ["rnu", "config.yaml"], USAGE, ['did you mean "run"']),
    Refusal("another program's command", ["train"], USAGE, ['did you mean "run"']),
    Refusal("version as a command", ["version"], USAGE, ['did you mean "--version"']),
    Refusal("help for no command", ["help", "rnu"], USAGE, ['no "rnu"', 'did you mean "run"']),
    Refusal("unknown section", ["list", "keys", "modell"], USAGE, ['did you mean "model"']),
    Refusal("no configuration", ["run"], USAGE, ["CONFIG is missing"]),
    Refusal("two configurations", ["run", "config.yaml", "config.yaml"], USAGE, ["too many", '"config.yaml"']),
    Refusal("list of nothing", ["list"], USAGE, ["WHAT is missing", "models"]),
    Refusal(
        "unknown list", ["list", "model"], USAGE, ['no "model"', 'did you mean "models"']
    ),
    Refusal(
        "does not fit",
        [*PLAN, "--gpu-memory", "1M"],
        DOES_NOT_FIT,
        ["MiB", "--gpu-memory is 1.00 MiB", "smaller batch"],
    ),
    Refusal(
        "launcher without ranks",
        ["demo", "--launcher", "mpirun"],
        USAGE,
        ['launcher "mpirun"', "{ranks}"],
    ),
    Refusal("existing folder", ["demo", "--out", "."], USAGE, [". exists", "--out"]),
]


def as_values(printed):
    """The output of --print-config: sections of keys whose values are JSON or plain words."""
    values = {}
    for line in printed.splitlines():
        key, _, text = line.strip().partition(": ")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        if line.endswith(":"):
            section = values.setdefault(line[:-1], {})
        else:
            (section if line.startswith(" ") else values)[key] = value
    return values


KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list}


def is_kind(kind, value):
    if kind == "null" or isinstance(value, bool):
        return kind == "boolean" and isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def conflicts(schema, value, root=None):
    """Why a value does not fit a JSON Schema, for the parts of JSON Schema that ours uses."""
    root = root or schema
    if "$ref" in schema:
        return conflicts(root["$defs"][schema["$ref"].split("/")[-1]], value, root)
    found = []
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_kind(kind, value) for kind in kinds):
        found.append(f"{value} is not {kinds}")
    if value != schema.get("const", value):
        found.append(f"{value} is not {schema['const']}")
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{value} is not in {schema['enum']}")
    if "anyOf" in schema and all(conflicts(part, value, root) for part in schema["anyOf"]):
        found.append(f"{value} is none of {schema['anyOf']}")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{value} does not match {schema['pattern']}")
    if isinstance(value, (int, float)) and not found:
        found += [
            f"{value} breaks {bound}"
            for bound, holds in {
                "minimum": lambda limit: value >= limit,
                "maximum": lambda limit: value <= limit,
                "exclusiveMinimum": lambda limit: value > limit,
                "exclusiveMaximum": lambda limit: value < limit,
            }.items()
            if bound in schema and not holds(schema[bound])
        ]
    if isinstance(value, list):
        return found + [text for item in value for text in conflicts(schema.get("items", {}), item, root)]
    if not isinstance(value, dict):
        return found
    if "if" in schema:
        found += conflicts(schema["else" if conflicts(schema["if"], value, root) else "then"], value, root)
    properties = schema.get("properties", {})
    found += [f"{key} is missing" for key in schema.get("required", []) if key not in value]
    others = schema.get("additionalProperties", {})
    for key in value.keys() - properties.keys():
        found += [f"{key} is unknown"] if others is False else conflicts(others, value[key], root)
    for key in properties.keys() & value.keys():
        found += conflicts(properties[key], value[key], root)
    for branch in schema.get("allOf", []):
        if not conflicts(branch["if"], value, root):
            found += conflicts(branch["then"], value, root)
    return found


class Commands(harness.ProgramTest):
    def test_mistakes(self):
        self.check_refusals(MISTAKES)

    def test_help(self):
        general = self.expect(0, "--help").stdout
        self.assertEqual(self.run_program().code, USAGE)
        for command in COMMANDS:
            with self.subTest(command):
                self.assertIn(f"\n  {command} ", general)
                own = self.expect(0, command, "--help").stdout
                self.assertTrue(own.startswith(f"usage: stratagem {command} "))
                self.assertIn("--help", own)
                wide = [line for line in own.splitlines() if len(line) > 80]
                self.assertEqual([line for line in wide if len(line.split()) > 1], [])
                self.check_examples(command, own)
        self.assertIn("the slowest rank", self.expect(0, "commbench", "--help").stdout.replace("\n", " "))
        for code in "0", "2", "3", "5", "6", "84":
            self.assertRegex(general, rf"(?m)^ +{code}  ")
        self.assertRegex(self.expect(0, "--version").stdout, r"^stratagem \d+\.\d+\.\d+ \(")

        self.assertEqual(
            self.expect(0, "help", "plan").stdout, self.expect(0, "plan", "--help").stdout
        )
        self.assertEqual(self.expect(0, "-V").stdout, self.expect(0, "--version").stdout)

    def check_examples(self, command, text):
        """There are examples, and all their options exist."""
        examples = text.split("\nexamples:\n")[1].replace("\\\n", " ").splitlines()
        for example in (line for line in examples if "# " not in line):
            words = shlex.split(example.split("stratagem ", 1)[1].split(" > ")[0])
            self.assertEqual(words[0], command)
            for option in (word for word in words if word.startswith("--")):
                self.assertRegex(text, rf"(?m)^  (-., |    ){option}\b")

    def test_under_a_launcher_one_speaks(self):
        for words in ["--help"], ["list", "models"], [*PLAN, "--no-activations"], ["help", "run"]:
            with self.subTest(words[0]):
                self.assertEqual(
                    self.expect(0, *words, ranks=2).stdout, self.expect(0, *words).stdout
                )
        self.check_refused(self.run_program("list", "nothing", ranks=2), USAGE, ["nothing"])
        for words in ["demo", "--out", "d"], ["sweep", "study.yaml", "--list"]:
            self.check_refused(self.run_program(*words, ranks=2), ENVIRONMENT, ["without mpirun"])
        step = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "1"}
        self.assertEqual(self.expect(0, "list", "models", environment=step).stdout, "")
        script = {"SLURM_NTASKS": "2", "SLURM_PROCID": "1"}
        self.assertIn("lenet", self.expect(0, "list", "models", environment=script).stdout)

    def test_schema_of_configurations(self):
        schema = json.loads(self.expect(0, "list", "keys", "--format", "json-schema").stdout)
        listed = list(csv.DictReader(io.StringIO(self.expect(0, "list", "keys", "--format", "csv").stdout)))
        sections = schema["$defs"]["run"]["properties"]
        branches = {
            (section, branch["if"]["properties"]["name"]["const"]): branch["then"]["properties"]
            for section in ("strategy", "optimizer")
            for branch in sections[section]["allOf"]
        }
        for row in listed:
            section, _, key = row["key"].rpartition(".")
            named = [name for of, name in branches if of == section]
            for owner in named and (row["of"].split(", ") if row["of"] else named) or [None]:
                if owner:
                    keys = branches[section, owner]
                else:
                    keys = sections[section]["properties"] if section else sections
                self.assertTrue(keys[key]["description"], row["key"])
        for file in SMOKE.glob("*.yaml"):
            printed = self.expect(0, "run", file, "--print-config").stdout
            self.assertEqual(conflicts(schema, as_values(printed)), [], file.name)
        good = {"data": {"dataset": "mnist"}, "model": {"name": "mlp"}, "strategy": {"name": "ddp"}}
        self.assertEqual(conflicts(schema, good), [])
        for section, key, value in [
            *[("optimizer", "lr", -1), ("optimizer", "lr", "fast"), ("optimizer", "lrr", 1)],
            *[("run", "seed", 1.5), ("model", "name", "lenett"), ("strategy", "shard", "full")],
            *[("strategy", "overlap", "yes"), ("model", "recompute", "every_1"), ("runn", "seed", 1)],
        ]:
            wrong = {**good, section: {**good.get(section, {}), key: value}}
            self.assertNotEqual(conflicts(schema, wrong), [], (section, key, value))
        variable = {**good, "optimizer": {"lr": "${LR}"}}
        self.assertEqual(conflicts(schema, variable), [])

    def test_one_section(self):
        rows = self.expect(0, "list", "keys", "trace", "--format", "csv").stdout.splitlines()[1:]
        self.assertEqual([row.split(",")[0].split(".")[0] for row in rows], ["trace"] * len(rows))
        self.assertGreater(len(rows), 1)

    def test_lists(self):
        for what, words in {
            "models": ["vgg16", "134,301,514", "convnext_l", "lenet"],
            "datasets": ["mnist", "cifar10", "50,000", "synthetic-digits"],
            "strategies": ["serial", "ddp"],
            "keys": ["optimizer.lr", "0.01", "strategy.bucket_mb", "expect.version"],
        }.items():
            with self.subTest(what):
                listed = self.expect(0, "list", what).stdout
                for word in words:
                    self.assertIn(word, listed)

    def test_info(self):
        alone = json.loads(self.expect(0, "info", "--json").stdout)
        self.assertEqual((alone["launcher"], alone["ranks"]), ("none", "1"))
        self.assertRegex(alone["mpirun"], r"^Open MPI [0-9.]+, (ORTE|PRRTE) \(/.*/mpirun\)$")
        self.assertNotIn("mpirun", " ".join(alone["warnings"]))
        ended = self.expect(0, "info", "--json", ranks=2)
        self.assertEqual(ended.stderr, "")  # also nothing from the MPI library
        launched = json.loads(ended.stdout)
        self.assertEqual((launched["mpirun"], launched["ranks"]), (alone["mpirun"], "2"))
        library, runtime = alone["mpirun"].split(" (")[0].split(", ")
        of = {"ORTE": "Open MPI, ORTE", "PRRTE": f"{library}, PRRTE"}[runtime]
        self.assertEqual(launched["launcher"], f"mpirun ({of})")
        for fact in "stratagem", "LibTorch", "MPI", "HDF5", "GPUs":
            self.assertIn(f"\n{fact} ", "\n" + self.expect(0, "info").stdout)

    def test_an_mpirun_of_another_library(self):
        mpirun = self.folder / "bin" / "mpirun"
        mpirun.parent.mkdir()
        mpirun.write_text("#!/bin/sh\necho 'HYDRA build details:'\necho '    Version:  4.0.2'\n")
        mpirun.chmod(0o755)
        path = {"PATH": f"{mpirun.parent}:{os.environ['PATH']}"}
        told = json.loads(self.expect(0, "info", "--json", environment=path).stdout)
        self.assertEqual(told["mpirun"], f"MPICH 4.0.2, Hydra ({mpirun})")
        (warning,) = told["warnings"]
        for words in "is of MPICH 4.0.2, Hydra", "linked with Open MPI v", "first on PATH":
            self.assertIn(words, warning)

    def test_plan(self):
        plan = json.loads(self.expect(0, *PLAN, "--ranks", "4", "--json").stdout)
        self.assertEqual(
            (plan["ranks"], plan["workers"], plan["global_batch"], plan["total_steps"]),
            (4, 4, 12, 3),
        )
        self.assertEqual([rank["first_sample"] for rank in plan["rank_map"]], [0, 3, 6, 9])
        self.assertEqual(
            sum(bucket["bytes"] for bucket in plan["buckets"]), plan["memory_B"]["parameters"]
        )
        control = 128  # bytes that travel with the last bucket
        self.assertEqual(
            plan["bytes_sent_per_step"], 2 * 3 * (plan["memory_B"]["parameters"] + control) // 4
        )
        lasting = sum(plan["memory_B"].values())
        self.assertGreater(plan["peak_B"], lasting + plan["activations_B"])
        text = self.expect(0, *PLAN, "--gpu-memory", "2GiB").stdout
        for word in "parameters", "bucket", "sent per step", "2 ranks", "peak, predicted":
            self.assertIn(word, text)
        self.assertFalse((self.folder / "out").exists())
        for reserve in 0, 512:  # KiB
            for room, code in (plan["peak_B"] // 1024 + 1, 0), ((plan["peak_B"] - 1) // 1024, DOES_NOT_FIT):
                words = ["--gpu-memory", f"{room + reserve}KiB", "--gpu-reserve", f"{reserve}KiB"]
                self.expect(code, *PLAN, "--ranks", "4", *words)

    def test_plan_compares_strategies(self):
        compare = [*PLAN, "--ranks", "4", "--compare", "-s", "data.subset=480"]  # some for each of 100 clients
        compared = json.loads(self.expect(0, *compare, "--json").stdout)
        peaks = {one["strategy"]: one["peak_B"] for one in compared["strategies"]}
        self.assertEqual((compared["recommended"], len(peaks)), ("ddp", 9))
        room = f"{(peaks['ddp'] - 1) // 1024 + 1024 * 1024}KiB"  # 1 GiB of it is reserved
        text = self.expect(0, *compare, "--gpu-memory", room).stdout
        for words in "Take fsdp ", "lacks ", "Would FSDP help?", "ps sync", "5 ranks":
            self.assertIn(words, text)
        text = self.expect(DOES_NOT_FIT, *compare, "--gpu-memory", "1K").stdout
        self.assertIn("None that trains like one process fits", text)
        self.assertIn("no less than --gpu-memory", text)
        quick = json.loads(self.expect(0, *compare, "--json", "--no-activations").stdout)
        self.assertNotIn("peak_B", quick["strategies"][0])

    def test_dry_run_makes_nothing(self):
        before = harness.snapshot(self.folder)
        self.assertIn(
            "plan hash", self.expect(0, "run", "config.yaml", "--dry-run", ranks=2).stdout
        )
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_printed_configuration_reloads_identically(self):
        for name, settings in {
            "defaults": [],
            "ddp": [
                "strategy.bucket_mb=0.5",
                "strategy.overlap=false",
                "optimizer.lr=1e-3",
                'run.name=a "name": #1',
                "expect.ranks=2",
            ],
            "serial": [
                "strategy.name=serial",
                "strategy.emulate_ranks=3",
                "precision.compute=bf16",
                "optimizer.schedule=cosine",
                "model.recompute=every_2",
            ],
        }.items():
            with self.subTest(name):
                first = self.expect(0, *overridden(*settings), "--print-config").stdout
                (self.folder / "again.yaml").write_text(first)
                self.assertEqual(
                    self.expect(0, "run", "again.yaml", "--print-config").stdout, first
                )
        self.assertIn(
            'root: "/data"',
            self.expect(
                0, "run", "config.yaml", "--print-config", environment={"STRATAGEM_DATA": "/data"}
            ).stdout,
        )
        self.assertIn(
            "max_steps: 7",
            self.expect(0, "run", "config.yaml", "--max-steps", "7", "--print-config").stdout,
        )


CELLS = ["serial", "ddp-no-overlap", "ddp", "fsdp", "ps-sync"]


class Demo(harness.ProgramTest):
    def test_demo(self):
        """Interrupted and continued, it is as good as in one go."""
        words = [self.program, "demo", "--epochs", "1", "--rounds", "2", "--out", "demo", "--progress", "none"]
        self.interrupt(words)
        ended = self.wait(self.start(words), timeout=300)
        self.assertEqual(ended.code, 0, str(ended))
        self.assertIn("serial is complete already", ended.stderr)
        for cell in CELLS:
            for again in "", "-2":
                self.assertTrue((self.folder / "demo" / f"{cell}{again}" / "collected.h5").exists())
            self.assertRegex(ended.stdout, rf"(?m)^{cell} .* complete")
        self.check_turns()
        self.check_end(ended.stdout)
        self.check_peaks(ended.stdout)
        again = self.expect(0, *words[1:])
        self.assertEqual(again.stderr.count("is complete already"), 2 * len(CELLS))
        self.refuse_another("--epochs", "2", "--rounds", "2")

    def interrupt(self, words):
        """In its second run."""
        process = self.start(words)
        comes_true((self.folder / "demo" / "ddp-no-overlap" / "outcome.json").exists)
        process.send_signal(signal.SIGINT)
        ended = self.wait(process)
        self.assertEqual(ended.code, SAVED, str(ended))
        self.assertRegex(ended.stderr, r"signal 2 ended the demo in [\w-]+, which is \w+; .*--out demo continues")
        self.assertNotEqual(self.outcome("demo/ddp-no-overlap")["status"], "RUNNING")

    def check_turns(self):
        """All strategies ran once before one ran again; what a rank had of its core is known."""
        found = {path.parent.name: json.loads(path.read_text()) for path in self.folder.glob("demo/*/outcome.json")}
        order = sorted(found, key=lambda cell: found[cell]["started_wall_ns"])
        self.assertEqual(order, [*CELLS, *(f"{cell}-2" for cell in CELLS)])
        for outcome in found.values():
            self.assertTrue(0 < outcome["core_share"] <= 1, outcome)

    def check_end(self, text):
        """The end of a demo: conclusions that follow from its numbers, and commands that work."""
        said = text[text.index("\nwhat this says:") : text.index("\nnext:")]
        row = r"(?m)^(\S+) +\w+ +\d+ +\d+ +[\d.]+ +[\d.]+ +[\d.]+ +(\d+) .* complete$"
        speeds = {cell: int(speed) for cell, speed in re.findall(row, text)}
        self.assertEqual(list(speeds), CELLS)
        self.assertRegex(said, r"fastest(, or not told apart)?: (\S+) with (\d+) images/s")
        speed_line = said.split("in 2 rounds")[0]
        for cell in CELLS:
            self.assertEqual(len(re.findall(rf"(?<![-\w]){cell}(?: with| \d)", speed_line)), 1, said)
        self.assertRegex(said, r"in 2 rounds, runs of the same differed by up to [\d.]+ %")
        self.assertIn("fsdp holds ", said)
        self.assertRegex(said, r"bit for bit: ddp-no-overlap, ddp, fsdp, ps-sync")
        plan = next(line for line in text.splitlines() if " plan " in line).split("#")[0].split()
        self.assertIn("Take ", self.expect(0, *plan[1:], "--no-activations").stdout)

    def check_peaks(self, text):
        """They are those of `collect`."""
        row = r"(?m)^(\S+) +\w+ +\d+ .* ([\d.]+)  complete$"
        told = self.expect(0, "collect", *(f"demo/{cell}" for cell in CELLS)).stdout
        self.assertEqual([cell for cell, _ in re.findall(row, text)], CELLS)
        self.assertEqual(re.findall(row, text), re.findall(row, told))

    def refuse_another(self, *options):
        ended = self.run_program("demo", "--out", "demo", *options)
        self.check_refused(ended, USAGE, ["demo holds another study", "--out"])

    def test_any_number_of_ranks(self):
        """If ranks cannot divide the usual batch, demo takes one that they can."""
        process = self.start([self.program, "demo", "--ranks", "3", "--rounds", "1", "--out", "three", "-q"])
        comes_true((self.folder / "three" / "serial" / "outcome.json").exists)
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.wait(process).code, SAVED)
        rows = csv.DictReader((self.folder / "three" / "cells.csv").read_text().splitlines())
        self.assertEqual([row["global_batch"] for row in rows], ["66"] * len(CELLS))


if __name__ == "__main__":
    harness.main()

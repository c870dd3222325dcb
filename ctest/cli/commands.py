"""The commands by themselves: help, lists, plans, and words and options that do not exist."""

import json

import harness
from harness import Refusal, overridden

USAGE, DOES_NOT_FIT = 2, 4
COMMANDS = [
    *["run", "plan", "demo", "info", "list", "commbench", "calibrate"],
    *["sweep", "status", "collect", "replay", "simulate", "validate"],
    *["checkpoint", "export-weights", "export-trace"],
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
    Refusal("no configuration", ["run"], USAGE, ["CONFIG is missing"]),
    Refusal("two configurations", ["run", "config.yaml", "config.yaml"], USAGE, ["too many"]),
    Refusal("list of nothing", ["list"], USAGE, ["list what?", "models"]),
    Refusal(
        "unknown list", ["list", "model"], USAGE, ['cannot list "model"', 'did you mean "models"']
    ),
    Refusal(
        "does not fit",
        [*PLAN, "--gpu-memory", "1M"],
        DOES_NOT_FIT,
        ["MiB", "--gpu-memory is 1M", "smaller batch"],
    ),
    Refusal(
        "launcher without ranks",
        ["demo", "--launcher", "mpirun"],
        USAGE,
        ['launcher "mpirun"', "{ranks}"],
    ),
    Refusal("existing folder", ["demo", "--out", "."], USAGE, [". exists", "--out"]),
]


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
        for code in "0", "2", "3", "5", "6", "84":
            self.assertRegex(general, rf"(?m)^ +{code}  ")
        self.assertRegex(self.expect(0, "--version").stdout, r"^stratagem \d+\.\d+\.\d+ \(")

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
        launched = json.loads(self.expect(0, "info", "--json", ranks=2).stdout)
        self.assertEqual((launched["launcher"], launched["ranks"]), ("mpirun", "2"))
        for fact in "stratagem", "LibTorch", "MPI", "HDF5", "GPUs":
            self.assertIn(f"\n{fact} ", "\n" + self.expect(0, "info").stdout)

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
        text = self.expect(0, *PLAN, "--gpu-memory", "1GiB").stdout
        for word in "parameters", "bucket", "sent per step", "2 ranks", "peak, predicted":
            self.assertIn(word, text)
        self.assertFalse((self.folder / "out").exists())
        for fits, code in (plan["peak_B"], 0), (plan["peak_B"] - 1, 4):
            self.expect(code, *PLAN, "--ranks", "4", "--gpu-memory", str(fits))

    def test_plan_compares_strategies(self):
        compare = [*PLAN, "--ranks", "4", "--compare"]
        compared = json.loads(self.expect(0, *compare, "--json").stdout)
        peaks = {one["strategy"]: one["peak_B"] for one in compared["strategies"]}
        self.assertEqual((compared["recommended"], len(peaks)), ("ddp", 6))
        room = str(peaks["ddp"] - 1)
        text = self.expect(0, *compare, "--gpu-memory", room).stdout
        for words in "take fsdp, shard ", "does not fit", "fits", "ps, mode sync":
            self.assertIn(words, text)
        self.expect(DOES_NOT_FIT, *compare, "--gpu-memory", "1K")
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
        words = [self.program, "demo", "--epochs", "1", "--out", "demo", "--progress", "none"]
        ended = self.wait(self.start(words), timeout=150)
        self.assertEqual(ended.code, 0, str(ended))
        for cell in CELLS:
            self.assertTrue((self.folder / "demo" / cell / "collected.h5").exists())
            self.assertRegex(ended.stdout, rf"(?m)^{cell} .* complete")


if __name__ == "__main__":
    harness.main()

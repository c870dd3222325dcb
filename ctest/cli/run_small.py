"""Whole runs on one and two ranks: their files, and what must not depend on the strategy."""

import csv
import json

import harness
from harness import overridden

ENVIRONMENT = 3
FORMATS = {
    "text": "| ?run  strategy",
    "md": r"\| run",
    "csv": "run,strategy",
    "latex": r"\\begin{tabular}",
    "json": r"\[",
}


class SmallRuns(harness.ProgramTest):
    def finish(self, name, *settings, ranks=1):
        """A run in folder `name` that must succeed; returns its outcome."""
        self.expect(0, *overridden(f"run.out={name}", *settings), "-q", ranks=ranks)
        outcome = self.outcome(name)
        self.assertEqual(
            (outcome["status"], outcome["exit_code"], outcome["trace_complete"]),
            ("COMPLETE", 0, True),
        )
        return outcome

    def metrics(self, name):
        with open(self.folder / name / "metrics.csv", newline="") as file:
            return list(csv.DictReader(file))


class OneAndTheSame(SmallRuns):
    """Numbers that must not depend on how a run is made."""

    common = ["model.name=lenet", "run.max_steps=4", "trace.spans_every=2"]

    def test_strategies_agree_bit_for_bit(self):
        ddp = self.finish("ddp", *self.common, ranks=2)
        for name, settings, ranks in [
            ("emulated", ["strategy.name=serial", "strategy.emulate_ranks=2"], 1),
            ("in-turn", ["strategy.overlap=false", "strategy.bucket_mb=0.01"], 2),
            ("ps", ["strategy.name=ps", "strategy.chunk_mb=0.5"], 3),
            (
                "rma",
                ["strategy.name=ps", "strategy.transport=rma", "strategy.server_ranks=first"],
                3,
            ),
            (
                "two-servers",
                ["strategy.name=ps", "strategy.servers=2", "strategy.server_ranks=spread"]
                + ["strategy.chunk_mb=0.1", "run.save_weights=two-servers.safetensors"],
                4,
            ),
        ]:
            with self.subTest(name):
                outcome = self.finish(name, *self.common, *settings, ranks=ranks)
                self.assertEqual(outcome["digest"], ddp["digest"])
                self.assertEqual(outcome["test_accuracy"], ddp["test_accuracy"])
                self.assertAlmostEqual(
                    float(self.metrics(name)[0]["train_loss"]),
                    float(self.metrics("ddp")[0]["train_loss"]),
                    6,
                )
        other = self.finish(
            "other", *self.common, "run.seed=2", "strategy.name=serial", "strategy.emulate_ranks=2"
        )
        self.assertNotEqual(other["digest"], ddp["digest"])

    def test_held_out_images_are_evaluated_and_not_trained_on(self):
        # 24 of 96: as without these, but for what is evaluated.
        for name, strategy, ranks in [("ddp", "ddp", 2), ("ps", "ps", 3)]:
            held = [*self.common, f"strategy.name={strategy}", "data.holdout=24"]
            outcome = self.finish(name, *held, ranks=ranks)
            without = self.finish(
                f"{name}-72", *self.common, f"strategy.name={strategy}", "data.subset=72", ranks=ranks
            )
            self.assertEqual(outcome["digest"], without["digest"])
            correct = outcome["test_accuracy"] * 24
            self.assertAlmostEqual(correct, round(correct))
        manifest = json.loads((self.folder / "ddp" / "manifest.json").read_text())
        self.assertEqual(manifest["dataset"]["train_images"], 72)
        self.assertEqual(manifest["dataset"]["test_images"], 24)
        self.assertEqual(manifest["plan"]["steps_per_epoch"], 6)

    def test_options_agree_between_strategies(self):
        common = [*self.common, "run.evaluate_every=0"]
        emulated = ["strategy.name=serial", "strategy.emulate_ranks=2"]
        for name, settings in {
            "bf16": ["precision.compute=bf16"],
            "bf16-scaled": [
                "precision.compute=bf16",
                "precision.loss_scale=dynamic",
                "strategy.micro_batches=3",
            ],
            "augmented": ["data.augment=standard", "optimizer.clip_norm=0.5"],
            "scaled-up": ["data.input_size=64", "optimizer.reduction=sum"],
            "lr-scaled": [
                "optimizer.lr_scaling=linear",
                "data.batch_per_worker=4",
                "data.global_batch=0",
            ],
        }.items():
            with self.subTest(name):
                ddp = self.finish(f"{name}-ddp", *common, *settings, ranks=2)
                serial = self.finish(f"{name}-serial", *common, *settings, *emulated)
                self.assertEqual(ddp["digest"], serial["digest"])
                if name in ("bf16-scaled", "augmented"):
                    servers = ["strategy.name=ps", "strategy.servers=2", "strategy.chunk_mb=0.25"]
                    ps = self.finish(f"{name}-ps", *common, *servers, *settings, ranks=4)
                    self.assertEqual(ddp["digest"], ps["digest"])
        self.assertEqual(float(self.metrics("lr-scaled-ddp")[0]["lr"]), 0.02)
        digests = [
            self.outcome(f"{name}-ddp")["digest"]
            for name in ("bf16", "bf16-scaled", "augmented", "scaled-up", "lr-scaled")
        ]
        self.assertEqual(len(set(digests)), len(digests), "every option changes the result")


MODES = ["async", "ssp", "modified", "lag_cap", "dana", "dc", "dc_adaptive", "gap_aware", "softsync", "backup"]


class Servers(SmallRuns):
    """The parameter server's modes, replays and simulations."""

    common = OneAndTheSame.common

    def test_asynchronous_workers_do_every_share(self):
        ps = ["strategy.name=ps", "strategy.chunk_mb=1"]
        for mode in MODES:
            with self.subTest(mode):
                two_rounds = ["run.max_steps=10", f"strategy.mode={mode}"]
                outcome = self.finish(mode, *self.common, *ps, *two_rounds, ranks=3)
                self.assertEqual(outcome["steps"], 10)
                self.expect(0, "validate", mode)
                replayed = self.expect(0, "replay", mode).stdout
                self.assertIn(outcome["digest"] + ", bit for bit those of the run", replayed)
        file = self.folder / MODES[0] / "config.yaml"
        file.write_text(file.read_text().replace("  seed: 1\n", "  seed: 2\n"))
        self.check_refused(self.run_program("replay", MODES[0]), 2, ["not what the run began with", "undo"])

    def test_a_run_whose_order_does_not_matter_is_not_replayed(self):
        self.finish("ddp", *self.common, ranks=2)
        self.check_refused(self.run_program("replay", "ddp"), 2, ["strategy ddp"])
        self.finish("sync", *self.common, "strategy.name=ps", "strategy.chunk_mb=1", ranks=2)
        self.check_refused(self.run_program("replay", "sync"), 2, ["run it again"])

    def test_lags_are_told_of(self):
        ps = ["strategy.name=ps", "strategy.chunk_mb=1", "strategy.mode=async"]
        self.finish("out", *self.common, *ps, "strategy.server_ranks=0", ranks=3)
        said = (self.folder / "out" / "log.txt").read_text()
        self.assertRegex(said, r"epoch 1/.* lag mean \d.* p99 \d.*; servers \d+ % busy")
        table = json.loads(self.expect(0, "collect", "out", "--format", "json").stdout)
        self.assertEqual(table["cells"][0]["pushes"], 8)
        self.assertIn("server busy %", self.expect(0, "collect", "out").stdout)

    def test_a_simulation_needs_no_launcher(self):
        settings = ["run.max_steps=0", "run.epochs=2", "strategy.name=ps", "strategy.mode=dana"]
        words = overridden(*self.common, *settings)[1:]
        told = self.expect(0, "simulate", *words, "--workers", "3").stdout
        self.assertRegex(told, r"epoch 2  loss .* test .* predicted time .* lag mean")
        self.assertIn("message 0.1, update 0.01, jitter 0.1, no slow worker", told)
        again = json.loads(self.expect(0, "simulate", *words, "--workers", "3", "--json").stdout)
        self.assertEqual(again["pushes"], 2 * 3 * 8)
        self.assertEqual([point["epoch"] for point in again["curve"]], [1, 2])
        self.assertLess(again["curve"][0]["predicted_time"], again["curve"][1]["predicted_time"])
        for name in "train_loss", "test_accuracy", "predicted_time":
            self.assertEqual(again["curve"][1][name], again[name])
        self.assertFalse((self.folder / "out").exists())

    def test_a_simulation_predicts_time_from_a_cluster_that_is_told(self):
        def predicted(*words, settings=()):
            ended = self.expect(
                0,
                "simulate",
                *overridden(*self.common, "strategy.name=ps", *settings)[1:],
                *["--workers", "3", "--jitter", "0", "--json", *words],
            )
            return json.loads(ended.stdout)

        slow = ["experiment.slow_worker=1", "experiment.slow=2.5"]
        # 4 steps, each of which every worker computes in 1.
        self.assertEqual(predicted("--message=0", "--update=0")["predicted_time"], 4)
        self.assertEqual(predicted("--message=0.25", "--update=0")["predicted_time"], 6)
        self.assertEqual(predicted("--message=0", "--update=0.125")["predicted_time"], 5.5)
        told = predicted("--message=0", "--update=0", settings=slow)
        self.assertEqual(told["predicted_time"], 10)
        self.assertEqual(
            told["cluster"], {"message": 0, "update": 0, "jitter": 0, "slow_worker": 1, "slow": 2.5}
        )
        self.check_refused(
            self.run_program("simulate", "config.yaml", "--message=-1"), 2, ["--message is -1"]
        )


class Files(SmallRuns):
    """The files of a run."""

    def setUp(self):
        super().setUp()
        self.done = self.finish("out", "run.max_steps=0", "run.epochs=2", ranks=2)

    def test_contents(self):
        out = self.folder / "out"
        self.assertEqual((self.done["reason"], self.done["steps"]), ("epochs done", 16))
        rows = self.metrics("out")
        self.assertEqual(
            [(row["attempt"], row["epoch"], row["step"]) for row in rows],
            [("0", "0", "8"), ("0", "1", "16")],
        )
        self.assertLess(float(rows[1]["train_loss"]), float(rows[0]["train_loss"]))
        self.assertEqual(float(rows[1]["test_accuracy"]), self.done["test_accuracy"])

        manifest = json.loads((out / "manifest.json").read_text())
        self.assertEqual([rank["rank"] for rank in manifest["ranks"]], [0, 1])
        self.assertEqual(manifest["dataset"]["train_images"], 96)
        self.assertEqual(
            (manifest["plan"]["global_batch"], manifest["plan"]["batch_per_rank"]), (12, 6)
        )
        self.assertEqual(manifest["threads_per_rank"], 1)
        self.assertTrue(manifest["build"]["git_sha"])

        self.expect(0, "run", "out/config.yaml", "--print-config")
        again = self.finish("again", "run.max_steps=0", "run.epochs=2", ranks=2)
        self.assertEqual(again["digest"], self.done["digest"])
        self.assertIn(
            "epoch 2/2",
            (out / "logs" / "rank-0001.log").read_text() + (out / "log.txt").read_text(),
        )
        self.assertEqual(list(out.glob(".outcome*")), [])

    def test_collect_and_validate(self):
        self.assertIn("good", self.expect(0, "validate", "out").stdout)
        for name, pattern in FORMATS.items():
            with self.subTest(name):
                self.assertRegex(self.expect(0, "collect", "out", "--format", name).stdout, pattern)
        self.expect(0, "collect", "out", "-o", "joined.h5")
        self.assertIn("joined.h5: good", self.expect(0, "validate", "joined.h5", "out").stdout)

        row = json.loads(self.expect(0, "collect", "out", "--format", "json").stdout)["cells"][0]
        self.assertEqual(
            (row["ranks"], row["steps"], row["status"], row["strategy"]), (2, 16, "complete", "ddp")
        )
        self.assertEqual(row["test_accuracy"], self.done["test_accuracy"])
        self.assertTrue(0 < row["exposed_comm_share"] < 1)
        plan = json.loads(self.expect(0, "plan", "config.yaml", "--json").stdout)["memory_B"]
        for category in "parameters", "optimizer":
            self.assertEqual(row[f"peak_{category}_B"], plan[category])
        # A folder of runs gives a table with one row per run.
        self.expect(0, *overridden("run.out=runs/one"), "-q")
        self.expect(0, *overridden("run.out=runs/two", "strategy.name=serial"), "-q")
        self.expect(0, *overridden("run.out=runs/one-again", "run.seed=7"), "-q")
        told = json.loads(self.expect(0, "collect", "runs", "--format", "json").stdout)
        self.assertEqual([row["cell"] for row in told["cells"]], ["one", "one-again", "two"])
        self.assertEqual([row["train_time_s"]["n"] for row in told["groups"]], [2, 1], "seeds repeat each other")


class Ends(SmallRuns):
    """Runs that end before the last epoch, or do not begin from the seed."""

    def test_weights_round_trip(self):
        for model in "lenet", "mlp":
            with self.subTest(model):
                settings = [f"model.name={model}", "run.max_steps=20", "run.epochs=10"]
                saved = self.finish(
                    f"{model}-saved", *settings, f"run.save_weights={model}.safetensors", ranks=2
                )
                evaluate = [
                    f"model.name={model}",
                    "run.epochs=0",
                    f"model.weights={model}.safetensors",
                ]
                loaded = self.finish(f"{model}-loaded", *evaluate)
                self.assertEqual((loaded["reason"], loaded["steps"]), ("evaluated only", 0))
                self.assertEqual(loaded["test_accuracy"], saved["test_accuracy"])
                self.assertEqual(loaded["digest"], saved["digest"])
        ended = self.run_program(
            *overridden("model.weights=lenet.safetensors", "run.out=mixed"), ranks=2
        )
        self.check_refused(ended, 5, ["lenet.safetensors"])
        self.assertFalse((self.folder / "mixed").exists())

    def test_time_limit(self):
        for ranks in 1, 2:
            with self.subTest(ranks=ranks):
                settings = [
                    "run.max_steps=0",
                    "run.epochs=100000",
                    "run.max_time_s=1",
                    "run.evaluate_every=0",
                ]
                outcome = self.finish(f"limited-{ranks}", *settings, ranks=ranks)
                self.assertEqual(outcome["reason"], "time_limit")
                self.assertTrue(
                    1 <= outcome["train_time_s"] + 0.2 and outcome["train_time_s"] < 5, outcome
                )
                self.assertGreater(outcome["steps"], 10)

    def test_the_time_limit_does_not_count_evaluation(self):
        """Which takes most of the time, after 8 small steps each."""
        settings = ["run.max_steps=0", "run.epochs=100000", "run.max_time_s=0.5"]
        outcome = self.finish("limited", *settings)
        self.assertEqual(outcome["reason"], "time_limit")
        self.assertGreater(outcome["train_time_s"], 0.45)
        self.assertGreater(outcome["wall_time_s"], outcome["train_time_s"])
        spent = sum(float(row["time_s"]) for row in self.metrics("limited"))
        self.assertAlmostEqual(outcome["train_time_s"], spent, 9)

    def test_progress_is_plain_where_nobody_watches(self):
        ended = self.expect(0, *overridden("run.max_steps=0", "run.epochs=2"), ranks=2)
        self.assertNotIn("\r", ended.stdout + ended.stderr)
        self.assertNotIn("\x1b", ended.stdout + ended.stderr)
        self.assertIn("epoch 2/2  loss ", ended.stderr)
        self.assertEqual(self.expect(0, *overridden("run.out=quiet", "run.ranks=1"), "-q").stderr, "")


if __name__ == "__main__":
    harness.main()

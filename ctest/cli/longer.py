"""A finished run keeps its last step: its weights can be exported, and more epochs go on from there as if it had never
stopped. Whatever else differs from what the directory holds is named."""

import json
import re
import shutil
import unittest

import harness
from harness import mpirun, overridden

USAGE, IO, UNUSABLE = 2, 6, 7
SERIAL = ["strategy.name=serial"]
WAYS = {
    "serial": (1, SERIAL),
    "ddp": (2, ["strategy.name=ddp"]),
    "fsdp": (2, ["strategy.name=fsdp", "strategy.unit_mb=0.01"]),
    "ps-sync": (3, ["strategy.name=ps"]),
    "ps-async": (3, ["strategy.name=ps", "strategy.mode=async"]),
    "local": (2, ["strategy.name=local", "strategy.inner_steps=2"]),
    "gossip": (2, ["strategy.name=gossip"]),
    "fedavg": (2, ["strategy.name=fedavg", "strategy.clients=4", "strategy.per_round=2", "strategy.local_steps=1"]),
}
TINY_VIT = ["model.name=vit_tiny_4", "model.layers=1", "model.heads=2", "model.width=16", "model.dropout_rate=0.2"]
ADAMW = ["optimizer.name=adamw", "optimizer.lr=0.01"]
MOMENTUM = ["model.name=lenet", "optimizer.momentum=0.9", "data.augment=standard"]
TRAININGS = {  # way, settings, how the shorter run ends
    "epochs": ("serial", [*TINY_VIT, *ADAMW], ["run.epochs=2"]),
    "within an epoch": ("ddp", MOMENTUM, ["run.max_steps=11"]),
    "time": ("fsdp", [*TINY_VIT, *ADAMW, "data.augment=standard"], ["run.max_time_s=0.02"]),
    "servers": ("ps-sync", MOMENTUM, ["run.epochs=2", "run.evaluate_every=3"]),
}
LENGTH = ["run.max_steps=0", "run.epochs=3"]


class Finished(harness.ProgramTest):
    def train(self, way, out, *settings, code=0, resume=()):
        ranks, strategy = WAYS[way]
        words = [self.program, *overridden(*LENGTH, *strategy, *settings, f"run.out={out}"), "--progress", "none"]
        ended = self.run_words(mpirun(ranks, [*words, *resume]) if ranks > 1 else [*words, *resume])
        self.assertEqual(ended.code, code, str(ended))
        return ended

    def checkpoints(self, out="out"):
        return sorted(path.name for path in (self.folder / out).glob("checkpoint/*"))

    def refused(self, words, *settings, how="--resume"):
        before = harness.snapshot(self.folder)
        ended = self.run_program(*overridden(*LENGTH, *SERIAL, *settings), how)
        self.check_refused(ended, UNUSABLE, words)
        self.assertEqual(harness.snapshot(self.folder), before)


class Weights(Finished):
    def test_of_the_last_step_under_every_strategy(self):
        for way in WAYS:
            with self.subTest(way):
                self.train(way, way, "run.max_steps=5")
                self.assertEqual(self.checkpoints(way), ["step-000000005"])
                told = self.expect(0, "export-weights", way, f"{way}.safetensors").stderr
                self.assertIn("of step 5,", told)
                self.assertNotIn("warning", told)
                digest = self.outcome(way)["digest"]
                self.assertIn(f"digest of the parameters {digest}", told)
        again = self.digest("model.weights=ps-sync.safetensors", "run.epochs=0", config="config.yaml", out="read")
        self.assertEqual(again, self.outcome("ps-sync")["digest"], "what was exported is what is read")

    def test_of_an_earlier_step_are_told(self):
        self.train("serial", "out", "run.max_steps=5", "checkpoint.every_steps=2", "checkpoint.at_end=false")
        told = self.expect(0, "export-weights", "out", "w.safetensors").stderr
        self.assertIn("warning: the weights are of step 4, and out went on to step 5, which was not saved", told)
        chosen = self.expect(0, "export-weights", "out/checkpoint/step-000000002", "two.safetensors").stderr
        self.assertNotIn("warning", chosen)

    def test_without_any(self):
        self.train("serial", "out", "run.max_steps=5", "checkpoint.at_end=false")
        self.assertEqual(self.checkpoints(), [])
        ended = self.run_program("export-weights", "out", "w.safetensors")
        self.check_refused(ended, UNUSABLE, ["no checkpoint in out", "checkpoint.at_end"])

    def test_nothing_trained_is_nothing_saved(self):
        self.train("serial", "out", "run.epochs=0")
        self.assertEqual(self.checkpoints(), [])

    def test_the_last_step_is_saved_once(self):
        self.train("serial", "out", "run.max_steps=6", "checkpoint.every_steps=2", "checkpoint.keep=9")
        self.assertEqual([name[-1] for name in self.checkpoints()], ["2", "4", "6"])
        whole = self.outcome()
        path = self.folder / "out" / "outcome.json"  # as if it had been killed just before its end
        path.write_text(json.dumps(whole | {"status": "RUNNING", "process": 999999999}))
        ended = self.train("serial", "out", "run.max_steps=6", "checkpoint.every_steps=2", "checkpoint.keep=9",
                           resume=["--resume"])  # fmt: skip
        self.assertIn("continues after step 6", ended.stderr)
        self.assertNotIn("checkpoint of step", ended.stderr)
        for key in "status", "digest", "test_accuracy", "test_loss", "steps", "reason":
            self.assertEqual(self.outcome()[key], whole[key], key)

    def test_a_full_disk_loses_nothing_else(self):
        settings = overridden(*LENGTH, *SERIAL, "model.name=lenet", "run.max_steps=5")
        job = ["bash", "-c", 'ulimit -f 1000; exec "$@"', "bash", self.program, *settings]
        # Open MPI's shared memory is also a file.
        ended = self.run_words(mpirun(1, job, "--mca", "btl", "self,tcp"))
        self.assertEqual(ended.code, IO, str(ended))
        outcome = self.outcome()
        self.assertEqual((outcome["status"], outcome["exit_code"], outcome["steps"]), ("COMPLETE", IO, 5))
        self.assertIn("max_steps; the last step was not saved: ", outcome["reason"])
        self.assertEqual(len(outcome["digest"]), 16)
        self.assertTrue(outcome["trace_complete"])


@unittest.skipUnless(shutil.which("h5dump"), "needs h5dump (package hdf5-tools)")
class Longer(Finished):
    def test_as_if_it_had_never_stopped(self):
        for name, (way, settings, end) in TRAININGS.items():
            with self.subTest(name):
                straight, out = f"{way}-straight", f"{way}-longer"
                every = [setting for setting in end if setting.startswith("run.evaluate")]
                self.train(way, straight, *settings, *every)
                self.train(way, out, *settings, *end)
                short = self.outcome(out)
                self.assertEqual(short["status"], "COMPLETE")
                self.assertLess(short["steps"], 24)
                ended = self.train(way, out, *settings, *every, resume=["--resume"])
                self.assertIn(f"continues after step {short['steps']}", ended.stderr)
                self.assertEqual((self.outcome(out)["steps"], self.outcome(out)["attempt"]), (24, 1))
                for key in "digest", "test_accuracy", "test_loss", "reason":
                    self.assertEqual(self.outcome(out)[key], self.outcome(straight)[key], key)
                self.assertEqual(self.metrics(out), self.metrics(straight))
                self.assertEqual(self.losses(out), self.losses(straight))
                self.expect(0, "validate", out)

    def test_a_schedule_over_the_length_is_a_difference(self):
        for schedule in "cosine", "linear", "wsd":
            with self.subTest(schedule):
                out = f"run.out={schedule}"
                settings = [out, f"optimizer.schedule={schedule}"]
                self.expect(0, *overridden(*LENGTH, *SERIAL, *settings, "run.epochs=1"), "-q")
                self.refused(["steps of the schedule was 8 and is 24", "compatible"], *settings)
        ended = self.expect(0, *overridden(*LENGTH, *SERIAL, *settings), "--resume=compatible")
        self.assertIn("the numbers will differ", ended.stderr)
        self.assertEqual(self.outcome("wsd")["steps"], 24)
        fixed = ["run.out=fixed", "optimizer.schedule=cosine", "optimizer.decay_steps=24"]
        self.expect(0, *overridden(*LENGTH, *SERIAL, *fixed, "run.epochs=1"), "-q")
        self.expect(0, *overridden(*LENGTH, *SERIAL, *fixed), "--resume", "-q")

    def test_the_same_is_nothing_to_do(self):
        self.train("serial", "out", "run.epochs=1")
        before = harness.snapshot(self.folder)
        ended = self.train("serial", "out", "run.epochs=1", resume=["--resume"])
        self.assertIn("out holds this run, COMPLETE: nothing to do\n", ended.stderr)
        ended = self.train("serial", "out", "run.epochs=1", "trace.spans_every=7", resume=["--resume"])
        self.assertIn("nothing to do; of no effect: trace.spans_every was 50 and is 7", ended.stderr)
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_a_run_that_its_time_ended_is_the_same_too(self):
        self.train("serial", "out", "run.epochs=1000", "run.max_time_s=0.01")
        self.assertEqual(self.outcome()["reason"], "time_limit")
        ended = self.train("serial", "out", "run.epochs=1000", "run.max_time_s=0.01", resume=["--resume"])
        self.assertIn("nothing to do", ended.stderr)
        self.refused(["less is asked for"], "run.epochs=1000", "run.max_time_s=0.001")

    def test_what_differs_is_named(self):
        self.train("serial", "out", "run.epochs=2")
        self.expect(0, "export-weights", "out", "w.safetensors", "-q")
        for settings, words in [
            (["run.epochs=1"], ["went on to step 16", "less is asked for"]),
            (["run.max_steps=3", "run.epochs=2"], ["went on to step 16", "run.max_steps"]),
            (["run.epochs=4", "optimizer.lr=0.5"], ["optimizer.lr was 0.01 and is 0.5"]),
            (["run.epochs=2", "run.seed=9", "model.name=lenet"], ["run.seed was 1 and is 9", "model.name was mlp"]),
            (["run.epochs=2", "data.subset=48"], ["data.subset was 96 and is 48", "dataset was"]),
            (["run.epochs=2", "run.save_weights=late.safetensors"], ["run.save_weights", "export-weights"]),
            (["run.epochs=4", "model.weights=w.safetensors"], ["initial weights was from the seed and is"]),
            (["run.epochs=2", "optimizer.lr=0.5", "run.seed=9"], ["optimizer.lr was", "run.seed was"]),
        ]:
            with self.subTest(settings=settings):
                self.refused(["cannot resume from the finished run in out", *words], *settings)
        self.refused(["model.name was mlp and is lenet"], "model.name=lenet", how="--resume=compatible")
        ended = self.train("serial", "out", "optimizer.lr=0.5", resume=["--resume=compatible"])
        self.assertIn("the numbers will differ from an uninterrupted run: optimizer.lr was", ended.stderr)
        self.assertEqual(self.outcome()["steps"], 24)

    def test_nothing_to_go_on_from(self):
        self.train("serial", "out", "run.epochs=1", "checkpoint.at_end=false")
        outcome = self.outcome()
        ended = self.run_program(*overridden(*LENGTH, *SERIAL), "--resume")
        self.check_refused(ended, UNUSABLE, ["no checkpoint to train the finished run in", "checkpoint.at_end"])
        self.assertEqual(self.outcome(), outcome)

    def test_one_without_its_last_step_repeats_what_is_missing(self):
        self.train("serial", "straight")
        self.train("serial", "out", "run.epochs=2", "checkpoint.at_end=false", "checkpoint.every_steps=5")
        ended = self.train("serial", "out", resume=["--resume"])
        self.assertIn("continues after step 15", ended.stderr)
        self.assertEqual(self.outcome()["digest"], self.outcome("straight")["digest"])

    def test_older_directories(self):
        """Without what newer ones tell, numbers of steps decide."""
        self.train("serial", "out", "run.epochs=1")
        (self.folder / "out" / "config.yaml").write_text("schema: 0\n")
        self.assertIn("nothing to do", self.train("serial", "out", "run.epochs=1", resume=["--resume"]).stderr)
        manifest = json.loads((self.folder / "out" / "manifest.json").read_text())
        del manifest["facts"]["initial weights"]
        (self.folder / "out" / "manifest.json").write_text(json.dumps(manifest))
        ended = self.train("serial", "out", resume=["--resume"])
        self.assertIn("continues after step 8", ended.stderr)

    def test_twice_within_a_second(self):
        for _ in range(4):
            self.expect(0, *overridden(*SERIAL, "run.max_steps=1"), "--overwrite", "-q")
        aside = [path.name for path in self.folder.glob("out.old-*")]
        self.assertEqual(len(aside), 3)
        self.assertTrue(all(re.fullmatch(r"out\.old-[0-9TZ:-]+", name) for name in aside), aside)


if __name__ == "__main__":
    harness.main()

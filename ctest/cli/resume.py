"""A run that is stopped, by a signal or by force, continues as if nothing had happened."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness
from harness import ENDLESS, Refusal, mpirun, overridden

SAVED, USAGE, UNUSABLE = 75, 2, 7
KILLS = int(os.environ.get("STRATAGEM_KILLS", "2"))  # per strategy; a longer test takes more
KILLED_SAVES = int(os.environ.get("STRATAGEM_KILLED_SAVES", "6"))  # likewise
SEED = 20260101

# Steps of a few milliseconds, a schedule that depends on the step, augmentation, several epochs.
SETTINGS = [
    "model.name=lenet",
    "data.subset=480",
    "data.augment=standard",
    "data.global_batch=24",
    "run.max_steps=0",
    "run.epochs=3",
    "optimizer.schedule=cosine",
    "optimizer.warmup_steps=20",
    "checkpoint.every_steps=3",
    "trace.spans_every=0",
]
WAYS = {
    "ddp": (2, ["strategy.name=ddp", "strategy.micro_batches=2"]),
    "fsdp": (2, ["strategy.name=fsdp", "strategy.unit_mb=0.01"]),
    "local": (2, ["strategy.name=local", "strategy.workers=4", "strategy.inner_steps=4"]),
    "streaming": (2, ["strategy.name=local", "strategy.inner_steps=8", "strategy.outer_lr=0.7", "strategy.fragments=2",
                      "strategy.delay=3", "strategy.mixing_factor=0.5"]),
    "gossip": (2, ["strategy.name=gossip", "strategy.workers=4", "strategy.graph=star", "strategy.push_sum=true"]),
    "fedavg": (2, ["strategy.name=fedavg", "strategy.clients=20", "strategy.per_round=4", "strategy.split=shards",
                   "strategy.local_steps=2", "strategy.server_momentum=0.9", "data.global_batch=12"]),
    "ps": (3, ["strategy.name=ps"]),
}
# So that the run does not finish before the signal, even on a busy machine.
LAST_STEP_HANGS = {"STRATAGEM_FAIL": "forward:0:59:spin"}
STEPS_TAKE_LONG = {"STRATAGEM_FAIL": "forward:*:*:delay=10"}
ASYNCHRONOUS = {"lag_cap": (4, ["strategy.name=ps", "strategy.mode=lag_cap", "strategy.lag_cap=1"])}


def ranks_of(launcher):
    """Process ids of its ranks."""
    found = subprocess.run(["pgrep", "-P", str(launcher.pid)], capture_output=True, text=True, check=True)
    return [int(pid) for pid in found.stdout.split()]


class Resume(harness.ProgramTest):
    def words(self, way, out, *more):
        ranks, settings = (WAYS | ASYNCHRONOUS)[way]
        words = [self.program, *overridden(*SETTINGS, *settings, f"run.out={out}"), *more]
        return mpirun(ranks, [*words, "--progress", "none"])

    def finish(self, way, out):
        ended = self.run_words(self.words(way, out, "--resume"))
        self.assertEqual(ended.code, 0, str(ended))
        return ended

    def check_equal(self, way, out):
        self.assertEqual(self.outcome(out)["digest"], self.outcome("straight")["digest"], way)
        self.assertEqual(self.metrics(out), self.metrics("straight"), way)

    def straight(self, way):
        begin = time.monotonic()
        ended = self.run_words(self.words(way, "straight"))
        self.assertEqual(ended.code, 0, str(ended))
        return time.monotonic() - begin

    def await_steps(self, process, out, step):
        """Waits for a checkpoint of `step` or later."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            saved = [int(p.name[5:]) for p in (self.folder / out).glob("checkpoint/step-*")]
            if saved and max(saved) >= step:
                return
            time.sleep(0.005)

    def kill(self, process):
        """Kills the launcher and all ranks."""
        ranks = ranks_of(process)
        for pid in (process.pid, *ranks):
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        time.sleep(0.3)

    def check_killed(self, way):
        """SIGKILL at random times, repeatedly, also in the middle of saving."""
        draw = random.Random(SEED + len(way))
        took = self.straight(way)
        for kill in range(KILLS):
            out = f"killed-{kill}"
            process = self.start(self.words(way, out), environment=LAST_STEP_HANGS)
            self.await_steps(process, out, draw.randrange(3, 50))
            time.sleep(draw.random() * 0.05 * took)
            self.kill(process)
            self.expect(0, "checkpoint", out)
            self.finish(way, out)
            self.check_equal(way, out)
            # Up to the checkpoint, the killed run's trace has every step; from there on, the resumed run's.
            self.assertEqual(self.losses(out), self.losses("straight"), way)

    def test_killed_ddp(self):
        self.check_killed("ddp")

    def test_killed_fsdp(self):
        self.check_killed("fsdp")

    def test_killed_local(self):
        self.check_killed("local")

    def test_killed_streaming(self):
        self.check_killed("streaming")

    def test_killed_gossip(self):
        self.check_killed("gossip")

    def test_killed_fedavg(self):
        self.check_killed("fedavg")

    def test_killed_ps(self):
        self.check_killed("ps")

    def test_killed_asynchronous(self):
        """No two such runs are the same, but everything is trained, and no gradient older than allowed is applied."""
        process = self.start(self.words("lag_cap", "out"), environment=STEPS_TAKE_LONG)
        self.await_steps(process, "out", 6)
        self.kill(process)
        ended = self.finish("lag_cap", "out")
        self.assertIn("continues after step", ended.stderr)
        self.assertEqual(self.outcome("out")["steps"], 3 * 480 / 24)
        self.expect(0, "validate", "out")
        lags = map(int, self.collected("out", "/rank-0003/ps/lag"))
        dropped = map(int, self.collected("out", "/rank-0003/ps/dropped"))
        applied = [lag for lag, drop in zip(lags, dropped) if not drop]
        self.assertLessEqual(max(applied), 1)

    def test_interrupted(self):
        """USR1 to mpirun, or to any single rank: saved, and not taken for the end."""
        for way in WAYS:
            self.straight(way)
            for target in "mpirun", "one rank":
                with self.subTest(way, target=target):
                    out = f"{way}-{target[0]}"
                    process = self.start(self.words(way, out), environment=STEPS_TAKE_LONG)
                    rank = WAYS[way][0] - 1  # with ps, a server
                    pid = process.pid if target == "mpirun" else self.pid_of_rank(rank, out)
                    self.await_steps(process, out, 6)
                    os.kill(pid, signal.SIGUSR1)
                    ended = self.wait(process)
                    self.assertEqual(ended.code, SAVED, str(ended))
                    outcome = self.outcome(out)
                    self.assertEqual(
                        (outcome["status"], outcome["exit_code"], outcome["reason"]),
                        ("SAVED", SAVED, "interrupted"),
                    )
                    self.assertTrue(outcome["trace_complete"])
                    self.finish(way, out)
                    self.check_equal(way, out)
                    self.assertEqual(self.losses(out), self.losses("straight"), way)
            for folder in self.folder.glob("straight*"):
                folder.rename(folder.with_name(f"done-{way}-{folder.name}"))


@unittest.skipUnless(shutil.which("h5dump"), "needs h5dump (package hdf5-tools)")
class KilledAfterSaving(harness.ProgramTest):
    """A checkpoint counts only if the traces reach as far: the killed run's trace has all steps before it."""

    def steps(self, rank):
        return [int(step) for step in self.dumped("collected.h5", f"/rank-{rank:04}/steps/step")]

    def check(self, ranks, workers, last, *settings):
        words = overridden(f"run.max_steps={last}", "run.epochs=1000", "run.evaluate_every=0",
                           "checkpoint.every_steps=25", "trace.spans_every=0", *settings)
        process = self.start(mpirun(ranks, [self.program, *words, "--progress", "none"]))
        pids = [self.pid_of_rank(rank) for rank in range(ranks)]
        before = set((self.folder / "out").glob("checkpoint/step-*"))
        while not set((self.folder / "out").glob("checkpoint/step-*")) - before:
            self.assertIsNone(process.poll(), "it came to its end")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.wait(process)
        resumed = self.expect(0, *words, "--resume", ranks=ranks)
        self.assertRegex(resumed.stderr, "continues after step")
        self.expect(0, "collect", "out", "-o", "collected.h5")
        for rank in range(workers):
            self.assertEqual(self.steps(rank), list(range(last)), rank)

    def test_ddp(self):
        self.check(2, 2, 2000)

    def test_server(self):
        self.check(3, 2, 400, "strategy.name=ps")


class KilledSaving(harness.ProgramTest):
    """SIGKILL at any moment of a save, to all ranks or to one: the newest complete checkpoint exists, and the run
    continues from it."""

    settings = ["model.name=lenet", "checkpoint.every_steps=2", "checkpoint.keep=2"]

    def checkpoints(self):
        return self.folder / "out" / "checkpoint"

    def half_written(self):
        return set(self.checkpoints().glob(".writing-*"))

    def whole(self):
        """Steps of the checkpoints, all of which must be complete."""
        if not any(self.checkpoints().glob("step-*")):
            return []
        listed = self.expect(0, "checkpoint", "out").stdout
        steps = [int(step) for step in re.findall(r"step-(\d+)", listed)]
        self.assertEqual(sorted(steps), sorted(int(p.name[5:]) for p in self.checkpoints().glob("step-*")))
        return steps

    def kill_within_a_save(self, draw):
        """Returns the run's standard error."""
        left_before = self.half_written()
        words = [self.program, *overridden(*ENDLESS, *self.settings), "--resume", "--progress", "none"]
        process = self.start(mpirun(2, words))
        deadline = time.monotonic() + 50
        while not self.half_written() - left_before:
            self.assertIsNone(process.poll(), "it came to its end")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)
        ranks = ranks_of(process)
        self.assertEqual(len(ranks), 2)
        time.sleep(draw.random() * 0.03)
        for pid in draw.choice([ranks, ranks[:1], ranks[1:]]):
            os.kill(pid, signal.SIGKILL)
        return self.wait(process).stderr

    def test_random_moments(self):
        draw = random.Random(SEED)
        whole, within, kills = [], 0, 0
        for _ in range(20 * KILLED_SAVES):
            if within == KILLED_SAVES:
                break
            stderr = self.kill_within_a_save(draw)
            if whole:
                self.assertIn(f"continues after step {max(whole)}", stderr)
            before, whole = whole, self.whole()
            if before:
                self.assertGreaterEqual(max(whole, default=-1), max(before), "a checkpoint is lost")
            within += bool(self.half_written())
            kills += 1
        print(f"{kills} kills, {within} of them within a save")
        self.assertEqual(within, KILLED_SAVES)


class Signals(harness.ProgramTest):
    def begin(self, *settings):
        words = [self.program, *overridden(*ENDLESS, *settings), "--progress", "none"]
        process = self.start(words)
        pid = self.pid_of_rank(0)
        time.sleep(1)
        return process, pid

    def test_term_without_time_to_save_closes_the_trace(self):
        words = [self.program, *overridden(*ENDLESS), "--progress", "none"]
        process = self.start(mpirun(1, words), environment={"STRATAGEM_FAIL": "forward:0:9:spin"})
        pid = self.pid_of_rank(0)
        time.sleep(1)
        os.kill(pid, signal.SIGTERM)
        self.assertNotIn(self.wait(process).code, (0, SAVED))
        outcome = self.outcome()
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", 128 + signal.SIGTERM))
        self.assertIn("ended by signal 15", outcome["reason"])
        self.expect(0, "validate", "out")
        collected = self.expect(0, "collect", "out")
        self.assertNotIn("not closed", collected.stderr)

    def test_term_with_time_to_save(self):
        process, pid = self.begin()
        os.kill(pid, signal.SIGTERM)
        ended = self.wait(process)
        self.assertEqual(ended.code, SAVED, str(ended))
        self.assertEqual(self.outcome()["status"], "SAVED")

    def test_interrupt_saves_once_and_ends_twice(self):
        process, pid = self.begin()
        os.kill(pid, signal.SIGINT)
        self.assertEqual(self.wait(process).code, SAVED)
        self.expect(0, "checkpoint", "out")

    def test_without_saving_signals_end_the_run(self):
        process, pid = self.begin("checkpoint.on_signal=false")
        os.kill(pid, signal.SIGUSR1)
        ended = self.wait(process)
        self.assertEqual(ended.code, -signal.SIGUSR1, str(ended))
        self.assertEqual(self.outcome()["status"], "FAILED")

    def test_continue_flushes_and_nothing_else(self):
        process, pid = self.begin()
        for _ in range(3):
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        os.kill(pid, signal.SIGUSR1)
        self.assertEqual(self.wait(process).code, SAVED)


class Checkpoints(harness.ProgramTest):
    """Problems with the files of a run that was saved after 8 of 12 steps."""

    settings = ["run.epochs=2", "checkpoint.every_steps=4", "checkpoint.at_end=false"]

    def setUp(self):
        super().setUp()
        self.expect(0, *overridden(*self.settings, "run.max_steps=9"))
        path = self.folder / "out" / "outcome.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "SAVED"}))
        self.newest = self.folder / "out" / "checkpoint" / "step-000000008"

    def resume(self, code, *more, settings=()):
        return self.expect(
            code, *overridden(*self.settings, "run.max_steps=12", *settings), "--resume", *more
        )

    def refused(self, words, *more, settings=()):
        before = harness.snapshot(self.folder)
        ended = self.run_program(
            *overridden(*self.settings, "run.max_steps=12", *settings), "--resume", *more
        )
        self.check_refused(ended, UNUSABLE, words)
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_goes_on(self):
        self.assertIn("after step 8", self.resume(0).stderr)
        self.assertEqual(self.outcome()["steps"], 12)

    def test_older_one_is_taken(self):
        (self.newest / "rank-0000.safetensors").write_bytes(b"")
        ended = self.resume(0)
        self.assertIn("damaged", ended.stderr)
        self.assertIn("after step 4", ended.stderr)

    def test_none_is_whole(self):
        for file in (self.folder / "out" / "checkpoint").glob("*/rank-0000.safetensors"):
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content)
        self.refused(["no checkpoint", "differs from what was written", "step 0"])

    def test_without_any_starts_again(self):
        for path in (self.folder / "out" / "checkpoint").iterdir():
            path.rename(self.folder / path.name)
        self.assertIn("starts at step 0", self.resume(0).stderr)

    def test_other_settings(self):
        for setting, words, compatible in [
            ("optimizer.lr=0.5", ["optimizer.lr was", "compatible"], True),
            ("data.global_batch=24", ["global batch was 12 and is 24"], True),
            ("run.seed=9", ["run.seed was 1 and is 9"], True),
            ("data.dataset=synthetic-shapes", ["data.dataset was"], False),
            ("data.holdout=24", ["data.holdout was 0 and is 24"], False),
            ("model.name=lenet", ["model.name was mlp and is lenet"], False),
        ]:
            with self.subTest(setting):
                self.refused(words, settings=[setting])
                if not compatible:
                    before = harness.snapshot(self.folder)
                    ended = self.run_program(
                        *overridden(*self.settings, "run.max_steps=12", setting),
                        "--resume=compatible",
                    )
                    self.check_refused(ended, UNUSABLE, words)
                    self.assertEqual(harness.snapshot(self.folder), before)
        ended = self.expect(
            0,
            *overridden(*self.settings, "run.max_steps=12", "optimizer.lr=0.5"),
            "--resume=compatible",
        )
        self.assertIn("the numbers will differ", ended.stderr)

    def test_unknown_likeness(self):
        ended = self.run_program("run", "config.yaml", "--resume=perhaps")
        self.check_refused(ended, USAGE, ["--resume=perhaps", "exact or compatible"])

    def test_list(self):
        listed = self.expect(0, "checkpoint", "out").stdout
        self.assertIn("step-000000008", listed)
        self.assertIn("whole", listed)
        (self.newest / "manifest.json").write_text("{")
        ended = self.run_program("checkpoint", "out")
        self.check_refused(ended, UNUSABLE, ["1 of 2 checkpoints are damaged"])
        self.assertIn("DAMAGED", ended.stdout)

    def test_export(self):
        self.expect(0, "export-weights", "out", "weights.safetensors")
        ended = self.run_program("export-weights", "out", "weights.safetensors")
        self.check_refused(ended, USAGE, ["weights.safetensors exists"])
        self.expect(
            0, *overridden("model.weights=weights.safetensors", "run.epochs=0", "run.out=again")
        )

    def test_nothing_to_export(self):
        ended = self.run_program("export-weights", ".", "weights.safetensors")
        self.check_refused(ended, UNUSABLE, ["no checkpoint in ."])


class SmallDisk(harness.ProgramTest):
    """No file may grow to the size of a checkpoint: training continues, and the older checkpoint stays."""

    def test_training_goes_on(self):
        settings = ["model.name=lenet", "run.max_steps=12", "checkpoint.every_steps=5", "checkpoint.at_end=false"]
        limit = 1000  # KiB: LeNet's parameters and momentum are more
        job = ["bash", "-c", f'ulimit -f {limit}; exec "$@"', "bash", self.program]
        # Open MPI's shared memory is also a file.
        ended = self.run_words(mpirun(1, [*job, *overridden(*settings)], "--mca", "btl", "self,tcp"))
        self.assertEqual(ended.code, 0, str(ended))
        self.assertIn("was not saved", ended.stderr)
        self.assertEqual(self.outcome()["status"], "COMPLETE")
        self.assertEqual(list((self.folder / "out" / "checkpoint").iterdir()), [])


if __name__ == "__main__":
    harness.main()

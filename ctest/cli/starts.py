"""How runs begin and end: different ranks, several starts in one directory, files that are moved or removed
meanwhile."""

import json
import os
import shutil
import signal
import unittest

import harness
from disks import can_mount
from harness import ENDLESS, Refusal, comes_true, different_ranks, mpirun, overridden

USAGE, IO, UNUSABLE, SAVED, STALL, NON_FINITE = 2, 6, 7, 75, 81, 84
SHARED = "a file system that all nodes share"


class Ranks(harness.ProgramTest):
    """One rank differs from the others."""

    def check_failed_outcome(self, out, words):
        outcome = self.outcome(out)
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", IO), outcome)
        self.assertIn(words, outcome["reason"])

    def test_started_in_another_folder(self):
        elsewhere = self.new_folder()
        before = harness.snapshot(elsewhere)
        job = [self.program, *overridden()]
        ended = self.run_words(different_ranks([job, ["env", "-C", str(elsewhere), *job]]))
        self.assertEqual(ended.code, 0, str(ended))
        self.assertEqual(self.outcome()["status"], "COMPLETE")
        self.assertTrue((self.folder / "out" / "logs" / "rank-0001.log").exists())
        self.assertEqual(harness.snapshot(elsewhere), before)

    @unittest.skipUnless(can_mount(), "needs the right to mount, for a disk that one rank has alone")
    def test_a_folder_that_ranks_do_not_share(self):
        (self.folder / "disk").mkdir()
        job = [self.program, *overridden("run.out=disk/out")]
        script = 'mount -t tmpfs none disk && exec "$@"'
        ended = self.run_words(
            different_ranks([job, ["unshare", "-m", "bash", "-c", script, "bash", *job]])
        )
        self.check_refused(ended, IO, ["rank 1: cannot create", "rank-0001.log", SHARED])
        self.check_failed_outcome("disk/out", "rank 1: cannot create")

    def test_other_instructions(self):
        job = [self.program, *overridden("strategy.name=ddp")]
        slower = ["env", "ATEN_CPU_CAPABILITY=default", "MKL_CBWR=COMPATIBLE", *job]
        ended = self.run_words(different_ranks([job, slower]))
        self.assertEqual(ended.code, 0, str(ended))
        self.assertRegex(
            ended.stderr, r"warning: ranks compute with different instructions: rank 1 has .*MKL_CBWR=COMPATIBLE"
        )
        self.assertNotIn("different instructions", self.expect(0, *overridden("run.out=b"), ranks=2).stderr)

    def test_one_rank_where_several_are_meant(self):
        hint = "mpirun --bind-to none -n 2 stratagem run config.yaml"
        for name in "ddp", "fsdp":
            ended = self.expect(0, *overridden(f"strategy.name={name}", f"run.out={name}"))
            self.assertIn(f"strategy {name} has one rank", ended.stderr)
            self.assertIn(hint, ended.stderr)
        for number, settings in enumerate(
            [
                ["run.ranks=1"],
                ["strategy.name=serial"],
                ["strategy.name=local", "strategy.workers=2"],
                ["strategy.name=gossip", "strategy.workers=2"],
            ]
        ):
            ended = self.expect(0, *overridden(*settings, f"run.out=meant-{number}"))
            self.assertNotIn("has one rank", ended.stderr)

    def test_more_threads_than_cores(self):
        words = "2 ranks x 64 threads compute on"
        dry = self.expect(0, *overridden("run.threads=64"), "--dry-run", ranks=2)
        self.assertIn(words, dry.stderr)
        self.assertNotIn("compute on", self.expect(0, *overridden(), "--dry-run").stderr)


class Planted(harness.ProgramTest):
    """A rank fails or hangs before the first step, before the watchdog starts."""

    def run_with(self, fault, *settings):
        words = [self.program, *overridden(*settings)]
        return self.run_words(mpirun(2, words), environment={"STRATAGEM_FAIL": fault})

    def test_a_local_failure_ends_all(self):
        for rank in 0, 1:
            with self.subTest(rank=rank):
                out = f"out-{rank}"
                ended = self.run_with(f"init:{rank}:0:nospace", f"run.out={out}")
                self.check_refused(ended, IO, [f"rank {rank}: cannot write at init", "No space"])
                outcome = self.outcome(out)
                self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", IO), outcome)

    def test_a_hang_is_given_up(self):
        for rank, other in (1, 0), (0, 1):
            with self.subTest(rank=rank):
                ended = self.run_with(
                    f"init:{rank}:0:spin", f"run.out=out-{rank}", "comm.timeout_s=3"
                )
                # The launcher then ends the rank that hangs; rank 0 reports this in a separate line.
                self.assertEqual(ended.code, STALL, str(ended))
                for word in f"rank {other} has waited", "the first files", "comm.timeout_s":
                    self.assertIn(word, ended.stderr)


class Together(harness.ProgramTest):
    """Several simultaneous starts in one run directory: one of them writes it."""

    starts = 5
    settings = ["run.max_steps=150", "run.epochs=100", "run.evaluate_every=0", "checkpoint.every_steps=20"]

    def check(self, begin, *options):
        """`begin` creates what is there before. Returns the exit codes."""
        begin()
        words = [self.program, *overridden("strategy.name=serial", *self.settings), *options]
        ends = [self.wait(process) for process in [self.start(words) for _ in range(self.starts)]]
        trained = [end for end in ends if "parameters" in end.stderr]
        self.assertEqual(len(trained), 1, "\n".join(map(str, ends)))
        self.assertEqual(trained[0].code, 0, str(trained[0]))
        for end in ends:
            if end is trained[0]:
                continue
            if end.code == 0:
                self.assertIn("nothing to do", end.stderr)  # it started after the other had finished
            else:
                self.check_refused(end, USAGE, ["out is taken"])
        outcome = self.outcome()
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("COMPLETE", 0), outcome)
        rows = [row.split(",")[1] for row in (self.folder / "out" / "metrics.csv").read_text().splitlines()[1:]]
        self.assertEqual(len(rows), len(set(rows)), rows)
        self.assertFalse((self.folder / "out" / ".lock").exists())

    def test_fresh(self):
        for _ in range(2):
            self.check(lambda: shutil.rmtree(self.folder / "out", ignore_errors=True))
            self.assertEqual([path.name for path in (self.folder / "out" / "trace").iterdir()], ["a0"])

    def test_resumed(self):
        def unfinished():
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            self.expect(0, *overridden("strategy.name=serial", *self.settings, "run.max_steps=50"))
            path = self.folder / "out" / "outcome.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "FAILED"}))
            (self.folder / "out" / "metrics.csv").unlink()

        for _ in range(2):
            self.check(unfinished, "--resume")
            attempts = sorted(path.name for path in (self.folder / "out" / "trace").iterdir())
            self.assertEqual(attempts, ["a0", "a1"])

    def test_while_one_runs(self):
        process = self.start([self.program, *overridden(*ENDLESS), "--progress", "none"])
        self.await_trace(0)
        for option in [], ["--resume"], ["--overwrite"]:
            ended = self.run_program("run", "config.yaml", *option)
            self.check_refused(ended, USAGE, ["out is taken", f"process {process.pid} on", "writes it"])
        self.assertEqual(self.outcome()["status"], "RUNNING")
        os.kill(process.pid, signal.SIGUSR1)
        self.assertEqual(self.wait(process).code, SAVED)


class Again(harness.ProgramTest):
    """A directory stays with one run, and saved state is kept."""

    def fail_without_a_checkpoint(self):
        self.expect(NON_FINITE, *overridden("optimizer.lr=1e30", "model.name=lenet"))
        return harness.snapshot(self.folder)

    def test_another_run_is_refused_without_a_checkpoint_too(self):
        before = self.fail_without_a_checkpoint()
        for settings, words in [
            (["optimizer.lr=1e30"], ["model.name was lenet and is mlp"]),
            (["model.name=lenet"], ["optimizer.lr was 1e+30 and is 0.01"]),
            (["data.augment=standard", "run.seed=7"], ["data.augment was none", "run.seed was 1", "model.name was"]),
        ]:
            ended = self.run_program(*overridden(*settings), "--resume")
            self.check_refused(ended, UNUSABLE, ["cannot resume from", *words])
            self.assertEqual(harness.snapshot(self.folder), before)
        ended = self.run_program(*overridden(), "--resume=compatible")
        self.check_refused(ended, UNUSABLE, ["model.name was lenet and is mlp"])
        self.assertEqual(harness.snapshot(self.folder), before)
        ended = self.expect(0, *overridden("model.name=lenet"), "--resume=compatible")
        self.assertIn("optimizer.lr was 1e+30 and is 0.01", ended.stderr)

    def test_the_only_whole_checkpoint_stays(self):
        def run(steps, every, keep, *options):
            settings = [f"checkpoint.every_steps={every}", f"checkpoint.keep={keep}", f"run.max_steps={steps}",
                        "checkpoint.at_end=false"]  # fmt: skip
            return self.expect(0, *overridden("run.epochs=100", "run.evaluate_every=0", *settings), *options)

        run(50, 15, 3)
        checkpoints = self.folder / "out" / "checkpoint"
        damaged = checkpoints / "step-000000045" / "rank-0000.safetensors"
        content = bytearray(damaged.read_bytes())
        content[-1] ^= 1
        damaged.write_bytes(content)
        path = self.folder / "out" / "outcome.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "FAILED"}))
        ended = run(40, 7, 1, "--resume")
        self.assertIn("continues after step 30", ended.stderr)
        self.assertIn("passed-over-step-000000045", ended.stderr)
        self.assertEqual(
            sorted(path.name for path in checkpoints.iterdir()),
            ["passed-over-step-000000045", "step-000000035"],
        )
        self.assertIn("whole", self.expect(0, "checkpoint", "out").stdout)


class Weights(harness.ProgramTest):
    """run.save_weights is tried before the training; if it fails afterwards, nothing is lost."""

    def test_a_place_that_cannot_be_written_is_refused_at_once(self):
        (self.folder / "folder").mkdir()
        table = []
        for place in "/dev/null/w.safetensors", "nowhere/w.safetensors", ".":
            for option in [], ["--dry-run"]:
                arguments = [*overridden(f"run.save_weights={place}"), *option]
                table.append(Refusal(f"{place} {option}", arguments, IO, ["run.save_weights: cannot"], ranks=(1, 2)))
        self.check_refusals(table)

    def test_a_good_place(self):
        for out, place in ("a", "a/w.safetensors"), ("b", "w.safetensors"):
            self.expect(0, *overridden(f"run.save_weights={place}", f"run.out={out}"))
            self.assertTrue((self.folder / place).exists())
        self.assertEqual([path.name for path in self.folder.glob("*.trial*")], [])

    @unittest.skipUnless(can_mount(), "needs the right to mount, for a small disk")
    def test_a_disk_that_is_full_at_the_end(self):
        self.expect(0, *overridden("model.name=lenet", "run.save_weights=w.safetensors", "run.out=roomy"))
        (self.folder / "small").mkdir()
        script = 'mount -t tmpfs -o size=64k none small && exec "$@"'
        settings = ["model.name=lenet", "run.save_weights=small/w.safetensors"]
        job = ["unshare", "-m", "bash", "-c", script, "bash", self.program, *overridden(*settings)]
        ended = self.run_words(job)
        self.assertEqual(ended.code, IO, str(ended))
        self.assertIn("the weights were not written", ended.stderr)
        outcome, roomy = self.outcome(), self.outcome("roomy")
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("COMPLETE", IO), outcome)
        self.assertIn("the weights were not written", outcome["reason"])
        for key in "steps", "digest", "test_accuracy":
            self.assertEqual(outcome[key], roomy[key], key)
        self.expect(0, "export-weights", "out", "again.safetensors")
        again = ["model.name=lenet", "model.weights=again.safetensors", "run.epochs=0", "run.out=again"]
        self.expect(0, *overridden(*again))
        self.assertEqual(self.outcome("again")["digest"], roomy["digest"])


class Removed(harness.ProgramTest):
    """The run directory is removed, or renamed, during the run."""

    def check(self, ranks, remove, *settings):
        words = [self.program, *overridden(*ENDLESS, "checkpoint.every_steps=10", *settings), "--progress", "none"]
        process = self.start(mpirun(ranks, words))
        self.pids(ranks)
        comes_true(lambda: any((self.folder / "out" / "checkpoint").glob("step-*")))
        remove(self.folder / "out")
        os.kill(process.pid, signal.SIGUSR1)
        ended = self.wait(process)
        self.assertEqual(ended.code, IO, str(ended))
        self.assertFalse((self.folder / "out").exists())
        return ended

    def remove(self, path):
        def gone():
            shutil.rmtree(path, ignore_errors=True)
            return not path.exists()

        self.assertTrue(comes_true(gone))

    def test_removed_before_it_is_saved(self):
        for ranks in 1, 2:
            self.assertIn("could not be saved", self.check(ranks, self.remove).stderr)

    def test_renamed_before_it_is_saved(self):
        self.check(1, lambda path: path.rename(path.with_name("renamed")))

    def test_removed_before_the_end(self):
        words = [self.program, *overridden(*ENDLESS, "run.max_time_s=6", "checkpoint.every_steps=200")]
        process = self.start([*words, "--progress", "none"])
        self.await_trace(0)
        self.remove(self.folder / "out")
        ended = self.wait(process)
        self.assertEqual(ended.code, IO, str(ended))
        for text in "was removed or renamed", "digest of the parameters ":
            self.assertIn(text, ended.stderr)
        self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    harness.main()

"""Full or slow disks: the training continues, and its result is the same."""

import json
import os
import re
import shutil
import subprocess
import unittest

import harness
from harness import overridden

DONE, IO = 0, 6


def can_mount():
    """Whether mounts are allowed, in a namespace of its own."""
    words = ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"]
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(can_mount(), "needs the right to mount, for a small disk")
class Full(harness.ProgramTest):
    """A disk may be full at any point: before the first step, in the trace, in a checkpoint, in the log and the
    metrics, or at the end."""

    settings = [
        "run.max_steps=60",
        "run.epochs=20",
        "run.evaluate_every=20",
        "trace.spans_every=1",
        "checkpoint.every_steps=20",
    ]
    sizes_KiB = [8, 64, 192, 400, 800, 1600, 3200]

    def run_on(self, size_KiB):
        """How the run ended, and the files that it left."""
        kept = self.folder / f"kept-{size_KiB}"
        script = (
            'mkdir -p disk && mount -t tmpfs -o size="$1"k none disk && kept=$2 && shift 2 && '
            '"$@"; code=$?; cp -a disk/. "$kept"; exit $code'
        )
        job = [self.program, *overridden(*self.settings, "run.out=disk/out")]
        kept.mkdir()
        return self.run_words(["unshare", "-m", "bash", "-c", script, "bash", size_KiB, kept, *job]), kept

    def test_any_size(self):
        ended, roomy = self.run_on(1 << 20)
        self.assertEqual(ended.code, DONE, str(ended))
        reference = json.loads((roomy / "out" / "outcome.json").read_text())
        trained, unsaved_at = [], []
        for size in self.sizes_KiB:
            with self.subTest(KiB=size):
                ended, kept = self.run_on(size)
                self.assertIn(ended.code, (DONE, IO), str(ended))
                outcome = self.read(kept / "out" / "outcome.json")
                if outcome is None or outcome["status"] == "FAILED":
                    self.assertEqual(ended.code, IO, str(ended))
                    self.assertRegex(ended.stderr, r"(?m)^stratagem: error: .*(No space left|write failed)")
                    continue
                trained.append(size)
                self.assertEqual(outcome["status"], "COMPLETE", str(ended))
                for key in "steps", "digest", "test_accuracy":
                    self.assertEqual(outcome[key], reference[key], key)
                self.assertEqual(outcome["exit_code"], ended.code)
                reason, _, unsaved = outcome["reason"].partition("; the last step was not saved: ")
                self.assertEqual(reason, reference["reason"])
                self.assertEqual(outcome["trace_complete"], "is incomplete" not in ended.stderr)
                if unsaved:
                    unsaved_at.append(size)
                    self.check_made_up_for(kept / "out", reference["digest"])
                lost = bool(unsaved) or not outcome["trace_complete"]
                self.assertEqual(ended.code, IO if lost else DONE, str(ended))
        self.assertGreaterEqual(len(trained), 3, "sizes at which only part of it is full")
        self.assertTrue(unsaved_at, "sizes at which the last step is not saved")

    def check_made_up_for(self, run, digest):
        """With room on the disk, --resume saves what the run could not."""
        again = overridden(*self.settings, f"run.out={run}")
        ended = self.expect(DONE, *again, "--resume")
        self.assertIn("COMPLETE, but its last step was not saved: it is trained to its end again", ended.stderr)
        self.assertEqual(json.loads((run / "outcome.json").read_text())["digest"], digest)
        self.expect(DONE, "export-weights", run, run / "weights.safetensors")
        self.assertIn("COMPLETE: nothing to do", self.expect(DONE, *again, "--resume").stderr)

    @staticmethod
    def read(path):
        return json.loads(path.read_text()) if path.exists() and path.stat().st_size else None


@unittest.skipUnless(shutil.which("cc"), "needs a C compiler, to slow the disk down")
class Slow(harness.ProgramTest):
    """A disk that takes seconds to confirm a write: only the writing threads wait."""

    delay_s = 1
    source = """
    #include <time.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    static void wait_long(void) { struct timespec t = {%d, 0}; nanosleep(&t, 0); }
    int fsync(int f) { wait_long(); return (int)syscall(SYS_fsync, f); }
    int fdatasync(int f) { wait_long(); return (int)syscall(SYS_fdatasync, f); }
    """

    def test_training_does_not_wait(self):
        (self.folder / "slow.c").write_text(self.source % self.delay_s)
        library = self.folder / "slow.so"
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", library, self.folder / "slow.c"], check=True
        )
        settings = ["run.max_steps=150", "run.epochs=20", "checkpoint.every_steps=100"]
        ended = self.expect(
            DONE,
            *overridden(*settings),
            environment={"LD_PRELOAD": str(library), "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")},
        )
        told = re.search(r"checkpoint of step 100: .* in ([\d.]+) s, training waited ([\d.]+ \w+)", ended.stderr)
        self.assertIsNotNone(told, str(ended))
        self.assertGreaterEqual(float(told[1]), 3 * self.delay_s)
        self.assertRegex(told[2], r"^[\d.]+ [um]s$")
        self.assertLess(self.outcome()["train_time_s"], 3 * self.delay_s)


if __name__ == "__main__":
    harness.main()

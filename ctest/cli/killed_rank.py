"""If a rank is killed, the others end, and all traces are readable up to the last second."""

import os
import shutil
import signal
import time
import unittest

import harness
from harness import ENDLESS, mpirun, overridden

FLUSHED_EVERY_S = 1.0
GRACE_S = 0.5  # for the write itself, and for slow machines


class KilledRank(harness.ProgramTest):
    ran_s = 3.5

    def setUp(self):
        super().setUp()
        process = self.start(mpirun(2, [self.program, *overridden(*ENDLESS), "--progress", "none"]))
        victim = self.pid_of_rank(1)
        time.sleep(self.ran_s)
        self.killed_ns = time.monotonic_ns()
        os.kill(victim, signal.SIGKILL)
        self.ended = self.wait(process)

    def column(self, rank, name):
        return [int(number) for number in self.dumped("collected.h5", f"/rank-{rank:04}/steps/{name}")]

    @unittest.skipUnless(shutil.which("h5dump"), "h5dump is not installed (package hdf5-tools)")
    def test_traces_reach_the_last_second(self):
        self.assertEqual(self.ended.code, 128 + signal.SIGKILL, str(self.ended))
        collected = self.expect(0, "collect", "out", "-o", "collected.h5")
        # The launcher tells the other rank to end, which then closes its trace.
        self.assertRegex(collected.stderr, r"rank-0001.h5 was not closed: .* steps were read")
        for rank in range(2):
            begins, durations = self.column(rank, "t_begin_ns"), self.column(rank, "dur_step_ns")
            self.assertEqual(self.column(rank, "step"), list(range(len(begins))))
            missing_s = (self.killed_ns - begins[-1] - durations[-1]) * 1e-9
            self.assertLess(missing_s, FLUSHED_EVERY_S + GRACE_S)
        self.assertIn("failed", collected.stdout)
        self.assertIn(
            "rank-0001.h5: good", self.expect(0, "validate", "out", "collected.h5").stdout
        )

        # The killed run can be repeated next to the existing files.
        self.check_refused(self.run_program("run", "config.yaml"), 2, ["unfinished", "--resume"])
        self.expect(0, *overridden(*ENDLESS, "run.max_steps=3"), "--resume", "-q", ranks=2)
        self.assertEqual(self.outcome()["attempt"], 1)
        self.expect(0, "validate", "out")


if __name__ == "__main__":
    harness.main()

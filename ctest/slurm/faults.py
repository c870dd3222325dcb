"""Jobs that end early on a real Slurm: the run says why, the job is queued again if it can continue, and it ends
with the same bits as an undisturbed run."""

import os
import pathlib
import re
import signal
import time

import script_test

SAVED, PEER_LOST, OUT_OF_MEMORY = 75, 80, 86
BIG = """schema: 1
run: {name: big, threads: 1, max_steps: 2, epochs: 2, evaluate_every: 0, out: out}
data: {dataset: synthetic-digits, global_batch: 4800, subset: 4800}
model: {name: lenet}
strategy: {name: ddp}
"""


class Faults(script_test.ScriptTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.add_site("here")
        cls.add_site("stubborn", site_requeue_codes="75 80 81")
        cls.add_site("direct", site_launcher="srun --mpi=pmix -n {ranks}")

    def begin(self, site, strategy="ddp"):
        """A run after its first checkpoint: its folder and job."""
        out = self.new_out(f"{site}-{strategy}")
        job = self.submit_run(out, site, strategy)
        self.await_checkpoint(job, out)
        return out, job

    def check_cancelled(self, site, strategy):
        out, job = self.begin(site, strategy)
        self.box.run("scancel", job, timeout=10)
        [end] = self.box.wait(job)
        self.assertEqual((end["JobState"], end["Restarts"]), ("CANCELLED", "0"), end)
        self.await_no_ranks()
        outcome = self.outcome(out)
        if outcome["status"] == "SAVED":  # there was enough time
            self.assertEqual((outcome["exit_code"], outcome["reason"]), (SAVED, "interrupted"))
        else:
            self.check_failed(out, 128 + 15, r"ended by signal 15")
        self.assertIn("rank-0001.h5: good", self.box.run(self.program, "validate", out).stdout)
        self.assertNotIn("not closed", self.box.run(self.program, "collect", out).stderr)
        again = self.submit_run(out, site, strategy)
        [end] = self.box.wait(again, 120)
        self.check_state(end, "COMPLETED")
        self.check_finished(out, attempt=1)

    def test_cancelled(self):
        self.check_cancelled("here", "ddp")

    def test_cancelled_step_with_a_server(self):
        self.check_cancelled("direct", "ps")

    def test_frozen_rank(self):
        """If the site allows it, the job is queued again."""
        out, job = self.begin("stubborn")
        os.kill(self.box.ranks()[1], signal.SIGSTOP)
        self.await_pending(job)
        self.check_failed(out, 81, r"rank 1 \(process \d+\) was stopped by a signal, at step \d+")
        self.assertRegex(self.log_of(job), r"the run is FAILED: rank 1 .* was stopped by a signal")
        self.finish(job, out)

    def test_killed_rank(self):
        """As the kernel does when a node is out of memory."""
        for site in "here", "direct":
            with self.subTest(site):
                out, job = self.begin(site)
                os.kill(self.box.ranks()[1], signal.SIGKILL)
                self.await_pending(job)
                outcome = self.outcome(out)
                if outcome["status"] == "FAILED":  # otherwise the other ranks had no time to report
                    self.check_failed(out, PEER_LOST, r"rank 1 \(process \d+\) is gone, last seen at step \d+")
                self.assertIn("code 80: queued again", self.log_of(job))
                self.finish(job, out)

    def test_no_memory_left(self):
        """One rank has a limited address space. The job is not queued again, because it would end in the same way."""
        wrapper = self.folder / "limited.sh"
        self.add_site("tight", site_launcher=f"mpirun --bind-to none -n {{ranks}} bash {wrapper}")
        config = self.folder / "big.yaml"
        config.write_text(BIG)
        straight = self.folder / "big"
        words = ["mpirun", "--bind-to", "none", "-n", 2, self.program, "run", config, "-q", "--out", straight]
        self.box.run(*words, timeout=120)
        wrapper.write_text(f'[ "$OMPI_COMM_WORLD_RANK" = 0 ] || ulimit -v {self.address_space()}\nexec "$@"\n')
        out = self.new_out("big")
        job = self.submit("--workers", 2, "run", config, out, site="tight")
        [end] = self.box.wait(job)
        self.check_state(end, "FAILED", f"{OUT_OF_MEMORY}:0")
        self.check_failed(out, OUT_OF_MEMORY, r"rank 1 ran out of memory at step 0, forward: no host memory for")
        self.assertRegex(self.log_of(job), r"error: .*rank 1 ran out of memory .*make ")
        wrapper.write_text('exec "$@"\n')  # more memory
        [end] = self.box.wait(self.submit("--workers", 2, "run", config, out, site="tight"), 120)
        self.check_state(end, "COMPLETED")
        self.assertEqual(self.outcome(out)["digest"], self.outcome(straight)["digest"])

    def address_space(self):
        """A little more than the address space of a rank that has begun [KiB], without memory that ranks share: it is
        mapped far beyond what they take, and not at all under a limit."""
        out, job = self.begin("here")
        process = pathlib.Path("/proc", str(self.box.ranks()[1]))
        needed = int(re.search(r"VmPeak:\s+(\d+) kB", (process / "status").read_text())[1])
        for begin, end in re.findall(r"(?m)^(\w+)-(\w+) .*memfd:stratagem", (process / "maps").read_text()):
            needed -= (int(end, 16) - int(begin, 16)) // 1024
        self.box.run("scancel", job, timeout=10)
        self.box.wait(job)
        self.await_no_ranks()
        return needed + 96 * 1024

    def test_told_to_stop_under_srun(self):
        """USR1 to the step, which the ranks receive, and to the script, which passes it on."""
        out, job = self.begin("direct")
        for restarts, who in enumerate((["-s", "USR1", f"{job}.0"], ["-b", "-s", "USR1", job]), 1):
            begin = time.time()
            self.box.run("scancel", *who, timeout=10)
            self.await_pending(job, restarts)
            outcome = self.outcome(out)
            told = (outcome["status"], outcome["exit_code"], outcome["attempt"])
            self.assertEqual(told, ("SAVED", SAVED, restarts - 1), self.log_of(job))
            took = outcome["updated_wall_ns"] * 1e-9 - begin
            saves = re.findall(r"checkpoint of step \d+: .* in (\S+ m?s),", self.log_of(job))
            print(f"told {took:.2f} s after scancel {' '.join(who[:-1])} began; saves: {', '.join(saves)}", flush=True)
            self.assertLess(took, 5, "a save, two steps, and what a busy machine adds")
            if restarts == 1:
                self.box.start_again(job)
                self.await_attempt(job, out, 1)
        self.finish(job, out, restarts=2)

    def await_no_ranks(self):
        """Slurm may report a job as ended shortly before its ranks end."""
        deadline = time.monotonic() + 10
        while self.box.ranks() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(self.box.ranks(), {})

    def await_attempt(self, job, out, attempt):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.outcome(out)["attempt"] == attempt and len(self.box.ranks()) == 2:
                time.sleep(0.3)
                return
            time.sleep(0.1)
        self.fail(f"attempt {attempt} does not begin: {self.log_of(job)}")


if __name__ == "__main__":
    script_test.main()

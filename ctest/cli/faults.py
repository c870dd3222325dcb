"""Ranks that hang, are stopped, crash or are gone: the run ends soon, with its documented code, and names them."""

import os
import pathlib
import re
import shutil
import signal
import time
import unittest

import harness
from harness import ENDLESS, comes_true, mpirun, overridden

STALL, PEER_LOST, UNEXPECTED, USAGE, SAVED = 81, 80, 1, 2, 75
GONE_S = 10  # after the fault
FLOOR_S = 3  # below the default, to save time
TRACE_LOSS_S = 2.5  # a second, and a margin for slow machines
FLOOR = f"watchdog.floor_s={FLOOR_S}"

# Strategy, number of ranks, the rank that fails, where it fails.
WAYS = {
    "ddp": (2, ["strategy.name=ddp"], 1, "forward"),
    "fsdp": (2, ["strategy.name=fsdp", "strategy.unit_mb=0.1"], 0, "backward"),
    "ps_worker": (3, ["strategy.name=ps"], 1, "comm_exposed"),
    "ps_server": (3, ["strategy.name=ps"], 2, "serve"),
}
OPTIMIZER_LAST = (4, ["strategy.name=ddp"], 3, "optimizer")


def state(pid):
    """The kernel's letter for the process state; "X" if the process is gone."""
    try:
        return re.search(r"^State:\s+(\w)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)[1]
    except OSError:
        return "X"


def lives(pid):
    return state(pid) not in "ZX"


class FaultTest(harness.ProgramTest):
    def begin(self, ranks, settings, fault=None):
        words = [self.program, *overridden(*ENDLESS, FLOOR, *settings), "--progress", "none"]
        environment = {"STRATAGEM_FAIL": fault} if fault else {}
        return self.start(mpirun(ranks, words), environment=environment)

    def end(self, process, ranks, code):
        """The program ends with `code`, and no rank survives."""
        ended = self.wait(process)
        self.assertEqual(ended.code, code, str(ended))
        for pid in self.pids(ranks):
            self.assertTrue(comes_true(lambda: not lives(pid), GONE_S), str(ended))
        return ended

    def check_outcome(self, code, words):
        outcome = self.outcome()
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", code), outcome)
        self.assertRegex(outcome["reason"], words)

    def step_begins_ns(self, rank):
        """Begin times of the steps in the rank's trace, read by a reader other than ours."""
        return [int(begin) for begin in self.dumped("collected.h5", f"/rank-{rank:04}/steps/t_begin_ns")]

    def check_traces(self, ranks):
        """The traces of all ranks can be read."""
        self.expect(0, "collect", "out", "-o", "collected.h5")
        verdicts = self.expect(0, "validate", "out").stdout
        for rank in range(ranks):
            self.assertIn(f"rank-{rank:04}.h5: good", verdicts)


@unittest.skipUnless(shutil.which("h5dump"), "h5dump is not installed (package hdf5-tools)")
class Killed(FaultTest):
    """SIGKILL of a rank in the middle of a step, before the trace's first second is over and later."""

    def check(self, way, step):
        ranks, settings, victim, site = WAYS[way]
        process = self.begin(ranks, settings, f"{site}:{victim}:{step}:kill")
        self.end(process, ranks, 128 + signal.SIGKILL)
        ended_ns = time.monotonic_ns()
        self.check_outcome(PEER_LOST, rf"rank {victim} \(process \d+\) is gone, last seen at step {step}")
        self.check_traces(ranks)
        workers = range(2)  # servers make no steps
        begins = [self.step_begins_ns(rank) for rank in workers]
        all_begins = sum(begins, [])
        last = max(all_begins)  # of a rank that lived long enough to close its trace
        self.assertLess((ended_ns - last) * 1e-9, GONE_S)
        for rank in workers:
            known = max(begins[rank], default=min(all_begins))
            self.assertLess((last - known) * 1e-9, TRACE_LOSS_S)

    def test_ddp(self):
        self.check("ddp", 250)

    def test_fsdp(self):
        self.check("fsdp", 150)

    def test_ps_worker(self):
        self.check("ps_worker", 200)

    def test_ps_server(self):
        self.check("ps_server", 200)


class Hanging(FaultTest):
    def check(self, way, action, words):
        ranks, settings, victim, site = way
        process = self.begin(ranks, settings, f"{site}:{victim}:100:{action}")
        ended = self.end(process, ranks, STALL)
        culprit = rf"rank {victim} \(process \d+\) {words} step 100, {site}"
        self.check_outcome(STALL, culprit)
        self.assertRegex(ended.stderr, culprit)
        for rank in range(ranks):
            if rank != victim:
                self.assertRegex(ended.stderr, rf"rank {rank}: step \d+, \w+: has waited .* for \w+, on ")
        self.check_traces(ranks)

    def test_stopped_ddp(self):
        self.check(WAYS["ddp"], "stop", "was stopped by a signal, at")

    def test_stopped_fsdp(self):
        self.check(WAYS["fsdp"], "stop", "was stopped by a signal, at")

    def test_stopped_ps_server(self):
        self.check(WAYS["ps_server"], "stop", "was stopped by a signal, at")

    def test_endless_ddp(self):
        self.check(OPTIMIZER_LAST, "spin", "hangs at")

    def test_endless_fsdp(self):
        self.check(WAYS["fsdp"], "spin", "hangs at")

    def test_endless_ps_worker(self):
        self.check(WAYS["ps_worker"], "spin", "hangs at")

    def test_the_end_itself_may_hang(self):
        """The process is gone two seconds after the decision, whatever blocks it."""
        fault = "forward:1:100:stop,last_words:*:*:spin"
        process = self.begin(2, ["strategy.name=ddp"], fault)
        self.pids(2)
        begin = time.monotonic()
        self.end(process, 2, STALL)
        self.assertLess(time.monotonic() - begin, FLOOR_S + GONE_S)

    def test_default_limit_ends_a_stopped_job_in_ten_seconds(self):
        process = self.start(
            mpirun(2, [self.program, *overridden(*ENDLESS), "--progress", "none"])
        )
        victim = self.pids(2)[1]
        time.sleep(1.5)
        os.kill(victim, signal.SIGSTOP)
        begin = time.monotonic()
        self.end(process, 2, STALL)
        self.assertLess(time.monotonic() - begin, GONE_S)
        self.check_outcome(STALL, r"rank 1 \(process \d+\) was stopped by a signal")


class NoHang(FaultTest):
    """Situations that only look like a hang."""

    def test_the_whole_job_may_be_stopped(self):
        process = self.begin(2, ["strategy.name=ddp"])
        pids = self.pids(2)
        time.sleep(1)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(2 * FLOOR_S)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        time.sleep(1 + FLOOR_S)
        self.assertIsNone(process.poll())
        os.kill(process.pid, signal.SIGUSR1)
        self.assertEqual(self.wait(process).code, 75)

    def test_one_rank_may_be_stopped_for_a_while(self):
        process = self.begin(2, ["strategy.name=ddp"])
        victim = self.pids(2)[1]
        time.sleep(1)
        os.kill(victim, signal.SIGSTOP)
        time.sleep(FLOOR_S / 2)
        os.kill(victim, signal.SIGCONT)
        time.sleep(1 + FLOOR_S)
        self.assertIsNone(process.poll())
        os.kill(process.pid, signal.SIGUSR1)
        self.assertEqual(self.wait(process).code, 75)

    def stop_a_worker(self, *settings):
        """It has pulled and not pushed. The others go on without it, and with it again.

        Returns server 0's records of pushes, by column.
        """
        process = self.begin(4, ["strategy.name=ps", "data.global_batch=12", *settings], "backward:1:20:stop")
        victim = self.pids(4)[1]
        self.assertTrue(comes_true(lambda: state(victim) == "T"))
        time.sleep(5 + FLOOR_S)
        self.assertIsNone(process.poll())
        os.kill(victim, signal.SIGCONT)
        time.sleep(1)
        os.kill(process.pid, signal.SIGUSR1)
        ended = self.wait(process)
        self.assertEqual(ended.code, 75, str(ended))
        told = re.findall(r"rank 1 \(process \d+\) was stopped by a signal.*continue without", ended.stderr)
        self.assertEqual(len(told), 1, str(ended))
        self.assertRegex(ended.stderr, r"rank 1 \(process \d+\) is back")
        self.expect(0, "validate", "out")
        trace = "out/trace/a0/rank-0003.h5"
        return {name: list(map(int, self.dumped(trace, f"/ps/{name}"))) for name in ("worker", "lag", "dropped")}

    def test_asynchronous_servers_do_without_a_worker(self):
        pushes = self.stop_a_worker("strategy.mode=async")
        self.assertEqual(sum(pushes["dropped"]), 0)

    def test_gates_do_without_a_worker(self):
        """Once they have noticed that it is missing; its first push is then dropped."""
        warm = ["strategy.mode=async", "advanced.warm_start=1000000"]
        ssp = ["strategy.mode=ssp", "strategy.transport=rma", "advanced.pulls=chunkwise", "strategy.chunk_mb=0.2"]
        for settings in (warm, ssp):
            with self.subTest(settings[0]):
                self.folder = self.new_folder()
                pushes = self.stop_a_worker(*settings)
                late = max(range(len(pushes["lag"])), key=pushes["lag"].__getitem__)
                self.assertGreater(pushes["lag"][late], 12, "more than ssp allows of two others")
                self.assertEqual((pushes["worker"][late], pushes["dropped"][late]), (1, 1))
                self.assertGreater(pushes["worker"][late:].count(1), 5, "it goes on")

    def test_long_evaluations_and_saves_are_none(self):
        """A long first step is not a hang either."""
        places = (("forward", 0), ("save", 1), ("evaluate", 2))
        delay = 1000 * (FLOOR_S + 1)
        faults = ",".join(f"{site}:1:{step}:delay={delay}" for site, step in places)
        settings = ["run.max_steps=2", "checkpoint.every_steps=1"]
        ended = self.run_words(
            mpirun(
                2,
                [self.program, *overridden(FLOOR, *settings), "-q"],
            ),
            environment={"STRATAGEM_FAIL": faults},
        )
        self.assertEqual(ended.code, 0, str(ended))

    def test_a_part_removed_while_another_is_awaited(self):
        """This checkpoint is given up; the run and the next checkpoint continue."""
        settings = ["run.max_steps=25", "run.epochs=100", "checkpoint.every_steps=10", "checkpoint.at_end=false"]
        words = [self.program, *overridden(*settings), "--progress", "none"]
        fault = {"STRATAGEM_FAIL": "save_write:1:10:delay=3000"}  # rank 0 then looks twice a second
        process = self.start(mpirun(2, words), environment=fault)
        checkpoints = self.folder / "out" / "checkpoint"
        part = checkpoints / ".writing-step-000000010-a0" / "rank-0001.json"
        deadline = time.monotonic() + 30
        while not part.exists() and time.monotonic() < deadline:
            time.sleep(0.001)
        shutil.rmtree(part.parent)
        ended = self.wait(process)
        self.assertEqual(ended.code, 0, str(ended))
        self.assertIn("step 10 was not saved: the part of rank 1 is not in", ended.stderr)
        self.assertEqual([path.name for path in checkpoints.iterdir()], ["step-000000020"])

    def test_a_rank_that_is_slow_for_long_is_named_once(self):
        settings = ["run.max_steps=300", "run.epochs=100", "run.evaluate_every=0"]
        ended = self.run_words(
            mpirun(2, [self.program, *overridden(*settings)]),
            environment={"STRATAGEM_FAIL": "forward:1:*:delay=60"},
        )
        self.assertEqual(ended.code, 0, str(ended))
        self.assertEqual(len(re.findall(r"rank 1 \(process \d+\) is slow", ended.stderr)), 1, str(ended))
        self.assertNotIn("rank 0 (process", ended.stderr)

    def test_a_rank_that_was_slow_for_a_while_is_not_named(self):
        settings = ["run.max_steps=60", "run.epochs=100", "run.evaluate_every=0"]
        ended = self.run_words(
            mpirun(2, [self.program, *overridden(*settings)]),
            environment={"STRATAGEM_FAIL": "forward:1:*:delay=60"},
        )
        self.assertEqual(ended.code, 0, str(ended))
        self.assertNotIn("is slow", ended.stderr)


class Crashed(FaultTest):
    """An exception, a crash, or an early end of one rank."""

    def check(self, action, code, outcome, words):
        process = self.begin(2, ["strategy.name=ddp"], f"backward:1:50:{action}")
        ended = self.end(process, 2, code)
        self.check_outcome(outcome, words)
        self.check_traces(2)
        return ended

    def test_exception(self):
        ended = self.check("throw", UNEXPECTED, UNEXPECTED, "a fault was planted at backward")
        self.assertIn("rank 1: a fault was planted at backward", ended.stderr)

    def test_segmentation_fault(self):
        self.check("segv", 128 + signal.SIGSEGV, PEER_LOST, r"rank 1 \(process \d+\) is gone.*backward")

    def test_abort(self):
        self.check("abort", 128 + signal.SIGABRT, PEER_LOST, r"rank 1 \(process \d+\) is gone.*backward")

    def test_an_early_exit_is_no_success(self):
        ended = self.check("exit", UNEXPECTED, PEER_LOST, r"rank 1 \(process \d+\) is gone.*backward")
        self.assertIn("in the middle of its work", ended.stderr)

    def test_lost_launcher(self):
        process = self.begin(2, ["strategy.name=ddp"])
        pids = self.pids(2)
        time.sleep(1.5)
        process.kill()
        self.assertTrue(comes_true(lambda: not any(map(lives, pids)), GONE_S))
        self.wait(process)
        self.check_traces(2)

    def test_a_launcher_lost_after_saving(self):
        """As mpirun of Open MPI 5 is, which ends on TERM before its ranks have ended."""
        process = self.begin(2, ["strategy.name=ddp"], "finish:*:*:spin")
        pids = self.pids(2)
        time.sleep(1)
        process.send_signal(signal.SIGUSR1)
        self.assertTrue(comes_true(lambda: self.outcome()["status"] == "SAVED", GONE_S), self.outcome())
        process.kill()
        self.assertTrue(comes_true(lambda: not any(map(lives, pids)), GONE_S))
        self.wait(process)
        outcome = self.outcome()
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("SAVED", SAVED), outcome)
        self.check_traces(2)

    def test_a_launcher_lost_while_saving(self):
        """The ranks need not end with it. If its MPI library ends them, what TERM foretold holds."""
        process = self.begin(2, ["strategy.name=ddp"], "save_write:0:*:delay=1500")
        pids = self.pids(2)
        time.sleep(1)
        for pid in pids:
            os.kill(pid, signal.SIGTERM)
        time.sleep(0.5)
        process.kill()
        self.assertTrue(comes_true(lambda: not any(map(lives, pids)), GONE_S))
        self.wait(process)
        outcome = self.outcome()
        if outcome["status"] == "SAVED":
            self.assertEqual(outcome["exit_code"], SAVED, outcome)
        else:
            self.check_outcome(128 + signal.SIGTERM, "^ended by signal 15 ")
        self.check_traces(2)

    def test_a_fault_that_cannot_be_understood_is_refused(self):
        before = harness.snapshot(self.folder)
        for ranks in (1, 2):
            ended = self.run_program(
                "run", "config.yaml", ranks=ranks, environment={"STRATAGEM_FAIL": "forward:1:kill"}
            )
            self.check_refused(ended, USAGE, ["STRATAGEM_FAIL", "four parts"])
        self.assertEqual(harness.snapshot(self.folder), before)


if __name__ == "__main__":
    harness.main()

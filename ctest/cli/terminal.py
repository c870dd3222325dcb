"""The program at a terminal: Ctrl-C, a terminal that closes, and lines that fit."""

import fcntl
import json
import os
import pathlib
import pty
import random
import re
import signal
import struct
import subprocess
import termios
import threading
import time
import unittest

import harness
from harness import mpirun, overridden

SAVED, IO = 75, 6
INTERRUPTS = int(os.environ.get("STRATAGEM_INTERRUPTS", "3"))  # per kind; a longer test uses more
WITHIN_S = float(os.environ.get("STRATAGEM_INTERRUPT_WITHIN_S", "6"))  # of a run's start
EPOCHS = 6 if WITHIN_S <= 6 else round(2 * WITHIN_S)  # of interrupted runs, about half a second each
SEED = 20261123
CTRL_C = b"\x03"
STEPS_TAKE_LONG = {"STRATAGEM_FAIL": "forward:*:*:delay=25"}

# Each epoch has an evaluation. It is very short, unless steps are slowed down.
SETTINGS = [
    "model.name=mlp",
    "data.subset=480",
    "data.global_batch=24",
    "run.max_steps=0",
    "run.epochs=6",
    "trace.spans_every=0",
]


class Terminal:
    """A program in the foreground of its own terminal."""

    def __init__(self, words, folder, columns=80, environment=None):
        self.controller, terminal = pty.openpty()
        self.resize(columns)
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STRATAGEM_", "SLURM_", "CUDA_VISIBLE_DEVICES"))
        }
        self.process = subprocess.Popen(
            [str(word) for word in words],
            cwd=folder,
            env={**variables, "TERM": "xterm", **(environment or {})},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(terminal)
        self.parts = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        while True:
            try:
                part = os.read(self.controller, 65536)
            except OSError:  # the last process that had it open has exited
                return
            if not part:
                return
            self.parts.append(part)

    def text(self):
        return b"".join(self.parts).decode(errors="replace")

    def resize(self, columns):
        fcntl.ioctl(self.controller, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def press(self, key):
        os.write(self.controller, key)

    def wait(self, timeout=60):
        code = self.process.wait(timeout)
        self.reader.join(timeout)
        os.close(self.controller)
        return code

    def close(self):
        """As when its window is closed."""
        os.close(self.controller)

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class TerminalTest(harness.ProgramTest):
    ranks = 1

    def words(self, out, *more):
        name = "ddp" if self.ranks > 1 else "serial"
        words = overridden(*SETTINGS, f"strategy.name={name}", f"run.out={out}")
        words = [self.program, *words, *more]
        return words if self.ranks == 1 else mpirun(self.ranks, words)

    def at_terminal(self, words, **how):
        terminal = Terminal(words, self.folder, **how)
        self.addCleanup(terminal.end)
        return terminal

    def await_checkpoint(self, step, out="out"):
        saved = self.folder / out / "checkpoint" / f"step-{step:09}"
        self.assertTrue(harness.comes_true(saved.exists, 50))

    def straight(self, *more):
        """The digest of an uninterrupted run."""
        ended = self.run_words(self.words("straight", "-q", *more))
        self.assertEqual(ended.code, 0, str(ended))
        return self.outcome("straight")["digest"]


class CtrlC(TerminalTest):
    """At any moment: the training is saved, or a line says what is lost; and the resumed run ends with the same
    bits."""

    # mpirun's own code for Ctrl-C is 1, or 130 if it reports the signal.
    codes = {SAVED}

    def check_ended(self, out, code, text):
        """How the run ended: "complete", "saved", "lost" or "not begun"."""
        if not (self.folder / out / "outcome.json").exists():
            if (self.folder / out).exists():  # otherwise the program may not even have been loaded
                self.assertRegex(text, "before the training began: nothing is lost|ends at once")
            return "not begun"
        outcome = self.outcome(out)
        if outcome["status"] == "COMPLETE":
            return "complete"
        self.assertIn(code, self.codes, text)
        if outcome["status"] == "SAVED":
            self.assertEqual(outcome["exit_code"], SAVED)
            self.assertIn("saved; continue with --resume", " ".join(text.split()))
            return "saved"
        self.assertEqual(outcome["status"], "FAILED", f"{outcome}\n{text}")
        self.assertEqual(outcome["exit_code"], 128 + signal.SIGTERM, outcome)
        self.assertEqual(outcome["exit_code_meaning"], "ended by a signal")
        self.assertRegex(outcome["reason"], r"^ended by signal 15 \(Terminated\) .*(lost|is lost)")
        return "lost"

    def interrupt(self, out, after_s, *more):
        terminal = self.at_terminal(self.words(out, *more), environment=STEPS_TAKE_LONG)
        time.sleep(after_s)
        terminal.press(CTRL_C)
        code = terminal.wait()
        return self.check_ended(out, code, terminal.text()), terminal.text()

    def test_random_moments(self):
        draw = random.Random(SEED + self.ranks)
        long = ["-s", f"run.epochs={EPOCHS}"]
        digest = self.straight(*long)
        counts = {}
        for attempt in range(INTERRUPTS):
            out = f"interrupted-{attempt}"
            after_s = draw.uniform(0, WITHIN_S)
            with self.subTest(out, after_s=after_s):
                became, text = self.interrupt(out, after_s, *long)
                counts[became] = counts.get(became, 0) + 1
                resumed = self.run_words(self.words(out, "--resume", "-q", *long))
                self.assertEqual(resumed.code, 0, f"{resumed}\n{text}")
                self.assertEqual(self.outcome(out)["digest"], digest, text)
                rows = (self.folder / out / "metrics.csv").read_text().splitlines()[1:]
                self.assertEqual(len({row.split(",")[1] for row in rows}), EPOCHS, rows)
        print(f"{INTERRUPTS} interrupts on {self.ranks} ranks: {counts}")

    def test_while_training(self):
        terminal = self.at_terminal(self.words("out"), environment=STEPS_TAKE_LONG)
        self.await_trace(0)
        time.sleep(0.5)
        terminal.press(CTRL_C)
        code = terminal.wait()
        self.assertIn(self.check_ended("out", code, terminal.text()), {"saved", "complete"})

    def test_a_step_that_takes_too_long(self):
        """The time after the signal is shorter than a step: the loss is reported, with the step."""
        fault = {"STRATAGEM_FAIL": f"forward:{self.ranks - 1}:9:spin"}
        words = self.words("out", "-s", "checkpoint.every_steps=5")
        terminal = self.at_terminal(words, environment=fault)
        self.await_checkpoint(5)
        time.sleep(2)
        if self.ranks == 1:
            os.kill(terminal.process.pid, signal.SIGTERM)
        else:
            terminal.press(CTRL_C)
        terminal.wait()
        outcome = self.outcome()
        steps = outcome["steps"]
        self.assertIn(steps, range(6, 10))
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", 143), outcome)
        lost = rf"after step {steps}; the newest checkpoint is of step 5: {steps - 5} steps? (is|are) lost"
        self.assertRegex(outcome["reason"], rf"^ended by signal 15 \(Terminated\) {lost}")
        self.assertRegex(" ".join(terminal.text().split()), lost)
        self.assertRegex((self.folder / "out" / "log.txt").read_text(), lost)


class CtrlCUnderMpirun(CtrlC):
    ranks = 2
    codes = {SAVED, 1, 130, 128 + signal.SIGTERM, 128 + signal.SIGKILL}


class Between(TerminalTest):
    """Signals between steps."""

    def begin(self, fault, *more):
        process = self.start(self.words("out", "-q", *more), environment={"STRATAGEM_FAIL": fault})
        return process, self.pid_of_rank(0, "out")

    def finish(self, digest, *more):
        resumed = self.expect(0, *self.words("out", "--resume", "-q", *more)[1:])
        self.assertEqual(self.outcome()["digest"], digest, str(resumed))
        rows = (self.folder / "out" / "metrics.csv").read_text().splitlines()[1:]
        self.assertEqual([row.split(",")[1] for row in rows], list("012345"))

    def check_evaluation_given_up(self, step, lines):
        """`lines`: of metrics.csv, before the run is continued."""
        digest = self.straight()
        saving = ["-s", f"checkpoint.every_steps={step - 1}"]
        process, pid = self.begin(f"evaluate:0:{step}:delay=6000", *saving)
        self.await_checkpoint(step - 1)
        time.sleep(1)
        os.kill(pid, signal.SIGINT)
        self.assertEqual(self.wait(process).code, SAVED)
        self.assertEqual(self.outcome()["steps"], step)
        self.assertEqual(len((self.folder / "out" / "metrics.csv").read_text().splitlines()), lines)
        self.finish(digest, *saving)

    def test_an_evaluation_is_given_up_and_made_again(self):
        self.check_evaluation_given_up(20, lines=1)

    def test_the_last_evaluation(self):
        self.check_evaluation_given_up(120, lines=6)

    def test_while_saving(self):
        digest = self.straight()
        process, pid = self.begin("save_write:0:10:delay=1000", "-s", "checkpoint.every_steps=10")
        saving = lambda: list(self.folder.glob("out/checkpoint/.writing-*"))
        self.assertTrue(harness.comes_true(saving))
        os.kill(pid, signal.SIGTERM)
        ended = self.wait(process)
        self.assertEqual(ended.code, SAVED, str(ended))
        self.assertEqual(self.outcome()["status"], "SAVED")
        self.run_words(self.words("out", "--resume", "-q", "-s", "checkpoint.every_steps=10"))
        self.assertEqual(self.outcome()["digest"], digest)

    def test_as_launchers_end_their_ranks(self):
        """CONT, TERM and KILL, 0.25 s apart as with Open MPI 5, or 1 s as with Open MPI 4."""
        digest = self.straight()
        for pause in 0.25, 1.0:
            with self.subTest(pause=pause):
                out = f"paused-{pause}"
                words = self.words(out, "-q", "-s", "checkpoint.every_steps=5")
                process = self.start(words, environment=STEPS_TAKE_LONG)
                pid = self.pid_of_rank(0, out)
                self.await_checkpoint(5, out)
                for signal_ in signal.SIGCONT, signal.SIGTERM, signal.SIGKILL:
                    if process.poll() is None:
                        os.kill(pid, signal_)
                        time.sleep(pause)
                self.wait(process)
                outcome = self.outcome(out)
                if outcome["status"] != "SAVED":  # a busy machine
                    self.assertEqual(outcome["status"], "FAILED")
                    self.assertRegex(outcome["reason"], "^ended by signal 15 .* lost")
                self.assertGreater(outcome["steps"], 0)
                print(f"pause {pause} s: {outcome['status']}, {outcome['reason']}")
                self.run_words([*words, "--resume"])
                self.assertEqual(self.outcome(out)["digest"], digest)

    def test_killed_before_it_could_save(self):
        """KILL comes earlier than expected after TERM: the reason is on disk anyway."""
        process, pid = self.begin("forward:0:9:spin", "-s", "checkpoint.every_steps=5")
        self.await_checkpoint(5)
        time.sleep(2)
        os.kill(pid, signal.SIGTERM)
        time.sleep(1)
        os.kill(pid, signal.SIGKILL)
        self.wait(process)
        outcome = self.outcome()
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", 143))
        self.assertIn(outcome["steps"], range(6, 10))
        self.assertRegex(outcome["reason"], f"{outcome['steps'] - 5} steps? (is|are) lost")


class Closed(TerminalTest):
    """A run whose output nobody reads any more."""

    def test_a_closed_pipe_does_not_end_a_run(self):
        digest = self.straight()
        for ranks in 1, 2:
            self.ranks = ranks
            out = f"piped-{ranks}"
            words = " ".join(map(str, self.words(out, "--progress", "line", "-v")))
            ended = self.run_words(["bash", "-c", f"set -o pipefail; {words} 2>&1 | head -1"])
            if ranks == 1:
                self.assertEqual(ended.code, 0, str(ended))
                self.assertEqual(self.outcome(out)["digest"], digest)
            else:  # mpirun itself may end its ranks
                self.assertIn(self.outcome(out)["status"], {"COMPLETE", "SAVED"})
            self.assertGreater(len((self.folder / out / "log.txt").read_text().splitlines()), 3)

    def test_a_terminal_that_closes_saves_the_run(self):
        terminal = self.at_terminal(self.words("out", "-s", "run.epochs=1000"))
        self.await_trace(0)
        time.sleep(0.5)
        os.kill(terminal.process.pid, signal.SIGHUP)
        self.assertEqual(terminal.wait(), SAVED)
        self.assertEqual(self.outcome()["status"], "SAVED")

    def test_a_window_that_closes_saves_the_run(self):
        terminal = self.at_terminal(self.words("out", "-s", "run.epochs=1000"))
        self.await_trace(0)
        time.sleep(0.5)
        terminal.close()
        self.assertEqual(terminal.process.wait(30), SAVED)
        self.assertEqual(self.outcome()["status"], "SAVED")

    def test_nohup_goes_on(self):
        process = self.start(["nohup", *self.words("out", "-q")])
        pid = self.pid_of_rank(0)
        os.kill(pid, signal.SIGHUP)
        ended = self.wait(process)
        self.assertEqual(ended.code, 0, str(ended))
        self.assertEqual(self.outcome()["status"], "COMPLETE")


class Output(harness.ProgramTest):
    """A table that could not be written is not a success."""

    TABLES = [
        ["list", "keys"],
        ["--help"],
        ["plan", "config.yaml", "--no-activations"],
        ["run", "config.yaml", "--print-config"],
    ]

    def shell(self, words, redirection):
        return self.run_words(["bash", "-c", f"{' '.join(map(str, [self.program, *words]))} {redirection}"])

    def test_a_full_device(self):
        for words in self.TABLES:
            with self.subTest(words):
                ended = self.shell(words, "> /dev/full")
                self.check_refused(ended, IO, ["cannot write all of the output to stdout"])

    def test_a_closed_output(self):
        for words in self.TABLES:
            with self.subTest(words):
                self.check_refused(self.shell(words, ">&-"), IO, ["cannot write all of the output to stdout"])

    def test_a_reader_that_has_seen_enough(self):
        """It ends quietly, like other programs."""
        ended = self.shell(["list", "keys"], "| head -1; exit ${PIPESTATUS[0]}")
        self.assertIn(ended.code, {0, 128 + signal.SIGPIPE}, str(ended))
        self.assertEqual(ended.stderr, "")

    def test_a_run_needs_no_output(self):
        for number, redirection in enumerate(["> /dev/full 2>&1", ">&- 2>&-", "<&- >&- 2>&-"]):
            with self.subTest(redirection):
                ended = self.shell(["run", "config.yaml", "--out", f"out-{number}"], redirection)
                self.assertEqual(ended.code, 0, str(ended))
                self.assertEqual(self.outcome(f"out-{number}")["status"], "COMPLETE")
                log = (self.folder / f"out-{number}" / "log.txt").read_text()
                self.assertIn("3 steps in", log)
                self.expect(0, "validate", f"out-{number}")


def shown_lines(text):
    """The lines that a terminal shows one after the other, without colours; a redrawn line counts each time."""
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return [line for line in re.split(r"[\r\n]+", plain) if line]


class Widths(TerminalTest):
    """No line is wider than the terminal, also after a resize."""

    def test_the_bar_follows_the_width(self):
        for ranks in 1, 2:
            with self.subTest(ranks=ranks):
                self.ranks = ranks
                terminal = self.at_terminal(self.words(f"bar-{ranks}"), columns=80, environment=STEPS_TAKE_LONG)
                self.assertTrue(harness.comes_true(lambda: "images/s" in terminal.text()), terminal.text())
                time.sleep(0.5)
                terminal.resize(40)
                time.sleep(0.3)
                before = len(terminal.text())
                self.assertEqual(terminal.wait(), 0, terminal.text())
                wide, narrow = terminal.text()[:before], terminal.text()[before:]
                self.assertRegex(wide, r"\r\x1b\[K\[=* *\] epoch \d/6  step \d+/120  loss ")
                self.assertLess(max(map(len, shown_lines(wide))), 81, wide)
                drawn = [line for line in shown_lines(narrow) if "step" in line and "left" in line][1:]
                self.assertTrue(drawn, narrow)
                self.assertLess(max(map(len, drawn)), 40, narrow)

    def test_a_terminal_that_cannot_draw_gets_lines(self):
        self.ranks = 1
        terminal = self.at_terminal(self.words("dumb"), environment={**STEPS_TAKE_LONG, "TERM": "dumb"})
        self.assertEqual(terminal.wait(), 0, terminal.text())
        self.assertNotIn("\x1b", terminal.text())
        self.assertRegex(terminal.text(), r"(?m)^epoch 2/6  step \d+/120 ")

    def test_tables(self):
        self.expect(0, *overridden("run.out=out"), "-q")
        for words in (
            ["list", "keys"],
            ["list", "models"],
            ["list", "strategies"],
            ["plan", "config.yaml", "--compare", "--ranks", "2"],
            ["plan", "config.yaml", "--ranks", "2"],
            ["collect", "out"],
            ["checkpoint", "out"],
        ):
            for columns in 80, 120:
                with self.subTest(words, columns=columns):
                    terminal = self.at_terminal([self.program, *words], columns=columns)
                    terminal.wait()
                    lines = shown_lines(terminal.text())
                    self.assertLessEqual(max(map(len, lines)), columns, terminal.text())

    def test_a_file_gets_whole_lines(self):
        table = self.expect(0, "list", "keys", "--format", "csv").stdout
        self.assertGreater(max(map(len, table.splitlines())), 200)

    def test_a_file_of_keys_can_be_read(self):
        for words in [], ["strategy"]:
            lines = self.expect(0, "list", "keys", *words).stdout.splitlines()
            self.assertIn(max(map(len, lines)), range(80, 161))
            self.assertTrue(any(line.startswith("strategy.momentum_correction ") for line in lines))


if __name__ == "__main__":
    harness.main()

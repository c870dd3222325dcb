"""A study from its file to its table: cells, failing cells, and a second sweep."""

import contextlib
import csv
import json
import os
import shutil
import signal
import time

import harness
from harness import Refusal, comes_true

USAGE, UNEXPECTED, CELLS_MISSING, SAVED = 2, 1, 8, 75
STUDY = """schema: 1
name: tiny
base:
  run: {threads: 1, epochs: 1, max_steps: 3}
  data: {dataset: synthetic-digits, global_batch: 12, subset: 96}
  model: {name: mlp}
variants:
  ddp: {strategy: {name: ddp}}
  ps: {strategy: {name: ps}}
  broken: {strategy: {name: ddp}, optimizer: {lr: 1.0e+30}}
parts:
  p:
    matrix: {variant: [broken, ddp, ps], workers: [1], run.seed: [1, 2]}
    exclude: [{variant: [broken, ps], run.seed: 2}]
"""
CELLS = ["p-broken-w1-s1", "p-ddp-w1-s1", "p-ddp-w1-s2", "p-ps-w1-s1"]
SWEEP = ["sweep", "study.yaml", "--out", "d"]
UNPLANNED = STUDY.replace("global_batch: 12", "global_batch: 12, input_size: 20")
MISTAKES = [
    Refusal(
        "a study is no run",
        ["plan", "study.yaml", "--ranks", "2"],
        USAGE,
        ["--ranks is for one run", "study.yaml is a study"],
        files={"study.yaml": STUDY},
    ),
    Refusal(
        "a study of cells that cannot run",
        ["plan", "study.yaml"],
        USAGE,
        ["4 of 4 cells cannot run"],
        files={"study.yaml": UNPLANNED},
    ),
    Refusal("no study", ["sweep", "--all"], USAGE, ["STUDY is missing"]),
    Refusal("no such study", ["sweep", "no.yaml", "--all"], USAGE, ["no.yaml"]),
    Refusal("nothing to do", ["sweep", "config.yaml"], USAGE, ["what to do", "--index"]),
    Refusal("two things to do", [*SWEEP, "--all", "--list"], USAGE, ["one of --list"]),
    Refusal(
        "a configuration is no study",
        ["sweep", "config.yaml", "--all"],
        USAGE,
        ["config.yaml is one run's configuration", "stratagem run config.yaml"],
    ),
    *[
        Refusal(
            f"index {index}",
            [*SWEEP, "--index", index],
            USAGE,
            [f"--index {index} is outside", "cells 0 to 3"],
            files={"study.yaml": STUDY},
        )
        for index in ("4", "-1", "one", "99999999999999999999")
    ],
    Refusal(
        "pattern of no cell",
        [*SWEEP, "--all", "--only", "q-*"],
        USAGE,
        ["no cell is called q-*"],
        files={"study.yaml": STUDY},
    ),
    Refusal(
        "an override of what follows",
        [*SWEEP, "--all", "-s", "run.out=x"],
        USAGE,
        ["-s run.out=x: run.out: follows from the matrix"],
        files={"study.yaml": STUDY},
    ),
    Refusal("status of no study", ["status", "."], USAGE, ["not a study directory"]),
    Refusal("status of nothing", ["status"], USAGE, ["name a study directory"]),
    Refusal(
        "another version's study directory",
        ["status", "d"],
        USAGE,
        ["schema 7"],
        files={"d/study.json": '{"schema": 7}'},
    ),
]


class Sweep(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "study.yaml").write_text(STUDY)

    def rows(self, text):
        return {row["cell"]: row for row in csv.DictReader(text.splitlines())}

    def state_of(self, cell):
        ended = self.expect(0, "status", "d", "--all", "--format", "csv")
        return self.rows(ended.stdout)[cell]["state"]

    def test_mistakes(self):
        self.check_refusals(MISTAKES)

    def test_list(self):
        before = harness.snapshot(self.folder)
        listed = self.rows(self.expect(0, *SWEEP, "--list", "--format", "csv").stdout)
        self.assertEqual(list(listed), CELLS)
        self.assertEqual([row["index"] for row in listed.values()], ["0", "1", "2", "3"])
        server = listed["p-ps-w1-s1"]
        self.assertEqual((server["workers"], server["servers"], server["ranks"]), ("1", "1", "2"))
        some = self.rows(self.expect(0, *SWEEP, "--list", "--only", "*-s2", "--format", "csv").stdout)
        self.assertEqual(list(some), ["p-ddp-w1-s2"])
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_plan(self):
        plans = json.loads(self.expect(0, "plan", "study.yaml", "--json").stdout)["cells"]
        self.assertEqual(list(plans), CELLS)
        self.assertEqual([plans[cell]["ranks"] for cell in CELLS], [1, 1, 1, 2])
        text = self.expect(0, "plan", "study.yaml", "--gpu-memory", "1K").stdout
        self.assertRegex(text, r"(?m)^p-ps-w1-s1 +2 +3 .* lacks 1.00 GiB$")
        self.expect(0, *SWEEP, "--index", "1")
        of_directory = json.loads(self.expect(0, "plan", "d", "--json").stdout)["cells"]
        self.assertEqual(of_directory, {CELLS[1]: plans[CELLS[1]]})

    def test_a_failing_cell_does_not_stop_the_others(self):
        ended = self.expect(CELLS_MISSING, *SWEEP, "--all")
        self.assertRegex(ended.stderr, r"\[1/4\] p-broken-w1-s1  failed after .*\(code 84\)")
        self.assertRegex(ended.stderr, r"\[4/4\] p-ps-w1-s1  complete after .*accuracy \d")
        self.assertRegex(ended.stderr, r"\[2/4\].* left ")
        self.assertIn("1 of 4 cells are not complete", ended.stderr)
        status = self.expect(0, "status", "d").stdout
        self.assertIn("4 cells: 3 complete, 1 failed", status)
        self.assertRegex(status, r"(?m)^ +0 +p-broken-w1-s1 +1 +failed ")

        before = harness.snapshot(self.folder / "d" / "p-ddp-w1-s1")
        again = self.expect(CELLS_MISSING, *SWEEP, "--all")
        self.assertIn("3 of 4 cells are complete already", again.stderr)
        self.assertEqual(harness.snapshot(self.folder / "d" / "p-ddp-w1-s1"), before)
        self.assertEqual(self.outcome("d/p-broken-w1-s1")["attempt"], 1)

        self.check_table()

    def check_table(self):
        """The output of collect after test_a_failing_cell_does_not_stop_the_others."""
        table = self.expect(0, "collect", "d").stdout
        self.assertRegex(table, r"(?m)^p-ddp-w1 +1 +2 +\S+ \[\S+, \S+\] .* 2 complete$")
        self.assertRegex(table, r"(?m)^p-broken-w1 .* 1 failed \(84\)$")
        self.assertRegex(table, r"(?m)^p-broken-w1-s1 +failed .*sweep study.yaml --index 0 --out d$")
        summary = self.rows((self.folder / "d" / "summary.csv").read_text())
        self.assertEqual(list(summary), CELLS)
        for cell in CELLS[1:]:
            outcome = self.outcome(f"d/{cell}")
            self.assertEqual(summary[cell]["digest"], outcome["digest"])
            self.assertEqual(float(summary[cell]["test_accuracy"]), outcome["test_accuracy"])
        as_json = json.loads(self.expect(0, "collect", "d", "--format", "json").stdout)
        self.assertEqual([row["cell"] for row in as_json["cells"]], CELLS)
        groups = {row["group"]: row for row in as_json["groups"]}
        times = [float(summary[cell]["train_time_s"]) for cell in CELLS[1:3]]
        for name, value in ("least", min(times)), ("greatest", max(times)), ("n", 2):
            self.assertEqual(groups["p-ddp-w1"]["train_time_s"][name], value)
        self.assertIn("median [least, greatest]", table)
        for form, word in ("md", "| p-ddp-w1 |"), ("latex", "p-ddp-w1 &"), ("csv", "p-ddp-w1,"):
            self.assertIn(word, self.expect(0, "collect", "d", "--format", form).stdout)
        rows = list(csv.DictReader(self.expect(0, "collect", "d", "--format", "csv").stdout.splitlines()))
        ddp = next(row for row in rows if row["cells"] == "p-ddp-w1")
        self.assertEqual(float(ddp["train_time_s_greatest"]), max(times))
        self.assertEqual((ddp["n"], ddp["test_accuracy_n"]), ("2", "2"))
        self.check_places(table)

    def check_places(self, table):
        """Where the table and its files are written."""
        ended = self.expect(0, "collect", "d", "-o", "table.txt")
        self.assertEqual((ended.stdout, (self.folder / "table.txt").read_text()), ("", table))
        for name in "d/summary.csv", "d/p-ddp-w1-s1/collected.h5":
            (self.folder / name).unlink()
        before = harness.snapshot(self.folder)
        self.assertEqual(self.expect(0, "collect", "d", "--no-write").stdout, table)
        self.assertEqual(harness.snapshot(self.folder), before)
        # A file that cannot be written does not prevent the table.
        (self.folder / "d/summary.csv").mkdir()
        (self.folder / "d/p-ddp-w1-s1/collected.h5").mkdir()
        ended = self.expect(0, "collect", "d")
        self.assertEqual(ended.stdout, table)
        self.assertIn("2 files were not written", ended.stderr)

    def test_one_cell_by_its_index(self):
        self.expect(0, *SWEEP, "--index", "1", "-q")
        self.assertEqual(self.state_of("p-ddp-w1-s1"), "complete")
        self.assertEqual(self.state_of("p-ps-w1-s1"), "missing")
        self.assertIn("nothing to do", self.expect(0, *SWEEP, "--index", "1").stderr)
        self.assertIn("(code 84)", self.expect(84, *SWEEP, "--index", "0").stderr)
        shutil.rmtree(self.folder / "d/p-ddp-w1-s1")
        self.assertIn("its run directory is gone", self.expect(0, "status", "d").stdout)
        self.assertEqual(self.state_of("p-ddp-w1-s1"), "missing")
        self.expect(0, *SWEEP, "--index", "1", "-q")
        self.assertEqual(self.state_of("p-ddp-w1-s1"), "complete")
        (self.folder / "d/p-ddp-w1-s1/manifest.json").unlink()
        self.assertIn("p-ddp-w1-s1/manifest.json is missing or damaged", self.expect(0, "collect", "d").stderr)

    def test_nothing_complete(self):
        self.expect(0, *SWEEP, "--prepare")
        ended = self.expect(CELLS_MISSING, "collect", "d")
        self.assertIn("no cell of d is complete", ended.stderr)
        self.assertIn("not started", ended.stdout)

    def test_another_study_is_refused(self):
        self.expect(0, *SWEEP, "--prepare")
        before = harness.snapshot(self.folder / "d")
        for words in [*SWEEP, "--all", "-s", "run.max_steps=4"], [*SWEEP, "--index", "1"]:
            if "-s" not in words:
                (self.folder / "study.yaml").write_text(STUDY + "# another\n")
            self.check_refused(self.run_program(*words), USAGE, ["holds another study", "--out"])
        self.assertEqual(harness.snapshot(self.folder / "d"), before)

    def test_what_is_complete_is_compared(self):
        """A study's file may say something else another day: what was run is what counts."""
        text = STUDY.replace("  model: {name: mlp}", "  model: {name: mlp}\n  optimizer: {lr: '${LR}'}")
        (self.folder / "study.yaml").write_text(text)
        one = [*SWEEP, "--index", "1"]
        self.expect(0, *one, environment={"LR": "0.1"})
        self.assertIn("is complete: nothing to do", self.expect(0, *one, environment={"LR": "0.1"}).stderr)
        for words in one, [*SWEEP, "--all"]:
            ended = self.run_program(*words, environment={"LR": "0.2"})
            self.check_refused(
                ended, USAGE, ["p-ddp-w1-s1 in d is complete, with other settings", "optimizer.lr was 0.1 and is 0.2"]
            )
        self.assertFalse((self.folder / "d/p-ddp-w1-s2").exists())

    def test_the_last_steps_of_cells_are_not_kept(self):
        for study, kept in (STUDY, False), (STUDY.replace("base:", "base:\n  checkpoint: {at_end: true}"), True):
            (self.folder / "study.yaml").write_text(study)
            self.expect(0, "sweep", "study.yaml", "--out", f"d{kept}", "--index", "1")
            saved = list((self.folder / f"d{kept}").glob("p-ddp-w1-s1/checkpoint/step-*"))
            self.assertEqual(len(saved), kept)

    def test_cells_of_different_programs_are_not_mixed(self):
        self.expect(0, *SWEEP, "--index", "1", "-q")
        self.expect(0, *SWEEP, "--index", "2", "-q")
        manifest = self.folder / "d" / "p-ddp-w1-s2" / "manifest.json"
        changed = json.loads(manifest.read_text())
        changed["build"]["git_sha"] = "0123abcd"
        manifest.write_text(json.dumps(changed))
        self.check_refused(
            self.run_program("collect", "d"), USAGE, ["cannot be compared", "0123abcd", "--allow-mixed"]
        )
        self.assertIn("mixed", self.expect(0, "collect", "d", "--allow-mixed").stdout)

    def test_the_reason_of_a_launcher_is_no_ruled_line(self):
        launcher = self.folder / "mpirun"
        launcher.write_text("#!/bin/sh\necho -----; echo no slots left; echo -----; echo\nexit 7\n")
        launcher.chmod(0o755)
        ended = self.run_program(*SWEEP, "--all", "--launcher", f"{launcher} {{ranks}}")
        self.assertRegex(ended.stderr, r"failed after .*: no slots left \(code 7\)")

    def test_a_launcher_that_lies_is_not_believed(self):
        launcher = self.folder / "mpirun"
        launcher.write_text("#!/bin/sh\nexit 0\n")
        launcher.chmod(0o755)
        words = [*SWEEP, "--launcher", f"{launcher} {{ranks}}"]
        ended = self.expect(80, *words, "--index", "1")
        self.assertIn("the launcher ended with code 0, but no run began", ended.stderr)

    def start_endless(self):
        endless = ["-s", "run.max_steps=0", "-s", "run.epochs=1000000", "-s", "run.evaluate_every=0"]
        process = self.start([self.program, *SWEEP, "--all", "--only", "p-ddp-*", *endless])
        outcome = self.folder / "d" / "p-ddp-w1-s1" / "outcome.json"
        comes_true(outcome.exists)
        return process, [*SWEEP, "--all", "--only", "p-ddp-*", *endless]

    def test_an_interrupt_ends_the_sweep_with_what_goes_on(self):
        process, _ = self.start_endless()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        ended = self.wait(process)
        self.assertEqual(ended.code, SAVED, str(ended))
        self.assertIn("signal 2 ended the sweep", ended.stderr)
        self.assertIn("the same command continues", ended.stderr)

    def test_two_sweeps_at_once(self):
        process, words = self.start_endless()
        self.check_refused(
            self.run_program(*words), USAGE, ["sweep.lock is locked", f"process {process.pid}"]
        )
        words[words.index("--all") : words.index("--all") + 3] = ["--index", "1"]
        self.check_refused(self.run_program(*words), USAGE, ["p-ddp-w1-s1.lock is locked"])
        run = self.outcome("d/p-ddp-w1-s1")["process"]
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        with contextlib.suppress(ProcessLookupError):  # MPI may have put it into its own process group
            os.kill(run, signal.SIGKILL)

    def test_a_signal_ends_the_sweep(self):
        process, _ = self.start_endless()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        ended = self.wait(process)
        self.assertEqual(ended.code, UNEXPECTED, str(ended))
        self.assertIn("signal 15 ended the sweep, 1 of 2 cells were not started", ended.stderr)
        self.assertIn(self.state_of("p-ddp-w1-s1"), ["lost", "failed", "saved"])
        self.assertEqual(self.state_of("p-ddp-w1-s2"), "missing")


if __name__ == "__main__":
    harness.main()

"""The scripts of slurm/ on a real Slurm, from sbatch to the tables, as a user of a cluster runs them."""

import csv
import json
import re
import shutil
import time

import script_test

ENDLESS = """schema: 1
run: {name: endless, threads: 1, epochs: 1000000, evaluate_every: 0, out: out}
data: {dataset: synthetic-digits, global_batch: 12, subset: 1200}
model: {name: mlp}
strategy: {name: ddp}
trace: {spans_every: 100}
"""


class HopperTest(script_test.ScriptTest):
    """A checkout as on Hopper, but without its modules."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shorten_preflight()
        site = cls.extend_site("hopper", "site_modules=()")
        shutil.copy(site, site.with_name("with-gpus.env"))
        cls.extend_site("hopper", script_test.NO_GPU)


class Jobs(HopperTest):
    def test_smoke(self):
        out = self.new_out("smoke")
        job = self.submit("smoke-cpu", out)
        [end] = self.box.wait(job, 180)
        self.assertEqual((end["JobState"], end["ExitCode"]), ("COMPLETED", "0:0"), end)
        rows = list(csv.DictReader((out / "summary.csv").read_text().splitlines()))
        self.assertEqual({row["status"] for row in rows}, {"complete"})
        digests = {(row["seed"], row["digest"]) for row in rows}
        self.assertEqual(len(digests), 2, "DDP, FSDP and the synchronous server end with the same bits")

    def test_array_and_collect(self):
        out = self.new_out("study")
        told = self.box.run(
            self.home / "slurm/submit-study.sh", self.home / "inputs/study/study-smoke.yaml", "--site", "hopper",
            "--only", "smoke-ddp-*", "--out", out, "--time", "00:10:00", cwd=self.folder,
        ).stdout  # fmt: skip
        array, collect = re.findall(r"job (\d+)$", told, re.MULTILINE)
        self.assertIn("2 cells of study-smoke", told)
        for end in self.box.wait(collect, 180) + self.box.show(array):
            self.assertEqual((end["JobState"], end["ExitCode"]), ("COMPLETED", "0:0"), (end, self.log_of(array)))
        self.assertEqual({element["ArrayTaskId"] for element in self.box.show(array)}, {"0", "1"})
        self.assertIn("gpu:A100.80gb:2", json.dumps(self.box.show(array)), "GPUs are asked for by the node")
        summary = (out / "summary.md").read_text()
        self.assertRegex(summary, r"(?m)^\| smoke-ddp-w2 \| 2 \| 2 \| .*2 complete")
        self.assertRegex(summary, r"(?m)^\| smoke-ps-sync-w2-s1 \| missing \| not started \|")
        self.assertEqual(self.outcome(out / "smoke-ddp-w2-s2")["status"], "COMPLETE")
        launch = json.loads((out / "launches" / "smoke-ddp-w2-s2.json").read_text())
        self.assertEqual(launch["job"], f"{array}_1")
        again = self.box.run(
            self.home / "slurm/submit-study.sh", self.home / "inputs/study/study-smoke.yaml", "--site", "hopper",
            "--out", out, "--resume", "--dry-run", cwd=self.folder,
        ).stdout  # fmt: skip
        self.assertIn("--array=2-3%", again, "only what is not complete")
        self.assertIn("--array=4-5%", again)

    def test_wrong_configuration(self):
        """One that became wrong after submit.sh had looked at it. The command is the one that is shown."""
        config = self.folder / "wrong one.yaml"
        config.write_text(ENDLESS)
        words = [self.home / "slurm/submit.sh", "--site", "hopper", "--workers", "2", "--dry-run"]
        shown = self.box.run(*words, "run", config, self.new_out("wrong"), cwd=self.folder).stdout
        config.write_text(ENDLESS.replace("epochs", "epoch"))
        job = self.box.run("bash", "-c", shown, cwd=self.folder).stdout.strip()
        [end] = self.box.wait(job)
        self.assertEqual((end["JobState"], end["ExitCode"]), ("FAILED", "2:0"), end)
        log = (self.folder / f"slurm-{job}.out").read_text()
        self.assertRegex(log, r"wrong one.yaml:2:\d+: run.epoch: unknown key")
        last = log.splitlines()[-1]
        self.assertRegex(last, "no run: code 2; see .stratagem: error. above", "the last word is not the launcher's")
        self.assertEqual(end["Restarts"], "0", "what cannot work is not repeated")

    def test_gpus_are_not_held_for_a_program_without_gpus(self):
        self.box.environment["STRATAGEM_DEVICE"] = "auto"
        job = self.submit("smoke-mig", self.new_out("held"), site="with-gpus")
        [end] = self.box.wait(job, 180)
        self.assertEqual((end["JobState"], end["ExitCode"]), ("FAILED", "3:0"), end)
        self.assertRegex(self.log_of(job), r"this job holds GPUs \(SLURM_JOB_GPUS=\d+\)")

    def test_mig(self):
        out = self.new_out("mig")
        self.box.environment["STRATAGEM_DEVICE"] = "auto"  # there is no GPU behind the fake one
        job = self.submit("smoke-mig", out)
        [end] = self.box.wait(job, 180)
        self.assertEqual((end["JobState"], end["ExitCode"]), ("COMPLETED", "0:0"), end)
        self.assertIn("gpu:1g.10gb:1", json.dumps(end))
        self.assertEqual(self.outcome(out)["status"], "COMPLETE")

    def test_preflight(self):
        out = self.new_out("preflight")
        job = self.submit("--workers", "2", "preflight", out)
        [end] = self.box.wait(job, 400)
        self.assertEqual((end["JobState"], end["ExitCode"]), ("COMPLETED", "0:0"), end)
        rows = list(csv.DictReader((out / "summary.csv").read_text().splitlines()))
        complete = [row["variant"] for row in rows if row["status"] == "complete"]
        self.assertEqual(complete, ["ddp", "zero1", "zero2", "fsdp", "ps-sync", "ps-async"])
        self.assertGreater(len(json.loads((out / "commbench.json").read_text())), 0)
        calibration = json.loads((out / "calibration.json").read_text())
        self.assertEqual({row["model"] for row in calibration["passes"]}, {"mlp"})
        self.assertEqual({row["ranks"] for row in calibration["operations"]}, {1, 2})


class Ends(HopperTest):
    """A cell that takes longer than its job's time limit."""

    def start_cell(self, out, max_steps=0):
        """Starts a study of one long cell, as an array with one element; returns when it runs."""
        study = self.folder / f"{out.name}.yaml"
        study.write_text(
            "schema: 1\nname: endless\nbase:\n"
            f"  run: {{threads: 1, epochs: 1000000, evaluate_every: 0, max_steps: {max_steps}}}\n"
            "  data: {dataset: synthetic-digits, global_batch: 12, subset: 1200}\n"
            "  strategy: {name: ddp}\n  trace: {spans_every: 100}\n"
            "parts: {p: {matrix: {model.name: [mlp], workers: [2]}}}\n"
        )
        told = self.box.run(
            self.home / "slurm/submit-study.sh", study, "--site", "hopper", "--out", out, "--time", "00:20:00",
            cwd=self.folder, environment=script_test.PACE,
        ).stdout  # fmt: skip
        array, collect = re.findall(r"job (\d+)$", told, re.MULTILINE)
        cell = out / "p-mlp-w2"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if (cell / "trace/a0/rank-0001.h5").exists() and self.outcome(cell)["status"] == "RUNNING":
                return array, collect, cell
            time.sleep(0.2)
        self.fail(f"the cell does not start: {self.log_of(array)}")

    def test_time_limit(self):
        out = self.new_out("limit")
        array, collect, cell = self.start_cell(out)
        self.box.run("scontrol", "update", f"job={array}", "EndTime=now", timeout=10)
        [end] = self.box.wait(array, 90)
        self.assertEqual(end["JobState"], "TIMEOUT", end)
        status = self.box.run(self.program, "status", out).stdout
        self.assertRegex(status, r"p-mlp-w2 +3? *2? +(lost|failed|saved)", status)
        [end] = self.box.wait(collect, 60)
        self.assertEqual((end["JobState"], end["ExitCode"]), ("FAILED", "8:0"), "no cell is complete")
        self.assertRegex((out / "summary.md").read_text(), r"(?m)^\| p-mlp-w2 \| (lost|failed|saved) \|")

    def test_told_to_stop_it_saves_is_queued_again_and_ends_with_the_same_bits(self):
        out = self.new_out("saved")
        array, _, cell = self.start_cell(out, max_steps=300)
        self.box.run("scancel", "-b", "-s", "USR1", array, timeout=10)
        [pending] = self.box.wait(array, 60, states=("PENDING", "FAILED", "COMPLETED"))
        self.assertEqual((pending["JobState"], pending["Restarts"]), ("PENDING", "1"), self.log_of(array))
        saved = self.outcome(cell)
        self.assertEqual((saved["status"], saved["exit_code"]), ("SAVED", 75))
        self.assertLess(saved["steps"], 300)
        self.assertIn("1 cell: 1 saved", self.box.run(self.program, "status", out).stdout)
        straight = self.folder / "straight"
        self.box.run(
            "mpirun", "--bind-to", "none", "-n", "2", self.program, "run", out / "configs/p-mlp-w2.yaml",
            "-q", "--out", straight, timeout=120,
        )  # fmt: skip
        self.box.start_again(array)
        [end] = self.box.wait(array, 120)
        self.assertEqual((end["JobState"], end["ExitCode"], end["Restarts"]), ("COMPLETED", "0:0", "1"), end)
        final, uninterrupted = self.outcome(cell), self.outcome(straight)
        self.assertEqual((final["status"], final["attempt"], final["steps"]), ("COMPLETE", 1, 300))
        self.assertEqual(final["digest"], uninterrupted["digest"])


if __name__ == "__main__":
    script_test.main()

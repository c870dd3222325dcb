"""What the scripts of slurm/ would submit, without a Slurm: `--dry-run` shows exactly the documented commands, and
mistakes are reported before anything is submitted."""

import json
import os
import pathlib
import pty
import pwd
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPECTED = pathlib.Path(__file__).parent / "dry-run-hopper.txt"
STUDY = ROOT / "inputs/study/study.yaml"
SMOKE = ROOT / "inputs/study/study-smoke.yaml"
DDP, PS, SERIAL = (ROOT / f"inputs/smoke/digits-lenet-{name}.yaml" for name in ("ddp", "ps", "serial"))


class DryRun(unittest.TestCase):
    maxDiff = None

    def run_script(self, script, *words, code=0):
        ended = subprocess.run(
            [str(ROOT / "slurm" / script), *map(str, words)],
            env={**os.environ, "STRATAGEM": str(PROGRAM), "USER": "anna"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return re.sub(rf"(?<!\w){re.escape(str(ROOT))}(?!\w)", "<root>", ended.stdout) if code == 0 else ended.stderr

    def test_the_full_study_on_hopper(self):
        told = self.run_script("submit-study.sh", "--site", "hopper", "--dry-run", STUDY)
        if os.environ.get("STRATAGEM_REWRITE"):
            EXPECTED.write_text(told)
        self.assertEqual(told, EXPECTED.read_text())

    def test_every_cell_once(self):
        listed = subprocess.run(
            [PROGRAM, "sweep", STUDY, "--list", "--format", "csv"],
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout.splitlines()  # fmt: skip
        submitted = []
        for text in re.findall(r"--array=([\d,-]+)%", EXPECTED.read_text()):
            for piece in text.split(","):
                first, _, last = piece.partition("-")
                submitted += range(int(first), int(last or first) + 1)
        self.assertEqual(sorted(submitted), list(range(len(listed) - 1)))

    def test_single_jobs(self):
        for words, parts in {
            ("smoke-cpu",): ["--partition=normal", "<root>/slurm/smoke-cpu.sbatch"],
            ("smoke-mig",): ["--partition=gpuq --qos=gpu", "--gres=gpu:1g.10gb:1", "--mem=15G", "--cpus-per-task=2"],
            ("--workers", "4", "preflight"): ["--ntasks=5", "--gres=gpu:A100.80gb:4", "--mem=488G"],
            ("--lead", "70", "--workers", "2", "run", DDP): ["--signal=B:USR1@70"],
            ("--workers", "2", "run", PS): ["--ntasks=3 ", "--gres=gpu:A100.80gb:2"],
            ("run", SERIAL): ["--ntasks=1 ", "--gres=gpu:A100.80gb:1"],
            ("run", DDP, "--workers", "2", "/tmp/out"): [
                "--ntasks=2 ",
                f"/run.sbatch <root>/{DDP.relative_to(ROOT)} /tmp/out",
            ],
        }.items():
            told = self.run_script("submit.sh", "--site", "hopper", "--dry-run", *words)
            for part in parts:
                self.assertIn(part, told)

    def test_without_gpus(self):
        with tempfile.TemporaryDirectory() as folder:
            config, study = (pathlib.Path(folder) / name for name in ("config.yaml", "study.yaml"))
            config.write_text(DDP.read_text().replace("\nrun:", "\nrun:\n  device: cpu", 1))
            study.write_text(SMOKE.read_text().replace("run: {", "run: {device: cpu, ", 1))
            for script, words in ("submit.sh", ["--workers", "2", "run", config]), ("submit-study.sh", [study]):
                told = self.run_script(script, "--site", "hopper", "--dry-run", *words)
                self.assertIn("--partition=normal --nodes=1 --ntasks=2 ", told)
                self.assertNotIn("--gres", told)
                self.assertNotIn("GPU-hours", told)

    def test_time_limits_as_slurm_takes_them(self):
        for limit in "90", "90:00", "01:30:00", "0-1", "0-01:30", "1-00:00:00":
            told = self.run_script("submit.sh", "--site", "hopper", "--dry-run", "--time", limit, "run", SERIAL)
            self.assertIn(f"--time={limit} --signal=B:USR1@300", told)
        for limit in "1h", "1:2:3:4", "1-", "":
            told = self.run_script("submit.sh", "--dry-run", "--time", limit or " ", "run", SERIAL, code=2)
            self.assertIn("is no time limit: write hours:minutes:seconds", told)

    def test_saving_begins_as_early_as_calibration_says(self):
        study = SMOKE
        with tempfile.TemporaryDirectory() as folder:
            measured = f"{folder}/calibration.json"
            mpirun = ["mpirun", "--bind-to", "none", "--oversubscribe", "-n", "2"]
            subprocess.run(
                [*mpirun, PROGRAM, "calibrate", study, "-o", measured],
                env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
                stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=120,
            )  # fmt: skip
            planned = subprocess.run(
                [PROGRAM, "plan", study, "--calibration", measured, "--json"],
                capture_output=True, text=True, check=True, timeout=60,
            ).stdout  # fmt: skip
            leads = [cell["time"].get("lead_s", 0) for cell in json.loads(planned)["cells"].values()]
            self.assertGreaterEqual(max(leads), 60)
            words = ["--site", "hopper", "--dry-run", "--calibration", measured, study]
            told = self.run_script("submit-study.sh", *words)
            self.assertEqual(set(re.findall(r"USR1@(\d+)", told)), {str(max(leads))})

    def test_without_a_scheduler(self):
        told = self.run_script(
            "submit-study.sh", "--site", "workstation", "--dry-run", "--out", "/tmp/x", "--only", "smoke-*-s1",
            SMOKE,
        )  # fmt: skip
        self.assertIn("sweep <root>/inputs/study/study-smoke.yaml --all --only 'smoke-*-s1' --out /tmp/x", told)

    def test_what_is_shown_can_be_pasted(self):
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "my own.yaml"
            shutil.copy(ROOT / "inputs/smoke/digits-lenet-serial.yaml", config)
            told = self.run_script("submit.sh", "--site", "hopper", "--dry-run", "run", config, f"{folder}/the run")
            self.assertEqual(shlex.split(told)[-2:], [str(config), f"{folder}/the run"])
            words = ["plan", config, "--site", "hopper"]
            told = subprocess.run(
                [PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
            ).stdout
            [line] = re.findall(r"^submit: (.*)", told, re.MULTILINE)
            self.assertEqual(shlex.split(line)[-1], str(config))

    def test_another_study_does_not_resume(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, "sweep", SMOKE, "--prepare", "--out", folder], check=True, capture_output=True)
            resume = ["--site", "hopper", "--dry-run", "--resume", "--out", folder]
            self.assertIn("cells of study-smoke into", self.run_script("submit-study.sh", *resume, SMOKE))
            self.assertIn("another study", self.run_script("submit-study.sh", *resume, STUDY, code=2))

    def test_mistakes(self):
        with tempfile.TemporaryDirectory() as folder:
            typo, refused = (pathlib.Path(folder) / name for name in ("typo.yaml", "refused.yaml"))
            refused.write_text(SMOKE.read_text().replace("ddp, fsdp, ps-sync]", "ddp]").replace("[2]", "[2, 64]"))
            typo.write_text(DDP.read_text().replace("\nstrategy:", "\nstrategie:"))
            for script, words, parts in [
                ("submit-study.sh", ["--site", "moon", SMOKE], ["no site moon", "hopper", "workstation"]),
                ("submit-study.sh", ["--site", "../x", SMOKE], ["no site ../x"]),
                ("submit-study.sh", ["--site"], ["--site needs a value"]),
                ("submit-study.sh", ["--sight", "hopper"], ["unknown option --sight"]),
                ("submit-study.sh", ["no-such.yaml"], ["no study no-such.yaml"]),
                ("submit-study.sh", [SMOKE, STUDY], ["one study", "study.yaml is too many"]),
                ("submit-study.sh", ["--resume", "--out", folder, SMOKE], ["nothing to resume", "not a study"]),
                ("submit-study.sh", ["--dry-run", "--time", "2h", SMOKE], ["--time 2h"]),
                ("submit-study.sh", ["--dry-run", "--time", "25:00:00", SMOKE], ["more than a day"]),
                ("submit-study.sh", ["--dry-run", "--time", "00:02:00", SMOKE], ["120 s before", "more --time"]),
                ("submit-study.sh", ["--dry-run", refused], ["2 of 4 cells cannot run", "64 workers", "--only"]),
                ("submit.sh", ["--dry-run", "--lead", "3600", "run", SERIAL], ["3600 s before", "at once"]),
                ("submit.sh", ["--dry-run", "--time", "00:02:00", "run", SERIAL], ["120 s before", "less lead"]),
                ("submit-study.sh", ["--dry-run", "--limit", "1.5", SMOKE], ["--limit 1.5"]),
                ("submit-study.sh", ["--dry-run", "--at-once", "all", SMOKE], ["--at-once all"]),
                ("submit-study.sh", ["--dry-run", "--only", "nothing", SMOKE], ["no cell is called nothing"]),
                ("submit-study.sh", ["--dry-run", "--calibration", "no.json", SMOKE], ["no.json"]),
                ("submit.sh", ["--dry-run", "smoke-gpu"], ["unknown job smoke-gpu"]),
                ("submit.sh", ["--dry-run", "smoke-mig"], ["site_mig_gres"]),
                ("submit.sh", ["--dry-run", "--lead", "1m", "run", "no.yaml"], ["--lead is a whole number"]),
                ("submit.sh", ["--dry-run", "run", "no.yaml"], ["no configuration no.yaml"]),
                ("submit.sh", ["--dry-run", "run"], ["which configuration"]),
                ("submit.sh", ["--dry-run", "--servers", "1", "run", DDP], ["--servers 1 needs --workers N"]),
                ("submit.sh", ["--dry-run", "--workers", "3", "run", SERIAL], ["serial on 3 ranks"]),
                ("submit.sh", ["--dry-run", "--workers", "2", "run", typo], ['did you mean "strategy"', "correct "]),
                ("submit.sh", ["--dry-run", "--workers", "1", "--servers", "2", "run", PS], ["strategy.servers"]),
                ("submit.sh", ["--dry-run", "--workers", "0", "run", DDP], ["--workers must be 1 or more"]),
                ("submit.sh", ["--site", "workstation", "smoke-cpu"], ["no scheduler"]),
            ]:
                with self.subTest(words):
                    told = self.run_script(script, *words, code=2)
                    for part in parts:
                        self.assertIn(part, told)

    def test_how_many_ranks_a_configuration_runs_on(self):
        with tempfile.TemporaryDirectory() as folder:
            config = pathlib.Path(folder) / "config.yaml"

            def told(run, strategy, *words, code=0):
                config.write_text(
                    f"schema: 1\nrun: {{{run}}}\nmodel: {{name: lenet}}\nstrategy: {{{strategy}}}\n"
                    "data: {dataset: synthetic-digits, global_batch: 60}\n"
                )
                return self.run_script("submit.sh", "--site", "hopper", "--dry-run", *words, "run", config, code=code)

            self.assertIn("--ntasks=3 ", told("ranks: 3", "name: ddp"))
            on_two_nodes = told("name: r", "name: ddp", "--workers", "6", "--time", "02:00:00")
            self.assertIn(
                "--nodes=2 --ntasks=6 --cpus-per-task=16 --mem=366G --ntasks-per-node=3 --gres=gpu:A100.80gb:3",
                on_two_nodes,
            )
            self.assertIn("--time=02:00:00 --signal=B:USR1@300", on_two_nodes)
            self.assertIn("7 workers", told("name: r", "name: ddp", "--workers", "7", code=2))
            servers = told("ranks: 4", "name: ps, servers: 2, chunk_mb: 1")
            self.assertIn("--ntasks=4 ", servers)
            self.assertIn("--gres=gpu:A100.80gb:2", servers, "a server needs no GPU")
            self.assertIn("--ntasks=1 ", told("name: alone", "name: serial"))
            for run, strategy in (("name: r", "name: ddp"), ("name: r", "name: fsdp"), ("ranks: 0", "name: ps")):
                with self.subTest(strategy):
                    refused = told(run, strategy, code=2)
                    self.assertIn("on how many ranks? add --workers N, or set run.ranks", refused)
            mistaken = told("rank: 2", "name: ddp", code=2)
            self.assertIn("run.rank: unknown key", mistaken)
            self.assertIn("--workers N", mistaken)

    def test_help(self):
        for script in sorted([*ROOT.glob("slurm/*.sh"), *ROOT.glob("modules/*.sh")]):
            if script.name == "lib.sh":  # sourced
                continue
            for option in ("--help", "-h"):
                ended = subprocess.run([script, option], capture_output=True, text=True, timeout=20)
                with self.subTest(script=script.name, option=option):
                    self.assertEqual((ended.returncode, ended.stderr), (0, ""))
                    self.assertIn(f"{script.relative_to(ROOT)} ", ended.stdout)
                    self.assertIn("\nExamples:\n", ended.stdout)
                    self.assertNotIn("set -", ended.stdout)

    def test_without_the_variable_USER(self):
        environment = {key: value for key, value in os.environ.items() if key != "USER"}
        ended = subprocess.run(
            [ROOT / "slurm/submit-study.sh", "--site", "hopper", "--dry-run", SMOKE],
            env={**environment, "STRATAGEM": str(PROGRAM)}, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn(f"/scratch/{pwd.getpwuid(os.getuid()).pw_name}/stratagem/study-smoke", ended.stdout)


class Submission(unittest.TestCase):
    """With an `sbatch` that records its arguments and returns numbers, as Slurm's does."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.submitted = self.folder / "submitted"
        sbatch = self.folder / "bin/sbatch"
        sbatch.parent.mkdir()
        sbatch.write_text(f'#!/bin/sh\necho "$*" >> {self.submitted}\nwc -l < {self.submitted}\n')
        sbatch.chmod(0o755)
        self.work = self.folder / "work"
        self.work.mkdir()

    def environment(self):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        kept = {key: value for key, value in os.environ.items() if key != "SCRATCH"}
        return {**kept, "STRATAGEM": str(PROGRAM), "USER": "anna", "PATH": path}

    def submit(self, *words, code=0):
        """Without a terminal."""
        ended = subprocess.run(
            [ROOT / "slurm/submit-study.sh", *map(str, words)], cwd=self.work, env=self.environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended

    def answer(self, text, *words):
        """On a terminal, where somebody types `text`; returns exit code and screen."""
        mine, theirs = pty.openpty()
        script = subprocess.Popen(
            [ROOT / "slurm/submit-study.sh", *map(str, words)], cwd=self.work, env=self.environment(),
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        screen = ""
        typed = False
        while True:
            try:
                piece = os.read(mine, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            screen += piece.decode()
            if "[y/N]" in screen and not typed:
                os.write(mine, text.encode())
                typed = True
        os.close(mine)
        return script.wait(60), screen.replace("\r", "")

    def jobs(self):
        return self.submitted.read_text().splitlines() if self.submitted.exists() else []

    def check_untouched(self):
        self.assertEqual((self.jobs(), list(self.work.iterdir())), ([], []))

    def test_nothing_without_a_study(self):
        for words in ([], ["--site", "hopper"], ["--yes"]):
            with self.subTest(words):
                ended = self.submit(*words, code=2)
                self.assertIn("submit-study.sh [options] STUDY", ended.stderr)
                self.check_untouched()

    def test_much_is_submitted_only_when_somebody_says_yes(self):
        ended = self.submit(STUDY, code=2)
        self.assertIn("6340 GPU-hours are more than the limit of 100", ended.stderr)
        self.assertIn("--yes", ended.stderr)
        self.assertIn("286 cells,  4 workers, 0 servers, 2288 GPU-hours", ended.stdout)
        self.check_untouched()
        words = [SMOKE, "--time", "00:10:00", "--limit"]
        self.assertIn("2 GPU-hours are more than the limit of 1", self.submit(*words, "1", code=2).stderr)
        self.check_untouched()
        ended = self.submit(*words, "1", "--yes")
        self.assertLess(ended.stdout.index("GPU-hours"), ended.stdout.index(" job 1"), "hours come first")
        self.assertEqual(len(self.jobs()), len(re.findall(r"^\S+ +job \d+$", ended.stdout, re.MULTILINE)))

    def test_the_question_on_a_terminal(self):
        words = [SMOKE, "--time", "00:10:00", "--limit", "1"]
        for answer in ("\n", "no\n", "\x04"):
            with self.subTest(answer):
                code, screen = self.answer(answer, *words)
                self.assertEqual(code, 2, screen)
                self.assertRegex(screen, r"at most 2 GPU-hours, 00:10:00 for each cell\nMore than 1 GPU-hours. Submit")
                self.assertIn("nothing submitted", screen)
                self.check_untouched()
        code, screen = self.answer("y\n", *words)
        self.assertEqual(code, 0, screen)
        self.assertEqual(len(self.jobs()), 3)

    def test_little_is_submitted_at_once(self):
        code, screen = self.answer("", SMOKE, "--time", "00:10:00")
        self.assertEqual(code, 0, screen)
        self.assertIn("at most 2 GPU-hours", screen)
        self.assertNotIn("y/N", screen)
        self.assertEqual(len(self.jobs()), 3)

    def test_what_is_written_into_a_checkout_is_ignored_there(self):
        self.submit(SMOKE, "--time", "00:10:00")
        [top] = self.work.iterdir()
        self.assertTrue((top / "stratagem/study-smoke/study.json").exists())
        self.assertIn(f"/{top.name}/", (ROOT / ".gitignore").read_text().splitlines())


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)

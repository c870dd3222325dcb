"""What the scripts of slurm/ would submit, without a Slurm: `--dry-run` shows exactly the commands documented,
and mistakes are told before anything is submitted."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPECTED = pathlib.Path(__file__).parent / "dry-run-hopper.txt"


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
        return ended.stdout.replace(str(ROOT), "<root>") if code == 0 else ended.stderr

    def test_the_full_study_on_hopper(self):
        told = self.run_script("submit-study.sh", "--site", "hopper", "--dry-run")
        if os.environ.get("STRATAGEM_REWRITE"):
            EXPECTED.write_text(told)
        self.assertEqual(told, EXPECTED.read_text())

    def test_every_cell_once(self):
        listed = subprocess.run(
            [PROGRAM, "sweep", ROOT / "inputs/study/study.yaml", "--list", "--format", "csv"],
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
            ("--workers", "6", "--time", "02:00:00", "run", ROOT / "inputs/smoke/digits-lenet-ddp.yaml"): [
                "--nodes=2 --ntasks=6 --cpus-per-task=16 --mem=366G --ntasks-per-node=3 --gres=gpu:A100.80gb:3",
                "--time=02:00:00 --signal=B:USR1@300",
            ],
            ("--lead", "70", "run", ROOT / "inputs/smoke/digits-lenet-ddp.yaml"): ["--signal=B:USR1@70"],
        }.items():
            told = self.run_script("submit.sh", "--site", "hopper", "--dry-run", *words)
            for part in parts:
                self.assertIn(part, told)

    def test_saving_begins_as_early_as_calibration_says(self):
        study = ROOT / "inputs/study/study-smoke.yaml"
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
            ROOT / "inputs/study/study-smoke.yaml",
        )  # fmt: skip
        self.assertIn("sweep <root>/inputs/study/study-smoke.yaml --all --only smoke-\\*-s1 --out /tmp/x", told)

    def test_mistakes(self):
        with tempfile.TemporaryDirectory() as folder:
            for script, words, parts in [
                ("submit-study.sh", ["--site", "moon"], ["no site moon", "hopper", "workstation"]),
                ("submit-study.sh", ["--site", "../x"], ["no site ../x"]),
                ("submit-study.sh", ["--site"], ["--site needs a value"]),
                ("submit-study.sh", ["--sight", "hopper"], ["unknown option --sight"]),
                ("submit-study.sh", ["no-such.yaml"], ["no study no-such.yaml"]),
                ("submit-study.sh", ["--resume", "--out", folder], ["nothing to resume", "no study directory"]),
                ("submit-study.sh", ["--dry-run", "--time", "2h"], ["--time 2h"]),
                ("submit-study.sh", ["--dry-run", "--time", "25:00:00"], ["more than a day"]),
                ("submit-study.sh", ["--dry-run", "--only", "nothing"], ["no cell is called nothing"]),
                ("submit.sh", ["--dry-run", "smoke-gpu"], ["unknown job smoke-gpu"]),
                ("submit.sh", ["--dry-run", "smoke-mig"], ["site_mig_gres"]),
                ("submit.sh", ["--dry-run", "--lead", "1m", "run", "no.yaml"], ["--lead is a whole number"]),
                ("submit-study.sh", ["--dry-run", "--calibration", "no.json"], ["no.json"]),
                ("submit.sh", ["--dry-run", "run", "no.yaml"], ["which configuration"]),
                ("submit.sh", ["--site", "workstation", "smoke-cpu"], ["no scheduler"]),
            ]:
                with self.subTest(words):
                    told = self.run_script(script, *words, code=2)
                    for part in parts:
                        self.assertIn(part, told)


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main(verbosity=2)

"""Shared code of the tests of the scripts: a Slurm, a checkout next to it, and runs that can be interrupted, lost,
and compared with an undisturbed one."""

import json
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

import slurm_box

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77  # ctest shows this exit code as skipped
NO_GPU = "export CUDA_VISIBLE_DEVICES=-1"  # of a site: there is none behind Slurm's fake ones
# Minimum time of a step, so that the run lasts until the disturbance even on a fast machine.
PACE = {"STRATAGEM_FAIL": "forward:*:*:delay=10"}
CONFIG = """schema: 1
run: {{name: paced, threads: 1, max_steps: {steps}, epochs: 1000000, evaluate_every: 0, out: out}}
data: {{dataset: synthetic-digits, global_batch: 12, subset: 1200}}
model: {{name: mlp}}
strategy: {{name: {strategy}}}
checkpoint: {{every_steps: 50}}
trace: {{spans_every: 50}}
watchdog: {{floor_s: 3}}
"""


class ScriptTest(unittest.TestCase):
    """The tests of a class share a Slurm."""

    maxDiff = None
    program = None  # its path, from the command line
    steps = 200

    @classmethod
    def make_box(cls, folder):
        return slurm_box.SlurmBox(folder)

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="sbox-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.home = cls.folder / "home"
        shutil.copytree(ROOT / "slurm", cls.home / "slurm")
        shutil.copytree(ROOT / "inputs", cls.home / "inputs")
        cls.box = cls.make_box(cls.folder / "slurm")
        cls.box.environment.update(STRATAGEM=str(cls.program), USER="somebody")
        cls.addClassCleanup(cls.check_nothing_is_left)
        cls.addClassCleanup(cls.box.stop)
        cls.box.start()

    def setUp(self):
        begin = time.monotonic()
        self.addCleanup(lambda: print(f"{time.monotonic() - begin:.0f} s", end=" ", flush=True))

    @classmethod
    def check_nothing_is_left(cls):
        assert cls.box.processes() == {}, cls.box.processes()

    @classmethod
    def add_site(cls, name, gpus_per_node=2, **settings):
        """A site without GPUs; its settings are those of slurm/sites/generic.env."""
        size = {"site_gres": "", "site_cpus_per_gpu": 1, "site_memory_gb_per_gpu": 1}
        settings = {**size, "site_gpus_per_node": gpus_per_node, **settings}
        text = (cls.home / "slurm/sites/generic.env").read_text()
        text += "".join(f'{key}="{value}"\n' for key, value in settings.items())
        (cls.home / f"slurm/sites/{name}.env").write_text(text)

    @classmethod
    def extend_site(cls, name, *lines):
        """Later lines of a site's file hold. Returns the file."""
        site = cls.home / f"slurm/sites/{name}.env"
        site.write_text("\n".join([site.read_text().rstrip("\n"), *lines, ""]))
        return site

    @classmethod
    def shorten_preflight(cls, **axes):
        """On small images and one small model."""
        path = cls.home / "inputs/study/preflight.yaml"
        text = path.read_text().replace("cifar10", "synthetic-digits")
        for axis, values in {"model.name": "[mlp]", **axes}.items():
            text, found = re.subn(rf"\b{axis}: \[.*\]", f"{axis}: {values}", text)
            assert found, f"{path} has no {axis}"
        path.write_text(text)

    # ---- jobs ------------------------------------------------------------------------------------

    def submit(self, *words, site="hopper", environment=None):
        """Runs slurm/submit.sh; returns the job's number."""
        ended = self.box.run(
            self.home / "slurm/submit.sh", "--site", site, *words, cwd=self.folder, environment=environment
        )
        return re.fullmatch(r"job (\d+)\n", ended.stdout)[1]

    def submit_run(self, out, site, strategy="ddp", workers=2, steps=None):
        """Submits a run with slow steps; returns its job."""
        config = self.folder / f"{out.name}.yaml"
        config.write_text(CONFIG.format(steps=steps or self.steps, strategy=strategy))
        shape = ["--workers", workers, "--servers", 1 if strategy == "ps" else 0]
        return self.submit(*shape, "run", config, out, site=site, environment=PACE)

    def log_of(self, job):
        paths = [*self.folder.rglob("*.out"), *self.folder.rglob("*.log")]
        return "".join(path.read_text() for path in sorted(paths) if re.search(rf"-{job}\D", path.name))

    def check_state(self, end, state, code="0:0", restarts=0):
        told = (end["JobState"], end["ExitCode"], end["Restarts"])
        self.assertEqual(told, (state, code, str(restarts)), self.log_of(end["JobId"]))

    def await_pending(self, job, restarts=1, seconds=90):
        """Waits until it is queued again."""
        states = ("PENDING", "COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT")
        deadline = time.monotonic() + seconds
        while True:
            [now] = self.box.wait(job, max(1, deadline - time.monotonic()), states)
            if now["JobState"] != "PENDING" or now["Restarts"] == str(restarts):
                break
            time.sleep(0.2)
        self.assertEqual((now["JobState"], now["Restarts"]), ("PENDING", str(restarts)), self.log_of(job))

    # ---- runs ------------------------------------------------------------------------------------

    def new_out(self, name):
        return self.folder / f"{name}-{self.id().split('.')[-1]}"

    def outcome(self, run):
        return json.loads((run / "outcome.json").read_text())

    def straight(self, workers, steps):
        """The digest of the same run without a disturbance. It is the same for all synchronous strategies."""
        out = self.folder / f"straight-{workers}-{steps}"
        if not (out / "outcome.json").exists():
            config = self.folder / "straight.yaml"
            config.write_text(CONFIG.format(steps=steps, strategy="ddp"))
            words = ["mpirun", "--bind-to", "none", "-n", workers, self.program, "run", config, "-q", "--out", out]
            self.box.run(*words, timeout=120)
        return self.outcome(out)["digest"]

    def await_checkpoint(self, job, out, seconds=180):
        """Waits until the run has its first checkpoint and all its ranks exist."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if list(out.glob("checkpoint/step-*/manifest.json")) and self.box.ranks():
                return
            if self.box.show(job)[0]["JobState"] not in ("PENDING", "CONFIGURING", "RUNNING"):
                break
            time.sleep(0.2)
        self.fail(f"no checkpoint in {out}: {self.box.show(job)}\n{self.log_of(job)}")

    def check_failed(self, out, code, reason):
        outcome = self.outcome(out)
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", code), outcome)
        self.assertRegex(outcome["reason"], reason)

    def check_finished(self, out, attempt, workers=2, steps=None):
        """The run ended with the same bits as an undisturbed one, and the traces of all attempts can be read."""
        outcome = self.outcome(out)
        self.assertEqual((outcome["status"], outcome["attempt"]), ("COMPLETE", attempt), outcome)
        self.assertEqual(outcome["steps"], steps or self.steps)
        self.assertEqual(outcome["digest"], self.straight(workers, outcome["steps"]))
        if attempt > 0:
            self.assertGreater(outcome["began_after"], 0, "it went on from a checkpoint")
        self.box.run(self.program, "validate", out, timeout=60)

    def finish(self, job, out, restarts=1):
        """Starts a job again that was queued again."""
        self.box.start_again(job)
        [end] = self.box.wait(job, 120)
        self.check_state(end, "COMPLETED", restarts=restarts)
        self.check_finished(out, restarts)


def main(why_not=""):
    """`test.py PROGRAM [unittest's arguments]`. Skipped without Slurm, or for the given reason."""
    ScriptTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    if missing := slurm_box.missing_tools():
        why_not = f"{', '.join(missing)} not found (modules/bootstrap.sh test installs it)"
    if why_not:
        print(f"needs Slurm: {why_not}")
        sys.exit(SKIPPED)
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)

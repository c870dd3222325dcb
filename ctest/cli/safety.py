"""Who may write to a run's folders, which parts of the environment are recorded, and jobs that are started forever."""

import json
import os
import unittest

import harness
from harness import ENDLESS, mpirun, overridden

USAGE, ENVIRONMENT, UNUSABLE, NON_FINITE = 2, 3, 7, 84


class Places(harness.ProgramTest):
    """A run directory that other users could change is refused, and nothing is written."""

    def setUp(self):
        super().setUp()
        self.elsewhere = self.new_folder()

    def refused(self, out, words, *arguments, ranks=1):
        before = [harness.snapshot(folder) for folder in (self.folder, self.elsewhere)]
        ended = self.run_program("run", "config.yaml", "--out", out, *arguments, ranks=ranks)
        self.check_refused(ended, ENVIRONMENT, [f"run directory {out}", "is not safe", *words])
        self.assertEqual(
            [harness.snapshot(folder) for folder in (self.folder, self.elsewhere)], before
        )

    def test_a_link(self):
        (self.folder / "link").symlink_to(self.elsewhere)
        for arguments in [], ["--resume"], ["--overwrite"]:
            self.refused("link", ["it is a link", "--out"], *arguments)
        self.refused("link", ["it is a link"], ranks=2)

    def test_a_folder_for_all_to_write(self):
        for name, mode, out, word in [
            ("open", 0o777, "open", "chmod o-w"),
            ("shared", 0o777, "shared/run", "chmod +t"),
        ]:
            (self.folder / name).mkdir()
            (self.folder / name).chmod(mode)
            self.refused(out, [word])
        (self.folder / "shared").chmod(0o1777)
        self.expect(0, "run", "config.yaml", "--out", "shared/run")

    @unittest.skipUnless(os.geteuid() == 0, "needs a superuser, to give a folder away")
    def test_a_folder_of_another_user(self):
        (self.folder / "theirs").mkdir()
        os.chown(self.folder / "theirs", 4711, 4711)
        self.refused("theirs", ["user 4711"])

    def test_a_run_is_for_its_owner_alone(self):
        self.expect(0, "run", "config.yaml", "--out", "new/run")
        self.assertEqual((self.folder / "new" / "run").stat().st_mode & 0o777, 0o700)

    def test_names_that_lead_elsewhere(self):
        """Links with the names of files that will be written."""
        victim = self.elsewhere / "victim"
        victim.write_text("kept")
        out = self.folder / "out"
        (out / "trace").mkdir(parents=True)  # like a run that has only just begun
        for name in "log.txt", "metrics.csv":
            (out / name).symlink_to(victim)
            ended = self.run_program("run", "config.yaml", "--resume")
            self.assertEqual(ended.code, 6, str(ended))
            (out / name).unlink()
        for name in "config.yaml", "manifest.json":
            (out / name).unlink(missing_ok=True)
            (out / name).symlink_to(victim)
        self.expect(0, "run", "config.yaml", "--resume")
        self.assertEqual(victim.read_text(), "kept")


class Secrets(harness.ProgramTest):
    """Secrets of a shell or a job's script are not in files that are passed on."""

    token = "hunter2-Zq7"

    def test_environment(self):
        planted = dict.fromkeys(
            [
                "API_TOKEN",
                "AWS_SECRET_ACCESS_KEY",
                "HTTPS_PROXY",
                "OMPI_MCA_mca_base_env_list_extra",
                "SLURM_JOB_TOKEN",
                "SLURM_JWT",
                "STRATAGEM_PASSWORD",
                "NCCL_SECRET",
            ],
            self.token,
        )
        words = [self.program, *overridden("run.max_steps=3", "checkpoint.every_steps=2"), "-v"]
        launched = mpirun(2, words, "-x", f"LAUNCHED_WITH={self.token}")
        ended = self.run_words(launched, environment=planted | {"OMP_PROC_BIND": "false"})
        self.assertEqual(ended.code, 0, str(ended))
        self.check_kept()
        failed = self.run_words(
            [self.program, *overridden("optimizer.lr=1e30", "model.name=lenet", "run.out=failed")],
            environment=planted,
        )
        self.assertEqual(failed.code, NON_FINITE, str(failed))
        self.check_kept()
        kept = json.loads((self.folder / "out" / "manifest.json").read_text())["environment"]
        self.assertEqual(kept["OMP_PROC_BIND"], "false")  # otherwise the test could not fail

    def test_command_lines_that_are_refused(self):
        for words in ["--progress", self.token], ["-s", f"run.tocken={self.token}"]:
            self.check_refused(self.run_program("run", "config.yaml", *words), USAGE, [])
        self.check_kept()

    def check_kept(self):
        for path in self.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(self.token.encode(), path.read_bytes(), str(path))


class Requeued(harness.ProgramTest):
    """A job that a scheduler starts again and again."""

    def attempt(self, code, restarts, *settings):
        return self.expect(
            code,
            *overridden("model.name=lenet", *settings),
            "--resume",
            environment={"SLURM_RESTART_COUNT": str(restarts)},
        )

    def test_a_finished_one_ends_at_once(self):
        self.attempt(0, 0)
        before = harness.snapshot(self.folder)
        self.assertIn("nothing to do", self.attempt(0, 9).stderr)
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_one_that_does_not_get_on_is_given_up(self):
        for restarts in range(3):
            self.attempt(NON_FINITE, restarts, "optimizer.lr=1e30")
            self.assertEqual(self.outcome()["in_vain"], restarts)
        before = harness.snapshot(self.folder)
        ended = self.attempt(UNUSABLE, 3, "optimizer.lr=1e30")
        self.check_refused(
            ended, UNUSABLE, ["does not get on", "3 attempts in a row", "step 0", "not finite"]
        )
        self.assertEqual(harness.snapshot(self.folder), before)
        # A person who starts it again has seen the problem.
        self.expect(0, *overridden("model.name=lenet"), "--resume=compatible")

    def test_a_checkpoint_is_progress(self):
        settings = ["run.epochs=3", "checkpoint.every_steps=4", "checkpoint.at_end=false"]
        path = self.folder / "out" / "outcome.json"
        for restarts, steps in enumerate([5, 9, 13, 17, 21]):
            self.attempt(0, restarts, *settings, f"run.max_steps={steps}")
            outcome = json.loads(path.read_text())
            self.assertEqual((outcome["in_vain"], outcome["began_after"]), (0, steps - 5))
            path.write_text(json.dumps(outcome | {"status": "FAILED"}))


if __name__ == "__main__":
    harness.main()

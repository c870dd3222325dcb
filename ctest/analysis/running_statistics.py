"""Running statistics of a server's model: what is trained, kept and shown. What evaluates needs torch; a module with
made accuracies stands in for it, and ctest/oracle/batch_norms.py tests it."""

import contextlib
import io
import json
import os
import sys
import types
import unittest.mock

from made_program import Scripts  # first: it makes the other folders known
import harness
import running_statistics

# Stands in for `mpirun ... stratagem run CONFIG --out OUT ...`: saves, and reports an accuracy of 75 %.
FAKE = """#!{python} -SE
import json, pathlib, sys

words = sys.argv[1:]
if words[0] == "--version":
    print({version!r})
    sys.exit()
config, out = json.load(open(words[1])), pathlib.Path(words[words.index("--out") + 1])
with open("asked.jsonl", "a") as file:
    file.write(json.dumps(config) + "\\n")
if config["strategy"]["mode"] == "dc" and config["run"]["seed"] == 2:
    sys.exit(84)
if config["strategy"]["mode"] == "ssp":
    sys.exit("error: refused by the program")
(out / "checkpoint" / f"step-{{config['checkpoint']['every_steps']:09}}").mkdir(parents=True)
(out / "metrics.csv").write_text("epoch,test_accuracy\\n0,0.75\\n1,0.1\\n")
"""


def made_accuracies(averaged):
    """A module that evaluates; the accuracy with statistics of a batch tells the number of workers."""

    def accuracies(name, checkpoint, workers, images, labels, batch):
        assert checkpoint.is_dir()
        return {"averaged": averaged, "worker": 0.5, "initial": 0.125, "batch": workers / 10}

    return types.SimpleNamespace(accuracies=accuracies, read_mnist=lambda root, count: (None, None))


class RunningStatistics(Scripts):
    few = ["--models", "resnet50", "--data", "data", "--subset", "640", "--seeds", "2", "--json", "kept.json"]

    def setUp(self):
        super().setUp()
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)

    def make_fake(self, version):
        self.fake.write_text(FAKE.format(python=sys.executable, version=version))
        self.fake.chmod(0o755)

    def measure(self, *arguments, averaged=0.75):
        """The script in this process, with the stand-ins; what it prints, and why it ended."""
        words = ["running_statistics.py", *arguments, "--program", str(self.fake)]
        words += ["--launcher", "env RANKS={ranks}"]
        printed, problem = io.StringIO(), None
        with contextlib.ExitStack() as stack:
            stack.enter_context(unittest.mock.patch.object(sys, "argv", words))
            stack.enter_context(unittest.mock.patch.dict(sys.modules, batch_norms=made_accuracies(averaged)))
            stack.enter_context(contextlib.redirect_stdout(printed))
            try:
                running_statistics.main()
            except SystemExit as ended:
                problem = str(ended)
        return types.SimpleNamespace(stdout=printed.getvalue(), problem=problem)

    def test_each_row_has_four_accuracies(self):
        ended = self.measure(*self.few, "--workers", "1", "2")
        self.assertIsNone(ended.problem)
        rows = self.rows(ended)
        self.assertEqual([(row["W"], row["mode"]) for row in rows], [("1", "sync"), ("2", "sync"), ("2", "async")])
        row = rows[2]
        told = [row[title] for title in ("averaged %", "worker 0 %", "initial %", "batch %")]
        self.assertEqual(told, ["75.00 ± 0.00", "50.00 ± 0.00", "12.50 ± 0.00", "20.00 ± 0.00"])
        self.assertIn("640 images of MNIST at 32 pixels, 1 epoch, 64 images per step", ended.stdout)
        self.assertNotIn("The program's own accuracy", ended.stdout)

    def test_the_end_of_the_last_epoch_is_saved(self):
        self.measure(*self.few, "--modes", "async", "--epochs", "3")
        for config in self.asked():
            self.assertEqual(config["checkpoint"]["every_steps"], 30)
            self.assertEqual((config["run"]["epochs"], config["run"]["max_steps"]), (4, 31))
            self.assertEqual(config["run"]["evaluate_every"], 0)

    def test_recorded_accuracies_need_neither_training_nor_torch(self):
        first = self.measure(*self.few).stdout
        count = len(self.asked())
        recorded = self.script("running_statistics.py", *self.few, "--recorded").stdout
        self.assertEqual((recorded, len(self.asked())), (first, count))
        values = [0.9, 0.8]
        kept = json.loads((self.folder / "kept.json").read_text())
        for row in kept["trainings"]:
            row["result"]["initial"] = values[row["training"]["seed"] - 1]
        (self.folder / "kept.json").write_text(json.dumps(kept))
        ended = self.script("running_statistics.py", *self.few, "--recorded")
        self.assertEqual({row["initial %"] for row in self.rows(ended)}, {"85.00 ± 7.07"})

    def test_what_the_file_lacks_is_told(self):
        self.measure(*self.few)
        ended = self.script("running_statistics.py", *self.few, "--workers", "4", "--recorded", code=1)
        self.assertIn("kept.json lacks some of the trainings", ended.stderr)
        ended = self.script("running_statistics.py", *self.few, "--images", "9", "--recorded", code=1)
        self.assertIn("kept.json has trainings with another --images", ended.stderr)
        ended = self.script("running_statistics.py", "--recorded", code=2)
        self.assertIn("--recorded needs the file of an earlier --json", ended.stderr)

    def test_the_program_must_find_the_same_accuracy_on_all_images(self):
        ended = self.measure(*self.few, "--images", "0", averaged=0.7505)
        self.assertIn("The program's own accuracy is within 0.05 points", ended.stdout)
        self.assertEqual({config["run"]["evaluate_every"] for config in self.asked()}, {1})
        ended = self.measure(*self.few[:-1], "other.json", "--images", "0", averaged=0.752)
        self.assertIn("the program reports 75.00 %", ended.problem)
        self.assertIn("75.20 %: more than rounding", ended.problem)

    def test_diverged_and_refused_trainings_are_told(self):
        ended = self.measure(*self.few, "--modes", "dc")
        self.assertEqual(self.rows(ended)[0]["seeds"], "1 (1 more diverged)")
        self.assertIn("refused by the program", self.measure(*self.few, "--modes", "ssp").problem)

    def test_bad_options_are_named(self):
        for words, told in [
            (["--data", "data", "--subset", "63"], "--subset 63: at least one step of --batch 64 images"),
            ([], "name the folder that contains mnist/, or set STRATAGEM_DATA"),
        ]:
            self.assertIn(told, self.script("running_statistics.py", *words, code=2).stderr)

    def test_the_program_accepts_the_configuration(self):
        self.measure(*self.few, "--modes", "async", "--workers", "2")
        (self.folder / "asked.yaml").write_text(json.dumps(self.asked()[0]))
        self.expect(0, "plan", "asked.yaml", "--ranks", "3", "--no-activations")


if __name__ == "__main__":
    harness.main()

"""Tables and transcripts in documents are what the recorded data, or the program, says."""

import contextlib
import io
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import support
import harness
import recorded  # of analysis/

SCRIPT = support.ANALYSIS / "recorded.py"
DOCUMENT = """# Results
<!-- recorded: bench/report.py {data} -->
{table}<!-- end of recorded -->
more
"""
TABLE = "| model | ratio |\n| --- | ---: |\n| lenet | 1.25 |\n"
DATA = {
    "machine": {},
    "columns": {"model": "{model}", "ratio": "{ratio:.2f}"},
    "rows": [{"model": "lenet", "ratio": 1.25}],
}

NUMBER = re.compile(r"\d+(?:\.\d+)?")
NEAR = 0.02  # by how much peaks differ that are planned on other processors: their kernels need other temporary memory
PLAN_S = 300


def run(*words):
    return subprocess.run([sys.executable, "-B", SCRIPT, *words], capture_output=True, text=True)


class Recorded(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = pathlib.Path(folder.name) / "data.json"
        self.data.write_text(json.dumps(DATA))
        self.document = pathlib.Path(folder.name) / "document.md"

    def write(self, table):
        self.document.write_text(DOCUMENT.format(data=self.data, table=table))

    def test_the_documents_here(self):
        ended = run()
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)

    def test_a_table_that_differs_is_shown_and_written_again(self):
        self.write(TABLE.replace("1.25", "1.52"))
        ended = run(self.document)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("-| lenet | 1.52 |\n+| lenet | 1.25 |", ended.stdout)
        self.assertEqual(run("--write", self.document).returncode, 0)
        self.assertEqual(self.document.read_text(), DOCUMENT.format(data=self.data, table=TABLE))
        self.assertEqual(run(self.document).returncode, 0)

    def test_a_table_without_an_end_is_refused(self):
        self.document.write_text("<!-- recorded: bench/report.py x.json -->\n| a |\n")
        ended = run(self.document)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("1 tables begin, 0 of them end", ended.stderr)

    def test_a_command_that_fails_is_named(self):
        self.data.unlink()
        self.write(TABLE)
        ended = run(self.document)
        self.assertEqual(ended.returncode, 1)
        self.assertIn(f"bench/report.py {self.data}: exit code", ended.stderr)

    def test_a_table_of_numbers_without_marks_is_shown(self):
        self.write(TABLE)
        self.assertEqual(self.told_of_recorded(), (0, ""))
        for table in TABLE, "  " + TABLE.replace("\n|", "\n  |"):
            self.write(TABLE)
            with self.document.open("a") as file:
                file.write(f"\n{table}\n| model |\n| --- |\n| vgg |\n")
            told = f"{self.document}: a table of numbers without '<!-- recorded: ...':\n{table}"
            self.assertEqual(self.told_of_recorded(), (1, told))

    def told_of_recorded(self):
        """Exit code and output for the document as one whose tables all have marks."""
        told = io.StringIO()
        with (
            unittest.mock.patch.object(recorded, "RECORDED", [self.document.resolve()]),
            unittest.mock.patch.object(sys, "argv", [str(SCRIPT), str(self.document)]),
            contextlib.redirect_stdout(told),
        ):
            return recorded.main(), told.getvalue()


class Transcripts(harness.ProgramTest):
    def test_plan_compares(self):
        """Of the README's command, and of the same one in PLANNING.md. The README shows a part."""
        shown = {document: self.transcript(document) for document in ("README.md", "inputs/PLANNING.md")}
        ((command, _), (same, _)) = shown.values()
        self.assertEqual(command, same)
        words = [self.program if word == "build/stratagem" else word for word in shlex.split(command)]
        ended = self.wait(self.start(words, folder=support.ROOT), timeout=PLAN_S)
        self.assertEqual(ended.code, 0, str(ended))
        self.assertIn("small passes of the model are run", ended.stderr)  # they take seconds
        for document, (_, lines) in shown.items():
            told = iter(ended.stdout.splitlines())
            for line in lines:
                self.assertTrue(any(alike(line, other) for other in told), f"{document}: {line}\n{ended}")

    def transcript(self, document):
        """The command that compares strategies, and the lines shown of what it prints."""
        blocks = support.blocks_of(document)
        (lines,) = (lines for lines in blocks if "--compare" in "".join(lines[:2]) and lines[0][0] == "$")
        command, *output = "\n".join(lines).replace("\\\n", "").splitlines()
        return command.removeprefix("$ "), [line for line in output if line not in ("", "...")]


class Ratios(unittest.TestCase):
    def test_of_two_predicted_steps(self):
        """The table is that of the cells below it, and the program says "not told apart" by it."""
        sys.path.insert(0, str(support.ANALYSIS / "bench"))
        import step_time

        text = support.text_of("analysis/bench/STEP_TIME.md")
        cells = support.rows_of(text[text.index("| part | model |") :])
        rows = [
            ((row["part"], row["model"], row["workers"], row["batch"]), row["strategy"])
            + tuple(float(row[name]) / 1e3 for name in ("predicted ms", "step ms"))
            for row in cells
        ]
        with contextlib.redirect_stdout(io.StringIO()) as told:
            step_time.ratios(rows)
        self.assertIn(told.getvalue(), text)
        source = support.text_of("lib/predict/time/step_time.cpp")
        (said,) = re.findall(r"short_step_s \? ([\d.]+) : ([\d.]+);", source)
        errors = step_time.ratio_errors(rows)
        for short, error in zip((True, False), map(float, said)):
            self.assertGreaterEqual(error, step_time.quantile(errors[short], 0.9))
            self.assertLess(error, step_time.quantile(errors[short], 0.9) + 0.01)


class Calibrations(harness.ProgramTest):
    def test_how_far_times_from_figures_are_off(self):
        """The table in the calibrations' README is what `plan` says, and what was measured on a GPU."""
        measured = {
            (row["model"], str(row["pixels"]), row["precision"]): row["ours_ms"]
            for row in json.loads((support.ANALYSIS / "bench/data/gpu_vs_graph_h100.json").read_text())["rows"]
        }
        text = support.text_of("inputs/calibrations/README.md")
        part = text[text.index("| model | pixels | precision | measured ms") : text.index("The formulas' figures")]
        rows = support.rows_of(part)
        self.assertEqual({(row["model"], row["pixels"], row["precision"]) for row in rows}, set(measured))
        for row in rows:
            settings = {"strategy.name": "serial", "data.global_batch": 128, "model.name": row["model"],
                        "data.input_size": row["pixels"], "precision.compute": row["precision"]}
            words = [word for key, value in settings.items() for word in ("-s", f"{key}={value}")]
            told = self.expect(0, "plan", support.ROOT / "inputs/smoke/cifar-vgg16-ddp.yaml", *words, "--ranks", "1",
                               "--calibration", "h100-sxm5", "--no-activations", "--json")
            predicted = 1e3 * json.loads(told.stdout)["time"]["step_s"]
            took = measured[row["model"], row["pixels"], row["precision"]]
            self.assertEqual(
                (row["measured ms"], row["predicted ms"], row["ratio"]),
                (f"{took:.2f}", f"{predicted:.2f}", f"{predicted / took:.1f}"),
            )


def alike(line, other):
    """Whether two lines have the same words, and nearly the same numbers. Whole percents may be rounded otherwise."""
    words, numbers = zip(*((NUMBER.sub("#", one).split(), list(NUMBER.finditer(one))) for one in (line, other)))
    return words[0] == words[1] and all(
        abs(float(a[0]) - float(b[0])) <= max(NEAR * max(float(a[0]), float(b[0])), line[a.end() :].startswith(" %"))
        for a, b in zip(*numbers)
    )


if __name__ == "__main__":
    harness.main()

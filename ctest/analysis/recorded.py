"""Tables, figures and transcripts in documents are what the recorded data, or the program, says."""

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
from stratagem_report import checks_arithmetic

ROOT = support.ANALYSIS.parent
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


def recorded_data(name):
    return json.loads((support.ANALYSIS / "bench/data" / f"{name}.json").read_text(encoding="utf-8"))


def text_of(document):
    return (ROOT / document).read_text(encoding="utf-8")


def blocks_of(document):
    """Lines of each block of code."""
    blocks = re.findall(r"^```\n(.*?)^```$", text_of(document), re.DOTALL | re.MULTILINE)
    return [block.splitlines() for block in blocks]


class Figures(unittest.TestCase):
    """Figures that sentences quote."""

    def check(self, document, *quoted):
        text = " ".join(text_of(document).split())
        for words in quoted:
            self.assertIn(words, text)

    def test_readme(self):
        rows, since = (recorded_data(f"ddp_vs_torch_h100{part}")["rows"] for part in ("", "_since"))
        least, *_, greatest = sorted(rows, key=lambda row: row["ratio"])
        (now,) = (row for row in since if all(row[key] == least[key] for key in ("model", "pixels")))
        self.check(
            "README.md",
            f"[{least['ratio']:.2f} to {greatest['ratio']:.2f} times PyTorch's images per second]",
            f"least with {least['model'].upper()} at {least['pixels']} pixels ({now['ratio']:.2f} since)",
        )

    def test_results(self):
        waited_s = max(row["waited_s"] for row in recorded_data("checkpoint_cost")["rows"])
        share = 100 * waited_s / (30 * 60)
        self.check("analysis/bench/RESULTS.md", f"interval of 30 minutes, this is at most {share:.2f} % of the time")

    def test_findings(self):
        one_rank = [row for row in recorded_data("fsdp_vs_ddp")["rows"] if row["ranks"] == 1]
        ratios = [row["ratio"] for row in one_rank]
        self.assertEqual(len({row["model"] for row in one_rank}), 5)
        images = {(row["model"], row["mode"]): row for row in recorded_data("ps_study")["rows"]}
        models = {model for model, _ in images}
        sync_is_faster = [
            images[model, "sync"][rate] > images[model, "async"][rate]
            for model in models
            for rate in ("images_per_s_1", "images_per_s_2", "images_per_s_4")
        ]
        self.check(
            "analysis/published/FINDINGS.md",
            f"{min(ratios):.2f} to {max(ratios):.2f} times DDP's images per second on five models",
            f"sync makes more images per second in {sum(sync_is_faster)} of {len(sync_is_faster)} pairs",
        )

    def test_findings_of_servers(self):
        modes = modes_of("ps_modes")
        for workers in "4", "8":
            self.assertIn("underpowered", verdict_of(modes[workers, "async"])[0])
        transferred = modes["8", "async"]["at the lr for W=4"]
        rows = {row["mode"]: row["accuracy %"] for row in table_of("analysis/PS.md", "data/ps_small_batch_4.json")}
        small_steps = [rows[mode].split()[0] for mode in ("async,workers=1", "async")]
        statistics = table_of("analysis/PS.md", "data/running_statistics.json")
        initial = [float(row["initial %"].split()[0]) for row in statistics]
        self.check(
            "analysis/published/FINDINGS.md",
            f"async loses {lost(modes['16', 'async']):.1f} points at 16 workers, and no difference is found at 4 and 8",
            f"it has {float(transferred):.1f} % at 8",
            "reach {:.1f} % with one worker, and {:.1f} % with four".format(*map(float, small_steps)),
            f"guess ({min(initial):.1f} to {max(initial):.1f} %)",
        )

    def test_findings_of_longer_trainings(self):
        modes, longest = modes_of("ps_plateau"), modes_of("ps_plateau_32")
        (verdict, margin), (later, _) = (verdict_of(modes[workers, "async"]) for workers in ("16", "32"))
        self.assertEqual((verdict, later), ("equivalent", "worse"))
        self.assertIn("underpowered", verdict_of(longest["32", "async"])[0])
        self.check(
            "analysis/published/FINDINGS.md",
            f"async is equivalent to sync at 16 workers ({-lost(modes['16', 'async']):+.2f} points)",
            f"{lost(modes['32', 'async']):.2f} points below it at 32",
            f"equivalent means within {margin} points",
        )

    def test_sentences_about_servers(self):
        """Of PS.md, what its conclusions rest on."""
        modes, longer, cifar = map(modes_of, ("ps_modes", "ps_plateau", "ps_cifar10"))
        sync, moved = modes["8", "sync"]["accuracy %"].split()[0], modes["8", "async"]["at the lr for W=4"]
        least, most = (lost(modes["16", mode]) for mode in ("dana", "async"))
        of_async = longer["32", "async"]
        self.check(
            "analysis/PS.md",
            f"With what is best for 4 workers, async loses {float(sync) - float(moved):.0f} points at 8.",
            f"every asynchronous mode is {least:.1f} to {most:.0f} points behind",
            f"Async is {lost(of_async):.1f} points below sync,"
            f" and still gains {float(of_async['gained in the last quarter']):.1f} in the last three epochs.",
            f"`modified` is {lost(longer['32', 'modified']):.2f} below",
            f"and async loses {lost(cifar['4', 'async']):.0f} points.",
        )

    def test_kernels_that_the_host_launches(self):
        rows = recorded_data("ddp_vs_torch_h100")["rows"]
        tf32 = {row["model"]: row for row in rows if row["precision"] == "tf32"}
        rates = [tf32[model]["ours_images_per_s"] for model in ("resnet50", "densenet121")]
        self.check("analysis/published/FINDINGS.md", "128 images at {:,} and {:,} per second".format(*rates))
        for model, seconds in checks_arithmetic.HOST_BOUND.items():
            self.assertEqual(seconds, tf32[model]["batch_per_rank"] / tf32[model]["ours_images_per_s"])

    def test_demo(self):
        data = recorded_data("demo")
        (lines,) = (lines for lines in blocks_of("README.md") if "what this says:" in lines)
        titles, _, *rows = (re.split(r" {2,}", line) for line in lines[: lines.index("...")])
        self.assertEqual(titles, list(data["columns"]))
        self.assertEqual(rows, [[form.format(**row) for form in data["columns"].values()] for row in data["rows"]])
        self.check("README.md", fastest_of(data["rows"]), f"differed by up to {100 * data['epochs_differed_by']:.0f} %")


def table_of(document, data):
    """The rows of the table that is printed from a file of data, as texts by title."""
    (block,) = (found for found in recorded.BLOCK.finditer((ROOT / document).read_text()) if data in found["command"])
    return support.rows_of(block["table"])


def modes_of(data):
    """The rows of a table of server modes in PS.md: {(workers, mode): row}."""
    return {(row["W"], row["mode"]): row for row in table_of("analysis/PS.md", f"data/{data}.json")}


def lost(row):
    """Points below the baseline."""
    return -float(row["difference"].split()[0])


def verdict_of(row):
    """Its verdict, and the margin that the title tells."""
    (title,) = (title for title in row if title.startswith("verdict"))
    return row[title], title.rsplit(maxsplit=1)[1]


def fastest_of(rows):
    """As the program says it."""
    fastest = max(rows, key=lambda row: row["images_per_s"])
    rate = fastest["images_per_s"]
    first, *others = (
        f"{row['run']} {100 * (1 - row['images_per_s'] / rate):.0f} %" for row in rows if row is not fastest
    )
    return f"fastest: {fastest['run']} with {rate} images/s; {', '.join([f'{first} slower', *others])}"


class Transcripts(harness.ProgramTest):
    def test_plan_compares(self):
        """Of the README's command, and of the same one in PLANNING.md. The README shows a part."""
        shown = {document: self.transcript(document) for document in ("README.md", "inputs/PLANNING.md")}
        ((command, _), (same, _)) = shown.values()
        self.assertEqual(command, same)
        words = [self.program if word == "build/stratagem" else word for word in shlex.split(command)]
        ended = self.wait(self.start(words, folder=ROOT), timeout=PLAN_S)
        self.assertEqual(ended.code, 0, str(ended))
        for document, (_, lines) in shown.items():
            told = iter(ended.stdout.splitlines())
            for line in lines:
                self.assertTrue(any(alike(line, other) for other in told), f"{document}: {line}\n{ended}")

    def transcript(self, document):
        """The command that compares strategies, and the lines shown of what it prints."""
        (lines,) = (lines for lines in blocks_of(document) if "--compare" in "".join(lines[:2]) and lines[0][0] == "$")
        command, *output = "\n".join(lines).replace("\\\n", "").splitlines()
        return command.removeprefix("$ "), [line for line in output if line not in ("", "...")]


def alike(line, other):
    """Whether two lines have the same words, and nearly the same numbers."""
    words, numbers = zip(*((NUMBER.sub("#", one).split(), map(float, NUMBER.findall(one))) for one in (line, other)))
    return words[0] == words[1] and all(abs(a - b) <= NEAR * max(a, b) for a, b in zip(*numbers))


if __name__ == "__main__":
    harness.main()

"""The report of a small study is complete, and shows what is missing or unusual."""

import csv
import json
import math
import os
import re
import shutil
import sys

import support
import harness
from stratagem_report import checks, compare, conditions, document, evidence, inference, parts, study
from stratagem_report.errors import ReportError

USAGE, ENVIRONMENT, IO = 2, 3, 6
# No improvement of asynchronous training was run, nothing sends less, and no worker was slowed.
TABLES = [f"T{number}" for number in range(16) if number not in (4, 12, 13)]
# Figures of a family have its name; of the others, every report of such a study has one. F11 needs several models, F14
# several batch sizes, F4 runs that are long enough for several samples of the device.
FIGURES = ["F0", "F1", "F2", "F3", "F5", "F6", "F7", "F8", "F9", "F10", "F12", "F13", "F15", "F17"]
PNG, PDF = b"\x89PNG", b"%PDF"
OUTSIDE = re.compile(r"""(?:src|href)=["'](?!data:|#)""")


def calibration():
    """A file as `stratagem calibrate` would write it, for a machine with simple numbers."""
    kind = {"model": "lenet", "classes": 10, "channels": 1, "size": 32, "memory_format": "channels_last"}
    kind |= {"precision": "fp32", "recompute": 0, "dropout": True, "threads": 1, "ranks_on_node": 1}
    passes = [{"samples": 1, "seconds": 0.001}]
    moved = [{"bytes": 1000, "seconds": 1e-6}]
    operations = "all_reduce", "reduce_scatter", "all_gather", "send_receive"
    return {
        "schema_name": "stratagem-calibration",
        "schema_version": 2,
        **{name: "x" for name in ("host", "device", "version", "libtorch", "mpi", "measured")},
        "on_gpu": False,
        "cores": 2,
        "passes": [{**kind, "optimizer_s": 0.001, "forward": passes, "backward": passes}],
        "operations": [
            {"operation": name, "backend": "mpi", "ranks": 2, "ranks_per_node": 2, "time": moved}
            for name in operations
        ],
        "servers": [
            {"work": work, "push": [{"elements": 1000, "seconds": 1e-6}]} for work in ("sum", "each")
        ],
        "savings": [{"ranks_on_node": 2, "time": [{"bytes": 1000, "seconds": 0.001}]}],
        "activations": [],
    }


class Report(support.StudyTest):
    cells = [
        ("serial", 1, 1),
        ("ddp", 1, 1),
        ("fsdp", 1, 1),
        ("ps-async", 1, 1),
        ("ddp", 2, 1),
        ("ddp", 2, 2),
        ("fsdp", 2, 1),
        ("ps-sync", 2, 1),
        ("ps-async", 2, 1),
    ]

    def setUp(self):
        super().setUp()
        rows = [
            support.describe(index, *cell)
            for index, cell in enumerate([*self.cells, ("ps-sync", 2, 2), ("fsdp", 4, 1)])
        ]
        support.write_cells(self.study, rows)
        failed = self.study / rows[-1]["cell"]
        failed.mkdir()
        shutil.copy(self.study / rows[0]["cell"] / "config.yaml", failed)
        outcome = json.loads((self.study / rows[0]["cell"] / "outcome.json").read_text())
        outcome.update(
            status="FAILED",
            exit_code=86,
            exit_code_meaning="out of memory",
            reason="rank 2 ran out of memory",
        )
        (failed / "outcome.json").write_text(json.dumps(outcome))

    def test_everything_is_there(self):
        (self.study / "calibration.json").write_text(json.dumps(calibration()))
        ended = self.report("study", "--program", self.program)
        self.assertEqual(ended.code, 0, str(ended))
        self.assertIn("9 of 11 cells", ended.stdout)
        report = self.study / "report"
        self.check_figures(report)
        self.check_tables(report)
        self.check_html((report / "report.html").read_text(encoding="utf-8"))

    def check_figures(self, report):
        text = (report / "report.md").read_text(encoding="utf-8")
        linked = re.findall(r"\]\(figures/(.*?)\.png\)", text)
        self.assertEqual(
            sorted(linked), sorted(path.stem for path in (report / "figures").glob("*.png"))
        )
        for name in FIGURES:
            self.assertTrue(
                [figure for figure in linked if figure.startswith(f"{name}-")], f"{name} is missing"
            )
        for name in linked:
            for suffix, magic in (".png", PNG), (".pdf", PDF), (".csv", b""):
                content = (report / "figures" / f"{name}{suffix}").read_bytes()
                self.assertTrue(content.startswith(magic), f"{name}{suffix}")
            self.assertGreater(content.count(b"\n"), 1, f"{name}.csv has no rows")

    def check_tables(self, report):
        self.assertEqual(
            sorted(path.stem for path in (report / "tables").glob("*.csv")), sorted(TABLES)
        )
        for name in TABLES:
            self.assertIn(
                "\\toprule", (report / "tables" / f"{name}.tex").read_text(encoding="utf-8")
            )
            self.assertTrue(self.table(name), name)
        missing = {row["cell"]: (row["state"], row["reason"]) for row in self.table("T8")}
        self.assertEqual(
            missing,
            {
                "head-lenet-ps-sync-w2-s2": ("missing", "not started"),
                "head-lenet-fsdp-w4-s1": ("failed", "out of memory (86): rank 2 ran out of memory"),
            },
        )
        self.assertEqual({row["verdict"] for row in self.table("T10")}, {"all equal"})
        ddp = next(
            row for row in self.table("T1") if (row["strategy"], row["workers"]) == ("DDP", "2")
        )
        self.assertEqual((ddp["runs"], ddp["training s n"]), ("2", "2"))
        for row in self.table("T9"):
            self.assertEqual(row["state planned MiB"], row["state measured MiB"], row)
            planned, measured = (float(row[f"step {what} ms"]) for what in ("planned", "measured"))
            self.assertGreater(min(planned, measured), 0, row)
            self.assertAlmostEqual(float(row["step error %"]), 100 * (measured / planned - 1), 3)
            if (row["strategy"], row["workers"]) == ("serial", "1"):
                self.assertAlmostEqual(planned, 2 * 24 + 1, 6)

    def check_html(self, html):
        self.assertIsNone(OUTSIDE.search(html), "the page needs nothing but itself")
        for name in TABLES:
            self.assertIn(f'id="{name}"', html)
        parts = "On 2 workers, fastest", 'id="T0"', 'id="F0', 'id="T6"', 'id="claims"'
        order = [html.index(part) for part in parts]
        self.assertEqual(order, sorted(order), "the answer first, claims last")
        self.assertIn("claims of arXiv 2505.12832 are not shown", html)
        self.assertNotIn("emulator", html)
        self.assertNotIn("<th>comparison</th>", html, "it is the same in all rows")

    def test_calibrations_that_are_none(self):
        (self.study / "calibration.json").write_text("{}")
        for words in ["study", "--program", self.program], ["study", "--calibration", "no.json"]:
            ended = self.report(*words)
            self.assertEqual(ended.code, USAGE, str(ended))
            self.assertIn("calibration", ended.stderr)

    def test_runs_have_what_decides_whether_they_match(self):
        made = compare.compare(study.load(self.study, program=self.program), {})
        cells = evidence.Evidence(made).cells
        self.assertEqual(list(cells["kind"]), list(cells["variant"]))
        self.assertEqual(set(cells["differing"]), {""})
        self.assertEqual(cells["fingerprint"].nunique(), 1)
        self.assertEqual(set(conditions.whole_epochs(cells)), {2})
        self.assertFalse(cells["unsound"].any())
        found = {finding.number: finding for finding in checks.findings(made, parts.Attempts())}
        self.assertEqual((found["a"].verdict, found["e"].verdict), ("holds", "not testable here"))

    def spoil(self, cell, name, change):
        """Changes a JSON file in a cell's run directory."""
        path = self.study / cell / name
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    def test_mixed_programs(self):
        self.spoil(
            "head-lenet-ddp-w2-s1",
            "manifest.json",
            lambda manifest: manifest["build"].update(git_sha="0ther"),
        )
        ended = self.report("study")
        self.assertEqual(ended.code, USAGE, str(ended))
        for word in "0ther", "head-lenet-ddp-w2-s1", "--allow-mixed":
            self.assertIn(word, ended.stderr)
        self.assertFalse((self.study / "report").exists())
        marked = study.load(self.study, allow_mixed=True, program=self.program)
        self.assertIn("0ther", marked.marks[0])
        self.assertIn("MIXED", "\n".join(document.what_ran(compare.compare(marked, {}))))

    def test_mixed_configurations(self):
        configs = self.study / "configs"
        configs.mkdir()
        for cell in "head-lenet-ddp-w2-s1", "head-lenet-ddp-w2-s2":
            shutil.copy(self.study / cell / "config.yaml", configs / f"{cell}.yaml")
        study.load(self.study, program=self.program)
        path = configs / "head-lenet-ddp-w2-s2.yaml"
        path.write_text(path.read_text().replace("lr: 0.01", "lr: 0.1"))
        with self.assertRaisesRegex(ReportError, "head-lenet-ddp-w2-s2 .*optimizer.lr"):
            study.load(self.study, program=self.program)

    def test_damaged_traces_are_named(self):
        traces = self.study / "head-lenet-ddp-w2-s1" / "trace" / "a0"
        whole = (traces / "rank-0001.h5").read_bytes()
        alone = self.study / "head-lenet-ddp-w1-s1" / "trace" / "a0" / "rank-0000.h5"
        for damage, word in [
            (whole[: len(whole) // 2], "left out"),
            (b"", "left out"),
            (None, "rank 1 of 2 has no trace"),
        ]:
            with self.subTest(word, size=len(damage or b"")):
                (traces / "rank-0001.h5").unlink()
                if damage is not None:
                    (traces / "rank-0001.h5").write_bytes(damage)
                loaded = study.load(self.study, program=self.program)
                self.assertTrue(
                    [
                        text
                        for cell, text in loaded.remarks
                        if cell == "head-lenet-ddp-w2-s1" and word in text
                    ],
                    loaded.remarks,
                )
                self.assertIn("head-lenet-ddp-w2-s1", loaded.runs)
                (traces / "rank-0001.h5").write_bytes(whole)
        alone.write_bytes(b"not a trace")
        loaded = study.load(self.study, program=self.program)
        state = loaded.cells.set_index("cell").loc["head-lenet-ddp-w1-s1"]
        self.assertEqual(state["state"], "unreadable")
        self.assertIn("rank-0000.h5", state["reason"])

    def test_nothing_else_is_replaced(self):
        self.assertEqual(self.report("study", "-o", "study").code, USAGE)
        self.assertTrue((self.study / "cells.csv").exists())

    def test_timeline(self):
        ended = self.report("study/head-lenet-ddp-w2-s1", "-o", "step.svg", script="timeline.py")
        self.assertEqual(ended.code, 0, str(ended))
        drawn = (self.folder / "step.svg").read_text()
        for word in "rank 0 compute", "rank 1 comm", "gradients under way":
            self.assertIn(word, drawn)
        ended = self.report("study/head-lenet-ddp-w2-s1", "-o", "step.odd", script="timeline.py")
        self.assertEqual(ended.code, IO)
        self.assertIn("step.odd cannot be written", ended.stderr)
        ended = self.report("study/head-lenet-ddp-w2-s1", "--step", "7", script="timeline.py")
        self.assertEqual(ended.code, USAGE)
        self.assertIn("step 7 was not kept", ended.stderr)


    def test_timelines_replace_pictures_alone(self):
        words = ["study/head-lenet-ddp-w2-s1", "-o"]
        for kind in "svg", "png", "pdf":
            self.assertEqual(self.report(*words, f"own.{kind}", script="timeline.py").code, 0)
            again = self.report(*words, f"own.{kind}", script="timeline.py")
            self.assertEqual(again.code, 0, str(again))
            self.assertIn(f"own.{kind} (replaced)", again.stdout)
        (self.folder / "notes.svg").write_text("precious")
        (self.folder / "folder.svg").mkdir()
        (self.folder / "nothing.svg").symlink_to("none")
        os.mkfifo(self.folder / "pipe.svg")
        for name in "notes.svg", "folder.svg", "nothing.svg", "pipe.svg":
            ended = self.report(*words, name, script="timeline.py")
            self.check_ended(ended, USAGE, f"{name} is there already")
        self.assertEqual((self.folder / "notes.svg").read_text(), "precious")
        self.assertTrue((self.folder / "pipe.svg").is_fifo())

    def test_output_that_is_not_written(self):
        """It is one line and a code; characters that a terminal lacks are no error."""
        reporting = f"report.py study --program {self.program} -o 'großer Bericht'"
        drawing = "timeline.py study/head-lenet-ddp-w2-s1 -o 'großes Bild.svg'"
        for words, output in (reporting, "großer Bericht"), (drawing, "großes Bild.svg"):
            with self.subTest(words):
                words = f"{sys.executable} -B {support.ANALYSIS}/{words}"
                ended = self.run_words(["bash", "-c", f"{words} > /dev/full"])
                self.check_ended(ended, IO, "cannot write all of the output to stdout")
                self.assertTrue((self.folder / output).exists())
                ended = self.run_words(["bash", "-c", words], environment={"PYTHONIOENCODING": "ascii"})
                self.assertEqual(ended.code, 0, str(ended))
                self.assertIn("gro\\xdf", ended.stdout)

    def check_ended(self, ended, code, word):
        self.assertEqual(ended.code, code, str(ended))
        self.assertEqual(len(ended.stderr.splitlines()), 1, str(ended))
        self.assertIn(word, ended.stderr)


class ReportOfText(support.StudyTest):
    cells = [("ddp", 2, 1), ("ps-async", 2, 1)]
    common = [
        "model.name=gpt2",
        "model.layers=1",
        "model.heads=2",
        "model.width=16",
        "model.context=16",
        "data.dataset=synthetic-text",
        "data.subset=96",
        "data.global_batch=8",
        "optimizer.name=adamw",
        "optimizer.lr=0.01",
        "run.max_steps=0",
        "run.epochs=2",
    ]
    described = {"model": "gpt2", "dataset": "synthetic-text", "global_batch": 8}

    def test_rates_are_of_tokens_and_scores_are_perplexities(self):
        ended = self.report("study")
        self.assertEqual(ended.code, 0, str(ended))
        for row in self.table("T12"):
            self.assertAlmostEqual(math.log(float(row["perplexity"])), float(row["test loss"]))
            self.assertEqual(row["bits/byte"], "", "these tokens stand for no bytes")
            self.assertGreater(float(row["tokens/s"]), 0)
            self.assertEqual(row["MFU %"], "", "is unknown without a GPU")
        self.assertIn("tokens/s with evaluation", self.table("T1")[0])
        for name in "T0", "T3":
            self.assertIn("perplexity", self.table(name)[0])
            self.assertNotIn("accuracy %", self.table(name)[0])
        goals = {row["goal"] for row in self.table("T6")}
        self.assertIn("final perplexity", goals)
        self.assertFalse({goal for goal in goals if "accuracy" in goal})
        text = (self.study / "report" / "report.md").read_text(encoding="utf-8")
        self.assertIn("Final perplexity", text)
        self.assertIn("Perplexity over epochs and over time", text)
        for words in "images/s", " px", "px-":
            self.assertNotIn(words, text)


class ReportOfCodes(support.StudyTest):
    """What sends less than DDP has a table and a figure of its own."""

    cells = [(variant, 2, seed) for variant in ("ddp", "ddp-int8", "local") for seed in (1, 2, 3)]
    strategies = {
        "ddp": ["strategy.name=ddp"],
        "ddp-int8": ["strategy.name=ddp", "strategy.compression=int8"],
        "local": ["strategy.name=local", "strategy.inner_steps=4"],
    }

    def test_bytes_stand_beside_what_was_learned(self):
        ended = self.report("study")
        self.assertEqual(ended.code, 0, str(ended))
        rows = {row["strategy"]: row for row in self.table("T13")}
        self.assertEqual(set(rows), {"DDP", "DDP int8", "local SGD"})
        steps = 2 * 192 // 24
        for name, row in rows.items():
            per_step = float(row["sent per step MiB"])
            self.assertAlmostEqual(float(row["sent in all MiB"]), steps * per_step, msg=name)
            share = 100 * per_step / float(rows["DDP"]["sent per step MiB"])
            self.assertAlmostEqual(float(row["of DDP's %"]), share, msg=name)
            self.assertEqual(row["runs"], "3")
        self.assertAlmostEqual(float(rows["DDP int8"]["of DDP's %"]), 100 * 33 / 128, delta=0.1)
        self.assertAlmostEqual(float(rows["local SGD"]["of DDP's %"]), 25, delta=0.1)
        self.assertEqual((rows["DDP"]["points over DDP"], rows["DDP"]["verdict"]), ("", ""))
        for name in "DDP int8", "local SGD":
            self.assertRegex(rows[name]["points over DDP"], r"^[+-]\d+\.\d\d \[[+-]\d+\.\d\d, [+-]\d+\.\d\d\]$")
            self.assertIn(rows[name]["verdict"], inference_words())
        with open(self.study / "report" / "figures" / "F16-communication.csv", encoding="utf-8") as file:
            points = list(csv.DictReader(file))
        self.assertEqual(len(points), 3 * 2, "two evaluations of each")
        for point in points:
            self.assertLessEqual(float(point["least"]), float(point["learned"]))


def inference_words():
    return {inference.EQUIVALENT, inference.HIGHER, inference.LOWER, inference.UNDERPOWERED}


class WithoutPackages(harness.ProgramTest):
    def test_one_line_says_how_to_install_them(self):
        bare = [sys.executable, "-B", "-S", "-E"]  # a Python with only its own library
        for script in "report.py", "timeline.py":
            with self.subTest(script):
                ended = self.run_words([*bare, support.ANALYSIS / script, "out"])
                self.assertEqual(ended.code, ENVIRONMENT, str(ended))
                self.assertEqual(len(ended.stderr.splitlines()), 1, str(ended))
                for word in "pandas", "-m pip install -r", str(support.ANALYSIS / "requirements.txt"):
                    self.assertIn(word, ended.stderr)
                self.assertEqual(self.run_words([*bare, support.ANALYSIS / script, "-h"]).code, 0)


class NothingToReport(harness.ProgramTest):
    def refused(self, *arguments, words):
        ended = self.run_words([sys.executable, "-B", support.ANALYSIS / "report.py", *arguments])
        self.assertEqual(ended.code, USAGE, str(ended))
        for word in words:
            self.assertIn(word, ended.stderr)
        self.assertEqual(len(ended.stderr.splitlines()), 1, str(ended))

    def test_zero_complete_cells(self):
        (self.folder / "empty").mkdir()
        self.refused("empty", words=["no complete cell in empty", "no runs"])
        self.refused("nowhere", words=["nowhere is no directory"])
        support.write_cells(
            self.folder / "empty",
            [support.describe(0, "ddp", 2, 1), support.describe(1, "ddp", 2, 2)],
        )
        self.refused("empty", words=["no complete cell", "2 missing"])
        self.assertEqual(
            sorted(path.name for path in (self.folder / "empty").iterdir()), ["cells.csv"]
        )

    def test_another_schema(self):
        (self.folder / "study").mkdir()
        (self.folder / "study" / "study.json").write_text('{"schema": 9, "name": "x"}')
        self.refused("study", words=["schema 9", "reads 1"])

    def test_a_folder_of_runs_needs_no_study(self):
        for name, settings in (
            ("one", ["strategy.bucket_mb=1"]),
            ("two", ["strategy.name=serial"]),
            ("three", []),
            ("shorter", ["run.max_steps=2"]),
            ("as-two", ["strategy.name=serial", "strategy.emulate_ranks=2"]),
        ):
            self.expect(0, *harness.overridden(f"run.out=runs/{name}", *settings), "-q")
        loaded = study.load(self.folder / "runs", program=self.program)
        variants = dict(zip(loaded.cells["cell"], loaded.cells["variant"]))
        self.assertEqual(
            variants,
            {
                "one": "ddp",
                "two": "serial emulate_ranks=1",
                "three": "ddp bucket_mb=25",
                "shorter": "ddp",
                "as-two": "serial",
            },
        )
        families = compare.compare(loaded, {}).families
        self.assertEqual([len(family.cells) for family in families], [4, 1])
        self.assertEqual(families[1].title, "mlp (2 steps), synthetic-digits, batch 12")
        single = study.load(self.folder / "runs" / "one", program=self.program)
        self.assertEqual(list(single.cells["cell"]), ["one"])


if __name__ == "__main__":
    harness.main()

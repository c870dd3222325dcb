"""A complete study has a report; a fault in one cell, table, figure, check or claim leaves the rest of it whole."""

import collections
import contextlib
import io
import re
import runpy
import sys
import unittest
import unittest.mock

import support  # noqa: F401 (paths, or a visible skip)
import harness
from made_cells import names_of_measures
from planted_study import SHORT, Planted
from stratagem_report import checks_arithmetic, claims, compare, document, evidence, figures_time, findings, parts
from stratagem_report import published, tables_training, verdict


def whole_report(comparison):
    """(verdict, sections, findings, failures), without files."""
    said, first = document.first_section(comparison)
    made = document.sections(comparison)
    attempts = parts.Attempts()
    claimed, checked, _ = document.claims_of(comparison, attempts)
    failures = [failure for section in [first, *made] for failure in section.failures] + attempts.failures
    return said, [first, *made], claimed + checked, failures


class Recorded(contextlib.ExitStack):
    """Names of the measures that are read meanwhile."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def watch(self, owner, name, place):
        own = getattr(owner, name)

        def watched(*arguments):
            self.names.add(arguments[place])
            return own(*arguments)

        self.enter_context(unittest.mock.patch.object(owner, name, watched))

    def __enter__(self):
        for owner, name, place in (
            (compare.Family, "spread_of", 1),
            (compare.Family, "by_seed", 1),
            (evidence.Evidence, "values", 2),
            (evidence.Evidence, "median", 2),
        ):
            self.watch(owner, name, place)
        return self


class CompleteStudy(unittest.TestCase):
    """inputs/study/study.yaml as if all cells had been run."""

    @classmethod
    def setUpClass(cls):
        cls.planted = Planted()
        cls.made = cls.planted.comparison()

    def test_every_claim_is_judged_or_says_why_not(self):
        attempts = parts.Attempts()
        claimed, checked, not_shown = document.claims_of(self.made, attempts)
        self.assertEqual((attempts.failures, not_shown), ([], ""))
        self.assertEqual(len(claimed), len(claims.all_claims(published.claims())) + 1)
        counts = collections.Counter(finding.verdict for finding in claimed)
        print(dict(counts))
        for finding in [*claimed, *checked]:
            self.assertNotEqual(finding.verdict, findings.NOT_MADE)
            self.assertTrue(finding.measured, finding.number)
        unjudged = {finding.number for finding in claimed if finding.verdict == findings.UNTESTED}
        self.assertEqual(unjudged, {"2, 4 workers", "9"}, "no run can decide these")
        by_number = {finding.number: finding for finding in claimed}
        self.assertEqual(by_number["2 (v1), 4 workers"].verdict, findings.REPRODUCED)
        self.assertIn("4.55x", by_number["2 (v1), 4 workers"].measured)

    def test_all_tables_and_the_verdict_are_there(self):
        with Recorded() as read:
            said = verdict.verdict(self.made)
            tables = [table(self.made) for chapter in document.CONTENTS for table in chapter.tables]
        self.assertIn("fastest", said.headline)
        empty = {table.name for table in tables if not table.rows}
        self.assertEqual(empty, {"T8", "T12", "T13", "T16"}, "nothing is missing, of text, sends less, or is slowed")
        for name in read.names:
            self.assertIn(name, self.planted.measures | {"time_to_target"})


class NamesOfMeasures(unittest.TestCase):
    """Every name of a measure in the report's code is one that the program has."""

    ENDS = r"(?:_B|_J|_s|_ms|_share|_sd|_ratio|_accuracy|_loss|_depth|_byte|_mean|_p\d\d|_max)"
    # Of traces, of plans and calibrations, of published files, of the data of figures, and of configurations.
    OTHERS = {"memory_used_B", "allocated_B", "begin_ms", "end_ms", "memory_B", "server_memory_B", "step_s", "time_s"}
    OTHERS |= {"training_time_s", "planned_step_ms", "measured_step_ms", "sent_B", "max_time_s"}

    def test_the_code_names_no_other(self):
        names, found = names_of_measures(), set()
        for path in sorted((support.ANALYSIS / "stratagem_report").glob("*.py")):
            if path.name == "trace.py":
                continue
            text = path.read_text(encoding="utf-8")
            for name in set(re.findall(rf'"([a-z][a-z0-9_]*{self.ENDS})"', text)) - self.OTHERS:
                found.add(name)
                self.assertIn(name, names, path.name)
        self.assertGreater(len(found), 30)


def fails(*_):
    raise ZeroDivisionError("a fault | of the report")


def failing(function):
    """In place of a function of the report: with its name, and a fault."""

    def replaced(*arguments):
        fails(*arguments)

    replaced.__name__ = function.__name__
    return replaced


class Undrawable(document.style.Figure):
    """A figure whose fault shows only when it is written."""

    def write(self, folder):
        super().write(folder)
        fails()


class PartsThatFail(support.StudyTest):
    """The section says what failed and where, the rest stands, and the exit code tells it."""

    cells = [(*pair, 1) for pair in SHORT]

    def contents(self):
        """With a table and a figure that fail, and a figure that cannot be written."""
        figure = figures_time.f1_time_per_epoch
        replaced = {
            tables_training.t5_use: failing(tables_training.t5_use),
            figures_time.f15_phases: failing(figures_time.f15_phases),
            figure: lambda made: Undrawable(**vars(figure(made))),
        }
        for chapter in document.CONTENTS[1:3]:
            tables, figures = (
                tuple(replaced.get(part, part) if not isinstance(part, document.Each) else part for part in of)
                for of in (chapter.tables, chapter.figures)
            )
            yield document.Chapter(chapter.heading, tables, figures)

    def reported(self):
        """(exit code, its messages)."""
        told, out = io.StringIO(), io.StringIO()
        words = ["report.py", str(self.study), "--program", str(self.program)]
        with unittest.mock.patch.object(sys, "argv", words), contextlib.redirect_stderr(told):
            with contextlib.redirect_stdout(out), self.assertRaises(SystemExit) as ended:
                runpy.run_path(str(support.ANALYSIS / "report.py"), run_name="__main__")
        return ended.exception.code, told.getvalue()

    def test_a_table_and_two_figures(self):
        with unittest.mock.patch.object(document, "CONTENTS", tuple(self.contents())):
            code, told = self.reported()
        self.assertEqual(code, 1, told)
        lines = told.splitlines()
        self.assertEqual(len(lines), 3, told)
        folder = self.study / "report"
        page, text = (folder / "report.html").read_text(), (folder / "report.md").read_text()
        for part in "T5", "F15", "F1-time-per-epoch":
            self.assertIn(f"{part} could not be made: ZeroDivisionError: a fault | of the report", page)
            self.assertIn(f"{part} could not be made: ZeroDivisionError", text)
            self.assertTrue([line for line in lines if f" {part}: ZeroDivisionError: a fault" in line], lines)
            self.assertFalse(list(folder.glob(f"*/{part}*")), f"{part} is not there in part")
        for part in "T0", "T1", "F0-overview", "claims":
            self.assertIn(f'id="{part}"', page)

    def test_the_verdict(self):
        with unittest.mock.patch.object(document, "CONTENTS", document.CONTENTS[1:2]):
            self.assertEqual(self.reported(), (0, ""))
            with unittest.mock.patch.object(verdict, "main_comparison", fails):
                code, told = self.reported()
        self.assertEqual((code, len(told.splitlines())), (1, 1), told)
        page = (self.study / "report" / "report.html").read_text()
        self.assertIn("No verdict: this report could not make one", page)
        self.assertIn('id="T1"', page)


class FindingsThatFail(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = Planted(lambda cell: cell["part"] == "dp" and cell["model"] == "vgg16").comparison()

    def test_a_claim_and_two_checks(self):
        attempts = parts.Attempts()
        before = document.claims_of(self.made, attempts)
        self.assertEqual(attempts.failures, [])
        checks = tuple(failing(of) if of is checks_arithmetic.speed_ups else of for of in checks_arithmetic.CHECKS)
        with contextlib.ExitStack() as patched:
            for owner, name, instead in (
                (claims, "none_is_best", fails),
                (checks_arithmetic, "CHECKS", checks),
                (document.checks, "mnist_in_an_epoch", fails),
            ):
                patched.enter_context(unittest.mock.patch.object(owner, name, instead))
            claimed, checked, _ = document.claims_of(self.made, attempts)
        self.assertEqual(claimed[:-1], before[0][:-1])
        self.assertEqual((claimed[-1].number, claimed[-1].verdict), ("9", findings.NOT_MADE))
        self.assertIn("ZeroDivisionError", claimed[-1].measured)
        made = [of for of in checked if of.verdict == findings.NOT_MADE]
        self.assertEqual([of.number for of in made], ["first epochs", "speed ups"])
        self.assertEqual([of for of in before[1] if of.number not in "ce"], [of for of in checked if of not in made])
        self.assertEqual({of.part for of in attempts.failures}, {"claim 9", "check speed ups", "check first epochs"})

    def test_files_of_the_paper(self):
        attempts = parts.Attempts()
        with unittest.mock.patch.object(published, "value", fails):
            claimed, checked, _ = document.claims_of(self.made, attempts)
        self.assertEqual(claimed, [])
        self.assertGreater(len(checked), 5)
        self.assertIn("the claims", {of.part for of in attempts.failures})


if __name__ == "__main__":
    harness.main()

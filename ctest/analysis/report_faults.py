"""A fault in one cell leaves the rest of the report whole, and is named."""

import dataclasses
import json
import math
import pathlib
import shutil
import unittest
import unittest.mock

import support
import harness
from planted import in_one_reading
from planted_study import SHORT, Planted
from report_whole import whole_report
from stratagem_report import claims, compare, document, published, study, verdict
from stratagem_report.errors import ReportError
from stratagem_report.trace import RunTrace

# One model of each published experiment. The fault is in a cell of the first.
MODELS = {"dp": "vgg16", "ps": "resnet50"}
ODD = "dp-vgg16-fsdp-w2-px32-s2"
ITS_GROUP = ODD.removesuffix("-s2")
DRAWN = "dp-vgg16-fsdp-w4-px32-s1"  # the cell with a fault in what figures draw


def of_cell(**changes):
    def plant(planted, found):
        next(row for row in found["cells"] if row["cell"] == ODD).update(changes)

    return plant


def without(*names):
    def plant(planted, found):
        row = next(row for row in found["cells"] if row["cell"] == ODD)
        for name in names:
            del row[name]

    return plant


def of_group(**changes):
    def plant(planted, found):
        next(row for row in found["groups"] if row["group"] == ITS_GROUP).update(changes)

    return plant


def no_measures(planted, found):
    of_cell(**dict.fromkeys(planted.measures, None))(planted, found)


def no_group(planted, found):
    found["groups"] = [row for row in found["groups"] if row["group"] != ITS_GROUP]


def measure_of_no_group(planted, found):
    del next(row for row in found["groups"] if row["group"] == ITS_GROUP)["epoch_s"]


def one_seed(planted, found):
    found["cells"] = [row for row in found["cells"] if row["group"] != ITS_GROUP or row["cell"] == ODD]


def of_facts(**changes):
    def plant(planted, found):
        run = planted.runs[ODD]
        planted.runs[ODD] = dataclasses.replace(run, facts={**run.facts, **changes})

    return plant


def of_cells_file(**changes):
    def plant(planted, found):
        for name, value in changes.items():
            planted.cells.loc[planted.cells["cell"] == ODD, name] = value

    return plant


def of_trace(change):
    """In the tables of its first rank."""

    def plant(planted, found):
        run = planted.runs[DRAWN]
        tables = {name: table.copy() for name, table in run.trace.ranks[0].tables.items()}
        change(tables)
        first = dataclasses.replace(run.trace.ranks[0], tables=tables)
        traced = RunTrace([first, *run.trace.ranks[1:]], ["damaged"])
        planted.runs[DRAWN] = dataclasses.replace(run, trace=traced)

    return plant


def emptied(table):
    def change(tables):
        tables[table] = tables[table].iloc[:0]

    return of_trace(change)


def dropped(table):
    return of_trace(lambda tables: tables.pop(table))


def of_column(table, column, value):
    def change(tables):
        tables[table][column] = value

    return of_trace(change)


def of_plan(plan):
    def plant(planted, found):
        planted.predictions[DRAWN] = plan

    return plant


def curve(**point):
    whole = {"epoch": 9, "time_s": 1.0, "train_loss": 1.0, "test_loss": 1.0, "test_accuracy": 0.5}
    return of_cell(curve=[{**whole, **point}])


NOTHING = {"median": None, "least": None, "greatest": None, "n": 0}
# What the report must name.
NAMED = {
    "a missing measure": without("train_time_s"),
    "a missing peak": without("worker_peak_B"),
    "NaN": of_cell(train_time_s=math.nan),
    "infinity": of_cell(worker_peak_B=math.inf),
    "minus infinity": of_cell(epoch_s=-math.inf),
    "a time beyond all": of_cell(epoch_s=1e308),
    "a negative time": of_cell(epoch_s=-3.0),
    "a negative peak": of_cell(peak_B=-1),
    "a text": of_cell(epoch_s="fast"),
    "a list": of_cell(peak_B=[1, 2]),
    "a truth": of_cell(utilization=True),
    "an object": of_cell(images_per_s={"mean": 3}),
    "steps that are none": of_cell(steps="many"),
    "a curve that is null": of_cell(curve=None),
    "a curve of numbers": of_cell(curve=[1, 2, 3]),
    "a curve without epochs": of_cell(curve=[{"test_accuracy": 0.5}]),
    "an accuracy that is a text": curve(test_accuracy="good"),
    "a time that is NaN": curve(time_s=math.nan),
    "lags that are null": of_cell(lag_counts=None),
    "lags that are texts": of_cell(lag_counts=["one"]),
    "a spread that is null": of_group(epoch_s=None),
    "a spread of a text": of_group(epoch_s={**NOTHING, "n": "three"}),
    "a spread of nothing": of_group(train_time_s={**NOTHING, "n": 3}),
    "a spread out of order": of_group(peak_B={"median": 1, "least": 2, "greatest": 3, "n": 3}),
    "a spread of NaN": of_group(epoch_s={"median": math.nan, "least": 1, "greatest": 3, "n": 3}),
    "a group without a measure": measure_of_no_group,
}
# What cannot be told from a run that is only unusual.
UNUSUAL = {
    "nothing measured": no_measures,
    "a time of zero": of_cell(epoch_s=0.0, train_time_s=0.0),
    "no curve": without("curve"),
    "an empty curve": of_cell(curve=[]),
    "a digest that is null": of_facts(digest=None),
    "one seed": one_seed,
    "a seed of its own": of_cells_file(seed=99),
    "a seed twice": of_cells_file(seed=1),
    "workers of its own": of_cells_file(workers=3),
    "a strategy of its own": of_cells_file(variant="never heard of"),
    "a limited run": of_facts(limited=True),
    "a damaged trace": of_facts(damaged=True),
    "another device": of_facts(device="NVIDIA H100 80GB HBM3"),
    "other data": of_facts(images=10),
    "no group": no_group,
    "a group that is not there": of_cell(group="nowhere"),
    "no spans": emptied("spans"),
    "no samples of memory": emptied("memory"),
    "no samples of the device": emptied("device"),
    "utilisation that is NaN": of_column("device", "utilization", math.nan),
    "memory that is infinite": of_column("device", "memory_used_B", math.inf),
    "no plan": of_plan(None),
}
# What a figure draws from the trace alone, and cannot do without: its figures are failures, and named as such.
UNDRAWN = {
    "no table of spans": (dropped("spans"), {"F8"}),
    "no table of memory": (dropped("memory"), {"F5"}),
    "no table of the device": (dropped("device"), {"F4", "F5"}),
    "no steps": (dropped("steps"), {"F4", "F5", "F8"}),
    "a plan without memory": (of_plan({"bytes_sent_per_step": 1}), {"T9", "F13"}),
}


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        every = claims.all_claims(published.claims())
        patch = unittest.mock.patch.object(claims, "all_claims", lambda _: [in_one_reading(claim) for claim in every])
        patch.start()
        cls.addClassCleanup(patch.stop)
        cls.planted = Planted(lambda cell: MODELS.get(cell["part"]) == cell["model"] and cell["input_size"] == 32)
        cls.whole = cls.report_of(lambda planted, found: None)
        assert not cls.whole[3], cls.whole[3]

    @classmethod
    def report_of(cls, plant, figures=True):
        """Of the study with a fault. Of figures, those of the family with the fault."""
        planted, found = cls.planted.copy(), cls.planted.told()
        plant(planted, found)
        made = planted.comparison(found)
        made.drawn = [family for family in made.families if family.key["part"] == "dp"]
        kept = [dataclasses.replace(of, figures=of.figures if figures else ()) for of in document.CONTENTS]
        with unittest.mock.patch.object(document, "CONTENTS", kept):
            return whole_report(made)

    def check(self, report, failures=frozenset()):
        """Everything is there but what could not be made; what is not of the family with the fault is as without."""
        (_, before, found_before, _), (said, after, found, failed) = self.whole, report
        self.assertEqual({of.part.split()[0] for of in failed}, set(failures), [of.line for of in failed])
        self.assertTrue(said.headline)
        names = {table.name for section in before for table in section.tables}
        self.assertLessEqual(names - set(failures), {table.name for section in after for table in section.tables})
        for rows in zip(others_of(before, failures), others_of(after, failures)):
            self.assertEqual(*rows)
        self.assertEqual([of.number for of in found], [of.number for of in found_before])
        for one, other in zip(found_before, found):
            if one.number[0] in "45678abcdefghijk":  # about servers, or by arithmetic
                self.assertEqual(one, other)

    def test_what_is_named(self):
        for index, (name, plant) in enumerate(NAMED.items()):
            with self.subTest(name):
                report = self.report_of(plant, figures=index % 5 == 0)  # which differ in what is not measured
                self.check(report)
                (told,) = [table for section in report[1] for table in section.tables if table.name == "T8"]
                self.assertTrue([row for row in told.rows if row[0] in (ODD, ITS_GROUP)], told.rows)

    def test_what_is_unusual(self):
        for name, plant in UNUSUAL.items():
            with self.subTest(name):
                self.check(self.report_of(plant))

    def test_what_cannot_be_drawn(self):
        for name, (plant, failures) in UNDRAWN.items():
            with self.subTest(name):
                self.check(self.report_of(plant), failures)


def text(content):
    return lambda path: path.write_text(content)


def edited(change):
    """A JSON file with a change."""

    def edit(path):
        content = json.loads(path.read_text())
        change(content)
        path.write_text(json.dumps(content))

    return edit


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def replaced(old, new):
    return lambda path: path.write_text(path.read_text().replace(old, new, 1))


def again(path):
    """The last line twice."""
    path.write_text(path.read_text() + path.read_text().splitlines()[-1] + "\n")


ALONE = "head-lenet-ps-async-w2-s1"  # the cell whose files are damaged, and the last in cells.csv
# In its run directory: what the program and the report need of it. The cell is left out, and named.
FILES = {
    "no manifest": ("manifest.json", pathlib.Path.unlink),
    "half a manifest": ("manifest.json", cut),
    "a manifest that is a list": ("manifest.json", text("[1, 2]")),
    "a manifest of nothing": ("manifest.json", text("{}")),
    "a manifest without a plan": ("manifest.json", edited(lambda of: of.pop("plan"))),
    "a manifest without libraries": ("manifest.json", edited(lambda of: of.pop("loaded"))),
    "a manifest without ranks": ("manifest.json", edited(lambda of: of.update(ranks=[]))),
    "parameters that are a text": ("manifest.json", edited(lambda of: of["model"].update(parameters="many"))),
    "images that are null": ("manifest.json", edited(lambda of: of["dataset"].update(train_images=None))),
    "no configuration": ("config.yaml", pathlib.Path.unlink),
    "an empty configuration": ("config.yaml", text("")),
    "half a configuration": ("config.yaml", cut),
    "no strategy in it": ("config.yaml", replaced("  name: ps", "  nome: ps")),
    "bytes for a configuration": ("config.yaml", lambda path: path.write_bytes(b"\xff\xfe\x00")),
    "half an outcome": ("outcome.json", cut),
    "an outcome of nothing": ("outcome.json", text("{}")),
    "no traces": ("trace", shutil.rmtree),
    "traces that are texts": ("trace/a0", lambda path: [text("no trace")(file) for file in path.glob("*.h5")]),
}
OF_STUDY = {
    "workers that are a text": ("cells.csv", replaced(",ps-async,ps,2,", ",ps-async,ps,two,")),
    "a line twice": ("cells.csv", again),
    "half a line": ("cells.csv", lambda path: path.write_text(path.read_text() + "7,head-le")),
    "a strategy without a name": ("cells.csv", replaced(",ps-async,ps,2,", ",,ps,2,")),
    "a seed below zero": ("cells.csv", replaced(",ps-async,ps,2,1,3,1,", ",ps-async,ps,2,1,3,-1,")),
    "configs that are none": ("configs", text("")),
}


class FilesOfCells(support.StudyTest):
    """What is damaged on disk is named; the other cells are compared."""

    cells = [(*pair, 1) for pair in SHORT]

    def loaded(self):
        return study.load(self.study, allow_mixed=True, program=self.program)

    def check(self, others):
        """The others are complete, and everything is made of them."""
        made = self.loaded()
        self.assertLessEqual(others, set(made.runs))
        comparison = compare.compare(made, {})
        tables = [table(comparison) for chapter in document.CONTENTS for table in chapter.tables]
        (told,) = (table for table in tables if table.name == "T8")
        self.assertTrue(verdict.verdict(comparison).headline)
        return made, [row[0] for row in told.rows]

    def test_of_a_run(self):
        others = {f"head-lenet-{variant}-w{workers}-s1" for variant, workers, _ in self.cells} - {ALONE}
        for name, (file, damage) in FILES.items():
            with self.subTest(name):
                shutil.rmtree(self.study)
                shutil.copytree(self.made / "study", self.study)
                damage(self.study / ALONE / file)
                made, named = self.check(others)
                self.assertTrue(ALONE in named or ALONE in made.runs, made.cells)

    def test_of_the_study(self):
        others = {f"head-lenet-{variant}-w{workers}-s1" for variant, workers, _ in self.cells} - {ALONE}
        for name, (file, damage) in OF_STUDY.items():
            with self.subTest(name):
                shutil.copy(self.made / "study" / "cells.csv", self.study)
                damage(self.study / file)
                self.check(others)

    def test_a_study_that_cannot_be_read(self):
        none = ",".join(study.CELL_COLUMNS)
        for name, content in {"nothing": "", "one column": "cell\nx\n", "no cell": none}.items():
            with self.subTest(name):
                (self.study / "cells.csv").write_text(content)
                with self.assertRaises(ReportError) as caught:
                    self.loaded()
                self.assertEqual(caught.exception.code, 2)

    def test_numbers_that_are_saved(self):
        """measures.json, in place of the program."""
        other = '{"cells": [{}], "groups": []}'
        for name, content in {"no object": "[1]", "no rows": "{}", "other rows": other}.items():
            with self.subTest(name), unittest.mock.patch.object(study, "find_program", lambda: None):
                (self.study / "measures.json").write_text(content)
                with self.assertRaises(ReportError):
                    study.load(self.study)


def others_of(sections, left_out):
    """Rows of tables that compare, of the family without the fault."""
    for section in sections:
        for table in section.tables:
            if table.name not in left_out and table.columns[0].title == "comparison":
                yield table.name, [repr(row) for row in table.rows if row[0].startswith("resnet50")]


if __name__ == "__main__":
    harness.main()

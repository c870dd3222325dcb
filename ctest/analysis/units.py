"""Parts of analysis/, with values that can be computed by hand."""

import ast
import csv
import math
import pathlib
import tempfile
import unittest

import support
import harness
import pandas as pd
from stratagem_report import compare, published, runs, spread, study, style
from stratagem_report.figures_memory import dominated
from stratagem_report.spread import Spread
from stratagem_report.table import COMPARISON, Column, Note, Table


class Spreads(unittest.TestCase):
    def test_median_and_range(self):
        self.assertEqual(spread.spread([3, 1, math.nan, 2]), Spread(2, 1, 3, 3))
        self.assertEqual(spread.spread([4, 1]), Spread(2.5, 1, 4, 2))
        self.assertFalse(spread.spread([math.nan]).known)

    def test_ratio_and_difference_hold_all_pairs(self):
        a, b = Spread(6, 4, 8, 3), Spread(2, 1, 4, 2)
        self.assertEqual(spread.ratio(a, b), Spread(3, 1, 8, 2))
        self.assertEqual(spread.difference(a, b), Spread(4, 0, 7, 2))
        self.assertFalse(spread.ratio(a, spread.UNKNOWN).known)

    def test_ranges_that_overlap(self):
        low, touching, apart = Spread(1, 1, 2, 3), Spread(3, 2, 4, 3), Spread(3, 2.1, 4, 3)
        self.assertTrue(low.overlaps(touching) and touching.overlaps(low))
        self.assertFalse(low.overlaps(apart) or apart.overlaps(low))


class Figures(unittest.TestCase):
    def test_dominated_points(self):
        self.assertEqual(dominated([(1, 3), (2, 2), (3, 3), (1, 3)]), [False, False, True, False])


class Published(unittest.TestCase):
    def test_the_ratios_of_the_text(self):
        def ratio(model, dataset, *of):
            return published.ratio({"model": model, "dataset": dataset}, *of)

        self.assertAlmostEqual(ratio("efficientnetv2_l", "cifar10", "fsdp", "ddp", 1), 5.76, 2)
        self.assertAlmostEqual(ratio("vgg16", "cifar10", "fsdp", "ddp", 2), 2.12, 2)
        self.assertAlmostEqual(ratio("vgg16", "mnist", "ps-async", "ps-sync", 2), 1 - 0.356, 3)
        for unpublished in [
            ("vgg16", "mnist", "ps-modified", "ps-sync", 1),  # only a bound is published
            ("vgg16", "cifar10", "ps-async", "ps-sync", 2),
            ("lenet", "cifar10", "fsdp", "ddp", 1),
        ]:
            self.assertTrue(math.isnan(ratio(*unpublished)), unpublished)

    def test_every_cell_is_read(self):
        self.assertEqual((len(published.times()), len(published.accuracies())), (51, 27))
        self.assertFalse(published.times()["value"].isna().any())


class Tables(unittest.TestCase):
    def setUp(self):
        self.table = Table(
            "T0", "title", [Column("who"), Column("size MiB", 1, 2**-20), Column("more", 0)]
        )
        self.table.add("a|b_c", Spread(3 * 2**20, 2**20, 4 * 2**20, 3), Note("> 3000"))
        self.table.add("d", Spread(2**20, 2**20, 2**20, 1), None)

    def test_forms(self):
        self.assertEqual(
            self.table.markdown().splitlines()[2:],
            ["| a\\|b_c | 3.0 (1.0 to 4.0) | > 3000 |", "| d | 1.0 | - |"],
        )
        self.assertIn("a|b\\_c & 3.0 (1.0 to 4.0) & $>$ 3000", self.table.latex())
        self.assertIn("<td class=number>&gt; 3000</td>", self.table.html())
        with tempfile.TemporaryDirectory() as folder:
            self.table.write(pathlib.Path(folder))
            with open(pathlib.Path(folder) / "T0.csv", newline="", encoding="utf-8") as file:
                rows = list(csv.reader(file))
        self.assertEqual(
            rows[0],
            ["who", "size MiB", "size MiB least", "size MiB greatest", "size MiB n", "more"],
        )
        self.assertEqual(rows[1], ["a|b_c", "3.0", "1.0", "4.0", "3", "> 3000"])
        self.assertEqual(rows[2], ["d", "1.0", "1.0", "1.0", "1", ""])


class ConstantColumns(unittest.TestCase):
    def setUp(self):
        self.table = Table(
            "T0",
            "title",
            [COMPARISON, Column("strategy", keep=True), Column("workers", 0), Column("energy J"), Column("s", 1)],
            note="A note.",
        )

    def test_what_all_rows_have_alike_is_said_once(self):
        self.table.add("lenet", "DDP", 2, None, 1.0)
        self.table.add("lenet", "DDP", 2, None, 2.0)
        self.assertEqual(
            self.table.caption(),
            "In all rows: comparison lenet; workers 2. Nothing is known of: energy J. A note.",
        )
        self.assertEqual(self.table.visible()[0], ["strategy", "s"])
        for text in self.table.html(), self.table.markdown():
            self.assertNotIn("lenet", text)
        self.assertTrue(self.table.latex().startswith("% T0. title. In all rows: comparison lenet;"))
        self.assertEqual(len(self.table.precise()[0]), 5, "the CSV has all of them")

    def test_comparisons_head_groups_of_rows(self):
        for name in "lenet", "lenet", "mlp":
            self.table.add(name, "DDP", 2, None, 1.0)
        self.assertEqual(self.table.html().count("class=group"), 2)
        self.assertNotIn("<th>comparison</th>", self.table.html())

    def test_a_single_row_keeps_its_values(self):
        self.table.add("lenet", "DDP", 2, None, 1.0)
        self.assertEqual(self.table.visible()[0], ["comparison", "strategy", "workers", "s"])


class Style(unittest.TestCase):
    def test_looks(self):
        self.assertEqual(style.look_of("ddp").label, "DDP")
        bounded = style.look_of("ps-ssp2")
        self.assertEqual((bounded.label, bounded.line), ("PS bounded 2", "--"))
        self.assertEqual(style.look_of("ps-ssp4").colour, bounded.colour)
        plain, without_overlap = style.look_of("ddp"), style.look_of("ddp-no-overlap")
        self.assertEqual(without_overlap.label, "DDP no overlap")
        self.assertNotEqual(plain.face, without_overlap.face)
        self.assertNotEqual(plain.line, without_overlap.line)
        self.assertEqual(style.look_of("never heard of").label, "never heard of")
        self.assertEqual(
            style.in_order(["ps-async", "fsdp", "ddp", "ddp"]), ["ddp", "fsdp", "ps-async"]
        )

    def test_no_two_strategies_look_alike(self):
        for part in range(3):
            values = [look[part] for look in style.STRATEGIES.values()]
            self.assertEqual(len(values), len(set(values)))


class Configurations(harness.ProgramTest):
    def test_the_program_s_own_print_is_understood(self):
        printed = self.expect(
            0, *harness.overridden('run.name=a "b": c', "optimizer.lr=1e-3"), "--print-config"
        ).stdout
        config = runs.parse_config(printed)
        self.assertEqual(
            (config["schema"], config["run.name"], config["optimizer.lr"], config["data.root"]),
            (1, 'a "b": c', 1e-3, ""),
        )
        self.assertIs(config["model.dropout"], True)
        self.assertEqual(config["strategy.name"], "ddp")


class Sources(unittest.TestCase):
    def test_old_pythons_can_read_them(self):
        for path in support.ANALYSIS.glob("**/*.py"):
            with self.subTest(path.name):
                ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


class Sweeps(unittest.TestCase):
    def test_cells_that_differ_in_the_batch_alone(self):
        cells = pd.DataFrame(
            [
                {
                    **dict.fromkeys(study.FAMILY, "x"),
                    "variant": "ddp",
                    "workers": 2,
                    "global_batch": batch,
                }
                for batch in (16, 32)
            ]
            + [
                {
                    **dict.fromkeys(study.FAMILY, "x"),
                    "variant": "fsdp",
                    "workers": 2,
                    "global_batch": 16,
                }
            ]
        )
        self.assertEqual(list(compare.batch_sweeps(cells)["variant"]), ["ddp", "ddp"])


if __name__ == "__main__":
    harness.main()

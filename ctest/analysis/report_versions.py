"""What the published study's versions show has its table or figure: seconds beside published ones, courses on 2
workers, use of devices, shares of their memory, qualities of strategies, unequal workers."""

import unittest

import support  # noqa: F401 (paths, or a visible skip)
import harness
from made_cells import MIB, cell, comparison
from planted_study import Planted
from stratagem_report import figures_memory, tables_qualities, tables_servers, tables_training


def shown(table):
    """Rows as readers see them, by title; what is the same in all of them too."""
    titles = [column.title for column in table.columns]
    return [dict(zip(titles, row)) for row in table.shown()]


class OfTables(unittest.TestCase):
    def test_published_seconds_stand_beside_measured_ones(self):
        made = comparison([cell("vgg16", variant, workers, 1) for variant in ("ddp", "fsdp") for workers in (1, 2, 4)])
        rows = {(row["strategy"], row["workers"]): row for row in shown(tables_training.t1_time(made))}
        for key, seconds in {("DDP", "1"): "487.6", ("DDP", "4"): "113.8", ("FSDP (ZeRO-3)", "2"): "490.3"}.items():
            self.assertEqual(rows[key]["published s"], seconds)
            self.assertEqual(rows[key]["training s"], "10.00")
        other = comparison([cell("lenet", "ddp", 2, 1, dataset="cifar10")])
        self.assertEqual(shown(tables_training.t1_time(other))[0]["published s"], "-")

    def test_memory_is_a_share_of_the_device(self):
        about = {"device_used_share": 0.25, "device_used_sd_B": 3.0 * MIB, "reserved_B": 80.0 * MIB}
        made = comparison([cell("lenet", "ddp", 2, 1, **about, unfilled_share=0.125), cell("lenet", "fsdp", 2, 1)])
        rows = shown(tables_training.t14_device_memory(made))
        names = "in use MiB", "of the device %", "deviation over time MiB", "reserved MiB", "of it not filled %"
        self.assertEqual([rows[0][name] for name in names], ["300.0", "25.0", "3.00", "80.0", "12.5"])
        self.assertEqual([rows[1][name] for name in names], ["300.0", "-", "-", "-", "-"])
        nothing = comparison([cell("lenet", "ddp", 2, 1, device_used_B=float("nan"))])
        self.assertEqual(tables_training.t14_device_memory(nothing).rows, [])


class Qualities(unittest.TestCase):
    """By the rules below the table."""

    def rows(self, *cells):
        made = comparison([cell("lenet", *of[:3], **of[3]) for of in cells])
        return {row["strategy"]: row for row in shown(tables_qualities.t15_qualities(made))}

    def test_each_word(self):
        rows = self.rows(
            ("serial", 1, 1, {"epoch_s": 3.2}),
            ("ddp", 4, 1, {"epoch_s": 1.0, "test_accuracy": 0.9}),
            ("fsdp", 4, 1, {"epoch_s": 1.25, "peak_B": 50.0 * MIB}),
            ("local", 4, 1, {"epoch_s": 0.9}),
            ("ps-sync", 4, 1, {"epoch_s": 2.0}),
            ("ps-async", 4, 1, {"epoch_s": 1.8, "lag_max": 7.0, "test_accuracy": 0.85}),
        )
        self.assertEqual({name: row["scalability"] for name, row in rows.items()}, {
            "DDP": "high (80 %)",
            "FSDP (ZeRO-3)": "medium (64 %)",
            "local SGD": "high (89 %)",
            "PS sync": "low (40 %)",
            "PS async": "low (44 %)",
        })  # fmt: skip
        self.assertEqual(rows["DDP"]["consistency"], tables_qualities.EVERY_STEP)
        self.assertEqual(rows["PS sync"]["consistency"], tables_qualities.EVERY_STEP)
        self.assertEqual(rows["PS async"]["consistency"], "gradients up to 7 updates late")
        self.assertEqual(rows["local SGD"]["consistency"], "workers differ between exchanges")
        words = {name: row["complexity"].split()[0] for name, row in rows.items()}
        medium = dict.fromkeys(("FSDP (ZeRO-3)", "local SGD", "PS sync"), "medium")
        self.assertEqual(words, {"DDP": "low", **medium, "PS async": "high"})
        self.assertEqual((rows["FSDP (ZeRO-3)"]["time / fastest"], rows["DDP"]["memory / least"]), ("1.39", "2.00"))
        self.assertEqual(rows["PS async"]["points below the best"], "5.01")

    def test_nothing_to_compare(self):
        self.assertEqual(self.rows(("ddp", 4, 1, {})), {})


class UnequalWorkers(unittest.TestCase):
    def made(self):
        slowed = ("ps-sync", 1, 1.0), ("ps-sync", 4, 3.5), ("ps-async", 1, 1.0), ("ps-async", 4, 1.3)
        return comparison(
            [
                cell("lenet", variant, 4, seed, slow=float(slow), epoch_s=time, compute_ratio=float(slow),
                     cell=f"{variant}-{slow}-{seed}", group=f"{variant}-{slow}")
                for variant, slow, time in [*slowed, ("ps-dana", 4, 2.0)]
                for seed in (1, 2, 3)
            ]
        )  # fmt: skip

    def test_against_equal_ones(self):
        rows = {(row["strategy"], row["slowed by"]): row for row in shown(tables_servers.t16_unequal(self.made()))}
        told = {key: row["time / equal workers"] for key, row in rows.items()}
        self.assertEqual(told, {
            ("PS sync", "1.0"): "-",
            ("PS sync", "4.0"): "3.50",
            ("PS async", "1.0"): "-",
            ("PS async", "4.0"): "1.30",
            ("PS DANA", "4.0"): "-",
        })  # fmt: skip
        self.assertIn("one worker 4x slower", rows["PS sync", "4.0"]["comparison"])
        self.assertIn("equal workers", rows["PS sync", "1.0"]["comparison"])

    def test_they_are_not_compared_with_each_other(self):
        self.assertEqual([len(family.pairs()) for family in self.made().families], [2, 3])

    def test_nothing_without_a_slow_one(self):
        made = comparison([cell("lenet", "ps-sync", 4, seed) for seed in (1, 2)])
        self.assertEqual(tables_servers.t16_unequal(made).rows, [])


class Courses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = Planted(lambda cell: cell["part"] == "dp" and cell["model"] == "vgg16" and cell["input_size"] == 32)
        cls.made = cls.made.comparison()

    def test_every_number_of_workers_has_its_courses(self):
        places = figures_memory.course_places(self.made)
        self.assertEqual([workers for _, workers in places], [2, 4])
        for draw in figures_memory.f4_utilisation, figures_memory.f5_memory_over_time:
            figures = [draw(self.made, *place) for place in places]
            self.assertEqual(len({figure.name for figure in figures}), 2)
            for figure, (_, workers) in zip(figures, places):
                self.assertEqual(set(figure.data["workers"]), {workers})
                self.assertEqual(set(figure.data["rank"]), {0, 1}, "of every worker")
                self.assertEqual(set(figure.data["variant"]), {"ddp", "fsdp"})

    def test_use_and_its_steadiness(self):
        figure = figures_memory.f17_utilisation(self.made)
        self.assertEqual(set(figure.data["quantity"]), {"utilization", "utilization_sd"})
        self.assertEqual(len(figure.data), 2 * 6)
        row = figure.data.iloc[0]
        self.assertLessEqual(row["least"], row["value"])
        nothing = comparison([cell("lenet", "ddp", 2, 1, utilization=float("nan"))])
        self.assertIsNone(figures_memory.f17_utilisation(nothing))


if __name__ == "__main__":
    harness.main()

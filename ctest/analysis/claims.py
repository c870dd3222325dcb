"""Which published claims the report shows, and its first sentences, with cells made by hand."""

import unittest

import support  # noqa: F401 (paths, or a visible skip)
import harness
from made_cells import MIB, cell, comparison
from stratagem_report import document, findings, overview, parts, verdict


class Names(unittest.TestCase):
    """A made cell has the measures that the program has, and no others."""

    def test_a_name_that_the_program_lacks(self):
        for name in "worker_peak_without_data_B", "train_time", "utilisation", "peak_MiB":
            with self.subTest(name), self.assertRaisesRegex(KeyError, name):
                comparison([cell("lenet", "ddp", 2, 1, **{name: 1.0})])
        made = comparison([cell("lenet", "ddp", 2, 1)])
        self.assertIn("worker_peak_B", made.cells)


class Shown(unittest.TestCase):
    """Claims are about the paper's models on its data, and no verdict comes from other cells."""

    def test_not_where_nothing_of_the_paper_ran(self):
        for gpu in True, False:
            rows = [
                cell("lenet", variant, 2, seed, dataset="synthetic-digits", gpu=gpu)
                for variant in ("ddp", "fsdp", "ps-sync", "ps-async")
                for seed in (1, 2, 3)
            ]
            claimed, checked, not_shown = document.claims_of(comparison(rows), parts.Attempts())
            self.assertEqual((claimed, checked), ([], []))
            for word in "not shown", "lenet on synthetic-digits", "vgg16":
                self.assertIn(word, not_shown)

    def test_a_part_of_the_data_on_a_cpu_judges_nothing(self):
        about = {"gpu": False, "device": "cpu", "images": 6400.0, "planned_steps": 50.0, "global_batch": 64}
        rows = [
            cell("resnet50", variant, workers, seed, dataset="mnist", **about)
            for variant in ("ddp", "fsdp", "ps-sync", "ps-async", "ps-modified")
            for workers in (1, 2, 4)
            for seed in (1, 2, 3, 4, 5)
        ]
        claimed, checked, not_shown = document.claims_of(comparison(rows), parts.Attempts())
        self.assertEqual(not_shown, "")
        self.assertLessEqual({of.verdict for of in claimed}, {findings.UNTESTED, findings.CONTRADICTED})
        self.assertEqual({of.verdict for of in checked if of.basis == findings.RUNS}, {findings.UNTESTED})
        self.assertEqual({of.cause for of in claimed}, {""})
        seen = next(of.seen for of in claimed if of.number == "4, 2 workers")
        self.assertIn("PS async on 2 / PS sync on 2: 1.00x", seen)


class FirstWords(unittest.TestCase):
    """The first sentences of the report."""

    def said(self, *rows):
        made = comparison([{**cell("lenet", *row[:3]), **row[3]} for row in rows])
        return verdict.verdict(made), made

    def test_a_clear_order(self):
        told, _ = self.said(
            ("ddp", 2, 1, {"epoch_s": 1.0}),
            ("fsdp", 2, 1, {"epoch_s": 2.0, "peak_B": 50.0 * MIB}),
        )
        self.assertEqual(
            told.headline,
            "On 2 workers, fastest: DDP (1.00 s per epoch) [one run each: not judged, more than 10 % apart];"
            " FSDP (ZeRO-3) needs 2.0 times. Least memory on the fullest rank: FSDP (ZeRO-3) (50.0 MiB)"
            " [one run each: not judged, more than 1 % apart]; DDP needs 2.0 times.",
        )

    def test_single_runs_that_are_near_are_not_told_apart(self):
        told, made = self.said(
            ("ddp", 2, 1, {"epoch_s": 1.0, "test_accuracy": 0.995}),
            ("fsdp", 2, 1, {"epoch_s": 1.05, "test_accuracy": 0.995}),
        )
        self.assertIn("DDP (1.00 s per epoch) or FSDP (ZeRO-3) (+5.0 %) [one run each: not judged, with", told.headline)
        self.assertIn("Final accuracy: all 99.50 % [one run each: not judged].", told.details)
        rows = document.tables_study.t6_decision(made).rows
        self.assertEqual({row[8].split(",")[0] for row in rows}, {"one run each: not judged"})
        self.assertIn("DDP, FSDP (ZeRO-3)", {row[3] for row in rows})

    def test_a_server_s_memory_counts(self):
        server = {"worker_peak_B": 90.0 * MIB, "server_peak_B": 120.0 * MIB, "peak_B": 120.0 * MIB}
        told, made = self.said(
            ("ddp", 2, 1, {}), ("ps-sync", 2, 1, {**server, "total_peak_B": 300.0 * MIB})
        )
        self.assertRegex(told.headline, r"fullest rank: DDP \(100.0 MiB\) \[.*\]; PS sync needs 20.0 % more")
        details = " ".join(told.details)
        self.assertIn("PS sync 120.0 MiB", details)
        self.assertRegex(details, r"all ranks together: DDP \(200.0 MiB\) \[.*\]; PS sync needs 50.0 % more")
        table = overview.t0_overview(made, told.family, told.workers)
        self.assertEqual([row[1] for row in table.rows], ["2", "2 + 1 server"])

    def test_single_runs_say_nothing_about_accuracy(self):
        told, _ = self.said(
            ("ddp", 2, 1, {"test_accuracy": 0.99}), ("fsdp", 2, 1, {"test_accuracy": 0.98})
        )
        self.assertIn("Best: DDP (99.00 %) [one run each: not judged]", " ".join(told.details))

    def test_workers_that_do_not_pay(self):
        told, _ = self.said(
            ("serial", 1, 1, {"epoch_s": 0.5}), ("ddp", 2, 1, {}), ("fsdp", 2, 1, {"epoch_s": 2.0})
        )
        self.assertIn(
            "One worker is enough: serial on one needs 0.500 s per epoch; the fastest on 2, DDP, needs 100 % more time"
            " [one run each: not judged]. On 2 workers, fastest: DDP",
            told.headline,
        )
        self.assertNotIn("times the speed", " ".join(told.details))

    def test_workers_that_are_not_told_apart_from_one(self):
        for alone in "serial", "fsdp":
            told, _ = self.said((alone, 1, 1, {"epoch_s": 1.05}), ("ddp", 2, 1, {}), ("fsdp", 2, 1, {"epoch_s": 2.0}))
            self.assertRegex(told.headline, "^One worker is enough: .* is not told apart from it")

    def test_workers_that_pay(self):
        told, _ = self.said(("serial", 1, 1, {"epoch_s": 1.9}), ("ddp", 2, 1, {}), ("fsdp", 2, 1, {"epoch_s": 2.0}))
        self.assertRegex(told.headline, "^On 2 workers, fastest: DDP")
        self.assertIn("The fastest has 1.90 times the speed of serial on one worker", " ".join(told.details))

    def test_one_worker_over_seeds(self):
        for slow, word in ((2.0, "established"), (1.0, "equivalent"), (0.5, "")):
            rows = [("serial", 1, seed, {"epoch_s": 1 + 0.001 * seed}) for seed in (1, 2, 3, 4)]
            rows += [("ddp", 2, seed, {"epoch_s": slow * (1 + 0.002 * (3 * seed % 4))}) for seed in (1, 2, 3, 4)]
            told, _ = self.said(*rows, *[("fsdp", 2, seed, {"epoch_s": 9.0}) for seed in (1, 2, 3, 4)])
            self.assertEqual("One worker is enough" in told.headline, slow >= 1, told.headline)
            self.assertIn(f"[{word}]. On 2 workers" if word else "On 2 workers", told.headline)

    def test_few_steps_and_one_strategy(self):
        told, _ = self.said(("ddp", 2, 1, {"planned_steps": 2.0}))
        self.assertIn("nothing to compare", told.headline)
        self.assertIn("Only 2 steps", " ".join(told.details))


if __name__ == "__main__":
    harness.main()

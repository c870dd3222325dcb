"""One cell's numbers are the same in its log, metrics.csv, trace, outcome, `collect` and report."""

import csv
import json
import re

import support
import harness
from stratagem_report import measures, study, trace

CELL = "head-lenet-ddp-w2-s1"


class SameNumbers(support.StudyTest):
    cells = [("ddp", 2, 1), ("serial", 1, 1)]

    def setUp(self):
        super().setUp()
        run = self.study / CELL
        with open(run / "metrics.csv", newline="", encoding="utf-8") as file:
            self.metrics = list(csv.DictReader(file))
        self.log = (run / "log.txt").read_text()
        self.ended = json.loads((run / "outcome.json").read_text())
        self.read = trace.read_run(run)
        self.epochs = self.read.ranks[0]["epochs"]
        self.collected = next(
            row
            for row in json.loads(
                self.expect(0, "collect", f"study/{CELL}", "--format", "json").stdout
            )
            if row["name"] == CELL
        )
        self.measured = measures.measure(study.read_cell(run))

    def test_every_epoch(self):
        columns = [
            "time_s",
            "train_loss",
            "train_accuracy",
            "test_loss",
            "test_accuracy",
            "images_per_s",
            "comm_bytes",
        ]
        self.assertEqual(len(self.metrics), 2)
        for row, (_, recorded) in zip(self.metrics, self.epochs.iterrows()):
            for column in columns:
                self.assertEqual(float(row[column]), recorded[column], column)
            line = (
                f"epoch {int(row['epoch']) + 1}/2  loss {recorded['train_loss']:.4f}  train"
                f" {100 * recorded['train_accuracy']:.2f} %  test loss {recorded['test_loss']:.4f} "
                f" test {100 * recorded['test_accuracy']:.2f} %"
            )
            self.assertIn(line, self.log)

    def test_the_end(self):
        last = self.epochs.iloc[-1]
        for name, values in {
            "test_accuracy": [
                float(self.metrics[-1]["test_accuracy"]),
                self.ended["test_accuracy"],
                self.collected["test_accuracy"],
                self.measured["test_accuracy"],
            ],
            "train_loss": [
                float(self.metrics[-1]["train_loss"]),
                self.collected["train_loss"],
                self.measured["train_loss"],
            ],
        }.items():
            self.assertEqual(set(values), {last[name]}, name)
        self.assertIn(
            f"test accuracy {100 * last['test_accuracy']:.2f} %", self.log.splitlines()[-1]
        )
        steps = len(self.read.ranks[0]["steps"])
        self.assertRegex(self.log.splitlines()[-1], rf"\b{steps} steps\b")
        self.assertEqual(
            {
                self.ended["steps"],
                self.collected["steps"],
                self.measured["steps"],
                int(self.metrics[-1]["step"]),
            },
            {steps},
        )

    def test_time(self):
        own = sum(float(row["time_s"]) for row in self.metrics)
        self.assertAlmostEqual(own, self.ended["train_time_s"], 12)
        slowest = max(rank["epochs"]["time_s"].sum() for rank in self.read.ranks)
        self.assertAlmostEqual(self.collected["train_time_s"], slowest, 12)
        self.assertAlmostEqual(self.measured["train_time_s"], slowest, 12)
        self.assertAlmostEqual(slowest / own, 1, 1)  # the log tells rank 0's

    def test_measures(self):
        for measured, collected in [
            ("images_per_s", "images_per_s"),
            ("step_ms", "step_ms"),
            ("exposed_share", "exposed_comm_share"),
        ]:
            self.assertAlmostEqual(
                self.measured[measured] / self.collected[collected], 1, 12, measured
            )
        for category in trace.MEMORY_CATEGORIES:
            self.assertEqual(
                self.measured[f"peak_{category}_B"], self.collected["peak_memory_B"][category]
            )

    def test_tables(self):
        ended = self.report("study", "--program", self.program)
        self.assertEqual(ended.code, 0, str(ended))
        row = next(
            row for row in self.table("T1") if row["strategy"] == "DDP" and row["workers"] == "2"
        )
        for column, name in [
            ("training s", "train_time_s"),
            ("images/s", "images_per_s"),
            ("step ms", "step_ms"),
        ]:
            self.assertAlmostEqual(float(row[column]) / self.collected[name], 1, 12)
        memory = next(
            row for row in self.table("T2") if row["strategy"] == "DDP" and row["workers"] == "2"
        )
        for category in trace.MEMORY_CATEGORIES:
            self.assertEqual(
                float(memory[f"{category} MiB"]) * 2**20, self.collected["peak_memory_B"][category]
            )
        shown = self.expect(0, "collect", f"study/{CELL}").stdout
        self.assertTrue(re.search(rf"{CELL} .* {self.measured['images_per_s']:.0f} ", shown), shown)


if __name__ == "__main__":
    harness.main()

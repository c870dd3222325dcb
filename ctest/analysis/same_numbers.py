"""For every strategy and server mode: a run's numbers are the same in its log, metrics.csv, outcome, `collect` and
the report, and the same as this file computes from the HDF5 files."""

import csv
import json
import pathlib
import re

import support
import h5py
import harness
import numpy as np
from stratagem_report import study, style

MODES = ["sync", "async", "ssp", "modified", "lag_cap", "dana", "dc", "delayed_sync", "softsync", "backup"]
VARIANTS = {f"ps-{mode.replace('_', '-')}": mode for mode in MODES}
CATEGORIES = ["parameters", "gradients", "optimizer", "buffers", "activations", "workspace"]


class Numbers:
    """The numbers in the traces of a run, read with h5py only."""

    def __init__(self, run):
        self.files = [h5py.File(path, "r") for path in sorted((run / "trace" / "a0").glob("rank-*.h5"))]

    def close(self):
        for file in self.files:
            file.close()

    def of(self, table, column):
        """One array per rank."""
        return [file[f"{table}/{column}"][:] for file in self.files]

    def all(self, table, column):
        return np.concatenate(self.of(table, column))

    def peaks(self):
        """By category, for the rank with the highest peak."""
        moments = []
        for file in self.files:
            held = np.stack([file[f"memory/breakdown/{name}"][:] for name in CATEGORIES])
            moments += [held[:, held.sum(axis=0).argmax()]] if held.size else []
        return dict(zip(CATEGORIES, max(moments, key=sum).tolist()))

    def expected(self):
        time_s = max(times.sum() for times in self.of("epochs", "time_s"))
        durations = np.sort(self.all("steps", "dur_step_ns"))
        peaks = self.peaks()
        return {
            "train_time_s": time_s,
            "images_per_s": self.all("steps", "samples").sum() / time_s,
            "step_ms": durations[len(durations) // 2] * 1e-6,
            "forward_ms": self.all("steps", "dur_forward_ns").mean() * 1e-6,
            "exposed_comm_share": self.all("steps", "dur_comm_exposed_ns").sum() / durations.sum(),
            "peak_B": sum(peaks.values()),
            **{f"peak_{name}_B": value for name, value in peaks.items()},
            **self.expected_of_servers(time_s),
        }

    def expected_of_servers(self, time_s):
        dropped = self.all("ps", "dropped")
        if not len(dropped):
            return {}
        lags = self.all("ps", "lag")
        updates = max(int(versions[-1]) for versions in self.of("ps", "applied_version") if len(versions))
        servers = [rank for rank, rows in enumerate(self.of("ps", "lag")) if len(rows)]
        training_s = sum(self.of("epochs", "time_s")[rank].sum() for rank in servers)
        return {
            "pushes": len(dropped),
            "dropped": int(dropped.sum()),
            "updates": updates,
            "updates_per_s": updates / time_s,
            "lag_mean": np.maximum(lags, 0).mean(),
            "lag_max": lags.max(),
            "queue_depth": self.all("ps", "queue_depth").mean(),
            "server_busy_share": self.all("ps", "dur_busy_ns").sum() * 1e-9 / training_s,
        }


class SameNumbers(support.StudyTest):
    cells = [("serial", 1, 1), ("ddp", 2, 1), ("zero1", 2, 1), ("fsdp", 2, 1), *((name, 2, 1) for name in VARIANTS)]
    strategies = {
        **support.STRATEGIES,
        "zero1": ["strategy.name=fsdp", "strategy.shard=optimizer"],
        **{name: ["strategy.name=ps", f"strategy.mode={mode}"] for name, mode in VARIANTS.items()},
    }

    told = None  # output of collect; the runs are the same in every test

    def setUp(self):
        super().setUp()
        self.runs = {variant: self.study / f"head-lenet-{variant}-w{workers}-s1" for variant, workers, _ in self.cells}
        self.collect = ["collect", *(str(path.relative_to(self.folder)) for path in self.runs.values()), "--no-write"]
        if self.told is None:
            type(self).told = self.expect(0, *self.collect, "--format", "json").stdout
        rows = {row["name"]: row for row in json.loads(self.told)}
        self.rows = {variant: rows[path.name] for variant, path in self.runs.items()}

    def for_each(self, check):
        """Calls `check` with a variant, its run directory and its row of collect, each in a subtest."""
        for variant, run in self.runs.items():
            with self.subTest(variant):
                check(variant, run, self.rows[variant])

    def metrics(self, run):
        with open(run / "metrics.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def test_collect_and_the_traces(self):
        def check(variant, run, row):
            numbers = Numbers(run)
            expected = numbers.expected()
            numbers.close()
            self.assertEqual("pushes" in expected, variant.startswith("ps-"))
            for name, value in expected.items():
                self.assertAlmostEqual(row[name] / value if value else 1 + row[name], 1, 12, name)

        self.for_each(check)

    def test_every_epoch(self):
        columns = ["time_s", "train_loss", "train_accuracy", "test_loss", "test_accuracy", "images_per_s", "comm_bytes"]

        def check(_, run, row):
            metrics, log, numbers = self.metrics(run), (run / "log.txt").read_text(), Numbers(run)
            self.assertEqual(len(metrics), 2)
            for epoch, line in enumerate(metrics):
                recorded = {column: numbers.of("epochs", column)[0][epoch] for column in columns}
                for column in columns:
                    self.assertEqual(float(line[column]), recorded[column], column)
                    if column in row["curve"][epoch] and column != "time_s":
                        self.assertEqual(row["curve"][epoch][column], recorded[column], column)
                told = (
                    f"epoch {epoch + 1}/2  loss {recorded['train_loss']:.4f}  train"
                    f" {100 * recorded['train_accuracy']:.2f} %  test loss {recorded['test_loss']:.4f} "
                    f" test {100 * recorded['test_accuracy']:.2f} %"
                )
                self.assertIn(told, log)
            numbers.close()

        self.for_each(check)

    def test_the_end(self):
        def check(_, run, row):
            metrics, ended = self.metrics(run), json.loads((run / "outcome.json").read_text())
            last = metrics[-1]
            self.assertEqual({float(last["test_accuracy"]), ended["test_accuracy"]}, {row["test_accuracy"]})
            self.assertEqual(float(last["train_loss"]), row["train_loss"])
            self.assertEqual({ended["steps"], int(last["step"])}, {row["steps"]})
            own = sum(float(line["time_s"]) for line in metrics)
            self.assertAlmostEqual(own, ended["train_time_s"], 12)
            self.assertGreaterEqual(row["train_time_s"], own - 1e-9, "the log tells rank 0's, collect the slowest's")
            closing = (run / "log.txt").read_text().splitlines()[-1]
            self.assertIn(f"test accuracy {100 * row['test_accuracy']:.2f} %", closing)
            self.assertRegex(closing, rf"\b{row['steps']} steps\b")

        self.for_each(check)

    def test_what_collect_shows(self):
        shown = self.expect(0, *self.collect).stdout

        def check(_, run, row):
            words = (f"{row['train_time_s']:.2f}", f"{row['images_per_s']:.0f}", f"{row['step_ms']:.2f}")
            self.assertRegex(shown, rf"(?m)^{row['name']} .* {' +'.join(map(re.escape, words))} ")

        self.for_each(check)

    def test_the_report(self):
        ended = self.report("study", "--program", self.program)
        self.assertEqual(ended.code, 0, str(ended))
        tables = {name: self.table(name) for name in ("T1", "T2", "T3")}
        loaded = study.load(self.study, program=self.program)
        labels = {variant: style.look_of(variant).label for variant in self.rows}

        def check(variant, _, row):
            self.assertEqual(loaded.runs[self.runs[variant].name].row["images_per_s"], row["images_per_s"])
            workers = str(dict((name, of) for name, of, _ in self.cells)[variant])
            found = {
                name: [line for line in rows if (line["strategy"], line["workers"]) == (labels[variant], workers)]
                for name, rows in tables.items()
            }
            compared = [
                ("T1", "training s", "train_time_s", 1), ("T1", "images/s", "images_per_s", 1),
                ("T1", "step ms", "step_ms", 1), ("T2", "live MiB", "worker_peak_B", 2**20),
            ]  # fmt: skip
            if variant.startswith("ps-"):
                compared += [
                    ("T3", "lag mean", "lag_mean", 1), ("T3", "updates/s", "updates_per_s", 1),
                    ("T3", "server busy %", "server_busy_share", 0.01), ("T3", "dropped %", "dropped_share", 0.01),
                ]  # fmt: skip
            for table, column, name, unit in compared:
                self.assertEqual(len(found[table]), 1, (table, labels[variant]))
                shown = float(found[table][0][column]) * unit
                self.assertAlmostEqual(shown, row[name], delta=1e-9 * abs(row[name]), msg=(table, column))

        self.for_each(check)


class OneTruth(harness.ProgramTest):
    """The report draws what ranks recorded, but computes no measures."""

    def test_tables_of_traces_are_read_where_they_are_drawn(self):
        reads = re.compile(r'(rank|\])\[f?"(steps|epochs|ps|memory|memory/breakdown|device|spans)"\]')
        package = pathlib.Path(support.ANALYSIS) / "stratagem_report"
        found = {path.name for path in package.glob("*.py") if reads.search(path.read_text(encoding="utf-8"))}
        self.assertLessEqual(found, {"trace.py", "timeline.py", "figures_memory.py"})
        self.assertNotIn("import trace", (package / "measures.py").read_text(encoding="utf-8"))


if __name__ == "__main__":
    harness.main()

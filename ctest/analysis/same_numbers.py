"""For every strategy and server mode: a run's numbers are the same in its log, metrics.csv, outcome, `collect` and
the report, and the same as this file computes from the HDF5 files."""

import csv
import json
import re
import signal

import support
import h5py
import harness
import numpy as np
from stratagem_report import study, style, trace

MODES = ["sync", "async", "ssp", "modified", "lag_cap", "dana", "dc", "dc_adaptive"]
MODES += ["gap_aware", "delayed_sync", "softsync", "backup"]
VARIANTS = {f"ps-{mode.replace('_', '-')}": [f"strategy.mode={mode}"] for mode in MODES}
# Of chunks with versions of their own, each push is one of every chunk.
VARIANTS["ps-chunkwise"] = ["strategy.mode=async", "advanced.pulls=chunkwise", "strategy.servers=2"]
CATEGORIES = ["parameters", "gradients", "optimizer", "buffers", "activations", "workspace"]
PHASES = ["data", "forward", "backward", "comm_exposed", "optimizer"]
STEPS_OF_EPOCH = 8
MIB = 2**-20
# Of a table that collect shows: {title: (measure, factor, digits)}, in its order.
RESULTS = {
    "accuracy %": ("test_accuracy", 100, 2),
    "loss": ("train_loss", 1, 4),
    "time s": ("train_time_s", 1, 2),
    "images/s": ("images_per_s", 1, 0),
    "step ms": ("step_ms", 1, 2),
    "exposed comm %": ("exposed_comm_share", 100, 1),
    "peak MiB": ("peak_B", MIB, 1),
}
MEMORY = {f"{name} MiB": (f"peak_{name}_B", MIB, 1) for name in CATEGORIES}
SERVERS = {
    **{name: (name, 1, 0) for name in ("updates", "pushes", "pulls", "dropped", "overflowed")},
    "lag mean": ("lag_mean", 1, 2),
    **{f"lag {name}": (f"lag_{name}", 1, 0) for name in ("p50", "p95", "p99", "max")},
    "queue": ("queue_depth", 1, 1),
    "server busy %": ("server_busy_share", 100, 1),
}
# Of a table of the report, whose CSV has all digits: {title: (measure, factor)}.
REPORTED = {
    "T1": {
        "training s": ("train_time_s", 1),
        "s per epoch": ("epoch_s", 1),
        "images/s": ("images_per_s", 1),
        "with evaluation s": ("wall_time_s", 1),
        "images/s with evaluation": ("wall_images_per_s", 1),
        "step ms": ("step_ms", 1),
    },
    "T2": {
        "live MiB": ("worker_peak_B", MIB),
        **{f"{name} MiB": (f"worker_peak_{name}_B", MIB) for name in CATEGORIES},
        "reserved MiB": ("reserved_B", MIB),
        "device MiB": ("device_used_B", MIB),
        "server live MiB": ("server_peak_B", MIB),
        "data set MiB": ("data_set_B", MIB),
    },
    "T3": {
        "accuracy %": ("test_accuracy", 100),
        "loss": ("train_loss", 1),
        "training s": ("train_time_s", 1),
        "lag mean": ("lag_mean", 1),
        "lag p95": ("lag_p95", 1),
        "lag max": ("lag_max", 1),
        "dropped %": ("dropped_share", 100),
        "updates/s": ("updates_per_s", 1),
        "server busy %": ("server_busy_share", 100),
    },
    "T5": {
        **{f"{name.replace('_', ' ')} ms": (f"{name}_ms", 1) for name in PHASES},
        "exposed %": ("exposed_comm_share", 100),
        "of it transfer %": ("exposed_transfer_share", 100),
        "waiting for others %": ("exposed_waiting_share", 100),
        "server's work %": ("exposed_server_share", 100),
        "overlap %": ("overlap_share", 100),
        "sent MiB/step": ("sent_per_step_B", MIB),
        "cores in use": ("utilization", 1),
        "energy J": ("energy_J", 1),
    },
}


def shown(value, factor, digits):
    return "-" if value is None else f"{value * factor:.{digits}f}"


def quantile(lags, share):
    """The least lag that no more than a part 1 - share of all exceed."""
    ordered = np.sort(lags)
    return int(ordered[max(int(np.ceil(share * len(ordered))) - 1, 0)])


class Numbers:
    """The numbers in the traces of a run, read with h5py only."""

    def __init__(self, run):
        # Of as many ranks, on CPUs: pixels and labels of all images are in their memory.
        dataset = json.loads((run / "manifest.json").read_text())["dataset"]
        self.data_bytes = (dataset["train_images"] + dataset["test_images"]) * (28 * 28 + 8)
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
            held[CATEGORIES.index("workspace")] -= self.data_bytes
            moments += [held[:, held.sum(axis=0).argmax()]] if held.size else []
        return dict(zip(CATEGORIES, max(moments, key=sum).tolist()))

    def expected(self):
        time_s = max(times.sum() for times in self.of("epochs", "time_s"))
        durations = np.sort(self.all("steps", "dur_step_ns"))
        peaks = self.peaks()
        return {
            "train_time_s": time_s,
            "images_per_s": self.all("steps", "samples").sum() * self.applied_share() / time_s,
            "step_ms": durations[len(durations) // 2] * 1e-6,
            "forward_ms": self.all("steps", "dur_forward_ns").mean() * 1e-6,
            "exposed_comm_share": self.all("steps", "dur_comm_exposed_ns").sum() / durations.sum(),
            "total_sent_B": int(self.all("epochs", "comm_bytes").sum()),
            "peak_B": sum(peaks.values()),
            "whole_peak_B": sum(peaks.values()) + self.data_bytes,
            "data_set_B": self.data_bytes,
            **{f"peak_{name}_B": value for name, value in peaks.items()},
            **self.expected_of_servers(time_s),
        }

    def applied_share(self, epoch=None):
        """Of the pushes to all servers; each has as many samples."""
        steps, dropped = self.all("ps", "step"), self.all("ps", "dropped")
        of_epoch = dropped if epoch is None else dropped[steps // STEPS_OF_EPOCH == epoch]
        return 1 - of_epoch.mean() if len(of_epoch) else 1

    def images_of_epoch(self, epoch):
        """Those that were applied."""
        samples = self.all("steps", "samples")[self.all("steps", "epoch") == epoch].sum()
        return round(samples * self.applied_share(epoch))

    def expected_of_servers(self, time_s):
        dropped = self.all("ps", "dropped")
        if not len(dropped):
            return {}
        lags = self.all("ps", "lag")
        servers = [rank for rank, rows in enumerate(self.of("ps", "lag")) if len(rows)]
        training_s = sum(self.of("epochs", "time_s")[rank].sum() for rank in servers)
        updates, busy_s = self.updates(servers), self.all("ps", "dur_busy_ns").sum() * 1e-9
        return {
            "pushes": len(dropped),
            "pulls": int(self.all("ps", "pulled").sum()),
            "dropped": int(dropped.sum()),
            "dropped_share": dropped.mean(),
            "overflowed": int(self.all("ps", "overflowed").sum()),
            "updates": updates,
            "updates_per_s": updates / time_s,
            "server_bytes_per_s": self.all("ps", "bytes").sum() / time_s,
            "lag_mean": lags.mean(),
            "lag_p50": quantile(lags, 0.5),
            "lag_p95": quantile(lags, 0.95),
            "lag_p99": quantile(lags, 0.99),
            "lag_max": lags.max(),
            "queue_depth": self.all("ps", "queue_depth").mean(),
            "push_busy_ms": 1e3 * busy_s / len(dropped),
            "server_busy_share": busy_s / training_s,
        }

    def updates(self, servers):
        """Versions that were made of what has versions: a server's parameters, or each of its chunks."""
        versions = {}
        for rank in servers:
            columns = [self.of("ps", name)[rank] for name in ("chunk", "applied_version", "dropped")]
            for chunk, version, dropped in zip(*columns):
                if not dropped:
                    versions.setdefault((rank, chunk), set()).add(version)
        return max(map(len, versions.values()))

    def lags_of_epoch(self, epoch):
        """Of all servers."""
        steps = self.all("ps", "step")
        return self.all("ps", "lag")[steps // STEPS_OF_EPOCH == epoch]

    def means_of(self, rank):
        """Of a rank's steps, as collect shows them [ms]."""
        columns = [*(f"dur_{name}_ns" for name in PHASES), "dur_step_ns"]
        values = [self.of("steps", column)[rank] for column in columns]
        return [f"{of.mean() * 1e-6:.2f}" if len(of) else "-" for of in values]


class SameNumbers(support.StudyTest):
    cells = [(name, 1 if name == "serial" else 2, 1)
             for name in ("serial", "ddp", "ddp-no-overlap", "zero1", "zero2", "fsdp", *VARIANTS)]  # fmt: skip
    strategies = {
        **support.STRATEGIES,
        "ddp-no-overlap": ["strategy.bucket_mb=0.5", "strategy.overlap=false"],
        "zero1": ["strategy.name=fsdp", "strategy.shard=optimizer"],
        "zero2": ["strategy.name=fsdp", "strategy.shard=gradients"],
        **{name: ["strategy.name=ps", "strategy.chunk_mb=0.1", *settings] for name, settings in VARIANTS.items()},
    }
    servers = {"ps-chunkwise": 2}

    told = None  # output of collect; the runs are the same in every test

    def setUp(self):
        super().setUp()
        self.runs = {variant: self.study / f"head-lenet-{variant}-w{workers}-s1" for variant, workers, _ in self.cells}
        self.collect = ["collect", *(str(path.relative_to(self.folder)) for path in self.runs.values()), "--no-write"]
        if self.told is None:
            type(self).told = self.expect(0, *self.collect, "--format", "json").stdout
        rows = {row["cell"]: row for row in json.loads(self.told)["cells"]}
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
                images = numbers.images_of_epoch(epoch)
                self.assertAlmostEqual(recorded["images_per_s"] * recorded["time_s"], images, 6)
                rate = f"{round(recorded['images_per_s']):,} images/s"
                self.assertIn(rate, log)
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
            self.assertEqual(row["wall_time_s"], ended["wall_time_s"])
            self.assertGreater(row["wall_time_s"], own)
            images = row["images_per_s"] * row["train_time_s"]
            self.assertAlmostEqual(row["wall_images_per_s"] * row["wall_time_s"] / images, 1, 12)
            closing = (run / "log.txt").read_text().splitlines()[-1]
            self.assertIn(f"test accuracy {100 * row['test_accuracy']:.2f} %", closing)
            self.assertRegex(closing, rf"\b{row['steps']} steps\b")

        self.for_each(check)

    def test_updates_are_no_pushes(self):
        rows = self.rows
        self.assertEqual(rows["ps-async"]["updates"], rows["ps-async"]["pushes"])
        self.assertEqual(2 * rows["ps-softsync"]["updates"], rows["ps-softsync"]["pushes"])
        self.assertEqual(rows["ps-chunkwise"]["updates"], rows["ps-async"]["updates"])
        self.assertGreater(rows["ps-chunkwise"]["pushes"], 2 * rows["ps-chunkwise"]["updates"])

    def test_parts_of_exposed_communication_add_up(self):
        def check(variant, _, row):
            parts = [row[f"exposed_{part}_share"] for part in ("transfer", "waiting", "server")]
            self.assertAlmostEqual(sum(parts), row["exposed_comm_share"], 12)
            self.assertGreaterEqual(min(parts), 0)
            if not variant.startswith("ps-"):
                self.assertEqual(parts[2], 0, "only servers have a server's work")
            elif variant != "ps-delayed-sync":  # there, a server may work while its workers compute
                self.assertGreater(parts[2], 0)

        self.for_each(check)

    def test_servers_send_parameters_to_workers(self):
        """As many bytes as come to them, in a mode that pulls after each push; a few more in messages."""
        row = self.rows["ps-sync"]
        sent = sum(of["comm_B"] for of in row["by_rank"])
        self.assertEqual(row["total_sent_B"], sent)
        by_role = {of["role"]: of["comm_B"] for of in row["by_rank"]}
        self.assertAlmostEqual(by_role["server"] / (2 * by_role["worker"]), 1, delta=0.15)
        self.assertEqual(self.rows["serial"]["total_sent_B"], 0)

    def test_what_the_log_tells_of_servers(self):
        """By epoch, what collect tells of the run."""

        def check(variant, run, row):
            told = re.findall(r"epoch \d+/2 .*?  (lag mean .*?)?(?:; )?(?:dropped .*?; )?servers (\d+) % busy",
                              (run / "log.txt").read_text())  # fmt: skip
            self.assertEqual(len(told), 2 if variant.startswith("ps-") else 0)
            numbers = Numbers(run)
            for epoch, (lags_told, busy) in enumerate(told):
                lags = numbers.lags_of_epoch(epoch)
                parts = [f"{name} {quantile(lags, share)}" for name, share in
                         (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1))]  # fmt: skip
                self.assertIn(lags_told, ("", ", ".join([f"lag mean {lags.mean():.2f}", *parts])))
                self.assertLessEqual(int(busy), 100)
            if told:
                self.assertEqual(row["lag_counts"], np.bincount(numbers.all("ps", "lag")).tolist())
            numbers.close()

        self.for_each(check)

    def test_what_collect_shows(self):
        """Every number of its tables, to the last digit."""
        text = self.expect(0, *self.collect).stdout.splitlines()
        table = self.expect(0, *self.collect, "--format", "csv").stdout.splitlines()
        as_csv = {line["run"]: line for line in csv.DictReader(table)}

        def check(variant, run, row):
            told, numbers = [line.split()[1:] for line in text if line.split()[:1] == [run.name]], Numbers(run)
            begin = [row["strategy"], str(row["ranks"]), str(row["steps"])]
            results, memory, servers = ([shown(row[name], *how) for name, *how in columns.values()]
                                        for columns in (RESULTS, MEMORY, SERVERS))  # fmt: skip
            tables = [[*begin, *results, "complete"], memory, *([servers] if variant.startswith("ps-") else [])]
            steps = [[str(rank), *numbers.means_of(rank)] for rank in range(row["ranks"])]
            numbers.close()
            self.assertEqual(told, [*tables, *steps])
            line = as_csv[run.name]
            for title, (name, *how) in {**RESULTS, **MEMORY, **SERVERS}.items():
                self.assertEqual(line[title], shown(row[name], *how), title)
            self.assertEqual(steps, [[str(of["rank"]), *(shown(of[f"{name}_ms"], 1, 2) for name in (*PHASES, "step"))]
                                     for of in row["by_rank"]])  # fmt: skip

        self.for_each(check)

    def test_groups_of_seeds(self):
        groups = {group["group"]: group for group in json.loads(self.told)["groups"]}

        def check(_, run, row):
            for name in ("train_time_s", "lag_mean", "peak_B", "overlap_share"):
                told, value = groups[row["group"]][name], row[name]
                self.assertEqual((told["median"], told["least"], told["greatest"]), (value,) * 3, (run.name, name))
                self.assertEqual(told["n"], value is not None)

        self.for_each(check)

    def test_the_report(self):
        ended = self.report("study", "--program", self.program)
        self.assertEqual(ended.code, 0, str(ended))
        loaded = study.load(self.study, program=self.program)
        labels = {variant: style.look_of(variant).label for variant in self.rows}
        workers = {variant: str(of) for variant, of, _ in self.cells}

        def check(variant, run, row):
            self.assertEqual(loaded.runs[run.name].row["images_per_s"], row["images_per_s"])
            for table, columns in REPORTED.items():
                found = [line for line in self.table(table)
                         if (line["strategy"], line["workers"]) == (labels[variant], workers[variant])]  # fmt: skip
                self.assertEqual(len(found), 1, (table, labels[variant]))
                for title, (name, factor) in columns.items():
                    if row[name] is None:
                        self.assertEqual(found[0][title], "", (table, title))
                    else:
                        told, value = float(found[0][title]), row[name] * factor
                        self.assertAlmostEqual(told, value, delta=1e-12 * abs(value), msg=(table, title))

        self.for_each(check)


class Resumed(harness.ProgramTest):
    """Of a run that was stopped and went on, each step and update counts once."""

    SETTINGS = [
        "model.name=lenet", "data.subset=192", "data.global_batch=24", "run.max_steps=0", "run.epochs=4",
        "trace.spans_every=1", "checkpoint.every_steps=2", "strategy.name=ps", "strategy.chunk_mb=0.1",
    ]  # fmt: skip
    SLOW = {"STRATAGEM_FAIL": "forward:*:*:delay=30"}

    def check(self, *settings):
        words = [self.program, *harness.overridden(*self.SETTINGS, *settings), "--progress", "none"]
        process = self.start(harness.mpirun(3, words), environment=self.SLOW)
        harness.comes_true(lambda: any((self.folder / "out").glob("checkpoint/step-00*4")))
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.wait(process).code, 75, "saved")
        ended = self.run_words(harness.mpirun(3, [*words, "--resume"]))
        self.assertEqual(ended.code, 0, str(ended))
        told = self.expect(0, "collect", "out", "-o", "joined.h5", "--format", "json").stdout
        row, joined = json.loads(told)["cells"][0], trace.read(self.folder / "joined.h5").ranks
        self.assertEqual((row["attempt"], row["status"], row["steps"]), (1, "complete", 4 * STEPS_OF_EPOCH))
        self.assertGreater(row["wall_time_s"], row["train_time_s"], "of both attempts")
        self.expect(0, "validate", "joined.h5")
        for one, other in zip(joined, trace.read(self.folder / "out").ranks):
            self.assertEqual(list(one.tables), list(other.tables))
            for name in one.tables:
                self.assertTrue(one[name].equals(other[name]), (one.rank, name))
        return row

    def test_synchronous(self):
        row = self.check()
        self.assertEqual({row["updates"], row["pushes"]}, {4 * STEPS_OF_EPOCH})

    def test_asynchronous(self):
        row = self.check("strategy.mode=async", "advanced.pulls=chunkwise")
        self.assertEqual(row["updates"], 2 * 4 * STEPS_OF_EPOCH, "of each of two workers")
        self.assertAlmostEqual(row["updates_per_s"], row["updates"] / row["train_time_s"], 12)


if __name__ == "__main__":
    harness.main()

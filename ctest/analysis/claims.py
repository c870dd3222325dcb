"""Which published claims the report shows, and its first sentences, with cells made by hand."""

import statistics
import types
import unittest

import support  # noqa: F401 (paths, or a visible skip)
import harness
import pandas as pd
from stratagem_report import compare, conditions, document, findings, overview, verdict
from stratagem_report.spread import UNKNOWN

MIB = 2**20
MEASURES = {
    "epoch_s": 1.0,
    "worker_peak_B": 100.0 * MIB,
    "worker_state_B": 60.0 * MIB,
    "peak_B": 100.0 * MIB,
    "state_B": 60.0 * MIB,
    "total_peak_B": 200.0 * MIB,
    "server_peak_B": float("nan"),
    "test_accuracy": 0.9,
    "perplexity": float("nan"),
    "utilization": 0.8,
    "utilization_sd": 0.1,
    "lag_mean": 0.0,
    "lag_max": 0.0,
    "server_busy_share": 0.1,
    "step_ms": 10.0,
    "exposed_comm_share": 0.1,
    "train_time_s": 10.0,
    "worker_peak_without_data_B": 100.0 * MIB,
    "device_used_B": 300.0 * MIB,
    "parameters": 1000,
    **{f"{phase}_ms": 2.0 for phase in ("data", "forward", "backward", "comm_exposed", "optimizer")},
}


def cell(model, variant, workers, seed, **other):
    """A complete cell."""
    sharding = model in conditions.SHARDING.models
    server = variant.startswith("ps-")
    row = {
        "cell": f"{model}-{variant}-w{workers}-s{seed}",
        "group": f"{model}-{variant}-w{workers}",
        "part": "",
        "model": model,
        "dataset": "cifar10" if sharding else "mnist",
        "variant": variant,
        "strategy": "ps" if server else {"fsdp": "fsdp"}.get(variant, variant),
        "workers": workers,
        "servers": int(server),
        "seed": seed,
        "global_batch": 128,
        "input_size": 32,
        "precision": "fp32",
        "planned_steps": 3900.0,
        "images": 50_000.0 if sharding else 60_000.0,
        "state": "complete",
        "limited": False,
        "damaged": False,
        "counted": "images",
        "gpu": True,
        "device": "NVIDIA A100-SXM4-80GB",
        "git_sha": "c0ffee",
        "sharers": workers,
        "recipe": "",
        "steps": 3900,
        "digest": f"{model}-{seed}",
        **MEASURES,
    }
    # A run's own noise, so that seeds differ.
    row["epoch_s"] += 0.001 * seed
    row["test_accuracy"] += 0.0001 * seed
    return {**row, **other}


class Made(compare.Comparison):
    """A comparison of cells without traces."""

    def time_to_target(self, family, variant, workers):
        return UNKNOWN


def comparison(rows, kind=Made):
    """With groups as the program tells them."""
    groups = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    told = {group: {name: spread_of([row[name] for row in of]) for name in MEASURES} for group, of in groups.items()}
    runs = {row["cell"]: run_of(row) for row in rows}
    return kind(types.SimpleNamespace(runs=runs, groups=told, marks=[], name="made"), pd.DataFrame(rows), {})


def run_of(row):
    """What the report reads of a run beside its numbers: as the paper says, unless the row says otherwise."""
    strategy = {"strategy.name": row["strategy"]}
    if row["strategy"] == "ps":
        strategy["strategy.mode"] = row["variant"].removeprefix("ps-").replace("-", "_")
    if row["strategy"] == "fsdp":
        strategy["strategy.shard"] = "full"
    point = {"epoch": row.get("at_epoch", 1) - 1, "time_s": 1.0, "train_loss": 1.0}
    return types.SimpleNamespace(
        config={**conditions.SETTINGS, **strategy, **row.get("config", {})},
        manifest={"dataset": {"fingerprint": row.get("fingerprint", "f")}},
        row={"curve": [{**point, "test_accuracy": row["test_accuracy"]}]},
    )


def spread_of(values):
    known = [value for value in values if value == value]
    if not known:
        return {"median": None, "least": None, "greatest": None, "n": 0}
    return {"median": statistics.median(known), "least": min(known), "greatest": max(known), "n": len(known)}


class Shown(unittest.TestCase):
    """Claims are about the paper's models on its data, and no verdict comes from other cells."""

    def test_not_where_nothing_of_the_paper_ran(self):
        for gpu in True, False:
            rows = [
                cell("lenet", variant, 2, seed, dataset="synthetic-digits", gpu=gpu)
                for variant in ("ddp", "fsdp", "ps-sync", "ps-async")
                for seed in (1, 2, 3)
            ]
            claimed, checked, not_shown = document.claims_of(comparison(rows))
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
        claimed, checked, not_shown = document.claims_of(comparison(rows))
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
        self.assertIn("here more workers do not pay", " ".join(told.details))

    def test_few_steps_and_one_strategy(self):
        told, _ = self.said(("ddp", 2, 1, {"planned_steps": 2.0}))
        self.assertIn("nothing to compare", told.headline)
        self.assertIn("Only 2 steps", " ".join(told.details))


if __name__ == "__main__":
    harness.main()

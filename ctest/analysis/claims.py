"""No verdict without evidence: what published claims need, and the report's first sentences, with cells made by
hand."""

import statistics
import types
import unittest

import support  # noqa: F401 (paths, or a visible skip)
import harness
import pandas as pd
from stratagem_report import claims, compare, document, findings, overview, published, verdict
from stratagem_report.evidence import SERVER, Needs, gather
from stratagem_report.spread import UNKNOWN, Spread

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
    "utilization": 0.8,
    "utilization_sd": 0.1,
    "lag_mean": 0.0,
    "lag_max": 0.0,
    "server_busy_share": 0.1,
    "step_ms": 10.0,
    "exposed_comm_share": 0.1,
    "parameters": 1000,
    **{f"{phase}_ms": 2.0 for phase in ("data", "forward", "backward", "comm_exposed", "optimizer")},
}


def cell(model, variant, workers, seed, **other):
    """A complete cell that fits the paper's claims."""
    sharding = model in published.SHARDING.models
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
        "gpu": True,
        "device": "a GPU",
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


def comparison(rows):
    """With groups as the program tells them."""
    groups = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    told = {group: {name: spread_of([row[name] for row in of]) for name in MEASURES} for group, of in groups.items()}
    return Made(types.SimpleNamespace(runs={}, groups=told, marks=[], name="made"), pd.DataFrame(rows), {})


def spread_of(values):
    known = [value for value in values if value == value]
    if not known:
        return {"median": None, "least": None, "greatest": None, "n": 0}
    return {"median": statistics.median(known), "least": min(known), "greatest": max(known), "n": len(known)}


def sharding_cells(slower=3.0, seeds=(1, 2, 3), models=published.SHARDING.models, **other):
    return [
        cell(model, variant, workers, seed, **{"epoch_s": time, **other})
        for model in models
        for workers in (1, 2)
        for variant, time in (("ddp", 1.0), ("fsdp", slower))
        for seed in seeds
    ]


def server_cells(variants=("ps-sync", "ps-async"), workers=(2, 4), **other):
    return [
        cell(model, variant, count, seed, dataset="mnist", images=60_000.0, **other)
        for model in published.SERVERS.models
        for count in workers
        for variant in variants
        for seed in (1, 2, 3)
    ]


def found(rows):
    return {finding.number: finding for finding in claims.findings(comparison(rows))}


class Evidence(unittest.TestCase):
    def untested(self, rows, number, *words):
        finding = found(rows)[number]
        self.assertEqual(finding.verdict, findings.UNTESTED, finding)
        for word in words:
            self.assertIn(word, finding.measured)

    def test_whole_evidence_is_judged(self):
        self.assertEqual(found(sharding_cells(3.0))["1"].verdict, findings.CONFIRMED)
        refuted = found(sharding_cells(1.5))["1"]
        self.assertEqual(refuted.verdict, findings.REFUTED)
        self.assertIn("0 of 6 comparisons", refuted.measured)

    def test_what_is_missing_is_said(self):
        for words, other in [
            (["runs on GPUs"], {"gpu": False}),
            (["3 seeds (there is 1)"], {"seeds": (1,)}),
            (["3 seeds (there are 2)"], {"seeds": (1, 2)}),
            (["of 50 steps or more (these made 10)"], {"planned_steps": 10.0}),
            (["of convnext_l: runs of FSDP (ZeRO-3) and DDP"], {"models": ("vgg16", "efficientnetv2_l")}),
            (["FSDP (ZeRO-3)", "cifar10"], {"dataset": "mnist"}),
            (["runs of FSDP (ZeRO-3) and DDP", "12 do not count"], {"limited": True}),
            (["runs of FSDP (ZeRO-3) and DDP", "12 do not count"], {"damaged": True}),
        ]:
            with self.subTest(words):
                self.untested(sharding_cells(**other), "1", *words)

    def test_one_strategy_alone_is_no_comparison(self):
        rows = [row for row in sharding_cells() if row["variant"] == "ddp"]
        self.untested(rows, "1", "FSDP (ZeRO-3) (whole runs, on as many workers)")

    def test_runs_of_different_length_are_never_compared(self):
        rows = sharding_cells()
        for row in rows:
            row["planned_steps"] = 3900.0 if row["variant"] == "ddp" else 390.0
        self.untested(rows, "1")
        apart = comparison(rows)
        self.assertEqual(len(apart.families), 6)
        self.assertEqual({len(family.variants) for family in apart.families}, {1})
        self.assertIn("390 steps", " ".join(family.title for family in apart.families))

    def test_accuracy_needs_an_epoch_of_all_images(self):
        self.assertEqual(found(server_cells())["5"].verdict, findings.REFUTED)
        for other in {"planned_steps": 60.0}, {"images": 6_000.0}:
            rows = [{**row, **other} for row in server_cells()]
            self.untested(rows, "5", "an epoch of the whole data set")
        rows = [{**row, "test_accuracy": float("nan")} for row in server_cells()]
        self.untested(rows, "5", "an evaluated accuracy")

    def test_accuracy_may_be_of_a_cpu_but_time_may_not(self):
        rows = server_cells(gpu=False)
        self.assertEqual(found(rows)["5"].verdict, findings.REFUTED)
        self.untested(rows, "4", "runs on GPUs")

    def test_the_ninth_claim_needs_a_server_too(self):
        variants = ("ddp", "fsdp", "ps-sync")
        times = dict(zip(variants, (1.0, 2.0, 3.0)))
        rows = [
            cell(model, variant, 2, seed, epoch_s=times[variant], gpu=True)
            for model in published.ALL.models
            for variant in variants
            for seed in (1, 2, 3)
        ]
        for row in rows:
            row["peak_B"] = (50 if row["variant"] == "fsdp" else 100) * MIB
        self.assertEqual(found(rows)["9"].verdict, findings.CONFIRMED)
        self.untested(
            [row for row in rows if row["strategy"] != "ps"], "9", "a parameter server"
        )
        needs = Needs(published.ALL, ("ddp", "fsdp", SERVER), workers=2)
        self.assertEqual(len(gather(comparison(rows), needs).pairs), len(published.ALL.models))

    def test_experiments_are_those_of_the_published_tables(self):
        times = published.times()
        for experiment, variants in (
            (published.SHARDING, ("ddp", "fsdp")),
            (published.SERVERS, ("ps-sync", "ps-async", "ps-modified")),
        ):
            rows = times[times["variant"].isin(variants) & (times["version"] == "v2")]
            self.assertEqual(set(rows["model"]), set(experiment.models))
            self.assertEqual(set(rows["dataset"]), set(experiment.datasets))

    def test_claims_are_shown_for_their_study_only(self):
        claimed, checked, not_shown = document.claims_of(comparison(sharding_cells()))
        self.assertEqual((len(claimed), len(checked) > 0, not_shown), (9, True, ""))
        other = sharding_cells(models=("lenet",), dataset="synthetic-digits")
        claimed, checked, not_shown = document.claims_of(comparison(other))
        self.assertEqual((claimed, checked), ([], []))
        for word in "not shown", "lenet on synthetic-digits", "vgg16":
            self.assertIn(word, not_shown)


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


class Words(unittest.TestCase):
    def test_more_is_not_less(self):
        self.assertEqual(findings.smaller(Spread(2.0, 2.0, 2.0, 1)), "2.00x smaller")
        self.assertEqual(findings.smaller(Spread(0.5, 0.4, 0.8, 2)), "2.00x (1.25 to 2.50) larger")


if __name__ == "__main__":
    harness.main()

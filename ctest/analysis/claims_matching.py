"""Cells that do not match a published one judge nothing, and the report says why. Published files and rules agree."""

import html
import pathlib
import shutil
import tempfile
import types
import unittest
import unittest.mock

import support
import harness
from made_cells import comparison
from planted import JUDGED, claim_of, inside, plant, verdict
from stratagem_report import checks_arithmetic, claims, conditions, document, findings, parts, published
from stratagem_report.errors import ReportError

CASES = [
    ("1, 2 workers", {"dataset": "mnist"}, "runs with cifar10"),
    ("1, 2 workers", {"model": "lenet"}, "runs with cifar10"),
    ("1, 2 workers", {"workers": 8}, "runs on 2 workers"),
    ("1, 2 workers", {"variant": "zero2"}, "runs of the strategy"),
    ("1, 2 workers", {"config": {"strategy.shard": "gradients"}}, "FSDP (ZeRO-3): runs of the strategy"),
    ("1, 2 workers", {"images": 6400.0}, "all 50,000 images"),
    ("1, 2 workers", {"gpu": False}, "a whole GPU of a data centre"),
    ("1, 2 workers", {"device": "NVIDIA GeForce RTX 4090"}, "a whole GPU of a data centre"),
    ("1, 2 workers", {"device": "NVIDIA A100-SXM4-80GB MIG 1g.10gb"}, "a whole GPU of a data centre"),
    ("1, 2 workers", {"precision": "fp32"}, "precision fp16"),
    ("1, 2 workers", {"config": {"optimizer.lr": 0.1}}, "settings (there: optimizer.lr)"),
    ("1, 2 workers", {"config": {"experiment.slow": 2}}, "settings (there: experiment.slow)"),
    ("1, 2 workers", {"input_size": 64}, "32 px"),
    ("1, 2 workers", {"global_batch": 256}, "128 images per step"),
    ("1, 2 workers", {"planned_steps": 200.0}, "10 epochs"),
    ("1, 2 workers", {"planned_steps": 7800.0}, "10 epochs"),
    ("1, 2 workers", {"limited": True}, "without a time limit"),
    ("1, 2 workers", {"damaged": True}, "with whole traces"),
    ("1, 2 workers", {"train_time_s": float("nan")}, "training time was not measured"),
    ("5, 2 workers", {"images": 6000.0}, "all 60,000 images"),
    ("5, 2 workers", {"planned_steps": 60.0}, "epochs"),
    ("5, 2 workers", {"at_epoch": 2}, "accuracy was not measured"),
    ("8, memory, sync", {"gpu": False}, "a whole GPU of a data centre"),
]


class Unmatched(unittest.TestCase):
    def test_every_reason(self):
        for number, other, words in CASES:
            with self.subTest(number, **{name: str(value) for name, value in other.items()}):
                claim = claim_of(number)
                found = verdict(claim, plant(claim, inside, **other))
                self.assertEqual(found.verdict, findings.UNTESTED, found)
                self.assertIn(f"0 of {len(claim.targets)} published comparisons have matching runs", found.measured)
                self.assertIn(words, found.measured)
                self.assertEqual(found.cause, "")

    def test_accuracy_may_be_of_any_device_and_of_a_longer_run(self):
        claim = claim_of("5, 2 workers")
        for other in {"gpu": False, "device": "cpu", "precision": "fp32"}, {"planned_steps": 20 * 937.0}:
            self.assertEqual(verdict(claim, plant(claim, inside, **other)).verdict, findings.REPRODUCED)

    def test_mixed_cells_are_named(self):
        told = "one device (there: NVIDIA A100-SXM4-80GB, NVIDIA H100 80GB HBM3)"
        for number, column, odd, words in [
            ("1, 2 workers", "device", "NVIDIA H100 80GB HBM3", told),
            ("1, 2 workers", "git_sha", "0ther", "one commit of stratagem (there: 0ther, c0ffee)"),
            ("1, 2 workers", "fingerprint", "g", "one data (there: f, g)"),
            ("5, 2 workers", "precision", "bf16", "one precision (there: bf16, fp16)"),
        ]:
            claim = claim_of(number)
            for who in {"variant": claim.targets[0].ours[0]}, {"variant": claim.targets[0].theirs[0], "seed": 2}:
                with self.subTest(column, **who):
                    rows = plant(claim, inside)
                    for row in rows:
                        if who.items() <= row.items():
                            row[column] = odd
                    found = verdict(claim, rows)
                    self.assertEqual(found.verdict, findings.UNTESTED)
                    self.assertIn(words, found.measured)

    def test_seeds_of_a_failed_run_are_no_choice(self):
        claim = claim_of("1, 2 workers")
        rows = plant(claim, inside)
        rows[0]["state"] = "failed"
        found = verdict(claim, rows)
        self.assertEqual(found.verdict, findings.UNTESTED)
        self.assertIn("seeds that all ended", found.measured)

    def test_a_seed_counts_once(self):
        claim = claim_of("1, 2 workers")
        rows = plant(claim, inside, seeds=(1, 2))
        again = [{**row, "cell": row["cell"] + "-again", "part": "again"} for row in rows]
        found = verdict(claim, rows + again)
        self.assertEqual(found.verdict, findings.UNDERPOWERED)
        self.assertIn("there are 2", found.measured)

    def test_they_are_shown_without_a_verdict(self):
        claim = claim_of("1, 2 workers")
        made = comparison(plant(claim, inside, gpu=False))
        found = next(of for of in claims.findings(made, parts.Attempts()) if of.number == claim.number)
        self.assertEqual(found.verdict, findings.UNTESTED)
        self.assertIn("vgg16, cifar10, batch 128, fp16, FSDP (ZeRO-3) on 2 / DDP on 2: 2.26x", found.seen)
        made = comparison(plant(claim, inside))
        judged = next(of for of in claims.findings(made, parts.Attempts()) if of.number == claim.number)
        self.assertEqual((judged.verdict, judged.seen), (findings.REPRODUCED, ""))


class InTheReport(unittest.TestCase):
    def test_every_finding_is_there(self):
        made = comparison(plant(claim_of("1, 2 workers"), inside))
        claimed, checked, not_shown = document.claims_of(made, parts.Attempts())
        nothing = types.SimpleNamespace(tables=[], figures=[], failures=[], headline="", details=[])
        context = {"study": made.study, "verdict": nothing, "first": nothing, "ran": [], "sections": []}
        context |= {"claims": claimed, "checks": checked, "not_shown": not_shown, "provenance": "", "failures": []}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            document.render(path, context)
            page = html.unescape((path / "report.html").read_text(encoding="utf-8"))
            text = (path / "report.md").read_text(encoding="utf-8")
        for finding in [*claimed, *checked]:
            for written in page, text:
                for part in finding.statement, finding.verdict, finding.measured, finding.seen, finding.cause:
                    self.assertIn(part, written)
        self.assertEqual(page.count(findings.ARITHMETIC), sum(of.basis == findings.ARITHMETIC for of in checked))


class Readings(unittest.TestCase):
    def test_what_the_paper_leaves_open_has_several(self):
        self.assertEqual(len(conditions.SHARDING.readings()), 2)
        self.assertEqual(len(conditions.SERVERS.readings()), 12)
        per_worker = next(of for of in conditions.SERVERS.readings() if of.batch_of == conditions.WORKER)
        self.assertEqual([per_worker.global_batch(workers) for workers in (1, 4)], [64, 256])

    def test_with_one_worker_both_batches_are_one(self):
        for claim in JUDGED:
            sides = [side for target in claim.targets for side in (target.ours, target.theirs) if side]
            if all(workers == 1 for _, workers in sides):
                self.assertEqual(claim.experiment.batch_of, (conditions.STEP,), claim.number)

    def test_an_experiment_s_cells_are_published(self):
        for experiment, variants in (
            (conditions.SHARDING, ("ddp", "fsdp")),
            (conditions.SERVERS, ("ps-sync", "ps-async", "ps-modified")),
        ):
            times = published.times(experiment.dataset)
            rows = times[times["variant"].isin(variants) & (times["version"] == "v2")]
            self.assertEqual(set(rows["model"]), set(experiment.models))


class Files(unittest.TestCase):
    """Edited files are refused where rules need what is gone, or nothing judges what is new."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stratagem-published-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for file in published.FOLDER.glob("*.csv"):
            shutil.copy(file, self.folder)
        patch = unittest.mock.patch.object(published, "FOLDER", self.folder)
        patch.start()
        self.addCleanup(patch.stop)
        self.made = comparison(plant(claim_of("1, 2 workers"), inside))

    def change(self, file, old, new):
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path.write_text(text.replace(old, new), encoding="utf-8")

    def refused(self, *words, by=None):
        with self.assertRaises(ReportError) as caught:
            (by or (lambda: claims.findings(self.made, parts.Attempts())))()
        self.assertEqual(caught.exception.code, 2)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_shipped_files_and_rules_agree(self):
        self.assertEqual(set(published.claims()), set(claims.KEYS))
        claims.findings(self.made, parts.Attempts())

    def test_a_claim_without_a_rule(self):
        self.change(published.CLAIMS, "\n9,v2", '\n10,v2,here,,,,"FSDP is blue."\n9,v2')
        self.refused("claims.csv", "no rule judges claim 10")

    def test_a_rule_without_a_claim(self):
        self.change(published.CLAIMS, "\n8,v2", "\n7b,v2")
        self.refused("claims.csv", "claim 7b")
        self.change(published.CLAIMS, '\n7b,v2,"figures 20, 21"', '\n7,v2,"figures 20, 21"')
        self.refused("claim 7 twice")

    def test_a_missing_row(self):
        self.change(published.CLAIMS, "\n3,v2,figures 10-14,,,,GPU utilisation is comparable between DDP and FSDP.", "")
        self.refused("claims.csv", "claim 3 has a rule but no row")

    def test_a_missing_value(self):
        self.change(published.TIMES, "v2,T3,CIFAR-10,A100-80GB,fsdp,vgg16,2,490.32,s,10 epochs\n", "")
        self.refused("training_time_s.csv", "vgg16, fsdp, 2 GPUs")
        self.change(published.TIMES, "A10G-24GB,ps_sync,resnet50,4,520.769", "A10G-24GB,ps_sync,x,4,520.769")
        self.refused("v1 for resnet50, ps-sync, 4 GPUs", by=checks_arithmetic.findings)

    def test_what_is_no_number(self):
        self.change(published.ACCURACIES, ",51.6,", ",half,")
        self.refused("accuracy_pct.csv", "half")
        self.change(published.ACCURACIES, "gpus", "cards")
        self.refused("accuracy_pct.csv has no column gpus")


if __name__ == "__main__":
    harness.main()

"""Scripts that compare modes of the parameter server, on made results."""

import collections
import json
import statistics

from made_program import Scripts  # first: it makes the other folders known
import harness
import curves
import ps_accuracy
import scores


class Accuracy(Scripts):
    fixed = ["--lr", "0.02", "--workers", "2"]

    def test_verdicts(self):
        ended = self.accuracy(*self.fixed, "--modes", "sync", "async", "dana", "--margin", "0.5", "--seeds", "6")
        sync, late, dana = self.rows(ended)
        self.assertEqual(sync["verdict, margin 0.50"], "(baseline)")
        self.assertEqual((late["against"], late["verdict, margin 0.50"]), ("sync", "worse"))
        self.assertRegex(late["difference"], r"^-\d\.\d+ \[-\d\.\d+, -\d\.\d+\]$")
        self.assertEqual(dana["verdict, margin 0.50"], "equivalent")
        scored = [of for of in self.asked() if "data.holdout" not in of and of["strategy.mode"] == "sync"]
        self.assertEqual(len(scored), 6)

    def test_the_deviation_is_that_of_a_sample(self):
        values = {1: 90.0, 2: 91.0, 3: 95.0}
        self.assertEqual(scores.ACCURACY.mean_sd(values), f"92.00 ± {statistics.stdev([90, 91, 95]):.2f}")
        self.assertEqual(scores.ACCURACY.mean_sd({1: 90.0}), "90.00")

    def test_the_margin_is_a_tenth_of_the_baseline_s_error(self):
        ended = self.accuracy(*self.fixed, "--modes", "sync", "dana", "--json", "kept.json")
        rows = json.loads((self.folder / "kept.json").read_text())["trainings"]
        held_out = [
            row["result"]["test_accuracy"]
            for row in rows
            if row["training"]["mode"] == "sync" and row["training"]["further"]
        ]
        margin = f"{10 * (1 - statistics.fmean(held_out)):.2f}"
        self.assertIn(f"verdict, margin {margin}", self.rows(ended)[0])
        self.assertIn(f"within {margin} points (10 % of the held-out error of sync with 2 workers)", ended.stdout)

    def test_few_seeds_are_told(self):
        ended = self.accuracy(*self.fixed, "--modes", "sync", "async", "--seeds", "2", "--margin", "1")
        row = self.rows(ended)[1]
        self.assertEqual(row["verdict, margin 1.00"], "too few seeds")
        self.assertNotIn("[", row["difference"])

    def test_what_could_not_be_found_is_told(self):
        ended = self.accuracy(*self.fixed, "--modes", "sync", "dana", "--seeds", "3", "--margin", "0.001")
        self.assertRegex(self.rows(ended)[1]["verdict, margin 0.00"], r"^underpowered \(finds 0\.\d\d\)$")

    def test_losses_are_better_where_they_are_lower(self):
        text = ["--score", "loss", "--margin", "0.02", "--set", "optimizer.name=adamw", "--momentum", "0.5", "0.9"]
        words = ["--lr", "0.02", "--workers", "2", *text, "--modes", "async", "sync", "dc", "--seeds", "6"]
        ended = self.accuracy(*words)
        late, sync, lost = self.rows(ended)
        self.assertEqual(sync["verdict, margin 0.020"], "better")
        self.assertRegex(sync["difference"], r"^-0\.\d{3} \[")
        self.assertLess(float(sync["test loss"].split()[0]), float(late["test loss"].split()[0]))
        self.assertRegex(lost["test loss"], r"^\d\.\d{3} ± \d\.\d{3} \(1 of 6 diverged\)$", "of those that did not")
        self.assertIn("Rates are chosen by mean loss on the last 2,000 training sequences", ended.stdout)
        self.assertIn("`equivalent`: within 0.020 nats (as given)", ended.stdout)
        self.assertTrue(all("optimizer.momentum" not in of for of in self.asked()))
        self.assertEqual({of["optimizer.beta1"] for of in self.asked()} & {"0.5", "0.9"}, {"0.5", "0.9"})
        # The made trainings are the better the closer lr / (1 - beta1) is to 0.2.
        self.assertEqual(sync["beta1"], "0.9")

    def test_diverged_trainings_are_told(self):
        ended = self.accuracy(*self.fixed, "--modes", "sync", "dc", "--seeds", "4")
        self.assertIn("(1 of 4 diverged)", self.rows(ended)[1]["accuracy %"])
        self.assertNotIn("diverged", self.rows(ended)[0]["accuracy %"])
        self.assertEqual(self.rows(ended)[1]["mean lag"], "1.00", "of those that did not")

    def test_modes_may_have_optimizers_and_baselines_of_their_own(self):
        nesterov = "sync,optimizer.nesterov=true"
        modes = ["--modes", "sync", nesterov, "dana", "dana,pull_every=2", "async"]
        against = ["--against", f"dana={nesterov}", f"dana,pull_every=2={nesterov}"]
        rows = self.rows(self.accuracy(*self.fixed, *modes, *against, "--seeds", "3"))
        self.assertEqual([row["against"] for row in rows], ["", "sync", nesterov, nesterov, "sync"])
        rules = {(of["strategy.mode"], of.get("optimizer.nesterov")) for of in self.asked()}
        self.assertEqual(rules, {("sync", None), ("sync", "true"), ("dana", None), ("async", None)})
        self.assertEqual({of.get("advanced.pull_every") for of in self.asked()}, {None, "2"})

    def test_a_control_may_have_other_workers(self):
        alone = "async,workers=1"
        rows = self.rows(self.accuracy(*self.fixed, "--modes", alone, "async", "--seeds", "3"))
        self.assertEqual([(row["W"], row["against"]) for row in rows], [("2", ""), ("2", alone)])
        self.assertEqual({of["workers"] for of in self.asked()}, {"1", "2"})
        self.assertNotIn("strategy.workers", self.asked()[0])

    def test_many_epochs_tell_whether_accuracy_still_rises(self):
        for epochs, told in ("7", None), ("8", "+0.00"):  # the program's curves have three points
            row = self.rows(self.accuracy(*self.fixed, "--modes", "sync", "--epochs", epochs, "--seeds", "3"))[0]
            self.assertEqual(row.get("gained in the last quarter"), told)
        curve = [{"test_accuracy": value / 100} for value in (50, 80, 90, 90, 91, 92, 93, 93.5)]
        self.assertAlmostEqual(ps_accuracy.last_gain([{"curve": curve}]), 1.5)

    def test_curves_are_drawn(self):
        modes = ["--modes", "sync", "dc", "--seeds", "3"]  # dc diverges with one of the seeds
        self.accuracy(*self.fixed, *modes, "-o", "curves.png")
        self.assertEqual((self.folder / "curves.png").read_bytes()[1:4], b"PNG")
        results = [{"curve": [{"predicted_time": time, "test_accuracy": 0.9}]} for time in (10, 20)]
        [(time, error)] = curves.mean_curve([*results, {"diverged": True}])
        self.assertEqual((time, round(error, 9)), (15, 10))

    def test_nesterov_s_rule_needs_momentum(self):
        self.accuracy(*self.fixed, "--modes", "sync", "sync,nesterov", "--momentum", "0", "--seeds", "1")
        self.assertEqual({of.get("optimizer.nesterov") for of in self.asked()}, {None})

    def test_missing_baselines_are_named(self):
        for words, told in [
            (["--baseline", "backup"], "the baseline backup is not among --modes sync dana: add it"),
            (["--against", "dana=async"], "the baseline async is not among"),
            (["--against", "dc=sync"], "--against dc=sync: MODE=BASELINE is expected"),
            (["--margin", "0"], "--margin 0: more than 0 points"),
            (["--score", "loss"], "--score loss needs --margin"),
        ]:
            ended = self.accuracy(*self.fixed, "--modes", "sync", "dana", *words, code=2)
            self.assertIn(told, ended.stderr)
        self.assertFalse((self.folder / "asked.jsonl").exists(), "nothing was trained")

    def test_the_time_to_a_target(self):
        words = [*self.fixed, "--modes", "sync", "async", "--seeds", "3"]
        sync, late = self.rows(self.accuracy(*words, "--target", "93.3"))
        self.assertEqual((sync["epochs to 93.3 %"], sync["predicted time to 93.3 %"]), ("3", "30"))
        self.assertEqual(late["epochs to 93.3 %"], "- (0 of 3)")
        self.assertNotIn("epochs", " ".join(self.rows(self.accuracy(*words))[0]))

    def test_finished_trainings_are_kept(self):
        words = [*self.fixed, "--modes", "sync", "dana", "--seeds", "3", "--json", "kept.json"]
        first = self.accuracy(*words).stdout
        count = len(self.asked())
        self.assertEqual(self.accuracy(*words).stdout, first)
        self.assertEqual(len(self.asked()), count)
        kept = json.loads((self.folder / "kept.json").read_text())["trainings"]
        self.assertEqual(len(kept), count)
        for row in kept:
            if row["training"]["further"]:
                self.assertEqual(set(row["result"]), {"test_accuracy"})
            else:
                self.assertEqual(len(row["result"]["curve"]), 3)
        for words_of_others in ["--epochs", "9"], ["--set", "model.dropout=false"]:
            ended = self.accuracy(*words, *words_of_others, code=1)
            self.assertIn(f"kept.json has trainings with another {words_of_others[0]}", ended.stderr)

    def test_programs_are_not_mixed(self):
        words = [*self.fixed, "--modes", "sync", "dana", "--json", "kept.json"]
        first = self.accuracy(*words, "--seeds", "3").stdout
        self.make_fake("fake 2")
        self.assertEqual(self.accuracy(*words, "--seeds", "3", "--recorded").stdout, first)
        ended = self.accuracy(*words, "--seeds", "4", code=1)
        self.assertIn("kept.json was made by fake 1", ended.stderr)
        ended = self.accuracy(*words, "--seeds", "4", "--recorded", code=1)
        self.assertIn("kept.json lacks some of the trainings", ended.stderr)

    def test_what_the_program_refuses_ends_it(self):
        ended = self.accuracy(*self.fixed, "--modes", "sync", "ssp", "--json", "kept.json", code=1)
        self.assertIn("refused by the program", ended.stderr)
        self.assertTrue(json.loads((self.folder / "kept.json").read_text())["trainings"])


class Stability(Scripts):
    def test_losses_are_differences_and_may_be_negative(self):
        words = ["--momentum", "0.9", "--workers", "1", "2", "--lr", "0.01", "0.02", "0.04", "--tolerance", "0.5"]
        ended = self.script("ps_stability.py", *words)
        alone, two = self.rows(ended)
        self.assertEqual((alone["best lr of 1"], alone["lr 0.02"], alone["edge"]), ("0.02", "0.0", "0.02"))
        for name in "lr 0.01", "lr 0.04":
            self.assertAlmostEqual(float(two[name]), 1, delta=0.15)
        self.assertRegex(ended.stdout, r"mean over 3 seeds\. Their standard error is 0\.\d points")
        tuned = {of["run.seed"] for of in self.asked() if "data.holdout" in of}
        scored = {of["run.seed"] for of in self.asked() if "data.holdout" not in of}
        self.assertEqual((tuned & scored, len(scored)), (set(), 3))


class Collapse(Scripts):
    def test_what_is_the_same_is_not_underpowered(self):
        same = dict.fromkeys((1, 2, 3), 90.0)
        (judgement,) = scores.judge(scores.ACCURACY, {("row", 1): same, ("row", 2): dict(same)}, {2: 1}).values()
        self.assertEqual(scores.ACCURACY.verdict_text(judgement), "the same")

    def test_the_change_is_judged_in_pairs(self):
        ended = self.script("ps_collapse.py", "--samples", "worker", "--gradients", "mean", "--rates", "unscaled")
        row = self.rows(ended)[0]
        self.assertRegex(row["change"], r"^[+-]0\.\d+ \[-?\+?\d+\.\d+, \+\d+\.\d+\]$")
        self.assertRegex(row["verdict"], r"^underpowered \(finds 0\.\d\d\)$")


class Runs(Scripts):
    """Runs of a study; `collect` tells of them."""

    def study(self, values, **more):
        cells = []
        for (mode, workers), of in values.items():
            for seed, (accuracy, time) in enumerate(of, 1):
                name = f"modes-w{workers}-s{seed}-{mode}"
                (self.folder / "runs" / name).mkdir(parents=True)
                (self.folder / "runs" / name / "outcome.json").write_text("{}")
                row = {"cell": name, "status": "complete", "reason": "epochs done", "lag_mean": 1.0}
                cells.append({**row, "test_accuracy": accuracy, "train_time_s": time, **more.get(f"{mode}{seed}", {})})
        (self.folder / "collected.json").write_text(json.dumps({"cells": cells}))

    def table(self, *arguments, code=0):
        return self.script("ps_runs.py", "runs", *arguments, code=code)

    def test_accuracies_and_times(self):
        sync = [(0.980, 10.0), (0.981, 10.2), (0.979, 9.9), (0.980, 10.1)]
        late = [(accuracy - 0.02, 0.5 * time) for accuracy, time in sync]
        self.study({("sync", 2): sync, ("async", 2): late, ("sync", 4): sync[:2], ("async", 4): late[:2]})
        ended = self.table("--margin", "0.2")
        rows = collections.defaultdict(dict)
        for row in self.rows(ended):
            rows[row["W"]][row["mode"]] = row
        self.assertEqual(rows["2"]["async"]["verdict, margin 0.20"], "worse")
        self.assertEqual(rows["4"]["async"]["verdict, margin 0.20"], "too few seeds")
        self.assertEqual(rows["2"]["sync"]["time over async's"], "2.00 [2.00, 2.00]")
        self.assertEqual(rows["4"]["sync"]["time over async's"], "2.00")
        self.assertEqual(rows["2"]["sync"]["accuracy %"], "98.00 ± 0.08")

    def test_the_default_margin_is_told(self):
        self.study({("sync", 2): [(0.98, 1.0)] * 3, ("async", 2): [(0.98, 1.0)] * 3})
        ended = self.table()
        self.assertIn("within 0.20 points (10 % of the error of sync in these runs", ended.stdout)
        self.assertEqual(self.rows(ended)[1]["verdict, margin 0.20"], "the same")

    def test_runs_that_a_time_limit_ended_do_not_count(self):
        self.study({("sync", 2): [(0.98, 1.0)] * 3, ("async", 2): [(0.9, 1.0)] * 3}, async2={"reason": "time_limit"})
        self.assertEqual([row["seeds"] for row in self.rows(self.table())], ["3", "2"])

    def test_the_table_of_runs_that_are_gone(self):
        self.study({("sync", 2): [(0.98, 1.0)] * 3, ("async", 2): [(0.97, 2.0)] * 3})
        first = self.table("--json", "kept.json").stdout
        (self.folder / "collected.json").unlink()
        self.assertEqual(self.script("ps_runs.py", "--json", "kept.json", "--recorded").stdout, first)
        self.assertIn("--recorded needs --json", self.script("ps_runs.py", "--recorded", code=2).stderr)
        self.assertIn("name the folder", self.script("ps_runs.py", code=2).stderr)

    def test_a_missing_baseline_is_named(self):
        self.study({("async", 2): [(0.98, 1.0)] * 3, ("dana", 2): [(0.98, 1.0)] * 3})
        told = "no complete run of the baseline sync: run it, or name one of async, dana with --baseline"
        self.assertIn(told, self.table(code=1).stderr)

    def test_a_baseline_that_is_missing_in_some_rows(self):
        self.study({("sync", 2): [(0.98, 1.0)] * 3, ("dana", 2): [(0.98, 1.0)] * 3, ("dana", 4): [(0.9, 1.0)] * 3})
        rows = self.rows(self.table("--margin", "0.2"))
        self.assertEqual(rows[2]["verdict, margin 0.20"], "baseline not run")


if __name__ == "__main__":
    harness.main()

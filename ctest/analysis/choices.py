"""What the report says of the best strategy: tested over shared seeds, or only described; with cells made by hand."""

import math
import random
import unittest

import support  # noqa: F401 (paths, or a visible skip)
import harness
from made_cells import Made, cell, comparison
from stratagem_report import choices, compare, document, inference, overview, standing, verdict
from stratagem_report.choices import ACCURACY, PEAK, PERPLEXITY, TIME

STUDIES = 200
SEEDS = 5
# A true share of 5 % exceeds this in one of 100 samples of STUDIES.
BOUND = inference.LEVEL + 2.33 * (inference.LEVEL * (1 - inference.LEVEL) / STUDIES) ** 0.5


def rows_of(quantity, values):
    """Cells from {variant: values by seed}."""
    return [
        {**cell("lenet", variant, 2, seed), quantity: value}
        for variant, of in values.items()
        for seed, value in enumerate(of, 1)
    ]


class Judged(unittest.TestCase):
    def choice(self, goal, values):
        made = comparison(rows_of(goal.quantity, values))
        return choices.choose(made, made.families[0], 2, goal)

    def text(self, goal, **values):
        return self.choice(goal, values).verdict_text

    def test_times(self):
        ddp = [1.00, 1.01, 0.99, 1.00]
        self.assertEqual(self.text(TIME, ddp=ddp, fsdp=[1.50, 1.52, 1.48, 1.51]), "established")
        self.assertEqual(self.text(TIME, ddp=ddp, fsdp=[1.01, 1.02, 1.00, 1.01]), "equivalent within 5 %")
        found = self.text(TIME, ddp=ddp, fsdp=[1.2, 1.0, 1.3, 0.98])
        self.assertRegex(found, r"^underpowered: would find \d+ % or more$")

    def test_memory_and_accuracy_have_margins_of_their_own(self):
        self.assertEqual(self.text(PEAK, ddp=[1000] * 3, fsdp=[1009] * 3), "equivalent within 1 %")
        self.assertEqual(self.text(PEAK, ddp=[1000] * 3, fsdp=[1011] * 3), "established")
        sync, other = [0.95, 0.951, 0.949], [0.9491, 0.9502, 0.9479]  # a loss of a tenth of the margin
        self.assertEqual(self.text(ACCURACY, **{"ps-sync": sync, "ps-dana": other}), "equivalent within 0.50 points")
        alike = [1.0] * 3
        self.assertEqual(self.text(ACCURACY, **{"ps-sync": alike, "ps-dana": alike}), "equivalent within 0.05 points")

    def test_text_is_judged_by_perplexity(self):
        values = {"ddp": [4.0, 4.01, 3.99, 4.0], "ps-async": [4.4, 4.41, 4.39, 4.41], "ps-dc": [4.01, 4.0, 4.0, 4.02]}
        made = comparison([{**row, "counted": "tokens"} for row in rows_of("perplexity", values)])
        family = made.families[0]
        self.assertIsNone(choices.choose(made, family, 2, ACCURACY))
        choice = choices.choose(made, family, 2, PERPLEXITY)
        self.assertEqual((choice.best, choice.level, choice.second), ("ddp", ("ps-dc",), "ps-async"))
        told = verdict.verdict(made).details
        line = next(line for line in told if line.startswith("Final perplexity"))
        self.assertRegex(line, r"^Final perplexity: 4.00 to 4.41. Best: DDP \(4.00\) .*; PS async has 10.1 % more.$")
        self.assertIn("perplexity", overview.t0_overview(made, family, 2).markdown())

    def test_few_seeds_are_described(self):
        for words, ddp, fsdp in [
            ("ranges apart", [1.0, 1.1], [1.2, 1.3]),
            ("ranges overlap", [1.0, 1.2], [1.1, 1.3]),
            ("one run each: not judged, more than 10 % apart", [1.0], [1.2, 1.3, 1.2]),
            ("one run each: not judged, within 10 %", [1.0], [1.05]),
        ]:
            with self.subTest(words):
                self.assertEqual(self.text(TIME, ddp=ddp, fsdp=fsdp), words)

    def test_only_shared_seeds_count(self):
        rows = rows_of("epoch_s", {"ddp": [1.0, 1.01, 1.0, 1.02], "fsdp": [2.0, 2.01, 2.0, 2.02]})
        apart = [row for row in rows if row["variant"] == "ddp" or row["seed"] > 2]
        made = comparison(apart)
        self.assertEqual(choices.choose(made, made.families[0], 2, TIME).verdict, standing.APART)

    def test_the_weakest_word_counts(self):
        ddp = [1.00, 1.01, 0.99, 1.00]
        found = self.choice(TIME, {"ddp": ddp, "fsdp": [9 * value for value in ddp], "ps-sync": [1.3, 1.0, 1.4, 0.99]})
        self.assertEqual((found.verdict, found.level, found.second), (inference.UNDERPOWERED, ("ps-sync",), "fsdp"))
        self.assertFalse(found.distinct)

    def test_more_strategies_need_more_evidence(self):
        ddp, fsdp = [1.00, 1.01, 0.99], [1.23, 1.20, 1.24]
        self.assertEqual(self.text(TIME, ddp=ddp, fsdp=fsdp), "established")
        noise = {f"ps-{name}": [1.3, 1.9, 2.5] for name in ("sync", "async", "ssp", "dana", "dc")}
        self.assertIn("underpowered", self.text(TIME, ddp=ddp, fsdp=fsdp, **noise))

    def test_runs_of_a_seed_that_was_repeated(self):
        rows = rows_of("epoch_s", {"ddp": [1.0, 1.01, 1.0], "fsdp": [2.0, 2.01, 2.0]})
        made = comparison([{**row, "seed": 1} for row in rows])
        self.assertEqual(choices.choose(made, made.families[0], 2, TIME).verdict, standing.ESTABLISHED)


class Rows(unittest.TestCase):
    """A row is a family by itself, and its strategies share their residuals."""

    STEADY = {"ddp": [1.0, 1.01, 0.99], "fsdp": [1.1, 1.11, 1.09]}

    def chosen(self, goal, rows, model="lenet"):
        made = comparison(rows)
        family = next(one for one in made.families if one.key["model"] == model)
        return choices.choose(made, family, 2, goal)

    def test_other_rows_of_the_study_do_not_weaken_a_verdict(self):
        rows = rows_of("epoch_s", self.STEADY)
        noise = [{**cell("mlp", f"ps-{name}", 2, seed), "epoch_s": 1 + 0.3 * (seed * len(name) % 3)}
                 for name in ("sync", "async", "ssp", "dana", "dc") for seed in (1, 2, 3)]
        alone, beside = self.chosen(TIME, rows), self.chosen(TIME, rows + noise)
        self.assertEqual(alone.verdict, standing.ESTABLISHED)
        self.assertEqual(alone.standings, beside.standings)

    def test_steady_strategies_tell_how_noisy_a_step_is(self):
        """Of a pair alone, three seeds are too few."""
        ddp, fsdp = [1.00, 1.02, 0.99], [1.12, 1.09, 1.11]
        others = {f"ps-{name}": [1.30 + 0.01 * (place % 3), 1.31, 1.29] for place, name in enumerate("abcd")}
        alone = self.chosen(TIME, rows_of("epoch_s", {"ddp": ddp, "fsdp": [1.06, 1.05, 1.09]}))
        row = self.chosen(TIME, rows_of("epoch_s", {"ddp": ddp, "fsdp": fsdp, **others}))
        self.assertEqual(alone.verdict, inference.UNDERPOWERED)
        self.assertEqual(row.standings["fsdp"].word, standing.ESTABLISHED)

    def test_accuracies_that_differ_by_the_same_few_images_are_not_established(self):
        equal = {"ps-sync": [0.9903, 0.9903, 0.9903], "ps-dana": [0.9902, 0.9902, 0.9902]}
        self.assertEqual(self.chosen(ACCURACY, rows_of("test_accuracy", equal)).verdict, inference.EQUIVALENT)
        few = [{**row, "test_images": 400} for row in rows_of("test_accuracy", {"a": [0.96] * 3, "b": [0.9575] * 3})]
        self.assertEqual(self.chosen(ACCURACY, few).verdict, inference.UNDERPOWERED)
        self.assertEqual(
            self.chosen(PEAK, rows_of("peak_B", {"a": [96] * 3, "b": [98] * 3})).verdict, standing.ESTABLISHED
        )

    def test_a_collapsed_run_is_judged_by_ranks_and_told(self):
        best = [0.95 + 0.001 * seed for seed in range(8)]
        values = {"ps-sync": best, "ps-async": [value - 0.01 for value in best]}
        self.assertEqual(self.chosen(ACCURACY, rows_of("test_accuracy", values)).verdict_text, "established")
        values["ps-async"][4] = 0.10
        found = self.chosen(ACCURACY, rows_of("test_accuracy", values))
        self.assertEqual(found.verdict_text, "established by ranks: a run collapsed")
        values["ps-async"][:3] = [value + 0.01 for value in best[:3]]
        found = self.chosen(ACCURACY, rows_of("test_accuracy", values))
        self.assertEqual(found.verdict_text, "underpowered by ranks: a run collapsed")

    def test_a_strategy_that_lacks_a_seed(self):
        values = {"ddp": [1.0, 1.01, 0.99, 1.0], "fsdp": [1.5, 1.52, 1.51, 1.49], "ps-sync": [2.0, 2.01, 2.02, 1.99]}
        rows = [row for row in rows_of("epoch_s", values) if (row["variant"], row["seed"]) != ("fsdp", 2)]
        self.assertEqual(self.chosen(TIME, rows).verdict, standing.ESTABLISHED)


class Timed(Made):
    """With times to the target by variant; infinite where a run did not reach it."""

    times = {}

    def times_to_target(self, family, variant, workers):
        return {(seed, 0): time for seed, time in enumerate(self.times[variant], 1)}

    time_to_target = compare.Comparison.time_to_target


class TimesToTheTarget(unittest.TestCase):
    def choice(self, **times):
        rows = rows_of("test_accuracy", {variant: [0.9] * len(of) for variant, of in times.items()})
        made = comparison(rows, Timed)
        made.times = times
        return choices.choose(made, made.families[0], 2, choices.TO_ACCURACY)

    def test_a_mode_with_a_run_below_the_target_does_not_vanish(self):
        never = math.inf
        found = self.choice(ddp=[10, 10.1, 9.9], **{"ps-async": [14, never, 15], "ps-dc": [never] * 3})
        self.assertEqual(list(found.values), ["ddp", "ps-async"])
        self.assertEqual(found.goal.text(found.values["ps-async"]), "15.00 s (14.00 to not reached)")
        self.assertEqual(found.verdict, standing.APART)

    def test_most_runs_below_the_target(self):
        never = math.inf
        found = self.choice(ddp=[10, 10.1, 9.9], **{"ps-async": [9, never, never]})
        self.assertEqual((found.best, found.value.median), ("ddp", 10))
        self.assertEqual(found.change_text("ps-async"), "not reached")

    def test_the_target_is_that_of_plain_training_and_not_of_the_luckiest(self):
        rows = rows_of("test_accuracy", {"ddp": [0.90, 0.91, 0.89], "ps-async": [0.99, 0.98, 0.97]})
        self.assertAlmostEqual(comparison(rows).families[0].target(), 0.98 * 0.90)
        rows += [{**cell("lenet", "serial", 1, seed), "test_accuracy": 0.8} for seed in (1, 2, 3)]
        self.assertAlmostEqual(comparison(rows).families[0].target(), 0.98 * 0.8)
        stale = [row for row in rows if row["variant"] == "ps-async"]
        self.assertTrue(math.isnan(comparison(stale).families[0].target()))


class ChosenAfterTheRuns(unittest.TestCase):
    """The best of many is often the luckiest: all pairs must count."""

    def test_the_best_of_equals_is_seldom_established(self):
        source, wrong = random.Random(3), 0
        for _ in range(STUDIES):
            values = {f"ps-{name}": [source.gauss(1, 0.02) for _ in range(SEEDS)] for name in "abcdefghijkl"}
            made = comparison(rows_of("epoch_s", values))
            found = choices.choose(made, made.families[0], 2, TIME)
            wrong += any(of.word == standing.ESTABLISHED for of in found.standings.values())
        print(f"{100 * wrong / STUDIES:.1f} % of tables with twelve equal strategies call one slower than the best")
        self.assertLessEqual(wrong / STUDIES, BOUND)


class FirstSentences(unittest.TestCase):
    def said(self, **values):
        made = comparison(rows_of("epoch_s", values))
        return verdict.verdict(made), made

    def test_established(self):
        told, made = self.said(ddp=[1.0, 1.01, 0.99, 1.0], fsdp=[2.0, 2.02, 1.98, 2.01])
        self.assertIn("fastest: DDP (1.00 s per epoch) [established]; FSDP (ZeRO-3) needs 2.0 times", told.headline)
        table = overview.t0_overview(made, told.family, told.workers)
        self.assertEqual([row[3].text for row in table.rows], ["fastest", "+100.5 %"])
        self.assertIn("The fastest: established.", table.note)

    def test_a_tie(self):
        told, made = self.said(ddp=[1.0, 1.01, 0.99, 1.0], fsdp=[1.01, 1.02, 1.0, 1.01])
        self.assertIn("DDP (1.00 s per epoch) and FSDP (ZeRO-3) (+1.0 %) [equivalent within 5 %].", told.headline)
        table = overview.t0_overview(made, told.family, told.workers)
        self.assertEqual(table.rows[1][3].text, "+1.0 %, equivalent")

    def test_what_could_not_be_found_out(self):
        told, made = self.said(ddp=[1.0, 1.2, 1.0, 1.1], fsdp=[1.2, 1.0, 1.2, 1.05])
        self.assertRegex(told.headline, r"DDP \(.*\) or FSDP .* \[underpowered: would find \d+ % or more\]\.")
        self.assertNotIn("nothing is tested", " ".join(told.details))
        note = document.tables_study.t6_decision(made).note
        for word in "one family", "all pairs", "one of 20", "within 5 %", "within 1 %", "fewer than 3":
            self.assertIn(word, note)

    def test_one_seed_can_establish_nothing(self):
        told, _ = self.said(ddp=[1.0], fsdp=[2.0], **{"ps-sync": [9.0]})
        self.assertIn("With one run each, nothing can be established", " ".join(told.details))
        self.assertIn("[one run each: not judged", told.headline)

    def test_words_are_never_stronger_than_two_runs_allow(self):
        told, made = self.said(ddp=[1.0, 1.01], fsdp=[2.0, 2.01])
        self.assertIn("[ranges apart]", told.headline)
        self.assertIn("With fewer than 3 seeds, nothing is tested.", " ".join(told.details))
        rows = document.tables_study.t6_decision(made).rows
        for word in "established", "significant", "better", "equivalent":
            self.assertNotIn(word, " ".join(map(str, [*rows, told.headline])))


if __name__ == "__main__":
    harness.main()

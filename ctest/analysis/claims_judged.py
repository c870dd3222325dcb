"""Verdicts on published claims: right on planted studies, and seldom wrong on made ones."""

import math
import random
import unittest

import support  # noqa: F401 (paths, or a visible skip)
import harness
from scipy import special
from made_cells import comparison
from planted import JUDGED, cell_of, claim_of, in_one_reading, inside, outside, plant, verdict
from stratagem_report import claims, findings, inference, judging, parts
from stratagem_report.inference import Paired

STUDIES = 2000  # of the decision alone
WHOLE = 100  # with cells
TARGETS = 3
LOW, HIGH = -2.0, -0.5  # a range of effects
SD = 0.2


def bound(studies):
    """A true share of 5 % exceeds this in one of 100 samples."""
    return inference.LEVEL + 2.33 * math.sqrt(inference.LEVEL * (1 - inference.LEVEL) / studies)


class Planted(unittest.TestCase):
    def test_every_claim_in_every_direction(self):
        for claim in map(in_one_reading, JUDGED):
            with self.subTest(claim.number):
                self.assertEqual(verdict(claim, plant(claim, inside)).verdict, findings.REPRODUCED)
                self.assertEqual(verdict(claim, plant(claim, outside)).verdict, findings.NOT_REPRODUCED)
                self.assertEqual(verdict(claim, plant(claim, inside, noise=5)).verdict, findings.UNDERPOWERED)

    def test_a_single_counterexample_is_enough(self):
        claim = claim_of("1, 4 workers")
        rows = plant(claim, lambda target: (outside if target.model == "convnext_l" else inside)(target))
        self.assertEqual(verdict(claim, rows).verdict, findings.NOT_REPRODUCED)
        alone = [row for row in rows if row["model"] == "convnext_l"]
        self.assertEqual(verdict(claim, alone).verdict, findings.NOT_REPRODUCED)
        others = [row for row in rows if row["model"] != "convnext_l"]
        found = verdict(claim, others)
        self.assertEqual(found.verdict, findings.UNTESTED)
        self.assertIn("2 of 3 published comparisons have matching runs (vgg16, efficientnetv2_l)", found.measured)

    def test_few_seeds_are_named(self):
        claim = claim_of("1, 2 workers")
        found = verdict(claim, plant(claim, inside, seeds=(1, 2)))
        self.assertEqual(found.verdict, findings.UNDERPOWERED)
        self.assertIn(f"{inference.LEAST_PAIRS} seeds that both sides have are needed, there are 2", found.measured)
        rows = plant(claim, inside)
        for row in rows:
            row["seed"] += 10 * (row["variant"] == "ddp")
        self.assertIn("there are 0", verdict(claim, rows).measured)

    def test_what_stays_open_says_how_many_seeds_it_needs(self):
        claim = in_one_reading(claim_of("5, 4 workers"))
        found = verdict(claim, plant(claim, inside, noise=1))
        self.assertEqual(found.verdict, findings.UNDERPOWERED)
        self.assertRegex(found.measured, r"would need \d+ seeds|even 200 seeds")
        for mean, ends, deviation in (1.0, (0.5, 2.0), 0.5), (0.3, (0.5, 2.0), 0.2):
            pairs = Paired((mean - deviation, mean, mean + deviation))
            needed = judging.seeds_needed(pairs, *ends, 1)
            reach = lambda seeds: -special.stdtrit(seeds - 1, 0.025) + special.stdtrit(seeds - 1, inference.POWER)
            distance = min(abs(mean - end) for end in ends)
            for seeds, enough in (needed, True), (needed - 1, False):
                self.assertEqual(reach(seeds) * pairs.sd / math.sqrt(seeds) <= distance, enough)
        self.assertIsNone(judging.seeds_needed(Paired((0.49, 0.51, 0.53)), 0.51, 2.0, 1))

    def test_a_size_is_judged_not_only_a_direction(self):
        claim = claim_of("5, 4 workers")  # 5 to 18 points
        found = verdict(claim, plant(claim, lambda target: -0.001))
        self.assertEqual(found.verdict, findings.NOT_REPRODUCED)
        self.assertIn("published -5.50 points (counts as reproduced: -11.00 points to -2.75 points)", found.measured)

    def test_what_depends_on_the_reading_is_not_judged(self):
        claim = claim_of("1, 4 workers")
        small, large = claim.experiment.readings()
        rows = plant(claim, inside, reading=small) + plant(claim, outside, reading=large)
        found = verdict(claim, rows)
        self.assertEqual(found.verdict, findings.UNTESTED)
        for word in "depends on what the paper does not say", "32 px", "224 px":
            self.assertIn(word, found.measured)
        both = plant(claim, inside, reading=small) + plant(claim, inside, reading=large)
        self.assertEqual(verdict(claim, both).verdict, findings.REPRODUCED)
        unclear = plant(claim, inside, reading=small) + plant(claim, inside, noise=5, reading=large)
        self.assertEqual(verdict(claim, unclear).verdict, findings.UNDERPOWERED)

    def test_a_cause_is_of_the_judged_cells(self):
        claim = claim_of("1, 2 workers")
        rows = plant(claim, inside)
        for row in rows:
            row["comm_exposed_ms"] = 7.0 if row["variant"] == "fsdp" else 2.0
        self.assertIn("+5.00 ms per step (waiting for communication +5.00)", verdict(claim, rows).cause)
        odd = cell_of(claim, claim.experiment.readings()[0], claim.targets[0], ("fsdp", 2), 9, 1.0, images=100.0)
        found = verdict(claim, [*rows, odd])  # a cell of the group that was not judged
        self.assertNotIn("vgg16", found.cause)
        self.assertIn("convnext_l", found.cause)
        self.assertEqual(verdict(claim, plant(claim, inside, noise=5)).cause, "")


class Arithmetic(unittest.TestCase):
    DECLARED = {
        "2, 2 workers": (findings.CONTRADICTED, "at most 2 times less"),
        "2, 4 workers": (findings.UNTESTED, "at most 4 times less"),
        "5, 1 worker": (findings.CONTRADICTED, "6.3 (densenet121), 15.2 (vgg16) points cannot come from staleness"),
        "6, sync, VGG16, 64 images per step": (findings.CONTRADICTED, "The fall from 98.4 to 47.6 %"),
        "9": (findings.UNTESTED, "No published cell compares the three"),
    }

    def test_it_does_not_depend_on_runs(self):
        for effect in inside, outside:
            about = "1, 2 workers", "5, 2 workers", "6, sync, VGG16, 64 images per worker, 4 against 1"
            rows = [row for number in about for row in plant(claim_of(number), effect)]
            found = {of.number: of for of in claims.findings(comparison(rows), parts.Attempts())}
            for number, (expected, words) in self.DECLARED.items():
                self.assertEqual(found[number].verdict, expected)
                self.assertIn(words, found[number].measured)

    def test_everything_else_depends_on_runs(self):
        made = comparison(plant(claim_of("1, 1 worker"), inside))
        numbers = {of.number for of in claims.findings(made, parts.Attempts())}
        self.assertEqual(numbers - set(self.DECLARED), {of.number for of in JUDGED} - {"e"})


def made(source, seeds, means):
    """Paired differences of one study."""
    return [Paired(tuple(source.gauss(mean, SD) for _ in range(seeds))) for mean in means]


def decided(pairs):
    return judging.verdict_of([judging.state_of(of, LOW, HIGH, len(pairs))[0] for of in pairs])


class FalseVerdicts(unittest.TestCase):
    def share(self, seeds, means, wrong):
        source = random.Random(f"{seeds} {means}")
        return sum(decided(made(source, seeds, means)) == wrong for _ in range(STUDIES)) / STUDIES

    def test_the_decision(self):
        for seeds in 3, 5, 10:
            for edge in LOW, HIGH:
                true = self.share(seeds, [edge] * TARGETS, findings.NOT_REPRODUCED)
                false = self.share(seeds, [edge, -1.0, -1.0], findings.REPRODUCED)
                told = f"{100 * true:.1f} % not reproduced, {100 * false:.1f} % reproduced"
                print(f"{seeds} seeds, edge {edge}, false: {told}")
                self.assertLessEqual(true, bound(STUDIES))
                self.assertLessEqual(false, bound(STUDIES))

    def test_it_finds_what_is_there(self):
        self.assertGreater(self.share(10, [-1.0] * TARGETS, findings.REPRODUCED), 0.9)
        self.assertGreater(self.share(10, [0.2, -1.0, -1.0], findings.NOT_REPRODUCED), 0.9)

    def test_with_cells(self):
        """Claim 1 at the edge of its range, and one that is true of nothing: no loss of async."""
        for number, effect_of, wrong in [
            ("1, 2 workers", lambda target: target.low, findings.REPRODUCED),
            ("1, 2 workers", lambda target: target.low, findings.NOT_REPRODUCED),
            ("6, sync, VGG16, 64 images per worker, 4 against 1", lambda _: 0.0, findings.REPRODUCED),
        ]:
            claim, source, count = claim_of(number), random.Random(number + wrong), 0
            for _ in range(WHOLE):
                rows = plant(claim, lambda target: effect_of(target) + source.gauss(0, 0.1), noise=0, seeds=(1,))
                for seed in 2, 3, 4:
                    rows += plant(claim, lambda target: effect_of(target) + source.gauss(0, 0.1), 0, seeds=(seed,))
                count += verdict(claim, rows).verdict == wrong
            print(f"claim {number}: {100 * count / WHOLE:.1f} % falsely {wrong}")
            self.assertLessEqual(count / WHOLE, bound(WHOLE))


if __name__ == "__main__":
    harness.main()

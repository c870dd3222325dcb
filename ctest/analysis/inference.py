"""Statistics of repeated runs: values from tables, and how often verdicts on made data are wrong."""

import itertools
import math
import random
import unittest

import support  # noqa: F401 (paths, or a visible skip)
import harness
from scipy import stats
from stratagem_report import inference
from stratagem_report.inference import EQUIVALENT, HIGHER, LOWER, TOO_FEW, UNDERPOWERED, Paired

STUDIES = 2000
MODES = 6  # of a family, each compared with the same baseline
MARGIN = 0.5
SEEDS = (3, 5, 10)


def study(source, seeds, shift):
    """Comparisons of MODES ways of training with one baseline. Seeds have effects of their own, as real ones do."""
    effects = [source.gauss(93, 1) for _ in range(seeds)]
    baseline = {seed: effect + source.gauss(0, 0.3) for seed, effect in enumerate(effects)}
    return [
        inference.paired({seed: effect + shift + source.gauss(0, 0.3) for seed, effect in enumerate(effects)}, baseline)
        for _ in range(MODES)
    ]


def share(seeds, shift, wrong):
    """Of the made studies: those in which a verdict is wrong."""
    source = random.Random(f"{seeds} {shift}")
    found = (inference.judge_family(study(source, seeds, shift), MARGIN) for _ in range(STUDIES))
    return sum(any(map(wrong, family)) for family in found) / STUDIES


# A true share of 5 % exceeds this in one of 100 samples of STUDIES.
BOUND = inference.LEVEL + 2.33 * math.sqrt(inference.LEVEL * (1 - inference.LEVEL) / STUDIES)


class FalseVerdicts(unittest.TestCase):
    def test_a_difference_is_seldom_found_where_there_is_none(self):
        for seeds in SEEDS:
            found = share(seeds, 0, lambda one: one.differs)
            print(f"{seeds} seeds: {100 * found:.1f} % of families without a difference have a false one")
            self.assertLessEqual(found, BOUND)

    def test_a_loss_of_the_margin_is_seldom_called_equivalent(self):
        for seeds in SEEDS:
            found = share(seeds, -MARGIN, lambda one: one.verdict == EQUIVALENT)
            print(f"{seeds} seeds: {100 * found:.1f} % of families at the margin are falsely called equivalent")
            self.assertLessEqual(found, BOUND)

    def test_with_ten_seeds_both_are_found_where_they_are(self):
        self.assertGreater(share(10, -1.5, lambda one: one.verdict == LOWER), 0.95)
        self.assertGreater(share(10, 0, lambda one: one.verdict == EQUIVALENT), 0.5)


class Values(unittest.TestCase):
    def test_a_t_interval(self):
        found = Paired((1.0, 2.0, 3.0)).interval()  # t(2, 0.975) = 4.3027
        self.assertAlmostEqual(found.low, 2 - 4.302653 / math.sqrt(3), 5)
        self.assertAlmostEqual(found.high, 2 + 4.302653 / math.sqrt(3), 5)

    def test_p_values(self):
        self.assertAlmostEqual(Paired((1.0, 2.0, 3.0)).p_different(), 0.0741799, 6)
        self.assertAlmostEqual(Paired((-1.0, -2.0, -3.0)).p_different(), 0.0741799, 6)
        self.assertEqual(Paired((1.0,)).p_different(), 1)
        # The greater of both one-sided tests: t = (1.5 - 1) / (0.5 / sqrt(3))
        self.assertAlmostEqual(Paired((0.5, 1.0, 1.5)).p_equivalent(1.5), 0.1127017, 6)

    def test_signed_ranks(self):
        """Against scipy's exact distribution, and counted by hand where differences are equally large."""
        values = (0.08, 0.69, 4.54, 0.6, 0.64, -0.11, 0.85, 0.74, 0.09, 0.76)
        self.assertAlmostEqual(Paired(values).p_ranks(), stats.wilcoxon(values).pvalue)
        self.assertAlmostEqual(Paired((1.0, 1.0, 1.0)).p_ranks(), 2 / 8)
        self.assertAlmostEqual(Paired((1.0, -1.0, 2.0)).p_ranks(), 6 / 8)

    def test_a_seed_that_collapsed_is_judged_by_ranks(self):
        """And not by a mean that one seed decides."""
        steady = [0.5 + 0.02 * seed for seed in range(20)]
        for apart in 40.0, -40.0:
            found = inference.judge_family([Paired((*steady[1:], apart))])[0]
            self.assertEqual((found.verdict, found.differs, found.by_ranks), (HIGHER, True, True))
        found = inference.judge_family([Paired(tuple(steady))])[0]
        self.assertEqual((found.verdict, found.by_ranks), (HIGHER, False))

    def test_what_a_test_can_find(self):
        """The detectable mean is found with the promised power, in samples of 10 pairs with that mean."""
        sample = Paired(tuple((-1) ** index * math.sqrt(0.9) for index in range(10)))
        self.assertAlmostEqual(sample.sd, 1)
        source, mean = random.Random(7), sample.detectable()
        drawn = (Paired(tuple(source.gauss(mean, 1) for _ in range(10))) for _ in range(10_000))
        self.assertAlmostEqual(sum(of.p_different() <= inference.LEVEL for of in drawn) / 10_000, inference.POWER, 2)
        self.assertEqual(Paired((1.0,)).detectable(), math.inf)
        for seeds, count in itertools.product((2, 3, 5, 10, 30, 100), (1, 10, 100, 5000)):
            found = inference.shift_found(seeds, inference.LEVEL / count, inference.POWER)
            self.assertTrue(2 < found < math.inf, (seeds, count))

    def test_holm(self):
        adjusted = inference.holm([0.04, 0.01, 0.03, 0.005])
        for value, expected in zip(adjusted, [0.06, 0.03, 0.06, 0.02]):
            self.assertAlmostEqual(value, expected)
        self.assertEqual(inference.holm([]), [])

    def test_only_shared_seeds_are_paired(self):
        self.assertEqual(inference.paired({1: 5, 2: 7, 3: math.nan}, {2: 4, 3: 1, 4: 9}).differences, (3,))
        ratios = inference.paired_ratios({1: 2.0, 2: 8.0}, {1: 1.0, 2: 1.0})
        self.assertAlmostEqual(inference.as_ratio(ratios.interval()).mean, 4)


class Families(unittest.TestCase):
    def verdicts(self, *differences, margin=MARGIN, **of_values):
        pairs = [Paired(values, **of_values) for values in differences]
        return [one.verdict for one in inference.judge_family(pairs, margin)]

    def test_every_verdict(self):
        self.assertEqual(
            self.verdicts(
                (2.0, 2.1, 1.9, 2.05, 1.95),
                (-2.0, -2.1, -1.9, -2.05, -1.95),
                (0.01, -0.02, 0.01, 0.0, 0.01),
                (2.0, -2.1, 1.0, 0.0, 3.0),
                (2.0, 2.1),
            ),
            [HIGHER, LOWER, EQUIVALENT, UNDERPOWERED, TOO_FEW],
        )

    def test_a_certain_difference_below_the_margin_is_equivalent(self):
        found = inference.judge_family([Paired((0.1, 0.11, 0.09, 0.1))], MARGIN)[0]
        self.assertEqual((found.verdict, found.differs), (EQUIVALENT, True))

    def test_equal_bits_are_equivalent_and_equal_bytes_differ(self):
        self.assertEqual(self.verdicts((0.0, 0.0, 0.0), (8.0, 8.0, 8.0), counted=True), [EQUIVALENT, HIGHER])

    def test_equal_differences_of_what_is_not_counted_prove_nothing(self):
        self.assertEqual(self.verdicts((0.0, 0.0, 0.0), (8.0, 8.0, 8.0)), [EQUIVALENT, UNDERPOWERED])

    def test_accuracies_are_no_more_precise_than_half_an_image(self):
        found = Paired((2.0, 2.0, 2.0), least_sd=0.5)
        self.assertAlmostEqual(found.sd, math.sqrt(0.5))
        self.assertAlmostEqual(found.p_different(), 0.03923, 5)  # t = 2 / sqrt(0.5 / 3), 2 degrees of freedom
        self.assertEqual(self.verdicts((1.0, 1.0, 1.0), least_sd=0.5, margin=None), [UNDERPOWERED])

    def test_without_a_margin_nothing_is_equivalent(self):
        self.assertEqual(self.verdicts((0.0, 0.0, 0.1), margin=None), [UNDERPOWERED])

    def test_comparisons_may_have_margins_of_their_own(self):
        near = (0.3, 0.31, 0.29, 0.3)
        self.assertEqual(self.verdicts(near, near, margin=[0.5, 0.2]), [EQUIVALENT, HIGHER])

    def test_what_is_equivalent_has_its_interval_of_the_test_within_the_margin(self):
        source = random.Random(5)
        for _ in range(200):
            family = [Paired(tuple(source.gauss(0.1, 0.3) for _ in range(5))) for _ in range(6)]
            judged = inference.judge_family(family, MARGIN)
            for one, interval in zip(judged, inference.equivalence_intervals(family, MARGIN)):
                self.assertEqual(one.verdict == EQUIVALENT, interval.within(-MARGIN, MARGIN))

    def test_what_the_family_can_find_grows_with_it(self):
        noise = Paired((0.3, -0.2, 0.1, -0.25))
        alone, of_ten = (inference.judge_family([noise] * count)[0] for count in (1, 10))
        self.assertAlmostEqual(alone.detectable, noise.detectable())
        self.assertAlmostEqual(of_ten.detectable, noise.detectable(inference.LEVEL / 10))

    def test_more_comparisons_need_more_evidence(self):
        clear = (1.0, 1.5, 2.0, 2.4)
        self.assertEqual(self.verdicts(clear), [HIGHER])
        noise = [(0.3, -0.2, 0.1, -0.25)] * 9
        self.assertEqual(self.verdicts(clear, *noise, margin=None)[0], UNDERPOWERED)


if __name__ == "__main__":
    harness.main()

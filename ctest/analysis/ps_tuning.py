"""How scripts choose learning rates: the best point of a grid that grows, and never on what is scored."""

import unittest

from made_program import Scripts  # first: it makes the other folders known
import harness
import tuning


class Tuning(Scripts):
    """The best rate of the made program is 0.02 with momentum 0.9."""

    few = ["--modes", "sync", "dana", "--workers", "2", "--seeds", "4"]

    def test_what_is_scored_is_not_tuned_on(self):
        ended = self.accuracy(*self.few, "--lr", "0.01", "0.02", "0.04", "--tune-seeds", "2", "--holdout", "500")
        tuned = [of for of in self.asked() if "data.holdout" in of]
        scored = [of for of in self.asked() if "data.holdout" not in of]
        self.assertEqual({of["data.holdout"] for of in tuned}, {"500"})
        self.assertEqual({of["run.seed"] for of in tuned}, {"1001", "1002"})
        self.assertEqual({of["run.seed"] for of in scored}, {"1", "2", "3", "4"})
        self.assertEqual({of["optimizer.lr"] for of in scored}, {"0.02"})
        self.assertEqual(len(tuned), 2 * 3 * 2)
        self.assertEqual({row["lr"] for row in self.rows(ended)}, {"0.02"}, "inside: not flagged")
        for word in "500 training images", "2 other seeds", "4 seeds":
            self.assertIn(word, ended.stdout)

    def test_an_optimum_at_the_edge_is_flagged(self):
        ended = self.accuracy(*self.few, "--lr", "0.08", "0.16", "--widen", "0")
        self.assertEqual({row["lr"] for row in self.rows(ended)}, {"0.08 (edge)"})

    def test_the_grid_is_widened_until_the_optimum_is_inside(self):
        for rates in ("0.08", "0.16"), ("0.0025", "0.005"):
            with self.subTest(rates):
                ended = self.accuracy(*self.few, "--lr", *rates)
                self.assertEqual({row["lr"] for row in self.rows(ended)}, {"0.02"})
        tried = {float(of["optimizer.lr"]) for of in self.asked()}
        self.assertEqual(tried, {0.16, 0.08, 0.04, 0.02, 0.01, 0.005, 0.0025})

    def test_widening_has_a_limit(self):
        ended = self.accuracy(*self.few, "--lr", "0.16", "0.32", "--widen", "2")
        self.assertEqual({row["lr"] for row in self.rows(ended)}, {"0.04 (edge)"})

    def test_a_fixed_rate_is_no_edge(self):
        ended = self.accuracy(*self.few, "--lr", "0.16")
        self.assertEqual({row["lr"] for row in self.rows(ended)}, {"0.16"})
        self.assertEqual({of["optimizer.lr"] for of in self.asked()}, {"0.16"})

    def test_momentum_is_a_dimension_of_the_grid(self):
        ended = self.accuracy(*self.few, "--lr", "0.04", "--momentum", "0.9", "0.95", "--tune-seeds", "1")
        self.assertEqual({row["momentum"] for row in self.rows(ended)}, {"0.8"})

    def test_seeds_must_not_meet(self):
        for words in (["--seeds", "1001"], ["--tune-seeds", "0"], ["--holdout", "0"]):
            self.assertIn("error: --", self.accuracy(*words, code=2).stderr)


class Search(unittest.TestCase):
    def found(self, best, rates, momenta, widenings=9):
        def score(points):
            return {(lr, momentum): -abs(lr - best[0]) - abs(momentum - best[1]) for lr, momentum in points}

        optimum = tuning.search(score, rates, momenta, widenings)
        return optimum.lr, optimum.momentum, optimum.edges

    def test_both_dimensions_grow(self):
        self.assertEqual(self.found((0.08, 0.95), [0.01, 0.02], [0.8, 0.9]), (0.08, 0.95, ()))

    def test_momentum_zero_is_an_end_but_no_edge(self):
        self.assertEqual(self.found((0.02, 0.0), [0.01, 0.02, 0.04], [0.9, 0.95]), (0.02, 0.0, ()))

    def test_the_edge_of_each_is_named(self):
        self.assertEqual(self.found((1, 0.99), [0.01, 0.02], [0.5, 0.9], 0), (0.02, 0.9, ("lr", "momentum")))

    def test_the_order_of_the_grid_does_not_matter(self):
        self.assertEqual(self.found((0.02, 0.9), [0.04, 0.01, 0.02, 0.02], [0.9]), (0.02, 0.9, ()))


if __name__ == "__main__":
    harness.main()

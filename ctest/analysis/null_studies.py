"""A sample of the made studies of analysis/null_studies.py: verdicts are seldom false, and find what they should.
The whole is recorded."""

import collections
import itertools
import json
import math
import re
import unittest

import numpy as np
import support
import harness
import null_studies as made  # of analysis/
from scipy import stats
from stratagem_report import inference, row_tests

ROWS = 150
SIZES = 3, 12
PARTS = ("dp", "ps", "per", "head", "head224")
RECORDED = json.loads((support.ANALYSIS / "data/null_studies.json").read_text(encoding="utf-8"))


class Verdicts(unittest.TestCase):
    def test_few_rows_without_a_difference_have_a_false_established(self):
        random = np.random.default_rng(11)
        for name, (goal, draw) in made.NULL.items():
            for size in SIZES:
                for seeds in 3, 5:
                    share = made.false_share(goal, draw, size, seeds, ROWS, random)
                    print(f"{name}, {size} strategies, {seeds} seeds: {100 * share:.1f} % false")
                    self.assertLessEqual(share, made.limit(ROWS), (name, size, seeds))

    def test_nor_is_it_the_margin_that_hides_them(self):
        """Differences of a few images are within the margin of accuracies; without one, they are seldom found, too."""
        random, least = np.random.default_rng(13), inference.least_sd_of(made.IMAGES)
        for draw in made.tied, made.saturated:
            for size in SIZES:
                for seeds in 3, 5:
                    pairs = dict.fromkeys(itertools.combinations(range(size), 2))
                    wrong = 0
                    for _ in range(ROWS):
                        lines = enumerate(draw(random, (size, seeds)).tolist())
                        row = {index: dict(enumerate(line)) for index, line in lines}
                        wrong += any(of.differs for of in row_tests.judge_row(row, pairs, least).values())
                    print(f"{draw.__name__}, {size} strategies, {seeds} seeds: {100 * wrong / ROWS:.1f} % false")
                    self.assertLessEqual(wrong / ROWS, made.limit(ROWS))

    def test_tenths_are_found_with_five_seeds(self):
        found = made.power(12, 5, ROWS, np.random.default_rng(12))
        print(found)
        self.assertGreater(found["slower_10"], 60)
        self.assertGreater(found["slower_15"], 90)

    def test_the_whole_is_recorded(self):
        self.assertEqual(len(RECORDED["null"]), len(made.NULL) * len(made.SEEDS))
        for row in RECORDED["null"]:
            rows = row["rows_of_a_size"]
            self.assertGreaterEqual(rows, 1000)
            for size in made.ROWS:
                self.assertLessEqual(row[f"of_{size}"], 100 * made.limit(rows), row)


class Study(harness.ProgramTest):
    def test_the_rows_are_those_of_the_study(self):
        ended = self.expect(0, "sweep", support.ROOT / "inputs/study/study.yaml", "--list")
        rows = {}
        for line in ended.stdout.splitlines()[2:]:
            words = line.split()
            if len(words) == 9 and words[1].split("-")[0] in PARTS:
                _, cell, _, _, _, variant, *_ = words
                rows.setdefault(re.sub(r"-s\d+$", "", cell.replace(f"-{variant}-w", "-w")), set()).add(variant)
        sizes = collections.Counter(len(variants) for variants in rows.values())
        self.assertEqual(dict(sizes), made.ROWS)


class Quantiles(unittest.TestCase):
    def test_of_ranges_of_normal_means(self):
        for count in 2, 3, 12, 30:
            for freedom in 2, 4.5, 22, 100:
                expected = stats.studentized_range.ppf(0.95, count, freedom) / math.sqrt(2)
                self.assertAlmostEqual(row_tests.critical_range(count, freedom) / expected, 1, 2, (count, freedom))

    def test_of_ranges_of_ranks(self):
        """Two strategies need 6 seeds that all agree, which is so in 2 of 64 orders."""
        self.assertEqual([row_tests.critical_ranks(2, seeds) for seeds in (3, 5, 6)], [math.inf, math.inf, 1.0])
        # Of 3 strategies, rank sums are at least 6 apart in 2.8 % of all orders of 3 seeds, 7 in 4.2 % of 4, 8 in 3.9 %
        # of 5.
        found = [row_tests.critical_ranks(3, seeds) for seeds in (3, 4, 5)]
        for least, expected in zip(found, (6 / 3, 7 / 4, 8 / 5)):
            self.assertAlmostEqual(least, expected)


if __name__ == "__main__":
    harness.main()

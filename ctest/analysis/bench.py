"""The configurations that benchmarks write are ones that the program accepts; statistics of paired benchmarks."""

import contextlib
import math
import pathlib
import random
import sys
import types
import unittest
import unittest.mock

import support
import harness

sys.path.insert(0, str(support.ANALYSIS / "bench"))
import before_after  # noqa: E402
import gpt_vs_torch  # noqa: E402
import paired  # noqa: E402
import programs  # noqa: E402
import ps_speed  # noqa: E402


class Configurations(harness.ProgramTest):
    def check(self, options, strategy, servers):
        cell = programs.Cell("resnet50", 2, 16, servers)
        programs.write_config(pathlib.Path(self.folder) / "config.yaml", options, cell, strategy, 0)
        self.expect(0, "plan", "config.yaml", "--no-activations")

    def test_parameter_servers(self):
        for what in "ddp", "slow", "pulls", "dana", "transport", "gloo":
            options = ps_speed.parser().parse_args([what, "--data", "data/cifar-10-batches-bin"])
            for name, *programs_of in ps_speed.comparisons(options):
                ours = [start.keywords["strategy"] for start in programs_of if "strategy" in start.keywords]
                self.assertTrue(ours, name)
                for strategy in ours:
                    with self.subTest(strategy):
                        self.check(options, strategy, int("name: ps" in strategy))

    def test_two_builds(self):
        options = paired.arguments("", ranks=[2]).parse_args(["--data", "data/cifar-10-batches-bin"])
        for name, strategy in before_after.STRATEGIES.items():
            with self.subTest(name):
                self.check(options, strategy, int(name.startswith("ps")))

    def test_gpt(self):
        (pathlib.Path(self.folder) / "words.txt").write_text("words " * 10000, encoding="ascii")
        for size, shape in gpt_vs_torch.SIZES.items():
            for precision in ("fp32", "bf16"):
                config = gpt_vs_torch.CONFIG.format(**shape, ranks=2, threads=1, precision=precision, text="words.txt",
                                                    device="cpu")
                (pathlib.Path(self.folder) / "config.yaml").write_text(config, encoding="utf-8")
                with self.subTest(size, precision=precision):
                    self.expect(0, "plan", "config.yaml", "--no-activations")


class Program:
    """Stands in for a program that is measured."""

    def __init__(self, name, started):
        self.name, self.started = name, started

    def __call__(self, folder):
        self.started.append(self.name)
        return contextlib.nullcontext(self)

    def wait_for_steps(self, *_):
        pass

    def signal(self, *_):
        pass


class PairedBenchmarks(unittest.TestCase):
    cell = types.SimpleNamespace(model="mlp", ranks=2, batch=8, images=16)

    def measure(self, windows, **options):
        """Of a start after another, with the given pairs of step times."""
        started = []
        results = iter([([], pairs) for pairs in windows])
        options = types.SimpleNamespace(**{"starts": len(windows), "control": False, "timeout": 1, **options})
        with unittest.mock.patch.object(paired, "compare", lambda *_: next(results)):
            row = paired.measure(options, self.cell, Program("ours", started), Program("theirs", started))
        return row, started

    def test_coverages(self):
        for count, covered in (1, 0), (2, 0.5), (3, 0.75), (4, 0.875), (5, 0.9375), (6, 0.96875), (18, 0.969):
            median, low, high, coverage = paired.median_interval(list(range(count)))
            self.assertAlmostEqual(coverage, covered, 3)
            self.assertEqual((median, low + high), ((count - 1) / 2, count - 1))
        self.assertEqual(paired.median_interval(list(range(18)))[1:3], (4, 13))

    def test_intervals_cover_as_often_as_they_say(self):
        source, trials = random.Random(5), 4000
        for count in 4, 9:
            found = [paired.median_interval([source.expovariate(1) for _ in range(count)]) for _ in range(trials)]
            share = sum(low <= math.log(2) <= high for _, low, high, _ in found) / trials
            self.assertAlmostEqual(share, found[0][3], delta=0.02)

    def test_every_start_has_its_pairs(self):
        row, started = self.measure([[(1.0, 1.1), (1.0, 1.2)], [(1.0, 2.0)]])
        self.assertEqual(started, ["ours", "theirs", "theirs", "ours"])
        self.assertEqual((row["starts"], row["pairs"], row["control"]), (2, 3, False))
        self.assertEqual((row["ratio"], row["ratio_low"], row["ratio_high"], row["coverage"]), (1.2, 1.1, 2.0, 0.75))
        self.assertAlmostEqual(row["least_of_starts"], 1.15)
        self.assertEqual(row["greatest_of_starts"], 2.0)
        self.assertEqual(row["step_times_s"], [[(1.0, 1.1), (1.0, 1.2)], [(1.0, 2.0)]])
        shown = {title: form.format(**row) for title, form in paired.speed_columns().items()}
        self.assertEqual(shown["interval (coverage)"], "1.100 to 2.000 (75.0%)")
        self.assertEqual((shown["starts"], shown["pairs"]), ("2", "3"))

    def test_a_control_has_the_second_program_on_both_sides(self):
        row, started = self.measure([[(1.0, 1.0)]], control=True)
        self.assertEqual((row["control"], started), (True, ["theirs", "theirs"]))


if __name__ == "__main__":
    harness.main()

"""The configurations that benchmarks write are ones that the program accepts."""

import pathlib
import sys
import unittest

import support
import harness

sys.path.insert(0, str(support.ANALYSIS / "bench"))
import before_after  # noqa: E402
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


if __name__ == "__main__":
    harness.main()

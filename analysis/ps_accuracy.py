#!/usr/bin/env python3
"""Accuracy, time and lag of a parameter server's modes over numbers of workers, from `stratagem simulate`.

For each number of workers, every mode chooses one of the same learning rates, by its mean test accuracy over the same
few seeds. Then all seeds are trained with this rate, and with the rate that was chosen for the fewest workers. Two
one-sided t tests over pairs of seeds show whether a mode is within a margin of the first mode. The unit of simulated
time is a worker's mean pass. Results: analysis/PS.md.
"""

import argparse
import statistics

import simulations
from equivalence import verdict
from simulations import Training, accuracy, mean

def points(results):
    return [100 * result["test_accuracy"] for result in results]


class Modes:
    """The modes' trainings at each number of workers."""

    def __init__(self, simulated, options):
        self.simulated, self.options = simulated, options
        self.seeds = range(1, options.seeds + 1)

    def at(self, mode, workers, lr, seeds=None):
        return self.simulated.run(
            Training(mode, workers, lr, self.options.momentum, seed) for seed in seeds or self.seeds
        )

    def best_lr(self, mode, workers):
        seeds = self.seeds[: self.options.tune_seeds]
        return max(self.options.lr, key=lambda lr: accuracy(self.at(mode, workers, lr, seeds)))

    def rows(self):
        options = self.options
        transferred = {mode: self.best_lr(mode, options.workers[0]) for mode in options.modes}
        for workers in options.workers:
            baseline = None
            for mode in options.modes:
                if mode == "backup" and workers < 2:
                    continue
                lr = self.best_lr(mode, workers)
                results = self.at(mode, workers, lr)
                baseline = baseline or results
                spread = statistics.pstdev(points(results))
                yield [
                    str(workers),
                    mode,
                    f"{lr:g}",
                    f"{accuracy(results):.2f} ± {spread:.2f}",
                    f"{accuracy(results) - accuracy(baseline):+.2f}",
                    "" if results is baseline else verdict(points(results), points(baseline), options.margin),
                    f"{accuracy(self.at(mode, workers, transferred[mode])):.2f}",
                    f"{mean(results, 'time') / mean(baseline, 'time'):.2f}",
                    f"{mean(results, 'lag_mean'):.2f}",
                    f"{mean(results, 'pulls') / mean(results, 'pushes'):.2f}",
                ]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    simulations.add_options(parser)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="rising")
    parser.add_argument("--modes", nargs="+", default=["sync", "async", "dana"], metavar="MODE[,KEY=VALUE]",
                        help="the first is compared with; parts of the policy may follow: dana,pull_at_lag=8")
    parser.add_argument("--lr", type=float, nargs="+", default=[0.01, 0.02, 0.04])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tune-seeds", type=int, default=2, help="of them, to choose a learning rate")
    parser.add_argument("--margin", type=float, default=0.5, help="points")
    return parser.parse_args()


def main():
    options = parse_options()
    modes = Modes(simulations.Simulations(options), options)
    first = options.modes[0]
    titles = ["W", "mode", "lr", "accuracy %", f"against {first}", f"within {options.margin:g}"]
    titles += [f"at the lr for W={options.workers[0]}", "time", "mean lag", "pulls per push"]
    print(simulations.markdown(titles, modes.rows(), ("mode", titles[5])), end="")


if __name__ == "__main__":
    main()

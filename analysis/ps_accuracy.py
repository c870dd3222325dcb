#!/usr/bin/env python3
"""Accuracy or loss, time and lag of a parameter server's modes over numbers of workers, from `stratagem simulate`.

For each number of workers, every mode chooses from the same grid of learning rates (and momenta): on training images
that are held out, with seeds of its own. Then the seeds that are scored are trained on all training images with this
rate, and with the rate that was chosen for the fewest workers. Modes are compared with a baseline in pairs of the same
seed. Predicted time is over the baseline's or, to a target, in mean steps of a worker. Needs scipy, and matplotlib for
drawing. Results: analysis/PS.md.
"""

import argparse
import math
import pathlib
import statistics

import outputs
import scores
import simulations
import tuning
from scores import ACCURACY, LOSS
from simulations import Training, mean

MANY_EPOCHS = 8  # may reach a plateau


def reached_text(results, target, what):
    """Median of the epoch or time at which runs reached a test accuracy, and how many did if not all."""
    if not any("curve" in result for result in results):
        return "no curve"
    when = [
        next((point[what] for point in result.get("curve", []) if ACCURACY.point(point) >= target), math.inf)
        for result in results
    ]
    count = sum(map(math.isfinite, when))
    told = f"{statistics.median(when):.4g}" if math.isfinite(statistics.median(when)) else "-"
    return told + ("" if count == len(when) else f" ({count} of {len(when)})")


def last_gain(results):
    """Points gained in the last quarter of the epochs, on average: near 0 on a plateau."""
    curves = [[ACCURACY.point(point) for point in result["curve"]] for result in results if "curve" in result]
    return statistics.fmean(curve[-1] - curve[-1 - len(curve) // 4] for curve in curves) if curves else math.nan


def can_run(mode, workers):
    return workers > 1 or mode.split(",")[0] != "backup"


class Modes:
    """The modes' trainings at each number of workers."""

    def __init__(self, simulated, options):
        self.simulated, self.options, self.score = simulated, options, simulated.score
        self.seeds = range(1, options.seeds + 1)
        self.tuner = tuning.Tuner(simulated, options)
        self.keys = [
            (workers, mode)
            for workers in options.workers
            for mode in options.modes
            if can_run(mode, workers)
        ]
        self.best = {key: self.tuner.best(key[1], key[0]) for key in self.keys}
        self.fewest = next(key for key in self.keys if key[1] == options.baseline)
        # Known before anything is scored:
        self.margin = options.margin or scores.MARGIN * (100 - self.best[self.fewest].merit)
        self.results = {key: self.scored(key, self.best[key]) for key in self.keys}
        points = {key: self.score.by_seed(results) for key, results in self.results.items()}
        self.judged = scores.judge(self.score, points, options.compared, self.margin)

    def scored(self, key, chosen):
        workers, mode = key
        return self.simulated.run(Training(mode, workers, chosen.lr, chosen.momentum, seed) for seed in self.seeds)

    def transferred_text(self, key):
        """The mean with what was chosen for the fewest workers."""
        chosen = self.best.get((self.options.workers[0], key[1]))
        points = self.score.by_seed(self.scored(key, chosen)) if chosen else {}
        return self.score.number(statistics.fmean(points.values())) if points else "-"

    @property
    def tells_plateau(self):
        return self.score is ACCURACY and self.options.epochs >= MANY_EPOCHS

    def titles(self):
        options = self.options
        tuned = ["lr", *([simulations.inertia(options.set)] if len(options.momentum) > 1 else [])]
        titles = ["W", "mode", *tuned, self.score.title, "against"]
        titles += ["difference", self.score.verdict_title(self.margin), f"at the lr for W={options.workers[0]}"]
        titles += ["predicted time", "mean lag", "pulls per push"]
        if self.tells_plateau:
            titles.append("gained in the last quarter")
        if options.target:
            titles += [f"{what} to {options.target:g} %" for what in ("epochs", "predicted time")]
        return titles

    def row(self, key):
        options, (workers, mode) = self.options, key
        results, best = self.results[key], self.best[key]
        base = self.results.get((workers, options.compared.get(mode, mode)), [])
        row = [str(workers), mode, best.text("lr"), *([best.text("momentum")] if len(options.momentum) > 1 else [])]
        row += [self.score.text(results), *self.score.comparison_cells(self.judged, key, options.compared)]
        row += [
            self.transferred_text(key),
            scores.number(mean(results, "predicted_time") / mean(base, "predicted_time")),
            scores.number(mean(results, "lag_mean")),
            scores.number(mean(results, "pulls") / mean(results, "pushes")),
        ]
        if self.tells_plateau:
            row.append(scores.number(last_gain(results), "{:+.2f}"))
        if options.target:
            row += [reached_text(results, options.target, what) for what in ("epoch", "predicted_time")]
        return row

    def table(self):
        words = ("mode", "against", self.score.verdict_title(self.margin))
        return simulations.markdown(self.titles(), map(self.row, self.keys), words)

    def notes(self):
        options, (workers, baseline) = self.options, self.fewest
        origin = "as given" if options.margin else (
            f"{100 * scores.MARGIN:.0f} % of the held-out error of {baseline} with {scores.count(workers, 'worker')}"
        )
        return (
            f"Scored with {scores.count(len(self.seeds), 'seed')}; ± is their sample standard deviation."
            f" {self.tuner.text()} {self.score.family_text(self.margin, origin)}"
        )


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    simulations.add_options(parser)
    tuning.add_options(parser, rates=[0.01, 0.02, 0.04], momenta=[0.9])
    scores.add_options(parser)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="rising")
    parser.add_argument("--modes", nargs="+", default=["sync", "async", "dana"], metavar="MODE[,KEY=VALUE]",
                        help="with parts of the policy or keys: dana,pull_at_lag=8 sync,optimizer.nesterov=true")
    parser.add_argument("--seeds", type=int, default=10, help="that are scored: 1, 2, ...")
    parser.add_argument("--score", choices=["accuracy", "loss"], default="accuracy",
                        help="what modes are compared by; of text the loss, which needs --margin [nats]")
    parser.add_argument("--target", type=float, metavar="PERCENT", help="shows when this test accuracy is reached")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="draw test errors over time into this file")
    options = parser.parse_args()
    if options.output and (problem := outputs.taken(options.output, outputs.is_picture, "picture of matplotlib")):
        parser.error(problem)
    tuning.check_options(parser, options)
    options.scored = {of.word: of for of in (ACCURACY, LOSS)}[options.score]
    if options.scored is LOSS and (not options.margin or options.target or options.output):
        parser.error("--score loss needs --margin, and has neither --target nor --output")
    options.baseline, options.compared = scores.baselines(parser, options)
    if not any(can_run(options.baseline, workers) for workers in options.workers):
        parser.error(f"the baseline {options.baseline} needs several workers")
    return options


def main():
    options = parse_options()
    modes = Modes(simulations.Simulations(options, options.scored), options)
    print(f"{modes.table()}\n{modes.notes()}")
    if options.output:
        import curves  # needs matplotlib

        curves.draw(modes.results, options.output)


if __name__ == "__main__":
    main()

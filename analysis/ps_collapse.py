#!/usr/bin/env python3
"""Why synchronous training can get worse with more workers, although nothing is stale, from `stratagem simulate`.

Accuracy of `sync` for several numbers of workers: with fixed samples per step or per worker, gradients averaged or
summed, and a learning rate that is unscaled, scaled with the workers, or scaled with a warm-up. The change from the
fewest to the most workers is a difference in pairs of the same seed. Needs scipy.
"""

import argparse
import itertools

import scores
from scores import ACCURACY
import simulations
from simulations import Training

SCALINGS = {"unscaled": ("none", 0), "linear": ("linear", 0), "linear, warm-up": ("linear", 1)}


def further_of(fixed, reduction, scaling, workers, options):
    rule, warm = SCALINGS[scaling]
    settings = [f"optimizer.reduction={reduction}", f"optimizer.lr_scaling={rule}"]
    if warm:
        settings.append(f"optimizer.warmup_steps={options.warmup}")
    if fixed == "global":
        settings += [f"data.global_batch={options.batch}", "data.batch_per_worker=0"]
    return tuple(settings)


def trained(simulated, options):
    """{((fixed, reduction, scaling), workers): results}."""
    combinations = itertools.product(options.samples, options.gradients, options.rates)
    of = {
        (row, workers): [
            Training("sync", workers, options.lr, options.momentum, seed, further_of(*row, workers, options))
            for seed in range(1, options.seeds + 1)
        ]
        for row in combinations
        for workers in options.workers
    }
    simulated.run(itertools.chain.from_iterable(of.values()))  # all at once, so that --jobs helps
    return {key: simulated.run(trainings) for key, trainings in of.items()}


def rows(found, options):
    points = {key: ACCURACY.by_seed(results) for key, results in found.items()}
    first, last = options.workers[0], options.workers[-1]
    judged = scores.judge(scores.ACCURACY, points, {last: first})
    for row in dict.fromkeys(row for row, _ in found):
        fixed, reduction, scaling = row
        change = judged.get((row, last))
        yield [
            f"{options.batch} per {'worker' if fixed == 'worker' else 'step'}",
            reduction,
            scaling,
            *(ACCURACY.text(found[row, workers]) for workers in options.workers),
            ACCURACY.difference_text(change) if change else "",
            ACCURACY.verdict_text(change) if change else "",
        ]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    simulations.add_options(parser)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--lr", type=float, default=0.01, help="of one worker")
    parser.add_argument("--warmup", type=int, default=100, help="steps")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="rising")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--samples", nargs="+", choices=["worker", "global"], default=["worker", "global"],
                        help="what of the samples stays as it is with more workers: a worker's, or those of a step")
    parser.add_argument("--gradients", nargs="+", choices=["mean", "sum"], default=["mean", "sum"])
    parser.add_argument("--rates", nargs="+", choices=SCALINGS, default=list(SCALINGS))
    return parser.parse_args()


def main():
    options = parse_options()
    simulated = simulations.Simulations(options)
    titles = ["samples", "gradients", "learning rate", *(f"W={workers}" for workers in options.workers)]
    titles += ["change", "verdict"]
    print(simulations.markdown(titles, rows(trained(simulated, options), options), (*titles[:3], "verdict")))
    print(f"Scored with {scores.count(options.seeds, 'seed')}; ± is their sample standard deviation. {scores.FAMILY}")


if __name__ == "__main__":
    main()

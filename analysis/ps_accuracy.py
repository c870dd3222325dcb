#!/usr/bin/env python3
"""Accuracy, time and lag of a parameter server's modes over numbers of workers, from `stratagem simulate`.

Every mode gets the same learning rates to choose from and the same seeds; a cell shows the learning rate with the
best mean test accuracy. Simulated time is in mean passes of a worker. See --help, and analysis/PS.md for results.
"""

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import pathlib
import statistics
import subprocess
import sys

NON_FINITE = 84  # the exit code of a training whose loss is not finite


@dataclasses.dataclass(frozen=True)
class Cell:
    mode: str
    workers: int
    lr: float
    seed: int


def settings_of(cell, arguments):
    settings = [
        f"run.seed={cell.seed}",
        "run.threads=1",
        "run.evaluate_every=0",
        f"run.epochs={arguments.epochs}",
        f"data.dataset={arguments.dataset}",
        f"data.subset={arguments.subset}",
        "data.global_batch=0",
        f"data.batch_per_worker={arguments.batch}",
        f"model.name={arguments.model}",
        f"optimizer.lr={cell.lr}",
        f"optimizer.momentum={arguments.momentum}",
        "strategy.name=ps",
        f"strategy.mode={cell.mode}",
    ]
    if arguments.slow > 1:
        settings += ["strategy.slow_worker=0", f"strategy.slow={arguments.slow}"]
    return settings + arguments.set


def simulate(cell, arguments):
    """What the program tells of the end of one training; a diverged one has the accuracy of a guess."""
    words = [arguments.program, "simulate", arguments.config, "--json"]
    words += ["--workers", str(cell.workers), "--jitter", str(arguments.jitter)]
    for setting in settings_of(cell, arguments):
        words += ["-s", setting]
    ended = subprocess.run(words, capture_output=True, text=True)
    if ended.returncode == NON_FINITE:
        return {"test_accuracy": 0.1, "time": float("nan"), "lag_mean": float("nan")}
    if ended.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{ended.stderr}")
    return json.loads(ended.stdout)


def mean(results, name):
    return statistics.fmean(result[name] for result in results)


def best_of(cells, mode, workers, learning_rates, seeds):
    """The learning rate with the best mean accuracy, and its results by seed."""
    by_lr = {
        lr: [cells[Cell(mode, workers, lr, seed)] for seed in seeds] for lr in learning_rates
    }
    return max(by_lr.items(), key=lambda item: mean(item[1], "test_accuracy"))


def rows_of(cells, arguments, seeds):
    for workers in arguments.workers:
        baseline = None
        for mode in arguments.modes:
            if mode == "backup" and workers < 2:
                continue
            lr, results = best_of(cells, mode, workers, arguments.lr, seeds)
            accuracy = 100 * mean(results, "test_accuracy")
            spread = 100 * statistics.pstdev(result["test_accuracy"] for result in results)
            time = mean(results, "time")
            if baseline is None:
                baseline = (accuracy, time)
            transferred = [cells[Cell(mode, workers, arguments.lr[0], seed)] for seed in seeds]
            yield [
                str(workers),
                mode,
                f"{lr:g}",
                f"{accuracy:.2f} ± {spread:.2f}",
                f"{accuracy - baseline[0]:+.2f}",
                f"{100 * mean(transferred, 'test_accuracy'):.2f}",
                f"{time / baseline[1]:.2f}",
                f"{mean(results, 'lag_mean'):.2f}",
            ]


def table_of(rows, arguments):
    titles = [
        "W",
        "mode",
        "lr",
        "accuracy %",
        f"against {arguments.modes[0]}",
        f"at lr {arguments.lr[0]:g}",
        "time",
        "mean lag",
    ]
    lines = [titles, ["---:", "---", "---:"] + ["---:"] * 5, *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--program", default=str(root / "build" / "stratagem"))
    parser.add_argument("--config", default=str(root / "inputs" / "smoke" / "digits-lenet-ps.yaml"))
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--subset", type=int, default=0, help="training images; 0 all")
    parser.add_argument("--batch", type=int, default=64, help="samples of a push; sync takes W times as many per step")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--jitter", type=float, default=0.1)
    parser.add_argument("--slow", type=float, default=1, help="factor of worker 0's passes")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--modes", nargs="+", default=["sync", "async", "dana"])
    parser.add_argument("--lr", type=float, nargs="+", default=[0.01, 0.02, 0.04])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--json", type=pathlib.Path, help="all figures, a row per training")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    seeds = range(1, arguments.seeds + 1)
    wanted = [
        Cell(*of)
        for of in itertools.product(arguments.modes, arguments.workers, arguments.lr, seeds)
        if not (of[0] == "backup" and of[1] < 2)
    ]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        results = pool.map(lambda cell: simulate(cell, arguments), wanted)
        cells = dict(zip(wanted, results))
    if arguments.json:
        rows = [dataclasses.asdict(cell) | result for cell, result in cells.items()]
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(table_of(rows_of(cells, arguments, seeds), arguments), end="")


if __name__ == "__main__":
    main()

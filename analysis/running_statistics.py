#!/usr/bin/env python3
"""Do running statistics of BatchNorm that never reach the server explain low accuracies of a parameter server?

Models are trained on MNIST under a parameter server. The same parameters are then evaluated with different statistics:

  averaged   running statistics, averaged over the workers, as stratagem does
  worker 0   running statistics of one worker
  initial    mean 0 and variance 1: what a server has if nobody sends it statistics
  batch      those of each batch of test images, as in training

With `--images 0` all test images are used, and the first accuracy must be that which the program itself reports. The
table needs scipy; training needs `build/stratagem` and mpirun, and evaluating torch, torchvision and safetensors.
"""

import argparse
import csv
import functools
import importlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import scores
import simulations
from simulations import Training

STATISTICS = {"averaged": "averaged %", "worker": "worker 0 %", "initial": "initial %", "batch": "batch %"}
TOLERANCE = 0.1  # points between the program's accuracy and ours: a few images whose best two classes are as good
# Options that decide what is measured.
SHARED = ("subset", "epochs", "batch", "images")
MODEL = "model.name="


def trainings(options):
    """{(model, mode, workers): trainings with each seed}. With one worker, all modes are the same."""
    return {
        (model, mode, workers): [
            Training(mode, workers, options.lr, options.momentum, seed, (f"{MODEL}{model}",))
            for seed in range(1, options.seeds + 1)
        ]
        for model, workers in itertools.product(options.models, options.workers)
        for mode in (options.modes if workers > 1 else options.modes[:1])
    }


def config_of(training, options):
    """It saves after the last epoch, and makes another step, because a run does not save its end. JSON is YAML, too."""
    steps = options.epochs * (options.subset // options.batch)
    run = {"seed": training.seed, "threads": max(1, options.cores // training.workers), "device": "cpu"}
    run |= {"epochs": options.epochs + 1, "max_steps": steps + 1}
    run["evaluate_every"] = 0 if options.images else options.epochs
    data = {"dataset": "mnist", "root": str(options.data.resolve()), "subset": options.subset}
    return {
        "schema": 1,
        "run": run,
        "data": data | {"global_batch": options.batch},
        "model": {"name": model_of(training)},
        "optimizer": {"name": "sgd", "lr": training.lr, "momentum": training.momentum},
        "strategy": {"name": "ps", "mode": training.mode},
        "checkpoint": {"every_steps": steps, "every_minutes": 0, "at_end": False},
        "trace": {"spans_every": 0, "device_sample_hz": 0},
    }


class Measurements(simulations.Simulations):
    """Trains with processes instead, and evaluates. Results are {statistics: accuracy}; `program` is the accuracy that
    the run reports, if it evaluates."""

    names = SHARED

    @functools.cached_property
    def test(self):
        return batch_norms().read_mnist(self.options.data, self.options.images)

    def _train(self, training):
        options = self.options
        with tempfile.TemporaryDirectory(prefix="stratagem-statistics-") as folder:
            config, out = pathlib.Path(folder) / "config.yaml", pathlib.Path(folder) / "run"
            config.write_text(json.dumps(config_of(training, options)))
            words = [*options.launcher.format(ranks=training.workers + 1).split(), options.program, "run", str(config)]
            words += ["--out", str(out), "--progress", "none"]
            ended = subprocess.run(words, capture_output=True, text=True)
            if ended.returncode == simulations.NON_FINITE:
                return {"diverged": True}
            if ended.returncode != 0:
                sys.exit(f"{' '.join(words)}\n{ended.stdout}{ended.stderr}")
            return self._evaluate(training, out)

    def _evaluate(self, training, out):
        options = self.options
        (checkpoint,) = (out / "checkpoint").glob("step-*")
        found = batch_norms().accuracies(model_of(training), checkpoint, training.workers, *self.test, options.batch)
        if options.images == 0:
            found["program"] = accuracy_of_epoch(out / "metrics.csv", options.epochs - 1)
            if apart(found) > TOLERANCE:
                sys.exit(f"{training}: the program reports {100 * found['program']:.2f} %, and its parameters with"
                         f" averaged statistics have {100 * found['averaged']:.2f} %: more than rounding"
                         f" ({TOLERANCE} points)")  # fmt: skip
        return found


def batch_norms():
    """The module that evaluates. A table of recorded results does not need torch."""
    return importlib.import_module("batch_norms")


def model_of(training):
    return training.further[0].removeprefix(MODEL)


def apart(found):
    """Points between the accuracies of the program and of Python."""
    return 100 * abs(found["program"] - found["averaged"])


def accuracy_of_epoch(metrics, epoch):
    with open(metrics, newline="", encoding="utf-8") as file:
        return next(float(row["test_accuracy"]) for row in csv.DictReader(file) if int(row["epoch"]) == epoch)


def rows(found):
    for (model, mode, workers), results in found.items():
        ended = [result for result in results if "diverged" not in result]
        lost = len(results) - len(ended)
        yield [
            model,
            mode,
            str(workers),
            f"{len(ended)}" + (f" ({lost} more diverged)" if lost else ""),
            *(accuracy_text(ended, statistics) for statistics in STATISTICS),
        ]


def accuracy_text(ended, statistics):
    points = {number: 100 * result[statistics] for number, result in enumerate(ended)}
    return scores.ACCURACY.mean_sd(points)


def note(found, options):
    used = f"the first {options.images:,}" if options.images else "all"
    text = (
        f"Trained on {options.subset:,} images of MNIST at 32 pixels, {scores.count(options.epochs, 'epoch')},"
        f" {options.batch} images per step of all workers, learning rate {options.lr:g}, momentum {options.momentum:g},"
        f" fp32. Accuracy on {used} test images, in batches of {options.batch}; ± is the sample standard deviation over"
        " the seeds. With one worker, all modes are the same."
    )
    gaps = [apart(result) for results in found.values() for result in results if "program" in result]
    return text + (f" The program's own accuracy is within {max(gaps):.2f} points of `averaged`." if gaps else "")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(simulations.ROOT / "build" / "stratagem"))
    parser.add_argument("--launcher", default="mpirun --bind-to none --oversubscribe -n {ranks}")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("STRATAGEM_DATA"),
                        help="folder that contains mnist/; default: $STRATAGEM_DATA")
    parser.add_argument("--models", nargs="+", choices=["resnet50", "densenet121"], default=["resnet50", "densenet121"])
    parser.add_argument("--modes", nargs="+", default=["sync", "async"])
    parser.add_argument("--workers", type=int, nargs="+", default=[2], help="with one server in addition")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--subset", type=int, default=8000, help="training images")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64, help="images per step of all workers together")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--images", type=int, default=2000, help="test images that are evaluated; 0 all")
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="shared out among the workers")
    parser.add_argument("--json", type=pathlib.Path, help="keeps what was measured: what it has is not repeated")
    parser.add_argument("--recorded", action="store_true", help="measure nothing: --json has everything")
    parser.set_defaults(jobs=1)  # processes of one training use all cores
    options = parser.parse_args()
    if options.subset < options.batch:
        parser.error(f"--subset {options.subset}: at least one step of --batch {options.batch} images")
    if options.recorded and not (options.json and options.json.exists()):
        parser.error("--recorded needs the file of an earlier --json")
    if not options.recorded and options.data is None:
        parser.error("--data: name the folder that contains mnist/, or set STRATAGEM_DATA")
    return options


def main():
    options = parse_options()
    of = trainings(options)
    measured = Measurements(options)
    measured.run(itertools.chain.from_iterable(of.values()))  # all at once, to tell how long it takes
    found = {row: measured.run(seeds) for row, seeds in of.items()}
    titles = ["model", "mode", "W", "seeds", *STATISTICS.values()]
    print(simulations.markdown(titles, rows(found), ("model", "mode")))
    print(note(found, options))


if __name__ == "__main__":
    main()

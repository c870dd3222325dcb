#!/usr/bin/env python3
"""Where asynchrony loses accuracy: a map over momentum, lag and learning rate, from `stratagem simulate`.

Asynchronous workers together make as many updates from as many samples as one worker alone; only the lag differs. A
cell shows how much accuracy they lose at a learning rate, compared with one worker at its best rate and the same
momentum: a difference of means over the same seeds, which noise can make negative. The best rate is chosen on training
images that are held out, with other seeds. A line marks the stability edge: the largest learning rate that loses at
most `--tolerance`. Needs scipy; drawing needs matplotlib.
"""

import argparse
import itertools
import math
import pathlib
import statistics

import outputs
import scores
from scores import ACCURACY
import simulations
import tuning
from simulations import Training, mean
from stratagem_report import inference


class Map:
    """Accuracies over momentum, workers and learning rate."""

    def __init__(self, simulated, options):
        self.options = options
        self.seeds = range(1, options.seeds + 1)
        self.tuner = tuning.Tuner(simulated, options)
        self.best = {momentum: self.tuner.best("async", 1, (momentum,)) for momentum in options.momentum}
        keys = list(itertools.product(options.momentum, options.workers, options.lr))
        of = {key: self.trainings(*key) for key in keys}
        of |= {momentum: self.trainings(momentum, 1, best.lr) for momentum, best in self.best.items()}
        simulated.run(itertools.chain.from_iterable(of.values()))  # all at once, so that --jobs helps
        self.cells = {key: simulated.run(trainings) for key, trainings in of.items()}

    def trainings(self, momentum, workers, lr):
        return [Training("async", workers, lr, momentum, seed) for seed in self.seeds]

    def loss(self, *key):
        """Points that are lost with each seed."""
        return inference.paired(ACCURACY.by_seed(self.cells[key[0]]), ACCURACY.by_seed(self.cells[key]))

    def diverged(self, *key):
        return sum("diverged" in result for result in self.cells[key])

    def lag(self, workers):
        """Mean over the trainings that finished."""
        known = [mean(self.cells[key], "lag_mean") for key in self.keys() if key[1] == workers]
        known = [lag for lag in known if not math.isnan(lag)]
        return statistics.fmean(known) if known else math.nan

    def keys(self):
        return [key for key in self.cells if isinstance(key, tuple)]

    def edge(self, momentum, workers):
        """The largest learning rate that loses at most the tolerance; None if there is none."""
        kept = [lr for lr in self.options.lr if self.loss(momentum, workers, lr).mean <= self.options.tolerance]
        return kept[-1] if kept else None

    def rows(self):
        rates = self.options.lr
        for momentum, workers in itertools.product(self.options.momentum, self.options.workers):
            edge = self.edge(momentum, workers)
            yield [
                f"{momentum:g}",
                self.best[momentum].text("lr"),
                str(workers),
                scores.number(self.lag(workers), "{:.1f}"),
                *(self.text(momentum, workers, lr) for lr in rates),
                f"{edge:g}" if edge else "none",
            ]

    def text(self, *key):
        """A loss; a star if a training diverged."""
        return tenths(self.loss(*key).mean) + ("*" if self.diverged(*key) else "")

    def notes(self):
        errors = sorted(error for key in self.keys() if math.isfinite(error := self.loss(*key).error))
        noise = (
            f" Their standard error is {statistics.median(errors):.1f} points (median; greatest: {errors[-1]:.1f}), so"
            " smaller losses may be noise."
            if errors
            else " One seed does not tell how large noise is."
        )
        return (
            f"Points lost, mean over {scores.count(len(self.seeds), 'seed')}.{noise} *: a training diverged, and counts"
            f" with the accuracy of guessing. The edge loses at most {self.options.tolerance:g} points."
            f" {self.tuner.text()}"
        )


def tenths(points):
    return f"{round(points, 1) + 0.0:.1f}"  # avoids a minus sign before zero


def draw(found, path):
    """One panel per momentum; rows are workers, columns are learning rates."""
    import matplotlib.colors
    from stratagem_report import style

    options = found.options
    canvas = style.Canvas(figsize=(style.WIDTH, 2.6))
    panels = canvas.subplots(1, len(options.momentum), sharey=True, squeeze=False)[0]
    norm = matplotlib.colors.SymLogNorm(1, vmin=0, vmax=90)
    for panel, momentum in zip(panels, options.momentum):
        image = draw_losses(found, panel, momentum, norm)
        edges = [found.edge(momentum, workers) for workers in options.workers]
        right = [(options.lr.index(edge) if edge else -1) + 0.5 for edge in edges]
        corners = [(x, row + side) for row, x in enumerate(right) for side in (-0.5, 0.5)]
        panel.plot(*zip(*corners), color="#D55E00", linewidth=2.5, clip_on=False)
        panel.set_xlim(-0.5, len(options.lr) - 0.5)
        panel.set_title(f"momentum {momentum:g}")
        panel.set_xticks(range(len(options.lr)), [f"{lr:g}" for lr in options.lr], rotation=45)
        panel.set_yticks(range(len(options.workers)), [f"{of} ({found.lag(of):.0f})" for of in options.workers])
        panel.grid(False)
    panels[0].set_ylabel("workers (mean lag)")
    canvas.supxlabel("learning rate", fontsize=9)
    canvas.colorbar(image, ax=list(panels), label="points of accuracy lost", ticks=[0, 1, 5, 10, 20, 50, 90],
                    format="%g")  # fmt: skip
    canvas.savefig(path)


def draw_losses(found, panel, momentum, norm):
    options = found.options
    values = [[found.loss(momentum, workers, lr).mean for lr in options.lr] for workers in options.workers]
    image = panel.imshow(values, cmap="cividis_r", norm=norm, aspect="auto", origin="lower")
    for row, column in itertools.product(range(len(values)), range(len(options.lr))):
        lost = values[row][column]
        colour = "white" if lost > 12 else "black"
        panel.text(column, row, f"{lost:.0f}" if lost >= 9.95 else tenths(lost), ha="center", va="center",
                   fontsize=6, color=colour)  # fmt: skip
    return image


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    simulations.add_options(parser)
    tuning.add_options(parser, rates=[0.005, 0.01, 0.02, 0.04, 0.08, 0.16], momenta=[0, 0.5, 0.9])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="rising; the lag is W - 1")
    parser.add_argument("--seeds", type=int, default=3, help="that are compared: 1, 2, ...")
    parser.add_argument("--tolerance", type=float, default=2, help="points that may be lost this side of the edge")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="draw the map into this file")
    options = parser.parse_args()
    if options.output and (problem := outputs.taken(options.output, outputs.is_picture, "picture of matplotlib")):
        parser.error(problem)
    tuning.check_options(parser, options)
    options.lr.sort()
    return options


def main():
    options = parse_options()
    found = Map(simulations.Simulations(options), options)
    titles = ["momentum", "best lr of 1", "W", "mean lag", *(f"lr {lr:g}" for lr in options.lr), "edge"]
    print(f"{simulations.markdown(titles, found.rows())}\n{found.notes()}")
    if options.output:
        draw(found, options.output)


if __name__ == "__main__":
    main()

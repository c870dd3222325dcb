#!/usr/bin/env python3
"""Where asynchrony loses accuracy: a map over momentum, lag and learning rate, from `stratagem simulate`.

Asynchronous workers together make as many updates from as many samples as one worker alone; only the lag differs. A
cell shows how much accuracy they lose compared with one worker, with the same momentum, at the same learning rate or at
a smaller one if that is better. A line marks the stability edge: the largest learning rate that loses less than
`--tolerance`. Drawing needs matplotlib.
"""

import argparse
import itertools
import pathlib
import statistics

import simulations
from simulations import Training, accuracy, mean


class Map:
    """Accuracies over momentum, workers and learning rate."""

    def __init__(self, simulated, options):
        self.options = options
        self.seeds = range(1, options.seeds + 1)
        keys = list(itertools.product(options.momentum, options.workers, options.lr))
        of = {key: [Training("async", key[1], key[2], key[0], seed) for seed in self.seeds] for key in keys}
        simulated.run(itertools.chain.from_iterable(of.values()))  # all at once, so that --jobs helps
        self.cells = {key: simulated.run(trainings) for key, trainings in of.items()}

    def loss(self, momentum, workers, lr):
        """Points lost, at least 0."""
        alone = [accuracy(self.cells[momentum, 1, smaller]) for smaller in self.options.lr if smaller <= lr]
        return max(0.0, max(alone) - accuracy(self.cells[momentum, workers, lr]))

    def lag(self, workers):
        """Mean over the trainings that finished."""
        known = [mean(results, "lag_mean") for (_, of, _), results in self.cells.items() if of == workers]
        known = [lag for lag in known if lag == lag]
        return statistics.fmean(known) if known else float("nan")

    def edge(self, momentum, workers):
        """The largest learning rate up to which nothing is lost; None if the smallest one already loses."""
        last = None
        for lr in self.options.lr:
            if self.loss(momentum, workers, lr) > self.options.tolerance:
                break
            last = lr
        return last

    def rows(self):
        for momentum, workers in itertools.product(self.options.momentum, self.options.workers):
            edge = self.edge(momentum, workers)
            lost = [self.loss(momentum, workers, lr) for lr in self.options.lr]
            yield [
                f"{momentum:g}",
                str(workers),
                f"{self.lag(workers):.1f}",
                *(f"{points:.1f}" for points in lost),
                f"{edge:g}" if edge else f"below {self.options.lr[0]:g}",
            ]


def draw(found, path):
    """One panel per momentum; rows are workers, columns are learning rates."""
    import matplotlib.colors
    from stratagem_report import style

    options = found.options
    canvas = style.Canvas(figsize=(style.WIDTH, 2.6))
    panels = canvas.subplots(1, len(options.momentum), sharey=True, squeeze=False)[0]
    norm = matplotlib.colors.SymLogNorm(1, vmin=0, vmax=90)
    for panel, momentum in zip(panels, options.momentum):
        values = [[found.loss(momentum, workers, lr) for lr in options.lr] for workers in options.workers]
        image = panel.imshow(values, cmap="cividis_r", norm=norm, aspect="auto", origin="lower")
        for row, column in itertools.product(range(len(values)), range(len(options.lr))):
            lost = values[row][column]
            colour = "white" if lost > 12 else "black"
            panel.text(column, row, f"{lost:.0f}" if lost >= 9.95 else f"{lost:.1f}", ha="center", va="center",
                       fontsize=6, color=colour)  # fmt: skip
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


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    simulations.add_options(parser)
    parser.add_argument("--momentum", type=float, nargs="+", default=[0, 0.5, 0.9])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="rising from 1; lag: W - 1")
    rates = [0.005, 0.01, 0.02, 0.04, 0.08, 0.16]
    parser.add_argument("--lr", type=float, nargs="+", default=rates, help="rising")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=2, help="points that may be lost this side of the edge")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="draw the map into this file")
    return parser.parse_args()


def main():
    options = parse_options()
    found = Map(simulations.Simulations(options), options)
    titles = ["momentum", "W", "mean lag", *(f"lr {lr:g}" for lr in options.lr), "edge"]
    print(simulations.markdown(titles, found.rows()), end="")
    if options.output:
        draw(found, options.output)


if __name__ == "__main__":
    main()

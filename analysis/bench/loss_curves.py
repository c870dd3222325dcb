#!/usr/bin/env python3
"""How far a setting moves the curve of training losses: the same steps with it and without it.

  python3 analysis/bench/loss_curves.py inputs/smoke/cifar-vgg16-ddp.yaml --models resnet50 --change model.fused=off

`--set` changes both sides. Losses are means over WINDOW steps. Rounding differs, so curves part in the end; how far
those of two seeds are apart shows how much that means. Needs the packages in requirements.txt, and `build/stratagem`.
"""

import argparse
import pathlib
import sys
import tempfile

import numpy as np

import programs
import report
import traces

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from stratagem_report import style  # noqa: E402

WINDOW = 10  # steps
COLUMNS = {
    "model": "{model}",
    "change": "{change}",
    "steps": "{steps}",
    "seeds": "{seeds}",
    "first step, relative": "{first:.1e}",
    "last fifth without": "{end_without:.3f}",
    "last fifth with": "{end:.3f}",
    "mean distance": "{distance:.3f}",
    "of seeds": "{distance_of_seeds:.3f}",
}


def losses(options, model, settings):
    """Of every step, float [steps]."""
    with tempfile.TemporaryDirectory(prefix="stratagem-losses-") as folder:
        out = pathlib.Path(folder) / "run"
        steps = [f"model.name={model}", f"run.max_steps={options.steps}", *options.set, *settings]
        programs.train(options, steps, out)
        (found,) = traces.read(out / "trace/a0/rank-0000.h5", "steps", "loss")
    if len(found) != options.steps:
        sys.exit(f"{model}: {len(found)} steps instead of {options.steps}; are there enough samples?")
    return found


def smoothed(curves):
    """[..., steps] -> [..., steps / WINDOW]"""
    return curves.reshape(*curves.shape[:-1], -1, WINDOW).mean(axis=-1)


def compared(options, model):
    """A row of the table: both sides of every seed."""
    sides = [[losses(options, model, [f"run.seed={seed}", *change]) for change in ([], options.change)]
             for seed in range(1, options.seeds + 1)]
    without, changed = np.moveaxis(np.array(sides, np.float64), 1, 0)  # [seeds, steps] each
    curves = smoothed(without), smoothed(changed)
    end = -(-curves[0].shape[1] // 5)
    between = [np.abs(a - b).mean() for i, a in enumerate(curves[0]) for b in curves[0][:i]]
    return {"model": model, "change": ", ".join(options.change), "steps": options.steps, "seeds": options.seeds,
            "first": float(np.abs(changed[:, 0] / without[:, 0] - 1).max()),
            "end_without": float(curves[0][:, -end:].mean()), "end": float(curves[1][:, -end:].mean()),
            "distance": float(np.abs(curves[1] - curves[0]).mean()), "distance_of_seeds": float(np.mean(between)),
            "curves_without": curves[0].round(4).tolist(), "curves": curves[1].round(4).tolist()}


def draw(rows, path):
    """A panel for each model, a line for each seed and side."""
    canvas = style.Canvas(figsize=(style.WIDTH, 2.2))
    panels = canvas.subplots(1, len(rows), squeeze=False)[0]
    for panel, row in zip(panels, rows):
        for i, (curves, look, label) in enumerate([(row["curves_without"], "-", "as configured"),
                                                   (row["curves"], "--", row["change"])]):
            for curve in curves:
                panel.plot(WINDOW * np.arange(1, len(curve) + 1), curve, look, color=f"C{i}", linewidth=1.1,
                           label=label if curve is curves[0] else None)
        panel.set_title(row["model"])
        panel.set_xlabel("step")
    panels[0].set_ylabel("training loss")
    canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    canvas.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configuration")
    parser.add_argument("--models", nargs="+", choices=programs.MODELS, default=list(programs.MODELS))
    parser.add_argument("--change", nargs="+", required=True, metavar="KEY=VALUE", help="on one side")
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="on both sides")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2, help="at least 2")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each rank, as in the configuration")
    parser.add_argument("--program", default="build/stratagem")
    parser.add_argument("--launcher", default="mpirun --bind-to none -n {ranks}")
    parser.add_argument("--json", help="write results to this file, too")
    parser.add_argument("--figure", help="draw the curves into this file")
    options = parser.parse_args()
    if options.seeds < 2 or options.steps < WINDOW or options.steps % WINDOW:
        parser.error(f"at least 2 seeds, and a multiple of {WINDOW} steps")
    table = report.Table(options, COLUMNS, machine=programs.machine(options))
    for model in options.models:
        table.add(compared(options, model))
        if options.figure:
            draw(table.rows, options.figure)


if __name__ == "__main__":
    main()

"""Draws how the test error of modes falls over predicted time, one panel per number of workers."""

import statistics

from stratagem_report import style

COLOURS = ["#009E73", "#0072B2", "#CC79A7", "#332288", "#882255", "#E69F00", "#56B4E9", "#777777"]
BEST, WORST = 1, 100  # [%] that a panel shows


def mean_curve(results):
    """[(mean predicted time, mean error %)] by epoch, of the trainings that did not diverge."""
    curves = [result["curve"] for result in results if "curve" in result]
    return [
        (
            statistics.fmean(point["predicted_time"] for point in points),
            statistics.fmean(100 * (1 - point["test_accuracy"]) for point in points),
        )
        for points in zip(*curves)
    ]


def draw(found, path):
    """`found`: {(workers, mode): results}."""
    workers = sorted({of for of, _ in found})
    colours = dict(zip(dict.fromkeys(mode for _, mode in found), COLOURS))
    canvas = style.Canvas(figsize=(style.WIDTH, 2.8))
    panels = canvas.subplots(1, len(workers), sharey=True, squeeze=False)[0]
    for panel, of in zip(panels, workers):
        for mode, colour in colours.items():
            curve = mean_curve(found.get((of, mode), []))
            if curve:
                panel.plot(*zip(*curve), color=colour, label=mode)
        panel.set_yscale("log")
        panel.set_ylim(BEST, WORST)
        panel.set_yticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
        panel.set_title(f"{of} workers")
        panel.set_xlim(left=0)
    panels[0].set_ylabel("test error %")
    panels[-1].legend()
    canvas.supxlabel("predicted time [mean steps of a worker]", fontsize=9)
    canvas.savefig(path)

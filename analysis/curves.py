"""Draws how the test error of modes falls over predicted time, one panel per number of workers."""

import statistics

from stratagem_report import style

TICKS = [0.5, 1, 2, 5, 10, 20, 50, 100]  # [%]


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


def look_of(mode):
    return style.look_of("ps-" + mode.replace(",", "-").replace("_", "-"))


def draw(found, path):
    """`found`: {(workers, mode): results}."""
    workers = sorted({of for of, _ in found})
    looks = {mode: look_of(mode) for _, mode in found}
    canvas = style.Canvas(figsize=(style.WIDTH, 2.8))
    panels = canvas.subplots(1, len(workers), sharey=True, squeeze=False)[0]
    curves = {key: mean_curve(results) for key, results in found.items()}
    least = min((error for curve in curves.values() for _, error in curve), default=1)
    ticks = TICKS[max(0, sum(tick <= least for tick in TICKS) - 1) :]
    for panel, of in zip(panels, workers):
        for mode, look in looks.items():
            if curves.get((of, mode)):
                panel.plot(*zip(*curves[of, mode]), look.line, color=look.colour, label=look.label)
        panel.set_yscale("log")
        panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.set_ylim(ticks[0], ticks[-1])
        panel.set_title(f"{of} workers")
        panel.set_xlim(left=0)
    panels[0].set_ylabel("test error %")
    panels[0].legend()
    canvas.supxlabel("predicted time [mean steps of a worker]", fontsize=9)
    canvas.savefig(path)

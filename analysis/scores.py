"""Accuracies of repeated trainings in tables: means, and what their comparisons show. All comparisons of a table are
one family, see stratagem_report/inference.py."""

import math
import statistics

from stratagem_report import inference
from stratagem_report.inference import EQUIVALENT, HIGHER, LEAST_PAIRS, LOWER, TOO_FEW, UNDERPOWERED

WORDS = {HIGHER: "better", LOWER: "worse", EQUIVALENT: "equivalent", TOO_FEW: TOO_FEW, UNDERPOWERED: UNDERPOWERED}
MARGIN = 0.1  # of the baseline's error, unless it is given in points
BASELINE = "(baseline)"


def add_options(parser):
    parser.add_argument("--baseline", metavar="MODE", help="compared with; default: the first mode")
    parser.add_argument("--against", nargs="+", default=[], metavar="MODE=BASELINE",
                        help="modes with another baseline, such as dana=sync,optimizer.nesterov=true")
    parser.add_argument("--margin", type=float, metavar="POINTS",
                        help=f"a smaller difference is of no interest; default: {100 * MARGIN:.0f} %% of the baseline's"
                        " error")


def baselines(parser, options):
    """The baseline, and {mode: what it is compared with}."""
    if options.margin is not None and options.margin <= 0:
        parser.error(f"--margin {options.margin:g}: more than 0 points, or nothing can be equivalent")
    baseline = options.baseline or options.modes[0]
    found = {mode: baseline for mode in options.modes if mode != baseline}
    for pair in options.against:
        mode = next((of for of in sorted(options.modes, key=len, reverse=True) if pair.startswith(f"{of}=")), None)
        if mode is None:
            parser.error(f"--against {pair}: MODE=BASELINE is expected, with one of --modes {' '.join(options.modes)}")
        found[mode] = pair[len(mode) + 1 :]
    for other in (baseline, *found.values()):
        if other not in options.modes:
            parser.error(f"the baseline {other} is not among --modes {' '.join(options.modes)}: add it")
    return baseline, found


def by_seed(results):
    """Accuracies [%] of trainings with the seeds 1, 2, ..."""
    return {seed: 100 * result["test_accuracy"] for seed, result in enumerate(results, 1)}


def accuracy_text(results):
    diverged = sum("diverged" in result for result in results)
    return mean_sd(by_seed(results)) + (f" ({diverged} of {len(results)} diverged)" if diverged else "")


def judge(points, against, margin=None):
    """{key: Judgement} of rows with a baseline. `points` are {(row, mode): {seed: accuracy %}}; a mode is compared with
    another one in the same row."""
    pairs = {key: (key[0], against[key[1]]) for key in points if key[1] in against}
    pairs = {key: other for key, other in pairs.items() if other in points}
    differences = [inference.paired(points[key], points[other]) for key, other in pairs.items()]
    return dict(zip(pairs, inference.judge_family(differences, margin)))


def mean_sd(points):
    """Mean and sample standard deviation."""
    values = list(points.values())
    return f"{statistics.fmean(values):.2f}" + (f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else "")


def difference_text(judgement):
    """The mean with an interval, of which all in the table hold together."""
    found = judgement.interval
    if judgement.pairs.n < LEAST_PAIRS:
        return f"{found.mean:+.2f}"
    return f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def verdict_text(judgement):
    if judgement.pairs.mean == judgement.pairs.error == 0:
        return "the same"  # to the last image
    word = WORDS[judgement.verdict]
    return f"{word} (finds {judgement.detectable:.2f})" if judgement.verdict == UNDERPOWERED else word


def verdict_title(margin):
    return f"verdict, margin {margin:.2f}"


def comparison_cells(judged, key, against):
    """Three cells: the baseline, the difference, and the verdict."""
    other = against.get(key[1])
    if other is None:
        return ["", "", BASELINE]
    if key not in judged:
        return [other, "", "baseline not run"]
    return [other, difference_text(judged[key]), verdict_text(judged[key])]


FALSE = f"{100 * inference.LEVEL:.0f} %"
FAMILY = (
    "Differences are paired by seed; all of a table are one family: their intervals hold together with"
    f" {100 - 100 * inference.LEVEL:.0f} %, and the probability that any `better` or `worse` is false is at most"
    f" {FALSE} (Holm). `finds`: the smallest difference that would be found with a probability of"
    f" {100 * inference.POWER:.0f} %."
)


def family_text(margin, origin):
    """How the verdicts are made; `origin` tells where the margin comes from."""
    return f"{FAMILY} `equivalent`: within {margin:.2f} points ({origin}), false with at most {FALSE}, too."


def count(number_of, noun):
    return f"{number_of:,} {noun}" + ("" if number_of == 1 else "s")


def number(value, form="{:.2f}"):
    return "-" if math.isnan(value) else form.format(value)

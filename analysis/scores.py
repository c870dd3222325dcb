"""Accuracies or losses of repeated trainings in tables: means, and what their comparisons show. All comparisons of a
table are one family, see stratagem_report/inference.py."""

import dataclasses
import math
import statistics

from stratagem_report import inference
from stratagem_report.inference import EQUIVALENT, HIGHER, LEAST_PAIRS, LOWER, UNDERPOWERED

MARGIN = 0.1  # of the baseline's error, unless it is given in points
BASELINE = "(baseline)"
FALSE = f"{100 * inference.LEVEL:.0f} %"
FAMILY = (
    "Differences are paired by seed; all of a table are one family: their intervals hold together with"
    f" {100 - 100 * inference.LEVEL:.0f} %, and the probability that any `better` or `worse` is false is at most"
    f" {FALSE} (Holm; Student's t, and `by ranks` where a seed stands apart). `finds`: the smallest"
    f" difference that would be found with a probability of"
    f" {100 * inference.POWER:.0f} %."
)


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


@dataclasses.dataclass(frozen=True)
class Score:
    """What trainings are compared by. `measure` is a member of their results; points are `factor` times it. A training
    that diverged counts with `diverged`, or not at all."""

    measure: str
    word: str
    samples: str  # what such trainings train on
    title: str
    unit: str
    factor: float
    digits: int
    greatest: bool
    diverged: float | None
    least_sd: float = 0.0  # points of a training are not known better

    def point(self, result):
        """None of a training that diverged and does not count."""
        value = self.diverged if "diverged" in result else result[self.measure]
        return None if value is None else self.factor * value

    def by_seed(self, results):
        """Points of trainings with the seeds 1, 2, ..."""
        points = {seed: self.point(result) for seed, result in enumerate(results, 1)}
        return {seed: point for seed, point in points.items() if point is not None}

    def merit(self, results):
        """What a choice makes as great as possible: the mean, or its negative."""
        points = self.by_seed(results).values()
        if len(points) < len(results):
            return -math.inf
        return statistics.fmean(points) * (1 if self.greatest else -1)

    def text(self, results):
        """Mean and sample standard deviation."""
        diverged = sum("diverged" in result for result in results)
        return self.mean_sd(self.by_seed(results)) + (f" ({diverged} of {len(results)} diverged)" if diverged else "")

    def mean_sd(self, points):
        values = list(points.values())
        if not values:
            return "-"
        deviation = f" ± {self.number(statistics.stdev(values))}" if len(values) > 1 else ""
        return self.number(statistics.fmean(values)) + deviation

    def number(self, value, sign=""):
        return f"{value:{sign}.{self.digits}f}"

    def difference_text(self, judgement):
        """The mean with an interval, of which all in the table hold together."""
        found = judgement.interval
        if judgement.pairs.n < LEAST_PAIRS:
            return self.number(found.mean, "+")
        return "{} [{}, {}]".format(*(self.number(value, "+") for value in (found.mean, found.low, found.high)))

    def verdict_text(self, judgement):
        if judgement.pairs.n and judgement.pairs.mean == judgement.pairs.error == 0:
            return "the same"  # to the last image
        ranks = " by ranks" if judgement.by_ranks and judgement.verdict != EQUIVALENT else ""
        if judgement.verdict in (HIGHER, LOWER):
            return ("better" if (judgement.verdict == HIGHER) == self.greatest else "worse") + ranks
        found = f" (finds {self.number(judgement.detectable)})" if judgement.verdict == UNDERPOWERED else ""
        return judgement.verdict + ranks + found

    def verdict_title(self, margin):
        return f"verdict, margin {self.number(margin)}"

    def comparison_cells(self, judged, key, against):
        """Three cells: the baseline, the difference, and the verdict."""
        other = against.get(key[1])
        if other is None:
            return ["", "", BASELINE]
        if key not in judged:
            return [other, "", "baseline not run"]
        return [other, self.difference_text(judged[key]), self.verdict_text(judged[key])]

    def family_text(self, margin, origin):
        """How the verdicts are made; `origin` tells where the margin comes from."""
        within = f"{self.number(margin)} {self.unit}"
        return f"{FAMILY} `equivalent`: within {within} ({origin}), false with at most {FALSE}, too."


GUESS = 0.1  # accuracy of guessing among ten classes
TEST_IMAGES = 10_000  # of MNIST and CIFAR-10
ACCURACY = Score("test_accuracy", "accuracy", "images", "accuracy %", "points", 100, 2, True, GUESS,
                 least_sd=100 * inference.least_sd_of(TEST_IMAGES))
LOSS = Score("test_loss", "loss", "sequences", "test loss", "nats", 1, 3, False, None)


def judge(score, points, against, margin=None):
    """{key: Judgement} of rows with a baseline. `points` are {(row, mode): {seed: point}} of a score; a mode is
    compared with another one in the same row."""
    pairs = {key: (key[0], against[key[1]]) for key in points if key[1] in against}
    pairs = {key: other for key, other in pairs.items() if other in points}
    differences = [inference.paired(points[key], points[other], score.least_sd) for key, other in pairs.items()]
    return dict(zip(pairs, inference.judge_family(differences, margin)))


def count(number_of, noun):
    return f"{number_of:,} {noun}" + ("" if number_of == 1 else "s")


def number(value, form="{:.2f}"):
    return "-" if math.isnan(value) else form.format(value)

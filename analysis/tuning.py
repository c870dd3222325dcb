"""Chooses learning rate and momentum of a mode: on held-out training samples, with seeds that are not scored."""

import dataclasses
import functools
import itertools

from simulations import HOLDOUT, Training, inertia

FIRST_SEED = 1001  # scored are seeds from 1 on


def add_options(parser, rates, momenta):
    parser.add_argument("--lr", type=float, nargs="+", default=rates, help="of the grid; a single one is fixed")
    parser.add_argument("--momentum", type=float, nargs="+", default=momenta, help="likewise; of AdamW beta1")
    parser.add_argument("--tune-seeds", type=int, default=3, help=f"to choose from the grid: {FIRST_SEED}, ...")
    parser.add_argument("--holdout", type=int, default=2000, metavar="N",
                        help="to choose on: the last N training samples, which are not trained on meanwhile")
    parser.add_argument("--widen", type=int, default=6, metavar="TIMES",
                        help="while the best is at an end of the grid, add a value by a factor of 2; 0: never")


def check_options(parser, options):
    if not 1 <= options.seeds < FIRST_SEED:
        parser.error(f"--seeds {options.seeds}: 1 to {FIRST_SEED - 1}, because tuning has seeds from {FIRST_SEED} on")
    if options.tune_seeds < 1 or options.holdout < 1:
        parser.error("--tune-seeds and --holdout: at least 1, because rates are not chosen on what is scored")


@dataclasses.dataclass(frozen=True)
class Optimum:
    lr: float
    momentum: float
    merit: float  # on the held-out samples
    edges: tuple  # those of "lr" and "momentum" that are at an end of the grid

    def text(self, name):
        """A value, marked where a better one may lie beyond the grid."""
        return f"{getattr(self, name):g}" + (" (edge)" if name in self.edges else "")


def ends(values):
    """Values at which the grid may stop too early. Momentum 0 is the end of all, and a single value is fixed."""
    return {values[0], values[-1]} - {0} if len(values) > 1 else set()


def wider(rates, lr):
    return [lr / 2, *rates] if lr == rates[0] else [*rates, lr * 2]


def wider_momenta(momenta, momentum):
    """By a factor of 2 in 1 - momentum, whose inverse is how many updates a momentum remembers."""
    if momentum == momenta[0]:
        return [round(max(0.0, 1 - 2 * (1 - momentum)), 6), *momenta]
    return [*momenta, round(1 - (1 - momentum) / 2, 6)]


def search(score, rates, momenta, widenings):
    """The best point of a grid, which grows at most `widenings` times. `score` returns {(lr, momentum): merit} of
    given points."""
    rates, momenta = sorted(set(rates)), sorted(set(momenta))
    for left in range(widenings, -1, -1):
        scores = score(list(itertools.product(rates, momenta)))
        lr, momentum = max(scores, key=scores.get)
        at_end = {"lr": lr in ends(rates), "momentum": momentum in ends(momenta)}
        if not left or not any(at_end.values()):
            break
        rates = wider(rates, lr) if at_end["lr"] else rates
        momenta = wider_momenta(momenta, momentum) if at_end["momentum"] else momenta
    return Optimum(lr, momentum, scores[lr, momentum], tuple(name for name, is_so in at_end.items() if is_so))


class Tuner:
    """Trainings that diverge count with the accuracy of guessing, or are not chosen."""

    def __init__(self, simulated, options):
        self.simulated, self.options = simulated, options
        self.seeds = range(FIRST_SEED, FIRST_SEED + options.tune_seeds)
        self.further = (f"{HOLDOUT}{options.holdout}",)
        self.best = functools.lru_cache(maxsize=None)(self._best)

    def _best(self, mode, workers, momenta=None):
        """The Optimum; `momenta` instead of the grid's."""
        options = self.options

        def score(points):
            of = {
                point: [Training(mode, workers, *point, seed, self.further) for seed in self.seeds]
                for point in points
            }
            self.simulated.run(itertools.chain.from_iterable(of.values()))  # all at once, so that --jobs helps
            merit = self.simulated.score.merit
            return {point: merit(self.simulated.run(trainings)) for point, trainings in of.items()}

        return search(score, options.lr, momenta or options.momentum, options.widen)

    def text(self):
        """How rates were chosen, as a sentence."""
        score = self.simulated.score
        return (
            f"Rates are chosen by mean {score.word} on the last {self.options.holdout:,} training {score.samples}, not"
            f" trained on then, with {len(self.seeds)} other seed{'' if len(self.seeds) == 1 else 's'}"
            f" (from {FIRST_SEED} on)."
            " (edge): the best of the grid is at its end."
        )

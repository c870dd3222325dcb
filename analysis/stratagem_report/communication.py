"""What is learned for what is sent, where strategies or codes send less than DDP: T13, F16."""

import pandas as pd

from . import inference, style
from .figures_memory import at_most_workers
from .figures_servers import learning_curves
from .style import Figure, look_of
from .table import Column, Note, Table
from .tables_training import MIB, WHAT, of_run
from .yardstick import ACCURACY, yardsticks_of

LESS = 0.75  # of DDP's bytes per step
MARGIN = 0.005  # of accuracy: half a point, chosen before any run


def sent(family, variant, workers):
    """Bytes that a worker sends for a step."""
    return family.spread("sent_per_step_B", variant, workers).median


def share_of_ddp(family, variant, workers):
    ddp = family.find("ddp", workers)
    return sent(family, variant, workers) / sent(family, ddp, workers) if ddp and workers > 1 else float("nan")


def sparing(families):
    """Those in which something sends clearly less than DDP does."""
    return [family for family in families if any(share_of_ddp(family, *pair) < LESS for pair in family.pairs())]


def judgements(family):
    """{(variant, workers): Judgement} of accuracies against DDP on as many workers; all of a family hold together."""
    if family.yardstick is not ACCURACY:
        return {}
    pairs = [pair for pair in family.pairs() if family.find("ddp", pair[1]) not in (None, pair[0])]
    of_seeds = [
        inference.paired(
            family.by_seed("test_accuracy", variant, workers),
            family.by_seed("test_accuracy", family.find("ddp", workers), workers),
            inference.least_sd_of(family.test_images),
        )
        for variant, workers in pairs
    ]
    return dict(zip(pairs, inference.judge_family(of_seeds, MARGIN)))


def difference_text(judged):
    interval = judged.interval
    return Note(f"{100 * interval.mean:+.2f} [{100 * interval.low:+.2f}, {100 * interval.high:+.2f}]")


def t13_communication(comparison):
    """Bytes, time and accuracy of everything that sends less."""
    families = sparing(comparison.families)
    learned = yardsticks_of(families)
    table = Table(
        "T13",
        "What was sent, and what was learned",
        [
            *WHAT,
            Column("sent per step MiB", 3, MIB),
            Column("of DDP's %", 1, 100),
            Column("sent in all MiB", 1, MIB),
            Column("training s", 2),
            *(of.column for of in learned),
            Column("points over DDP"),
            Column("verdict"),
            Column("runs", 0),
        ],
        note=(
            "Sent: by each worker, as planned; in all: by the training's end. Points over DDP on as many workers: the"
            " mean of paired differences over seeds, with intervals that hold together with"
            f" {100 - 100 * inference.LEVEL:.0f} %. {inference.EQUIVALENT}: within {100 * MARGIN:g} points, by two"
            " one-sided tests."
        ),
    )
    for family in families:
        judged = judgements(family)
        for variant, workers in family.pairs():
            of_pair, steps = judged.get((variant, workers)), family.of(variant, workers)["steps"].median()
            table.add(
                *of_run(family, variant, workers),
                sent(family, variant, workers),
                share_of_ddp(family, variant, workers),
                sent(family, variant, workers) * steps,
                family.spread("train_time_s", variant, workers),
                *(family.spread(of.quantity, variant, workers) if of is family.yardstick else None for of in learned),
                difference_text(of_pair) if of_pair and of_pair.pairs.n >= inference.LEAST_PAIRS else None,
                of_pair.verdict if of_pair else None,
                len(family.of(variant, workers)),
            )
    return table


def curve(comparison, family, variant, workers):
    """By evaluated epoch, over seeds: bytes that a worker had sent, training time, and what was learned."""
    points = learning_curves(comparison, family, variant, workers)
    points = points.rename(columns={family.yardstick.word: "learned"})
    steps_of_epoch = family.of(variant, workers)["steps"].median() / points["epoch"].max()
    return points.assign(sent_B=points["epoch"] * steps_of_epoch * sent(family, variant, workers))


def draw(axis, family, column, factor, curves):
    for (variant, workers), points in curves.items():
        look = look_of(variant)
        learned, least, greatest = (
            family.yardstick.factor * points[name].to_numpy() for name in ("learned", "least", "greatest")
        )
        reached = factor * points[column].to_numpy()
        axis.errorbar(
            reached,
            learned,
            [learned - least, greatest - learned],
            linestyle=look.line,
            markersize=4,
            elinewidth=0.7,
            **look.points,
        )
        axis.annotate(
            look.label,
            (reached[-1], learned[-1]),
            textcoords="offset points",
            xytext=(4, 2),
            fontsize=6.5,
            color=look.colour,
        )


def f16_communication(comparison):
    """What was learned against bytes and against time."""
    families = sparing(comparison.drawn)
    if not families:
        return None
    figure, axes = style.panels(2 * len(families), columns=2, height=3.2)
    rows = []
    for index, family in enumerate(families):
        curves = {
            pair: curve(comparison, family, *pair) for pair in at_most_workers(family) if sent(family, *pair) > 0
        }
        curves = {pair: points for pair, points in curves.items() if len(points)}
        for (variant, workers), points in curves.items():
            rows.append(points.assign(**family.key, variant=variant, workers=workers))
        for axis, (column, factor, label) in zip(
            axes[2 * index :], [("sent_B", MIB, "sent by a worker [MiB]"), ("time_s", 1, "training time [s]")]
        ):
            draw(axis, family, column, factor, curves)
            axis.set(title=family.heading, xlabel=label, ylabel=family.yardstick.axis)
            axis.margins(x=0.25)
        axes[2 * index].set_xscale("log")
    return Figure(
        "F16-communication",
        "What is learned for what is sent",
        "At each evaluation, median and range over seeds, of the runs on most workers. Towards the upper left is better"
        " where accuracy is shown, towards the lower left where it is perplexity.",
        figure,
        pd.concat(rows) if rows else pd.DataFrame(),
    )

"""The first table and figure of the report, T0 and F0: the strategies of one comparison side by side."""

import numpy as np
import pandas as pd

from . import style
from .choices import PEAK, TIME, choose, learned_goal
from .standing import ESTABLISHED, ONE_RUN
from .style import Figure, look_of
from .table import Column, Note, Table
from .trace import PHASES

MIB = 2**-20
ROWS = 6
USUAL = ("serial", "ddp", "fsdp", "ps-sync", "ps-async")  # shown before others


def shown_pairs(comparison, family, workers):
    """(variant, workers) of the rows, fastest first: those in the verdict, DDP, the best ones for other goals and
    the usual ones, ROWS at most; and the serial run on one worker."""
    variants = family.variants_with(workers)
    learned = learned_goal(family)
    choices = {goal: choose(comparison, family, workers, goal) for goal in (TIME, PEAK, learned)}
    best = {goal: [choice.best] for goal, choice in choices.items() if choice is not None}
    level = choices[TIME].level[: ROWS // 2 - 1] if choices[TIME] else ()
    wanted = [*best.get(TIME, ()), *level, *best.get(PEAK, ()), "ddp", *best.get(learned, ())]
    wanted = [name for name in (*wanted, *USUAL, *variants) if name in variants]
    serial = [("serial", 1)] if workers > 1 and family.has("serial", 1) else []
    chosen = list(dict.fromkeys(wanted))[: ROWS - len(serial)]
    chosen.sort(key=lambda variant: family.spread(TIME.quantity, variant, workers).median)
    return [(variant, workers) for variant in chosen] + serial


def ranks_of(family, variant, workers):
    servers = int(family.of(variant, workers)["servers"].iloc[0])
    return f"{workers} + {servers} server" + ("s" if servers > 1 else "") if servers else str(workers)


def against_fastest(family, choice, variant, workers):
    if choice is None or workers != choice.workers:
        return None
    if variant == choice.best:
        return Note("fastest")
    if variant not in choice.values:
        return None
    word = choice.standings[variant].word
    return Note(choice.change_text(variant) + ("" if word in (ESTABLISHED, ONE_RUN) else f", {word}"))


def t0_overview(comparison, family, workers):
    table = Table(
        "T0",
        "The strategies side by side",
        [
            Column("strategy", keep=True),
            Column("ranks"),
            Column("s per epoch", 3),
            Column("against the fastest"),
            Column("waiting for communication %", 1, 100),
            Column("peak MiB: worker", 1, MIB),
            Column("server", 1, MIB),
            Column("all ranks", 1, MIB),
            family.yardstick.column,
            Column("runs", 0),
        ],
    )
    fastest = choose(comparison, family, workers, TIME)
    pairs = shown_pairs(comparison, family, workers)
    for variant, count in pairs:
        quantities = (
            "exposed_comm_share",
            "worker_peak_B",
            "server_peak_B",
            "total_peak_B",
            family.yardstick.quantity,
        )
        table.add(
            look_of(variant).label,
            ranks_of(family, variant, count),
            family.spread("epoch_s", variant, count),
            against_fastest(family, fastest, variant, count),
            *(family.spread(name, variant, count) for name in quantities),
            len(family.of(variant, count)),
        )
    more = len(family.pairs()) - len(pairs)
    table.note = f"Of {family.title}."
    if fastest:
        table.note += f" The fastest: {fastest.verdict_text}."
    if more > 0:
        table.note += f" {more} more rows of other strategies and numbers of workers: T1, T2."
    return table


def known(values):
    """As lengths of bars; unknown values have none."""
    return np.nan_to_num(np.array(values, dtype=float))


def draw_steps(axis, phases):
    """One bar per strategy, divided into its phases."""
    left = np.zeros(len(next(iter(phases.values()))))
    for phase, values in phases.items():
        axis.barh(
            range(len(left)),
            known(values),
            0.72,
            left=left,
            color=style.PHASE_COLOURS[phase],
            label=style.PHASE_LABELS.get(phase, phase),
        )
        left += known(values)
    axis.set(xlabel="mean step of a worker [ms]")


def draw_peaks(axis, worker, server):
    """A worker's bar and, below it, the server's, if there is one."""
    has_server = known(server) > 0
    places, heights = np.arange(len(worker)), np.where(has_server, 0.36, 0.72)
    axis.barh(
        places - np.where(has_server, 0.18, 0),
        known(worker),
        heights,
        color=style.CATEGORY_COLOURS["parameters"],
        label="a worker",
    )
    if has_server.any():
        axis.barh(
            places[has_server] + 0.18,
            known(server)[has_server],
            0.36,
            color=style.CATEGORY_COLOURS["gradients"],
            label="a server",
        )
    axis.set(xlabel="peak memory of a rank [MiB]")


def f0_overview(comparison, family, workers):
    """Time of a step by phase, and memory of the fullest worker and server; one bar per strategy."""
    pairs = shown_pairs(comparison, family, workers)
    labels = [
        look_of(variant).label + ("" if count == workers else f", {style.workers_text(count)}")
        for variant, count in pairs
    ]

    def medians(quantity, factor):
        return [family.spread(quantity, *pair).median * factor for pair in pairs]

    phases = {phase: medians(f"{phase}_ms", 1) for phase in PHASES}
    worker, server = medians("worker_peak_B", MIB), medians("server_peak_B", MIB)
    figure = style.Canvas(figsize=(style.WIDTH, 0.85 + 0.21 * len(pairs)))
    left, right = figure.subplots(1, 2, sharey=True)
    draw_steps(left, phases)
    draw_peaks(right, worker, server)
    left.set_yticks(range(len(labels)), labels)
    left.invert_yaxis()
    for axis in left, right:
        axis.grid(axis="y", visible=False)
    style.legend_below(figure, [left, right])
    data = pd.DataFrame(
        {
            **family.key,
            "variant": variant,
            "workers": count,
            **{f"{phase} [ms]": values[index] for phase, values in phases.items()},
            "worker [MiB]": worker[index],
            "server [MiB]": server[index],
        }
        for index, (variant, count) in enumerate(pairs)
    )
    return Figure(
        "F0-overview",
        f"Time and memory of each strategy on {style.workers_text(workers)}",
        "The fastest, by its median step, first. Red is communication that computation did not"
        " hide.",
        figure,
        data,
    )

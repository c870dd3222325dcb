"""Tables of the study as a whole: T6, T7, T8, and the comparison of final parameters."""

import dataclasses

from .spread import separate
from .style import in_order, kind_of, look_of
from .table import Column, Table


@dataclasses.dataclass(frozen=True)
class Goal:
    """Something to choose a strategy for. `single_run`: by how much two single runs must differ to count."""

    respect: str
    name: str
    quantity: str
    unit: str
    factor: float
    digits: int
    greatest: bool = False
    single_run: float = 0.0


GOALS = [
    Goal("time", "time per epoch", "epoch_s", "s", 1, 2, single_run=0.1),
    Goal("memory", "peak memory of a worker", "peak_B", "MiB", 1 / 2**20, 1, single_run=0.01),
    Goal("memory", "lasting memory of a worker", "state_B", "MiB", 1 / 2**20, 2, single_run=0.01),
    Goal("accuracy", "final accuracy", "test_accuracy", "%", 100, 2, greatest=True),
    Goal("time", "time to the target accuracy", "time_to_target", "s", 1, 2),
]
JUDGED = {True: "yes", False: "no significant difference", None: "one run each: not judged"}


@dataclasses.dataclass(frozen=True)
class Choice:
    """The best strategy for a goal among those of a family with the same number of workers."""

    family: object
    workers: int
    goal: Goal
    best: str
    value: object  # Spread
    second: str
    second_value: object
    distinct: object  # True, False, or None where it cannot be judged

    @property
    def margin(self):
        """By which share the next needs more, or by how much its accuracy is less."""
        if self.goal.greatest:
            return self.value.median - self.second_value.median
        return self.second_value.median / self.value.median - 1

    @property
    def margin_text(self):
        if self.goal.greatest:
            return f"{100 * self.margin:.2f} points"
        return (
            f"{100 * self.margin:.1f} % more" if self.margin < 1 else f"{1 + self.margin:.1f} times"
        )


def value_of(comparison, family, goal, variant, workers):
    if goal.quantity == "time_to_target":
        return comparison.time_to_target(family, variant, workers)
    return family.spread(goal.quantity, variant, workers)


def choose(comparison, family, workers, goal):
    """None where fewer than two strategies can be compared."""
    values = {
        variant: value_of(comparison, family, goal, variant, workers)
        for variant in family.variants_with(workers)
    }
    known = [variant for variant, value in values.items() if value.known]
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda variant: values[variant].median, reverse=goal.greatest)
    best, second = ordered[:2]
    return Choice(
        family,
        workers,
        goal,
        best,
        values[best],
        second,
        values[second],
        separate(values[best], values[second], goal.single_run),
    )


def choices(comparison):
    """Of every family, number of workers and goal."""
    made = [
        choose(comparison, family, workers, goal)
        for family in comparison.families
        for workers in family.workers
        for goal in GOALS
    ]
    return [choice for choice in made if choice is not None]


def t6_decision(comparison):
    """Which strategy to take for which goal, with the margin that was measured."""
    table = Table(
        "T6",
        "Which strategy for which goal",
        [
            Column("comparison"),
            Column("workers", 0),
            Column("goal"),
            Column("best"),
            Column("value"),
            Column("next"),
            Column("value of next"),
            Column("the next's cost"),
            Column("significant"),
            Column("runs"),
        ],
        note=(
            "Best and next by their medians; the next costs so much more, or so many points."
            " Significant: the ranges over seeds do not overlap. Of single runs, times that differ"
            " by more than 10 % and memory that differs by more than 1 % count as different;"
            " accuracies of single runs are not judged."
        ),
    )
    for choice in choices(comparison):
        goal = choice.goal

        def text(value, goal=goal):
            middle, low, high = (
                f"{part * goal.factor:,.{goal.digits}f}"
                for part in (value.median, value.low, value.high)
            )
            return (
                f"{middle} {goal.unit}"
                if low == high
                else f"{middle} {goal.unit} ({low} to {high})"
            )

        table.add(
            choice.family.title,
            choice.workers,
            goal.name,
            look_of(choice.best).label,
            text(choice.value),
            look_of(choice.second).label,
            text(choice.second_value),
            choice.margin_text if choice.distinct is not False else "-",
            JUDGED[choice.distinct],
            f"{choice.value.n}, {choice.second_value.n}",
        )
    return table


def t7_environment(comparison):
    """What the runs were made with."""
    table = Table("T7", "Environment", [Column("cells", 0), Column("what"), Column("value")])
    facts = {}
    for run in comparison.study.runs.values():
        for what, value in facts_of(run).items():
            facts.setdefault(what, {}).setdefault(str(value), 0)
            facts[what][str(value)] += 1
    for what, values in facts.items():
        for value, cells in sorted(values.items()):
            table.add(cells, what, value)
    return table


def facts_of(run):
    build, process = run.manifest["build"], run.trace.ranks[0].process
    dirty = " with changes" if build["git_dirty"] else ""
    return {
        "stratagem": f"{build['version']}, git {build['git_sha']}{dirty}, {build['flavour']}",
        "compiler": f"{build['compiler']}, {build['build_type']}",
        "LibTorch": build["libtorch"],
        "MPI": run.manifest["loaded"]["mpi"],
        "HDF5": run.manifest["loaded"]["hdf5"],
        "host": process["host"],
        "device": process["device"],
        "cores usable by a rank": len(run.manifest["ranks"][0]["cores"]),
        "threads per rank": process["threads"],
        "data set": (
            f"{run.manifest['dataset']['name']}, {run.manifest['dataset']['train_images']:,}"
            f" training images, fingerprint {run.manifest['dataset']['fingerprint']}"
        ),
        "optimizer": ", ".join(
            f"{key.split('.')[1]} {run.config[key]}"
            for key in (
                "optimizer.name",
                "optimizer.lr",
                "optimizer.momentum",
                "optimizer.reduction",
                "optimizer.lr_scaling",
                "optimizer.schedule",
            )
        ),
    }


def t8_missing(comparison):
    """Cells without a result, and why; and what is wrong with the traces of others."""
    table = Table(
        "T8",
        "Missing cells and incomplete traces",
        [Column("cell"), Column("state"), Column("reason")],
    )
    cells = comparison.cells
    for _, cell in cells[cells["state"] != "complete"].iterrows():
        table.add(cell["cell"], cell["state"], cell["reason"])
    for cell, remark in comparison.study.remarks:
        table.add(cell, "trace", remark)
    for mark in comparison.study.marks:
        table.add("study", "mixed", mark)
    table.note = f"{len(comparison.study.runs)} of {len(cells)} cells are complete." + (
        "" if table.rows else " Nothing is missing."
    )
    return table


EXACT = ("serial", "emulator", "ddp", "zero1", "zero2", "fsdp", "ps-sync")
EXACT_ALONE = (
    "ps-async",
    "ps-ssp",
    "ps-lag-cap",
    "ps-dc",
)  # with one worker, where no gradient is late


def exact_cells(cells):
    """Those whose final parameters the strategy must not change."""
    kinds = cells["variant"].map(kind_of)
    plain = ~cells["variant"].str.contains(" ")  # as its kind is by itself
    alone = (cells["workers"] == 1) & kinds.isin(EXACT_ALONE) & plain
    return cells[(kinds.isin(EXACT) | alone) & ~cells["limited"].astype(bool)]


def t10_bits(comparison):
    """Whether strategies that must give the same parameters did."""
    table = Table(
        "T10",
        "Final parameters, bit for bit",
        [
            Column("comparison"),
            Column("workers", 0),
            Column("seed"),
            Column("digests"),
            Column("verdict"),
        ],
        note=(
            "Synchronous strategies compute the same sums in the same order: on a CPU their final"
            " parameters must agree to the last bit where workers, seed, threads and data agree. On"
            " GPUs they need not. An asynchronous server with one worker has no staleness and must"
            " agree, too (but not DANA, which looks ahead along its own momentum)."
        ),
    )
    for family in comparison.families:
        for (workers, seed, _, _), rows in exact_cells(family.cells).groupby(
            ["workers", "seed", "recipe", "steps"]
        ):
            if rows["variant"].nunique() < 2:
                continue
            by_digest = rows.groupby("digest")["variant"].apply(list)
            told = [
                f"{digest[:8]}: "
                + ", ".join(look_of(variant).label for variant in in_order(variants))
                for digest, variants in by_digest.items()
            ]
            table.add(
                family.title,
                workers,
                str(seed),
                "; ".join(told),
                "all equal" if len(by_digest) == 1 else "DIFFERENT",
            )
    return table


def all_bits_agree(comparison):
    """True, False, or None where there is nothing to compare."""
    verdicts = [row[-1] for row in t10_bits(comparison).rows]
    return all(verdict == "all equal" for verdict in verdicts) if verdicts else None

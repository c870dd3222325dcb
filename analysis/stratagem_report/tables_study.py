"""Tables of the study as a whole: T6, T7, T8, and the comparison of final parameters."""

from .choices import MARGINS, choices
from .standing import RULES
from .style import in_order, kind_of, look_of
from .table import COMPARISON, Column, Table


def t6_decision(comparison):
    """Which strategy to use for which goal, with the measured margin."""
    table = Table(
        "T6",
        "Which strategy for which goal",
        [
            COMPARISON,
            Column("workers", 0),
            Column("goal", keep=True),
            Column("best, or not told apart", keep=True),
            Column("value"),
            Column("next", keep=True),
            Column("value of next"),
            Column("the next's cost"),
            Column("verdict", keep=True),
            Column("runs"),
        ],
        note=(
            "By medians. Next is the first that is worse than the best and those not told apart from it, with what it"
            f" costs. {RULES} {MARGINS} Memory of a rank is that of the fullest one, worker or server; all ranks are"
            " workers and servers together."
        ),
    )
    for choice in choices(comparison):
        second = choice.values.get(choice.second)
        table.add(
            choice.family.title,
            choice.workers,
            choice.goal.name,
            ", ".join(look_of(variant).label for variant in (choice.best, *choice.level)),
            choice.goal.text(choice.value),
            look_of(choice.second).label if second else "-",
            choice.goal.text(second) if second else "-",
            choice.margin_text if second else "-",
            choice.verdict_text,
            ", ".join(str(value.n) for value in (choice.value, second) if value),
        )
    return table


def t7_environment(comparison):
    """The machine and software of the runs."""
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
            f" training {'sequences' if run.manifest['dataset'].get('labels') == 'tokens' else 'images'},"
            f" fingerprint {run.manifest['dataset']['fingerprint']}"
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
            if key in run.config
        ),
    }


def t8_missing(comparison):
    """Cells without a result, with the reason; and problems with the traces of others."""
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
    return table


EXACT = ("serial", "ddp", "zero1", "zero2", "fsdp", "ps-sync")
EXACT_ALONE = (
    "ps-async",
    "ps-ssp",
    "ps-lag-cap",
    "ps-dc",
)  # with one worker, where no gradient is late


def exact_cells(cells):
    """The cells whose final parameters must not depend on the strategy."""
    kinds = cells["variant"].map(kind_of)
    plain = ~cells["variant"].str.contains(" ")  # a variant without further settings
    alone = (cells["workers"] == 1) & kinds.isin(EXACT_ALONE) & plain
    return cells[(kinds.isin(EXACT) | alone) & ~cells["limited"].astype(bool)]


def t10_bits(comparison):
    """Whether strategies that must give the same parameters did so."""
    table = Table(
        "T10",
        "Final parameters, bit for bit",
        [
            COMPARISON,
            Column("workers", 0),
            Column("seed"),
            Column("digests"),
            Column("verdict", keep=True),
        ],
        note=(
            "Synchronous strategies compute the same sums in the same order: on a CPU their final"
            " parameters must agree to the last bit where workers, seed, threads and data agree. On"
            " GPUs they need not. A serial run counts as the workers it emulates. An asynchronous"
            " server with one worker has no staleness and must"
            " agree, too (but not DANA, which looks ahead along its own momentum)."
        ),
    )
    for family in comparison.families:
        for (workers, seed, _, _), rows in exact_cells(family.cells).groupby(
            ["sharers", "seed", "recipe", "steps"]
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
    """True, False, or None if there is nothing to compare."""
    verdicts = [row[-1] for row in t10_bits(comparison).rows]
    return all(verdict == "all equal" for verdict in verdicts) if verdicts else None

"""The runs that are needed to judge a published claim, and what is missing if there are not enough."""

import dataclasses

from . import published
from .style import look_of

SEEDS = 3  # of every strategy
STEPS = 50  # of every run
SERVER = "ps"  # any mode of the parameter server
TERMS = {"test_accuracy": "an evaluated accuracy", "utilization": "samples of the utilisation"}


@dataclasses.dataclass(frozen=True)
class Needs:
    """For each of the experiment's models: at least one comparison of all `strategies` with the same number of
    workers, of complete runs, on the kind of device that the claim is about, with enough seeds and steps."""

    experiment: published.Experiment
    strategies: tuple
    measures: tuple = ("epoch_s",)
    workers: int = 1  # at least
    gpu: bool = True
    whole_epochs: bool = False  # of the whole data set, for claims about accuracy


@dataclasses.dataclass(frozen=True)
class Evidence:
    """`pairs` (family, workers) can be judged; `missing` says what is missing for the claim's models, "" if nothing."""

    pairs: list
    missing: str


def unsound(family):
    """Its runs of groups in which a time limit ended one or the traces of one are damaged: what the program tells of
    the group holds that one."""
    odd = family.cells["limited"].astype(bool) | family.cells["damaged"].astype(bool)
    return family.cells["group"].isin(set(family.cells.loc[odd, "group"]))


def sound(family):
    return dataclasses.replace(family, cells=family.cells[~unsound(family)])


def cells_of(family, strategy, workers):
    if strategy != SERVER:
        return family.of(strategy, workers)
    cells = family.cells
    return cells[(cells["workers"] == workers) & (cells["strategy"] == SERVER)]


def shortcomings(family, workers, needs):
    """Why one comparison cannot be judged, as texts."""
    cells = [cells_of(family, strategy, workers) for strategy in needs.strategies]
    ran = [of for of in cells if len(of)]
    if len(ran) < len(cells):
        lacking = [name(part) for part, of in zip(needs.strategies, cells) if not len(of)]
        return [f"{' and '.join(lacking)} (whole runs, on as many workers)"]
    found = []
    if needs.gpu and not all(of["gpu"].eq(True).all() for of in ran):
        found.append("runs on GPUs")
    seeds = min(of["seed"].nunique() for of in ran)
    if seeds < SEEDS:
        found.append(f"{SEEDS} seeds (there {'is 1' if seeds == 1 else f'are {seeds}'})")
    if family.key["planned_steps"] < STEPS:
        found.append(f"runs of {STEPS} steps or more (these made {family.key['planned_steps']:.0f})")
    if needs.whole_epochs and not trains_on_all(family):
        found.append("at least an epoch of the whole data set")
    found += [
        TERMS.get(measure, measure)
        for measure in needs.measures
        if not all(of[measure].notna().all() for of in ran if measure in of)
    ]
    return found


def trains_on_all(family):
    key = family.key
    images = published.TRAINING_IMAGES[key["dataset"]]
    return key["images"] == images and key["planned_steps"] >= images // key["global_batch"]


def name(strategy):
    return "a parameter server" if strategy == SERVER else look_of(strategy).label


def lacks_of(model, families, needs):
    """(pairs that can be judged, what is missing in the nearest comparison of a model)."""
    lacks = {
        (index, workers): shortcomings(family, workers, needs)
        for index, family in enumerate(families)
        if family.key["model"] == model
        for workers in family.workers
        if workers >= needs.workers
    }
    good = [(families[index], workers) for (index, workers), found in lacks.items() if not found]
    if good:
        return good, []
    if not lacks:
        at_least = f", on {needs.workers} workers or more" if needs.workers > 1 else ""
        return [], ["runs of " + " and ".join(map(name, needs.strategies)) + at_least]
    return [], min(lacks.values(), key=lambda found: (any("whole runs" in text for text in found), len(found)))


def gather(comparison, needs):
    """The evidence for a claim in a comparison."""
    ran = [
        family
        for family in comparison.families
        if family.key["dataset"] in needs.experiment.datasets
    ]
    families = list(map(sound, ran))
    pairs, models_of = [], {}
    for model in needs.experiment.models:
        good, lacking = lacks_of(model, families, needs)
        pairs += good
        left_out = sum(int(unsound(family).sum()) for family in ran if family.key["model"] == model)
        if lacking and left_out:
            lacking.append(
                f"{left_out} do not count, as a time limit ended them or a run of other seed, or traces are damaged"
            )
        if lacking:
            models_of.setdefault("; ".join(lacking), []).append(model)
    return Evidence(pairs, missing_text(models_of, needs.experiment))


def missing_text(models_of, experiment):
    """Models with the same shortcomings are named together."""
    if not models_of:
        return ""
    told = [f"of {', '.join(models)}: {lacking}" for lacking, models in models_of.items()]
    return f"Missing on {' or '.join(experiment.datasets)}, " + ". And ".join(told) + "."


def of_the_paper(comparison):
    """Whether anything was run that the published study is about."""
    return any(
        family.key["model"] in experiment.models and family.key["dataset"] in experiment.datasets
        for family in comparison.families
        for experiment in (published.SHARDING, published.SERVERS)
    )

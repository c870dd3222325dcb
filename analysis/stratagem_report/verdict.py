"""The first things a reader wants to know: the fastest strategy, the one that needs least memory, and by how much."""

import dataclasses

from . import inference
from .choices import PEAK, TIME, TOTAL, choices, choose, learned_goal
from .inference import EQUIVALENT, LEAST_PAIRS
from .spread import ratio
from .standing import standing
from .style import look_of

SHORT_STEPS = 50  # with fewer steps, the median is dominated by the machine's warm-up


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`headline` is one sentence; `details` are further sentences about the same comparison (family, workers)."""

    family: object
    workers: int
    headline: str
    details: list


def main_comparison(comparison):
    """The most informative (family, workers): the most strategies, enough steps, then the most seeds, workers, steps
    and parameters."""
    return max(
        ((family, workers) for family in comparison.drawn for workers in family.workers),
        key=lambda pair: (
            pair[1] > 1,
            len(pair[0].variants_with(pair[1])),
            pair[0].key["planned_steps"] >= SHORT_STEPS,
            len(pair[0].cells[pair[0].cells["workers"] == pair[1]]),
            pair[1],
            pair[0].key["planned_steps"],
            pair[0].cells["parameters"].iloc[0],
        ),
    )


def label(variant):
    return look_of(variant).label


def joined(words, last="and"):
    return f" {last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def count(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def leading(choice, per=""):
    """The best with its value, those that are not told apart from it, the verdict, and the distance to the next."""
    names = [f"{label(choice.best)} ({choice.goal.median_text(choice.value)}{per})"]
    names += [f"{label(name)} ({choice.change_text(name)})" for name in choice.level]
    told = f"{joined(names, 'and' if choice.verdict == EQUIVALENT else 'or')} [{choice.verdict_text}]"
    if choice.second is None:
        return told
    return f"{told}; {label(choice.second)} {choice.goal.verb} {choice.margin_text}"


def headline(family, workers, time, memory):
    place = f"On {count(workers, 'worker')}"
    if time is None:
        only = family.variants_with(workers)[0]
        value = TIME.median_text(family.spread(TIME.quantity, only, workers))
        return f"{place} only {label(only)} is complete, with {value} per epoch: nothing to compare."
    alone = one_worker(family, time)
    enough = f"One worker is enough: {alone.told} " if alone and alone.enough else ""
    told = f"{enough}{place}, fastest: {leading(time, ' per epoch')}."
    return told + (f" Least memory on the fullest rank: {leading(memory)}." if memory else "")


@dataclasses.dataclass(frozen=True)
class OneWorker:
    """The fastest run on one worker, against the fastest on several."""

    enough: bool  # several are not shown to be faster
    told: str  # a sentence


def one_worker(family, time):
    """OneWorker of the choice of the fastest on several workers; None if nothing was measured on one."""
    values = {variant: family.spread(TIME.quantity, variant, 1) for variant in family.variants_with(1)}
    known = {variant: value for variant, value in values.items() if value.known and value.low > 0}
    if time.workers == 1 or not known:
        return None
    alone = min(known, key=lambda variant: known[variant].median)
    gain = ratio(known[alone], time.value)
    first, second = (time.best, time.workers), (alone, 1)
    if gain.median <= 1:
        first, second = second, first
    better, worse = (family.spread(TIME.quantity, *side) for side in (first, second))
    seeds = [family.by_seed(TIME.quantity, *side) for side in (first, second)]
    (judged,) = inference.judge_family([inference.paired_ratios(*reversed(seeds))], [TIME.bound(better)])
    found = standing(judged, better, worse, TIME.single_run)
    name, fastest = label(alone), f"the fastest on {time.workers}, {label(time.best)},"
    value = TIME.median_text(known[alone])
    if found.level or gain.median < 1:
        more = f"needs {100 * (1 / gain.median - 1):.0f} % more time"
        than = "is not told apart from it" if found.level else more
        return OneWorker(True, f"{name} on one needs {value} per epoch; {fastest} {than} [{found.word}].")
    spread = f" ({gain.low:.2f} to {gain.high:.2f})" if gain.low < gain.high else ""
    return OneWorker(
        False, f"The fastest has {gain.median:.2f}{spread} times the speed of {name} on one worker [{found.word}]."
    )


def servers_line(family, workers, total):
    """A server is an additional rank whose memory is not in a worker's; None if there is none."""
    peaks = {
        variant: family.spread("server_peak_B", variant, workers)
        for variant in family.variants_with(workers)
    }
    told = [f"{label(name)} {PEAK.text(peak)}" for name, peak in peaks.items() if peak.known]
    if not told:
        return None
    together = f" Least memory of all ranks together: {leading(total)}." if total else ""
    return f"A server is a rank in addition to the workers, with a peak of its own: {', '.join(told)}.{together}"


def learned_line(family, choice):
    """Of the final accuracy or perplexity."""
    if choice is None:
        return f"No two strategies were evaluated: nothing is said about {family.yardstick.word}."
    goal = choice.goal
    medians = [value.median for value in choice.values.values()]
    low, high = (goal.number(end, max(medians)) for end in (min(medians), max(medians)))
    name, unit = goal.name.capitalize(), f" {goal.unit}" if goal.unit else ""
    if low == high:
        return f"{name}: all {high}{unit} [{choice.verdict_text}]."
    return f"{name}: {low} to {high}{unit}. Best: {leading(choice)}."


def conditions(comparison, family, workers):
    """The conditions under which all this holds."""
    cells = family.cells[family.cells["workers"] == workers]
    devices = sorted({str(device) for device in cells["device"]})
    steps = int(family.key["planned_steps"])
    runs = cells.groupby("variant").size()
    repeated = count(int(runs.min()), "run") if runs.min() == runs.max() else (
        f"{runs.min()} to {count(int(runs.max()), 'run')}"
    )
    told = (
        f"True of {family.title}, {int(cells['parameters'].iloc[0]):,} parameters,"
        f" {count(steps, 'step')}, {repeated} of each strategy, on {', '.join(devices)}"
        + ("" if family.on_gpu else ", without a GPU")
        + ". The words in brackets are explained below T6."
    )
    if runs.max() == 1:
        told += (
            " With one run each, nothing can be established: repeat them with other seeds, of which five are enough for"
            " most questions."
        )
    elif runs.min() < LEAST_PAIRS:
        told += f" With fewer than {LEAST_PAIRS} seeds, nothing is tested."
    if steps < SHORT_STEPS:
        told += f" Only {count(steps, 'step')}: the times are a hint, no more."
    return told


def elsewhere(comparison, family, workers):
    """How many other comparisons there are, and which strategy was best in how many; None if there are none."""
    others = [
        choice
        for choice in choices(comparison)
        if (choice.family, choice.workers) != (family, workers) and choice.distinct
    ]
    told = []
    for goal in TIME, PEAK:
        won = [label(choice.best) for choice in others if choice.goal is goal]
        ranked = sorted(set(won), key=lambda name: (-won.count(name), name))
        if ranked:
            told.append(
                f"{goal.name}: "
                + ", ".join(f"{name} ({won.count(name)} of {len(won)})" for name in ranked)
            )
    more = sum(len(one.workers) for one in comparison.families) - 1
    if not more:
        return None
    best = f" Best where that is established: {'; '.join(told)} (T6)." if told else ""
    return f"{count(more, 'other comparison')} of other work or workers.{best}"


def verdict(comparison):
    """The verdict on the main comparison."""
    family, workers = main_comparison(comparison)
    time, memory, total, learned = (
        choose(comparison, family, workers, goal) for goal in (TIME, PEAK, TOTAL, learned_goal(family))
    )
    alone = one_worker(family, time) if time else None
    lines = [
        alone.told if alone and not alone.enough else None,
        servers_line(family, workers, total),
        learned_line(family, learned) if time else None,
        elsewhere(comparison, family, workers),
        conditions(comparison, family, workers),
    ]
    return Verdict(
        family,
        workers,
        headline(family, workers, time, memory),
        [line for line in lines if line],
    )


def none(failure):
    """In place of a verdict that could not be made."""
    return Verdict(None, 0, "No verdict: this report could not make one, and says below why.", [str(failure)])

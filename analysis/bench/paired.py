"""Two training programs do the same work at the same time: which is faster, and by how much?

Both programs exist during the whole measurement. SIGSTOP and SIGCONT give the machine to one of them at a time, for
windows of several steps in the order ABBA. Steps count if they begin and end within a window, except for the first one.
A pair of windows gives one ratio of mean step times. Both programs are started several times, because a start (its
memory, its place on the cores) can be faster than another. The result is the median of all ratios, with an interval of
order statistics. Its coverage, the probability that it contains the true median, is known without assumptions about the
distribution, if the pairs are independent; medians of the starts show whether they are. A ratio above 1 means that the
first program is faster.
"""

import contextlib
import math
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import programs
import traces


def arguments(description, ranks):
    """The options of a paired benchmark."""
    parser = programs.arguments(description, ranks, batches=[64, 16])
    add_pairing(parser)
    return parser


def add_pairing(parser):
    """The options that say how two programs are paired."""
    parser.add_argument("--starts", type=int, default=4,
                        help="of both programs, each first in every second one; at least 3 for what documents quote")
    parser.add_argument("--pairs", type=int, default=6, help="of windows, per start")
    parser.add_argument("--steps", type=float, default=5, help="least window, in steps of the slower program")
    parser.add_argument("--min-window", type=float, default=4, help="least window [s]")
    parser.add_argument("--warm-up", type=int, default=3, help="steps before measuring")
    parser.add_argument("--timeout", type=float, default=600, help="for starting and warming up [s]")
    parser.add_argument("--control", action="store_true",
                        help="the second program on both sides: the smallest difference that the method can show")


def mean_step(steps, window):
    """Mean time [s] between the beginnings of two steps within `window`, without the first step: its caches were
    cold."""
    begins = steps[traces.within(steps, [window])][1:, 0]
    return 1e-9 * float(np.mean(np.diff(begins))) if len(begins) > 1 else math.nan


def median_interval(values):
    """(median, low, high, coverage). Low and high enclose the true median with probability `coverage`: the narrowest
    interval of order statistics with at least 95 %; with few values the range, which covers less."""
    ordered, n = sorted(values), len(values)

    def coverage(outside):
        """Of the interval that leaves out so many values at each end."""
        return 1 - 2 * sum(math.comb(n, i) for i in range(outside + 1)) / 2**n

    outside = max((count for count in range((n + 1) // 2) if coverage(count) >= 0.95), default=0)
    return statistics.median(ordered), ordered[outside], ordered[n - 1 - outside], max(0.0, coverage(outside))


def window_of(program, seconds):
    program.signal(signal.SIGCONT)
    begin = time.monotonic_ns()
    time.sleep(seconds)
    end = time.monotonic_ns()
    program.signal(signal.SIGSTOP)
    return begin, end


def compare(options, *running):
    """Windows of two or more programs, taken in turn, and their mean step times [s]: for each turn a tuple in the order
    of the programs. All have just been started, and are stopped."""
    seconds = options.min_window
    for program in running:
        program.signal(signal.SIGCONT)
        program.wait_for_steps(options.warm_up, options.timeout)
        recent = program.steps()[-2:]
        seconds = max(seconds, options.steps * 1e-9 * float(np.mean(recent[:, 1] - recent[:, 0])))
        program.signal(signal.SIGSTOP)
    windows = []
    for turn in range(options.pairs):
        spans = {program: window_of(program, seconds) for program in (running if turn % 2 == 0 else running[::-1])}
        windows.append(tuple(spans[program] for program in running))
    for program in running:
        program.flush()
    steps = [program.steps() for program in running]
    times = [tuple(map(mean_step, steps, of_turn)) for of_turn in windows]
    return windows, [of_turn for of_turn in times if not math.isnan(sum(of_turn))]


@contextlib.contextmanager
def two_folders():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that both programs are ended
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as name:
        folders = [Path(name) / part for part in ("ours", "theirs")]
        for folder in folders:
            folder.mkdir()
        yield folders


def row_of(cell, starts, **more):
    """A row of the result, from pairs of mean step times [(s, s)] of each start."""
    times = [pair for of in starts for pair in of]
    ratios = [[b / a for a, b in of] for of in starts]
    ratio, low, high, coverage = median_interval([b / a for a, b in times])
    medians = [statistics.median(of) for of in ratios]
    return {"model": cell.model, "ranks": cell.ranks, "batch_per_rank": cell.batch, "starts": len(starts),
            "pairs": len(times), "ours_images_per_s": cell.images / statistics.median(a for a, _ in times),
            "theirs_images_per_s": cell.images / statistics.median(b for _, b in times), "ratio": ratio,
            "ratio_low": low, "ratio_high": high, "coverage": coverage, "least_of_starts": min(medians),
            "greatest_of_starts": max(medians), "step_times_s": starts, **more}


def started(programs_of, running, options, second_first):
    """The two programs, of which one is stopped when the other is started. Which one is first changes from start to
    start: the first to be started was 3 % slower than the second, of the same program."""
    found = [None, None]
    for index in (1, 0) if second_first else (0, 1):
        start, folder = programs_of[index]
        found[index] = running.enter_context(start(folder))
        found[index].wait_for_steps(1, options.timeout)
        found[index].signal(signal.SIGSTOP)
    return found


def measure(options, cell, start_ours, start_theirs, look=lambda ours, theirs, windows: {}):
    """A row of the result. `start_ours` and `start_theirs` start a program in an empty folder. At the end of a start,
    `look` is called with both programs and their windows; its last result is added to the row."""
    starts = []
    for number in range(options.starts):
        first = start_theirs if options.control else start_ours
        with two_folders() as folders, contextlib.ExitStack() as running:
            programs_of = [(first, folders[0]), (start_theirs, folders[1])]
            ours, theirs = started(programs_of, running, options, second_first=number % 2 == 1)
            windows, times = compare(options, ours, theirs)
            if not times:
                sys.exit(f"{cell}: no window held two steps; raise --min-window")
            starts.append(times)
            seen = look(ours, theirs, windows)
    return row_of(cell, starts, control=options.control, **seen)


def measure_in_turn(options, cell, start_ours, start_theirs, look=lambda program: {}):
    """A row of the result, for programs that cannot be stopped because they measure time themselves: each runs alone
    and is started again for each pair, in the order ABBA."""
    def run(start, folder):
        with start(folder) as program:
            program.wait_for_steps(options.warm_up + math.ceil(options.steps), options.timeout)
            measured = program.steps()[options.warm_up :]
            return 1e-9 * float(np.mean(measured[:, 1] - measured[:, 0])), look(program)

    starts = []
    for pair in range(options.starts * options.pairs):
        with two_folders() as (own, other):
            first = start_theirs if options.control else start_ours
            programs_in_turn = [("ours", first, own), ("theirs", start_theirs, other)]
            found = {name: run(start, folder) for name, start, folder in programs_in_turn[:: -1 if pair % 2 else 1]}
            starts.append([(found["ours"][0], found["theirs"][0])])
    return row_of(cell, starts, control=options.control, **found["ours"][1])


def speed_columns(ours="ours", theirs="theirs"):
    return {f"{ours} images/s": "{ours_images_per_s:.1f}", f"{theirs} images/s": "{theirs_images_per_s:.1f}",
            "ratio": "{ratio:.3f}", "interval (coverage)": "{ratio_low:.3f} to {ratio_high:.3f} ({coverage:.1%})",
            "medians of starts": "{least_of_starts:.3f} to {greatest_of_starts:.3f}", "starts": "{starts}",
            "pairs": "{pairs}"}

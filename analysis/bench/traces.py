"""Reads from the trace of one rank, which may still be growing, what the benchmarks need."""

import h5py
import numpy as np

PHASES = ("data", "forward", "backward", "comm_exposed", "optimizer")
LASTING = ("parameters", "gradients", "optimizer", "buffers")
COMPUTE_LANE, COMM_LANE = 0, 1


def read(path, table, *columns):
    """Columns of a table, cut to the rows that all columns have."""
    with h5py.File(path, "r", libver="latest", swmr=True) as trace:
        found = [trace[f"{table}/{column}"][:] for column in columns]
    rows = min(map(len, found))
    return [values[:rows] for values in found]


def steps(path):
    """(begin, end) of every step [ns]."""
    begin, duration = read(path, "steps", "t_begin_ns", "dur_step_ns")
    return np.stack([begin, begin + duration], axis=1)


def updates(path, workers):
    """(begin, end) of every update of a server [ns]: one update from all workers' gradients, or as many pushes as there
    are workers. If each chunk has its own version, the updates of the last chunk."""
    worker, chunk, applied, dropped = read(path, "ps", "worker", "chunk", "t_applied_ns", "dropped")
    applied = applied[(dropped == 0) & (chunk == chunk.max(initial=-1))]
    every = applied[:: 1 if len(worker) and worker[0] < 0 else workers]
    return np.stack([every[:-1], every[1:]], axis=1)


def within(intervals, windows):
    """Which of the (begin, end) lie in one of the windows."""
    inside = np.zeros(len(intervals), bool)
    for begin, end in windows:
        inside |= (intervals[:, 0] >= begin) & (intervals[:, 1] <= end)
    return inside


def phases_ms(path, windows):
    """Mean duration of each phase of a step, over the steps in the windows [ms]."""
    begin, duration, *phases = read(path, "steps", "t_begin_ns", "dur_step_ns", *(f"dur_{name}_ns" for name in PHASES))
    inside = within(np.stack([begin, begin + duration], axis=1), windows)
    return {name: 1e-6 * float(np.mean(values[inside])) for name, values in zip(PHASES, phases)}


def spans(path):
    """{(lane, name): (begin, end) of its spans [ns]}."""
    (names,) = read(path, "names", "name")
    name, lane, begin, end = read(path, "spans", "name_id", "lane", "t_begin_ns", "t_end_ns")
    intervals = np.stack([begin, end], axis=1)
    return {(of_lane, names[of_name].decode()): intervals[(lane == of_lane) & (name == of_name)]
            for of_lane, of_name in {*zip(lane.tolist(), name.tolist())}}


def covered(times, intervals):
    """Total length of the disjoint `intervals` before each of the times."""
    if not len(intervals):
        return np.zeros(len(times))
    ordered = intervals[np.argsort(intervals[:, 0])]
    after = np.cumsum(ordered[:, 1] - ordered[:, 0])
    before = np.concatenate([[0], after[:-1]])
    return np.interp(times, ordered.ravel(), np.stack([before, after], axis=1).ravel())


def exposed_shares(paths, windows):
    """{operation: share of its time on the comm lane during which computation waited}; `step`: the share of step time
    spent waiting; over all ranks. Needs the spans of every step, because a step may wait for an operation that the
    previous step started."""
    totals = {}
    for path in paths:
        found = spans(path)
        waits = found.get((COMPUTE_LANE, "comm_exposed"), np.empty((0, 2)))
        subjects = {name: intervals for (lane, name), intervals in found.items() if lane == COMM_LANE}
        for name, intervals in {**subjects, "step": steps(path)}.items():
            chosen = intervals[within(intervals, windows)]
            exposed = covered(chosen[:, 1], waits) - covered(chosen[:, 0], waits)
            before = totals.get(name, (0.0, 0.0))
            totals[name] = before[0] + float(exposed.sum()), before[1] + float((chosen[:, 1] - chosen[:, 0]).sum())
    return {name: exposed / total for name, (exposed, total) in totals.items() if total > 0}


def sent_per_step(path):
    """{step: (bytes that this rank sent, operations)}, of the steps whose spans were kept."""
    lane, step, sent = read(path, "spans", "lane", "step", "bytes")
    found = {}
    for number in np.unique(step[lane == COMPUTE_LANE]).tolist():
        of_step = sent[(lane == COMM_LANE) & (step == number)]
        found[number] = int(of_step.sum()), len(of_step)
    return found


def memory(path):
    """{category or "allocated" or "reserved": bytes}, sampled when a backward pass begins. The last sample of an epoch
    was taken at its peak. `t` are the times [ns]."""
    t, allocated, reserved = read(path, "memory", "t_ns", "allocated_B", "reserved_B")
    categories = dict(zip(LASTING, read(path, "memory/breakdown", *LASTING)))
    return {"t": t, "allocated": allocated, "reserved": reserved, **categories}


def peak_bytes(path):
    """The most bytes of live tensors in the first epoch, without the data: images and prefetched batches. When a
    backward pass begins, the workspace contains nothing but these."""
    data = int(min(read(path, "memory/breakdown", "workspace")[0][:-1]))
    return int(read(path, "epochs", "mem_peak_allocated_B")[0][0]) - data

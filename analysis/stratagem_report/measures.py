"""One run in numbers, all from its traces; NaN where something is not known.

What `stratagem collect` shows too is computed as there: `train_time_s`, `images_per_s`, `step_ms`, `exposed_share`,
`test_accuracy`, `train_loss`, and the categories of the peak of memory.
"""

import json

import numpy as np
import pandas as pd

from .study import settled_of
from .trace import MEMORY_CATEGORIES, PHASES, STATE_CATEGORIES

NAN = float("nan")


def last_known(values):
    known = values[np.isfinite(values)]
    return float(known.iloc[-1]) if len(known) else NAN


def greatest(values):
    known = [value for value in values if np.isfinite(value)]
    return float(max(known)) if known else NAN


def mean(values):
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else NAN


def train_time(trace):
    """Training time of the slowest rank, evaluation apart [s]."""
    times = [rank["epochs"]["time_s"].sum() for rank in trace.ranks]
    slowest = max(
        time if time > 0 else rank["steps"]["dur_step_ns"].sum() * 1e-9
        for time, rank in zip(times, trace.ranks)
    )
    return float(slowest) if slowest > 0 else NAN


def steady_rate(trace):
    """Images per second of all workers from their median steps, the first one apart: it allocates."""
    rates = []
    for rank in trace.workers:
        steps = rank["steps"].iloc[1:] if len(rank["steps"]) > 2 else rank["steps"]
        if len(steps):
            rates.append(steps["samples"].median() / (steps["dur_step_ns"].median() * 1e-9))
    return float(sum(rates)) if rates else NAN


def step_times(trace):
    steps = pd.concat([rank["steps"] for rank in trace.ranks])
    if steps.empty:
        return {}
    total = steps["dur_step_ns"].sum()
    durations = np.sort(steps["dur_step_ns"])
    return {
        "step_ms": float(durations[len(durations) // 2]) * 1e-6,
        "exposed_share": steps["dur_comm_exposed_ns"].sum() / total,
        **{f"{phase}_ms": steps[f"dur_{phase}_ns"].mean() * 1e-6 for phase in PHASES},
    }


def union(begins, ends):
    """Length of the union of intervals."""
    order = np.argsort(begins, kind="stable")
    begins, ends = np.asarray(begins)[order], np.asarray(ends)[order]
    if not len(begins):
        return 0
    reach = np.maximum.accumulate(ends)
    gaps = np.maximum(begins[1:] - reach[:-1], 0).sum()
    return int(reach[-1] - begins[0] - gaps)


def overlap_share(trace):
    """Of the time in which communication was under way, the share that the computation did not wait for; over the
    sampled steps of the workers."""
    under_way = waited = 0
    for rank in trace.workers:
        spans = rank.named_spans()
        for _, step in spans[spans["lane"] != "loader"].groupby("step"):
            compute, comm = step[step["lane"] == "compute"], step[step["lane"] == "comm"]
            if compute.empty:
                continue
            begin, end = compute["begin"].min(), compute["end"].max()
            under_way += union(comm["begin"].clip(begin, end), comm["end"].clip(begin, end))
            waits = compute[compute["name"] == "comm_exposed"]
            waited += int((waits["end"] - waits["begin"]).sum())
    return max(0.0, 1 - waited / under_way) if under_way else NAN


def peak_row(ranks):
    """(categories [B] at the moment of the peak, bytes of images and batches among them) of the rank that needed most;
    (None, NaN) when no rank was sampled."""
    best, data = None, NAN
    for rank in ranks:
        breakdown = rank["memory/breakdown"][list(MEMORY_CATEGORIES)]
        if breakdown.empty:
            continue
        totals = breakdown.sum(axis=1)
        if best is None or totals.max() > best.sum():
            best = breakdown.loc[totals.idxmax()]
            # The last sample of an epoch is its peak; the others are made where backward passes begin, when only
            # data is in the workspace.
            data = float(breakdown["workspace"].min()) if len(breakdown) > 1 else NAN
    return best, data


def peak_memory(trace):
    """The most that a worker held, by three measures, and a server; the most of any rank, and of all together."""
    found = {}
    for role, ranks in ("", trace.workers), ("server_", trace.servers):
        best, data = peak_row(ranks)
        if best is None:
            continue
        found[f"{role}peak_B"] = float(best.sum())
        found[f"{role}state_B"] = float(best[list(STATE_CATEGORIES)].sum())
        found.update(
            {f"{role}peak_{category}_B": float(best[category]) for category in MEMORY_CATEGORIES}
        )
        if not role:
            found["data_B"] = data
    for what in "peak", "state":
        found[f"rank_{what}_B"] = greatest(
            found.get(f"{role}{what}_B", NAN) for role in ("", "server_")
        )
    peaks = [best.sum() for best, _ in (peak_row([rank]) for rank in trace.ranks) if best is not None]
    found["total_peak_B"] = float(sum(peaks)) if len(peaks) == len(trace.ranks) else NAN
    found["reserved_B"] = greatest(
        greatest(rank["epochs"]["mem_peak_reserved_B"]) for rank in trace.workers
    )
    found["device_used_B"] = greatest(
        greatest(rank["device"]["memory_used_B"]) for rank in trace.workers
    )
    return found


def while_training(rank):
    """Samples of the device between the begin of the first and the end of the last step."""
    steps, device = rank["steps"], rank["device"]
    if steps.empty or device.empty:
        return device.iloc[:0]
    end = steps["t_begin_ns"].iloc[-1] + steps["dur_step_ns"].iloc[-1]
    return device[(device["t_ns"] >= steps["t_begin_ns"].iloc[0]) & (device["t_ns"] <= end)]


def device_use(trace):
    samples = [while_training(rank)["utilization"] for rank in trace.workers]
    found = {
        "utilization": mean([mean(values) for values in samples]),
        "utilization_sd": mean(
            [float(np.std(values)) if len(values) > 1 else NAN for values in samples]
        ),
    }
    energies = [rank["epochs"]["energy_J"].sum(min_count=1) for rank in trace.workers]
    found["energy_J"] = float(np.sum(energies)) if np.all(np.isfinite(energies)) else NAN
    return found


def updates_of(trace):
    """Rows of /ps of all servers, with times on rank 0's clock."""
    tables = []
    for rank in trace.servers:
        table = rank["ps"].copy()
        for column in "t_ready_ns", "t_seen_ns", "t_applied_ns":
            table[column] = rank.on_rank0_clock(table[column])
        tables.append(table.assign(server=rank.rank))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def server_load(trace):
    updates = updates_of(trace)
    if updates.empty:
        return {}
    one = updates[updates["server"] == updates["server"].iloc[0]]  # every server sees every update
    seconds = (one["t_applied_ns"].max() - one["t_ready_ns"].min()) * 1e-9
    applied = one[one["dropped"] == 0]
    lag = applied["lag"]
    return {
        "lag_mean": lag.mean(),
        "lag_p95": lag.quantile(0.95),
        "lag_max": lag.max(),
        "updates_per_s": len(applied) / seconds,
        "dropped_share": 1 - len(applied) / len(one),
        "queue_mean": one["queue_depth"].mean(),
        "busy_ms": one["dur_busy_ns"].mean() * 1e-6,
        "server_busy_share": one["dur_busy_ns"].sum() * 1e-9 / seconds,
        "server_bytes_per_s": updates["bytes"].sum() / seconds,
    }


def learning_curve(run):
    """epoch (from 1), time_s (training time so far, of rank 0), train_loss, test_accuracy."""
    epochs = run.trace.ranks[0]["epochs"]
    return pd.DataFrame(
        {
            "epoch": epochs["epoch"] + 1,
            "time_s": epochs["time_s"].cumsum(),
            "train_loss": epochs["train_loss"],
            "test_accuracy": epochs["test_accuracy"],
        }
    )


def time_to(run, accuracy):
    """Training time until an evaluation first showed `accuracy` [s]; NaN when none did."""
    curve = learning_curve(run)
    reached = curve[curve["test_accuracy"] >= accuracy]
    return float(reached["time_s"].iloc[0]) if len(reached) else NAN


def recipe_of(config):
    """What two runs must share so that synchronous strategies give the same bits, as text."""
    shared = {
        key: value for key, value in settled_of(config).items() if not key.startswith("strategy.")
    }
    return json.dumps([sorted(shared.items()), config.get("strategy.micro_batches", 1)])


def measure(run):
    """{name: number or text} of a run."""
    trace, manifest = run.trace, run.manifest
    time_s, rate = train_time(trace), steady_rate(trace)
    samples = sum(rank["steps"]["samples"].sum() for rank in trace.ranks)
    epochs = trace.ranks[0]["epochs"]
    return {
        "train_time_s": time_s,
        "images_per_s": samples / time_s,
        "steady_images_per_s": rate,
        "epoch_s": manifest["dataset"]["train_images"] / rate,
        **step_times(trace),
        "overlap_share": overlap_share(trace),
        "test_accuracy": last_known(epochs["test_accuracy"]),
        "train_loss": last_known(epochs["train_loss"]),
        "first_epoch_accuracy": float(epochs["test_accuracy"].iloc[0]) if len(epochs) else NAN,
        "comm_bytes": float(
            np.mean([rank["epochs"]["comm_bytes"].sum() for rank in trace.workers])
        ),
        **peak_memory(trace),
        **device_use(trace),
        **server_load(trace),
        "parameters": manifest["model"]["parameters"],
        "sent_per_step_B": manifest["plan"]["bytes_sent_per_step"],
        "steps": run.outcome["steps"],
        "digest": run.outcome["digest"],
        "recipe": recipe_of(run.config),
        "sharers": max(len(trace.workers), run.config.get("strategy.emulate_ranks", 1)),
        "limited": run.outcome["reason"] == "time_limit",
        "git_sha": manifest["build"]["git_sha"],
        "device": trace.ranks[0].process["device"],
        "damaged": bool(trace.remarks),
        "gpu": manifest["build"]["flavour"] != "cpu" and run.config.get("run.device") != "cpu",
        "host": trace.ranks[0].process["host"],
        "threads": trace.ranks[0].process["threads"],
    }


def measure_all(study):
    """The study's cells with the measures of the complete ones."""
    rows = pd.DataFrame.from_dict(
        {cell: measure(run) for cell, run in study.runs.items()}, orient="index"
    )
    return study.cells.merge(rows, how="left", left_on="cell", right_index=True)

"""The reader of traces, for the report and for scripts of your own. It reads the HDF5 files of the ranks, or the file
that `stratagem collect` made of them, into pandas tables. Traces may be finished, still growing, or of killed ranks.

    from stratagem_report import trace
    run = trace.read("runs/mnist-lenet-ddp")        # a run directory, or one of its .h5 files
    run.ranks[0]["steps"]["dur_step_ns"].median()   # a DataFrame per table of the file
    run.ranks[0].named_spans()                      # spans with names as str, on rank 0's clock

Texts are str. Times whose names end in _ns are from each rank's own monotonic clock: they differ between ranks by an
arbitrary offset, and are not related to the time of day. `on_rank0_clock` makes times of several ranks comparable;
`named_spans` and `named_events` already use it. Each column has its unit and meaning as attributes in the file. Unknown
values are NaN.
"""

import dataclasses
import multiprocessing
import os
import pathlib
import re

os.environ.setdefault(
    "HDF5_USE_FILE_LOCKING", "FALSE"
)  # only reads, and many file systems refuse locks
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

from .errors import BAD_DATA, ReportError

SCHEMA_VERSION = 4
RANK_SCHEMA, COLLECTED_SCHEMA = "stratagem-rank-trace", "stratagem-collected-trace"
PATIENCE_S = 20  # with a file that was never closed
# Tables and columns are those of the file; what the report lists by name, a test compares with it.
LANES = ("compute", "comm", "loader")
PHASES = ("data", "forward", "backward", "comm_exposed", "optimizer")
MEMORY_CATEGORIES = ("parameters", "gradients", "optimizer", "buffers", "activations", "workspace")
STATE_CATEGORIES = MEMORY_CATEGORIES[:4]  # what lasts from step to step
# If several attempts made a step or epoch, the last one counts; this column identifies it.
REPEATED = {"steps": "step", "spans": "step", "ps": "step", "epochs": "epoch"}


@dataclasses.dataclass
class RankTrace:
    """The records of one rank: its tables, with times on its own clock [ns]."""

    rank: int
    tables: dict  # name, such as "steps" -> DataFrame
    process: dict
    provenance: dict
    closed: bool  # False: its writer was killed, or still writes

    def __getitem__(self, table):
        """The DataFrame of a table, such as rank["steps"]."""
        return self.tables[table]

    @property
    def is_server(self):
        return len(self["steps"]) == 0 and len(self["ps"]) > 0

    def on_rank0_clock(self, times):
        """Converts monotonic times of this rank [ns] to rank 0's clock."""
        times = np.asarray(times)
        compared = self["clock"].query("uncertainty_ns > 0")
        if compared.empty:  # rank 0 itself
            return times
        start = int(
            compared["monotonic_ns"].iloc[0]
        )  # floats represent differences of ns exactly, but not whole times
        offsets = np.interp(
            times - start, compared["monotonic_ns"] - start, compared["offset_to_rank0_ns"]
        )
        return times + np.rint(offsets).astype(np.int64)

    def texts(self, numbers):
        """Texts of rows of /names; "" for rows that a growing file does not have yet."""
        names = np.append(self["names"].get("name", pd.Series(dtype=str)).to_numpy(object), "")
        numbers = np.asarray(numbers, dtype=np.int64)
        return names[np.where((numbers >= 0) & (numbers < len(names) - 1), numbers, len(names) - 1)]

    def named_spans(self):
        """Spans with `name` and `lane` as text and `begin`, `end` on rank 0's clock [ns]."""
        spans = self["spans"]
        return pd.DataFrame(
            {
                "name": self.texts(spans["name_id"]),
                "lane": (
                    np.array(LANES)[spans["lane"].to_numpy()] if len(spans) else np.array([], str)
                ),
                "begin": self.on_rank0_clock(spans["t_begin_ns"]),
                "end": self.on_rank0_clock(spans["t_end_ns"]),
                "step": spans["step"],
                "bytes": spans["bytes"],
                "peer": spans["peer"],
            }
        )

    def named_events(self):
        """Events with `name` and `text` as text and `t` on rank 0's clock [ns]."""
        events = self["events"]
        return events.drop(columns=["t_ns", "name_id", "text_id"]).assign(
            t=self.on_rank0_clock(events["t_ns"]),
            name=self.texts(events["name_id"]),
            text=self.texts(events["text_id"]),
        )


@dataclasses.dataclass
class RunTrace:
    """All ranks of a run, in rank order, and problems with their files."""

    ranks: list
    remarks: list

    @property
    def workers(self):
        return [rank for rank in self.ranks if not rank.is_server]

    @property
    def servers(self):
        return [rank for rank in self.ranks if rank.is_server]


def text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def read_table(group):
    """A group of columns as a DataFrame, cut to the rows that all of its columns have."""
    columns = {name: item[:] for name, item in group.items() if isinstance(item, h5py.Dataset)}
    rows = min((len(values) for values in columns.values()), default=0)
    return pd.DataFrame(
        {
            name: (
                [text(value) for value in values[:rows]]
                if values.dtype.kind in "SO"
                else values[:rows]
            )
            for name, values in columns.items()
        }
    )


def tables_in(group):
    """Names of its tables: of the groups that hold columns."""
    names = []

    def add(name, item):
        if isinstance(item, h5py.Group) and any(isinstance(inner, h5py.Dataset) for inner in item.values()):
            names.append(name)

    group.visititems(add)
    return names


def read_rank(group, closed):
    process = {
        name: text(value) if isinstance(value, (bytes, str)) else int(value)
        for name, value in group["process"].attrs.items()
    }
    provenance = {name: text(value) for name, value in group["provenance"].attrs.items()}
    return RankTrace(
        rank=process["rank"],
        tables={name: read_table(group[name]) for name in tables_in(group)},
        process=process,
        provenance=provenance,
        closed=closed,
    )


def ranks_in(path, **how):
    """The ranks in one file. ReportError if it is not a trace, or has another schema."""
    try:
        with h5py.File(path, "r", **how) as file:
            schema, version = text(file.attrs.get("schema_name", "")), int(
                file.attrs.get("schema_version", 0)
            )
            if schema not in (RANK_SCHEMA, COLLECTED_SCHEMA):
                raise ReportError(f"{path} is not a trace of stratagem", BAD_DATA)
            if version != SCHEMA_VERSION:
                raise ReportError(
                    f"{path} has schema version {version}, this report reads {SCHEMA_VERSION}",
                    BAD_DATA,
                )
            if schema == RANK_SCHEMA:
                return [read_rank(file, closed=not how)]
            return [
                read_rank(file[name], bool(file[name].attrs["closed_cleanly"]))
                for name in sorted(file)
                if name.startswith("rank-")
            ]
    except (OSError, KeyError, ValueError, RuntimeError) as problem:
        raise ReportError(f"{path} cannot be read: {problem}", BAD_DATA) from problem


def left_open(path):
    """Whether the rank that wrote the file was killed or is still writing, from the flags in HDF5's superblock."""
    with open(path, "rb") as file:
        head = file.read(12)
    return len(head) == 12 and head[:8] == b"\x89HDF\r\n\x1a\n" and head[8] >= 3 and head[11] != 0


def send_ranks(path, sender):
    try:
        sender.send(ranks_in(path, libver="latest", swmr=True))
    except ReportError as problem:
        sender.send(problem)


def read_left_open(path):
    """Reads in a separate process: in this mode, HDF5 reads a block with a wrong checksum again and again, without
    limit."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    reader = context.Process(target=send_ranks, args=(path, sender), daemon=True)
    reader.start()
    sender.close()
    try:
        found = receiver.recv() if receiver.poll(PATIENCE_S) else None
    except EOFError:  # it crashed
        found = None
    finally:
        reader.kill()
        reader.join()
    if found is None:
        raise ReportError(f"{path} cannot be read: it was never closed, and is damaged", BAD_DATA)
    if isinstance(found, ReportError):
        raise found
    return found


def read_file(path):
    """The ranks in one file. ReportError if it cannot be used."""
    try:
        return read_left_open(path) if left_open(path) else ranks_in(path)
    except OSError as problem:
        raise ReportError(f"{path} cannot be read: {problem}", BAD_DATA) from problem


def join_attempts(earlier, later):
    """One trace of two attempts of a rank, as `stratagem collect` joins them."""
    begins = {
        column: min((later[name][column].min() for name in names if len(later[name])), default=np.inf)
        for column, names in (("step", ("steps", "ps")), ("epoch", ("epochs",)))
    }
    kept = {
        name: table[table[REPEATED[name]] < begins[REPEATED[name]]] if name in REPEATED else table
        for name, table in earlier.tables.items()
    }
    more = {name: table.copy() for name, table in later.tables.items()}
    for name, column in ("spans", "name_id"), ("events", "name_id"), ("events", "text_id"):
        more[name][column] += len(earlier["names"])
    # An attempt counts its versions from 0; those of the run go on.
    reached = more["ps"]["chunk"].map(kept["ps"].groupby("chunk")["applied_version"].max())
    for column in "base_version", "applied_version":
        more["ps"][column] += reached.fillna(0).astype(np.int64)
    tables = {
        name: pd.concat([kept[name], more[name]], ignore_index=True) if len(kept[name]) else more[name]
        for name in kept
    }
    return dataclasses.replace(later, tables=tables)


def rank_files(run):
    """trace/a0/rank-0000.h5 and so on, by attempt, then rank."""
    numbered = []
    for attempt in (run / "trace").glob("a*"):
        if re.fullmatch(r"a\d+", attempt.name):
            numbered += [(int(attempt.name[1:]), path) for path in attempt.glob("rank-*.h5")]
    return [path for _, path in sorted(numbered)]


def read(path):
    """The trace of a run directory, or of one file of it, as a RunTrace. ReportError if it cannot be used."""
    path = pathlib.Path(path)
    return RunTrace(read_file(path), []) if path.is_file() else read_run(path)


def read_run(run):
    """The traces of a run directory. Unusable files are left out, with a remark; ReportError if none is usable."""
    run = pathlib.Path(run)
    files = rank_files(run) or list(run.glob("collected.h5"))
    by_rank, remarks = {}, []
    for path in files:
        try:
            for trace in read_file(path):
                if not trace.closed:
                    remarks.append(
                        f"{path.relative_to(run)} was not closed: {len(trace['steps'])} steps of "
                        f"rank {trace.rank} were read"
                    )
                known = by_rank.get(trace.rank)
                by_rank[trace.rank] = join_attempts(known, trace) if known else trace
        except ReportError as problem:
            remarks.append(f"left out: {problem}")
    if not by_rank:
        raise ReportError(
            f"no usable trace in {run}" + "".join(f"; {remark}" for remark in remarks), BAD_DATA
        )
    ranks = [by_rank[rank] for rank in sorted(by_rank)]
    remarks += [
        f"rank {rank} of {ranks[0].process['world']} has no trace"
        for rank in range(ranks[0].process["world"])
        if rank not in by_rank
    ]
    return RunTrace(ranks, remarks)

#!/usr/bin/env python3
"""stratagem's parameter server against its DDP, against itself with a slow worker, and against simple parameter servers
in Python.

  python3 analysis/bench/ps_speed.py ddp        sync, 2 workers and a server, against DDP on 2 ranks
  python3 analysis/bench/ps_speed.py slow       async against sync, one worker at half its speed
  python3 analysis/bench/ps_speed.py pulls      async with chunkwise against consistent pulls
  python3 analysis/bench/ps_speed.py dana       mode dana against async
  python3 analysis/bench/ps_speed.py transport  transport rma against two_sided, sync
  python3 analysis/bench/ps_speed.py gloo       sync and async against Python's on torch.distributed
  python3 analysis/bench/ps_speed.py mpi4py     the same, on mpi4py
  ... --control                                 compares the second program with itself (see paired.py)

A ratio above 1 means that the first program is faster (see paired.py). With a parameter server, a step is as many
applied pushes as there are workers. CPU seconds per step, of a worker and of the server, are means over the whole run.
Needs Python with numpy and h5py, and `build/stratagem`; for `gloo` torch, for `mpi4py` that too.
"""

import dataclasses
import functools

import paired
import programs
import report
import traces

PULLS = "chunkwise", "consistent"
SLOW = "experiment: {slow_worker: 1, slow: 2.0}"


class ParameterServer(programs.Stratagem):
    """Steps are the server's updates."""

    def __init__(self, folder, options, cell, strategy):
        self.workers = cell.ranks
        super().__init__(folder, options, dataclasses.replace(cell, servers=1), strategy)

    def steps(self):
        try:
            return traces.updates(self.traces[-1], self.workers)
        except (OSError, KeyError):
            return programs.no_steps()


def python_server(folder, options, cell, mode):
    cell = dataclasses.replace(cell, servers=1)
    arguments = ["--transport", options.what, "--mode", mode]
    if options.what == "gloo":
        return programs.Torch(folder, options, cell, "torch_ps.py", arguments, teller=cell.processes - 1)
    return programs.MpiScript(folder, options, cell, "torch_ps.py", arguments)


def comparisons(options):
    """(name, how to start ours, how to start theirs) of the requested comparisons."""
    def server(mode, *sections, transport=options.transport):
        strategy = "\n".join([f"{{name: ps, mode: {mode}, transport: {transport}}}", *sections])
        return functools.partial(ParameterServer, options=options, strategy=strategy)

    def pulling(how, *sections):
        return server("async", f"advanced: {{pulls: {how}}}", *sections)

    def python(mode):
        return functools.partial(python_server, options=options, mode=mode)

    if options.what == "ddp":
        ddp = functools.partial(programs.Stratagem, options=options, strategy="{name: ddp}")
        return [("sync / ddp", server("sync"), ddp)]
    if options.what == "slow":
        return [(f"async, {how} / sync", pulling(how, SLOW), server("sync", SLOW)) for how in PULLS]
    if options.what == "pulls":
        return [(" / ".join(PULLS), *map(pulling, PULLS))]
    if options.what == "dana":
        return [("dana / async", server("dana"), server("async"))]
    if options.what == "transport":
        return [("rma / two_sided", *(server("sync", transport=name) for name in ("rma", "two_sided")))]
    return [(f"{mode} / {options.what}", server(mode), python(mode)) for mode in ("sync", "async")]


def look(ours, *_):
    """CPU time of a step of ours."""
    used, steps = ours.cpu_s(), max(len(ours.steps()), 1)
    return {"worker_s": used[0] / steps, "server_s": used[max(used)] / steps}


def parser():
    found = paired.arguments(__doc__, ranks=[2])
    found.add_argument("what", choices=("ddp", "slow", "pulls", "dana", "transport", "gloo", "mpi4py"))
    found.add_argument("--transport", choices=("two_sided", "rma", "auto"), default="auto", help="of ours")
    return found


def main():
    options = parser().parse_args()
    columns = {"model": "{model}", "workers": "{ranks}", "images/worker": "{batch_per_rank}", "ours / theirs": "{name}",
               **paired.speed_columns(), "worker CPU s/step": "{worker_s:.3f}", "server CPU s/step": "{server_s:.3f}"}
    table = report.Table(options, columns, machine=programs.machine(options))
    for cell in programs.cells(options):
        for name, ours, theirs in comparisons(options):
            # A slow worker sleeps in proportion to the elapsed time, which includes the time it was stopped.
            measure = paired.measure_in_turn if options.what == "slow" else paired.measure
            start = (functools.partial(program, cell=cell) for program in (ours, theirs))
            table.add({**measure(options, cell, *start, look), "name": name})


if __name__ == "__main__":
    main()

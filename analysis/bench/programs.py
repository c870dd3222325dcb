"""The programs that the benchmarks compare, and how to start them: stratagem, and scripts with PyTorch."""

import argparse
import contextlib
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import traces

HERE = Path(__file__).resolve().parent
# stratagem's name of a model, and torchvision's.
MODELS = {"vgg16": "vgg16", "resnet50": "resnet50", "densenet121": "densenet121",
          "efficientnetv2_l": "efficientnet_v2_l", "convnext_l": "convnext_large"}

CONFIG = """\
schema: 1
run: {{name: bench, device: {device}, ranks: {ranks}, threads: {threads}, epochs: 100000, evaluate_every: 0{run}}}
data: {{dataset: cifar10, root: "{root}", global_batch: {images}, input_size: {size}}}
model: {model}
precision: {{compute: {precision}}}
strategy: {strategy}
comm: {{timeout_s: 3600}}
trace: {{spans_every: {spans_every}, device_sample_hz: 0}}
"""


@dataclass(frozen=True)
class Cell:
    """What both programs of a pair train."""

    model: str
    ranks: int  # that compute
    batch: int  # images per rank
    servers: int = 0  # additional ranks that do not compute
    file: str = ""  # of an exported model, which stratagem trains instead of its own

    @property
    def images(self):
        return self.ranks * self.batch

    @property
    def processes(self):
        return self.ranks + self.servers


def arguments(description, ranks, batches):
    """The options of every benchmark; `ranks` and `batches` are the defaults."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.path.join(os.environ.get("STRATAGEM_DATA", ""), "cifar-10-batches-bin"))
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--batches", nargs="+", type=int, default=batches, help="images per rank")
    parser.add_argument("--ranks", nargs="+", type=int, default=ranks)
    parser.add_argument("--threads", type=int, default=1, help="per rank")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--size", type=int, default=32, help="of the images [pixels]")
    parser.add_argument("--program", default=str(HERE.parent.parent / "build/stratagem"))
    parser.add_argument("--launcher", default="mpirun --bind-to none -n {ranks}")
    parser.add_argument("--json", help="also write everything to this file")
    return parser


def cells(options):
    for model in options.models:
        for batch in options.batches:
            for ranks in options.ranks:
                yield Cell(model, ranks, batch)


def write_config(path, options, cell, strategy, spans_every, run=""):
    """A configuration of stratagem that trains until it is stopped; `strategy` is a YAML flow mapping, `run` more of
    another one."""
    path.write_text(CONFIG.format(ranks=cell.processes, threads=options.threads, images=cell.images,
                                  model=f"{{file: {cell.file}}}" if cell.file else f"{{name: {cell.model}}}",
                                  root=Path(options.data).resolve().parent, strategy=strategy, run=run,
                                  device=options.device, precision=options.precision, size=options.size,
                                  spans_every=spans_every), encoding="utf-8")


def set_words(settings):
    """Words of a command that change the configuration; each setting is KEY=VALUE."""
    return [word for setting in settings for word in ("--set", setting)]


def launch(options, ranks):
    return [*options.launcher.format(ranks=ranks).split(), options.program]


def train(options, settings, out):
    """Runs `options.configuration` with these settings to its end, on `options.ranks` ranks; results go to `out`."""
    command = [*launch(options, options.ranks), "run", options.configuration, "--out", str(out), *set_words(settings)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}\n{done.stdout[-3000:]}")


def no_steps():
    return np.empty((0, 2), np.int64)


class Program:
    """Processes that train until they are stopped; `steps()` are (begin, end) of rank 0 in ns."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []

    def start(self, command, environment=None):
        with open(self.folder / f"output-{len(self.processes)}.txt", "wb") as output:
            self.processes.append(subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT,
                                                   stdin=subprocess.DEVNULL, env=environment))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.signal(signal.SIGKILL)
        for process in self.processes:
            process.terminate()
            process.wait()

    def ranks(self):
        return [process.pid for process in self.processes]

    def signal(self, number):
        for pid in self.ranks():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def flush(self):
        """Waits until everything that was measured is in the trace."""

    def wait_for_steps(self, count, timeout_s):
        end = time.monotonic() + timeout_s
        while len(self.steps()) < count:
            ended = [process.args for process in self.processes if process.poll() is not None]
            if ended or time.monotonic() > end:
                told = "".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("output-*.txt")))
                sys.exit(f"{'ended early' if ended else 'too slow'}: {ended or self.folder}\n{told[-3000:]}")
            time.sleep(0.2)


class Stratagem(Program):
    def __init__(self, folder, options, cell, strategy, spans_every=0, run="", settings=()):
        super().__init__(folder)
        config = folder / "config.yaml"
        write_config(config, options, cell, strategy, spans_every, run)
        self.program = os.path.realpath(options.program)
        self.traces = [folder / f"run/trace/a0/rank-{rank:04}.h5" for rank in range(cell.processes)]
        self.start([*launch(options, cell.processes), "run", config, "--out", folder / "run", "--progress", "none",
                    *set_words(settings)])

    def ranks(self):
        """The launcher's descendants that are the program itself."""
        found = []
        for pid in descendants(self.processes[0].pid):
            with contextlib.suppress(OSError):  # it has just ended
                if os.path.realpath(f"/proc/{pid}/exe") == self.program:
                    found.append(pid)
        return found

    def cpu_s(self):
        """{rank: seconds of processor time so far}."""
        used = {}
        for pid in self.ranks():
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            rank = next(int(word.split(b"=")[1]) for word in environment if word.startswith(b"OMPI_COMM_WORLD_RANK="))
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            used[rank] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return used

    def flush(self):
        self.signal(signal.SIGCONT)
        time.sleep(2.5)  # its trace reaches the file every second
        self.signal(signal.SIGSTOP)

    def steps(self):
        try:
            return traces.steps(self.traces[0])
        except (OSError, KeyError):
            return no_steps()  # not written yet


class Torch(Program):
    """A Python process per rank that runs `script`, which writes `begin end` of its steps to its log. The steps of rank
    `teller` are used."""

    def __init__(self, folder, options, cell, script, script_arguments=(), teller=0):
        super().__init__(folder)
        self.log = folder / f"steps-{teller}.txt"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        for rank in range(cell.processes):
            environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(cell.processes), MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(port), OMP_NUM_THREADS=str(options.threads))
            self.start([*script_command(options, cell, script), "--log", folder / f"steps-{rank}.txt",
                        *script_arguments], environment)

    def steps(self):
        return logged_steps(self.log)


class MpiScript(Program):
    """One `script` per rank, started by mpirun; the server writes its steps to the log."""

    def __init__(self, folder, options, cell, script, script_arguments=()):
        super().__init__(folder)
        self.log = folder / "steps.txt"
        self.start([*options.launcher.format(ranks=cell.processes).split(),
                    *script_command(options, cell, script), "--log", self.log, *script_arguments],
                   dict(os.environ, OMP_NUM_THREADS=str(options.threads)))

    def ranks(self):
        return descendants(self.processes[0].pid)

    def steps(self):
        return logged_steps(self.log)


def script_command(options, cell, script):
    if options.device == "cuda" and script not in ("torch_ddp.py", "torch_gpt.py"):
        sys.exit(f"{script} runs on CPUs alone: ddp_vs_torch.py and gpt_vs_torch.py compare on GPUs")
    return [sys.executable, HERE / script, "--model", MODELS[cell.model], "--data", options.data,
            "--batch", str(cell.batch), "--threads", str(options.threads), "--device", options.device,
            "--precision", options.precision, "--size", str(options.size)]


def logged_steps(log):
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    pairs = [line.split() for line in lines if line.endswith("\n")]
    return np.array(pairs, np.int64).reshape(-1, 2)


def descendants(pid):
    """Processes below `pid`, without itself."""
    found, open_ends = [], [pid]
    while open_ends:
        with contextlib.suppress(OSError):  # it has just ended
            children = Path(f"/proc/{(parent := open_ends.pop())}/task/{parent}/children").read_text().split()
            found += map(int, children)
            open_ends += map(int, children)
    return found


def machine(options, **more):
    """The machine and program that the figures were measured with."""
    cpu = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    version = subprocess.run([options.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    return {"processor": cpu, "cores": os.cpu_count(), "stratagem": version, "threads_per_rank": options.threads,
            **more}

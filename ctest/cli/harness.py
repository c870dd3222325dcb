"""Shared code of the tests of the program: a folder to run it in, and tables of runs that it must refuse."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

# A small run that works. Tests change or break it with `-s key=value`.
CONFIG = """schema: 1
run: {name: cell, threads: 1, max_steps: 3, out: out}
data: {dataset: synthetic-digits, global_batch: 12, subset: 96}
model: {name: mlp}
strategy: {name: ddp}
"""
# Makes it a run that only a signal ends.
ENDLESS = [
    "run.max_steps=0",
    "run.epochs=1000000",
    "run.evaluate_every=0",
    "data.subset=1200",
    "trace.spans_every=10",
]
SKIPPED = 77  # ctest shows this exit code as skipped


@dataclasses.dataclass(frozen=True)
class Ended:
    """A program that has ended by itself."""

    code: int
    stdout: str
    stderr: str

    def __str__(self):
        return f"exit code {self.code}\n--- stdout\n{self.stdout}--- stderr\n{self.stderr}"


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A command line that must exit with `code`, contain all of `words` in one message of one rank, and change no
    file."""

    name: str
    arguments: list
    code: int
    words: list
    files: dict = dataclasses.field(default_factory=dict)  # name -> text or bytes
    environment: dict = dataclasses.field(default_factory=dict)
    ranks: tuple = (1,)  # tried with each; 1 is without a launcher


def overridden(*settings, config="config.yaml"):
    """Arguments of a run of `config`, with some keys replaced."""
    return ["run", config] + [word for setting in settings for word in ("-s", setting)]


def mpirun(ranks, words, *options):
    return ["mpirun", "--bind-to", "none", "-n", str(ranks), *options, *words]


def different_ranks(jobs, *options):
    """One rank of each job; a job is a list of words. `A : B` is not used, because mpirun of Debian's and Ubuntu's
    Open MPI 5 crashes with it (open-mpi/ompi#13303)."""
    cases = " ".join(
        f"{rank}) exec {shlex.join(map(str, job))};;" for rank, job in enumerate(jobs)
    )
    script = f"case $OMPI_COMM_WORLD_RANK in {cases} esac"
    return mpirun(len(jobs), ["sh", "-c", script], *options)


def comes_true(condition, within_s=30):
    """Asks repeatedly; returns whether it became true."""
    deadline = time.monotonic() + within_s
    while not (true := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return true


def snapshot(folder):
    """Everything in a folder, so that any change is noticed."""
    return {
        str(path.relative_to(folder)): (
            None if path.is_dir() else (path.stat().st_mtime_ns, path.read_bytes())
        )
        for path in sorted(folder.rglob("*"))
    }


class ProgramTest(unittest.TestCase):
    """Each test runs the program in its own temporary folder, which contains config.yaml."""

    program = None  # its path, from the command line
    maxDiff = None

    def setUp(self):
        self.folder = self.new_folder()

    def new_folder(self, files=None):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="stratagem-cli-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for name, content in {"config.yaml": CONFIG, **(files or {})}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return folder

    @functools.cached_property
    def folder_of_launchers(self):
        """What Open MPI 5's launchers that are killed leave behind is removed with it. Otherwise a later one that has
        the same process id would fail: "prte_session_dir failed ... Exists"."""
        folder = tempfile.mkdtemp(prefix="stratagem-launchers-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def start(self, words, folder=None, environment=None):
        """Without variables of a user's shell or job about data, tasks and GPUs."""
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("STRATAGEM_", "SLURM_", "CUDA_VISIBLE_DEVICES"))
        }
        return subprocess.Popen(
            [str(word) for word in words],
            cwd=folder or self.folder,
            env={**variables, "PRTE_MCA_prte_tmpdir_base": self.folder_of_launchers, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait(self, process, timeout=50):
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            self.fail(f"hangs: {process.args}\n{process.communicate()}")
        return Ended(process.returncode, stdout, stderr)

    def run_words(self, words, **where):
        return self.wait(self.start(words, **where))

    def run_program(self, *arguments, ranks=1, **where):
        words = [self.program, *arguments]
        return self.run_words(words if ranks == 1 else mpirun(ranks, words), **where)

    def expect(self, code, *arguments, **how):
        """Runs the program, which must exit with `code`."""
        ended = self.run_program(*arguments, **how)
        self.assertEqual(ended.code, code, str(ended))
        return ended

    def succeed(self, *arguments, ranks=1):
        """Runs the program, which must end well; it may train."""
        words = [self.program, *arguments]
        ended = self.wait(self.start(mpirun(ranks, words) if ranks > 1 else words), timeout=120)
        self.assertEqual(ended.code, 0, str(ended))
        return ended

    def digest(self, *settings, config, out, ranks=1):
        """Of the parameters that a run of `config` ends with, in directory `out`."""
        self.succeed(*overridden(*settings, f"run.out={out}", config=config), "-q", ranks=ranks)
        return json.loads((self.folder / out / "outcome.json").read_text())["digest"]

    def check_refused(self, ended, code, words):
        self.assertEqual(ended.code, code, str(ended))
        for word in words:
            self.assertIn(word, ended.stderr)
        self.assertEqual(
            len(re.findall(r"^stratagem: error: ", ended.stderr, re.MULTILINE)), 1, str(ended)
        )

    def check_refusals(self, table):
        for case in table:
            for ranks in case.ranks:
                with self.subTest(case.name, ranks=ranks):
                    folder = self.new_folder(case.files)
                    before = snapshot(folder)
                    ended = self.run_program(
                        *case.arguments, ranks=ranks, folder=folder, environment=case.environment
                    )
                    self.check_refused(ended, case.code, case.words)
                    self.assertEqual(snapshot(folder), before)

    def dumped(self, file, dataset):
        """The values of one dimension as texts, read by a reader other than ours."""
        words = ["h5dump", "-y", "-w", "0", "-m", "%.17g", "-d", dataset, file]
        text = subprocess.run(words, cwd=self.folder, check=True, capture_output=True, text=True)
        data = re.search(r"^   DATA \{\n(.*?)^   \}", text.stdout, re.MULTILINE | re.DOTALL)
        return data[1].replace(",", " ").split()

    def metrics(self, out):
        """By epoch, without columns that depend on the clock; for a repeated epoch, the last line."""
        rows = {}
        for line in (self.folder / out / "metrics.csv").read_text().splitlines()[1:]:
            cells = line.split(",")
            rows[cells[1]] = (cells[2], *cells[4:8], cells[9])
        return rows

    def collected(self, out, column):
        """Values of all attempts, as texts."""
        self.expect(0, "collect", out, "-o", f"{out}.h5")
        values = self.dumped(f"{out}.h5", column)
        self.assertTrue(values)
        return values

    def losses(self, out):
        return self.collected(out, "/rank-0000/steps/loss")

    def await_trace(self, rank, run="out"):
        trace = self.folder / run / "trace" / "a0" / f"rank-{rank:04}.h5"
        comes_true(trace.exists)

    def pids(self, ranks, run="out"):
        """Of all ranks, as soon as all have traces."""
        for rank in range(ranks):
            self.await_trace(rank, run)
        manifest = json.loads((self.folder / run / "manifest.json").read_text())
        return [row["process"] for row in manifest["ranks"]]

    def pid_of_rank(self, rank, run="out"):
        """From the manifest, as soon as there is a trace."""
        self.await_trace(rank, run)
        manifest = json.loads((self.folder / run / "manifest.json").read_text())
        return manifest["ranks"][rank]["process"]

    def outcome(self, run="out"):
        return json.loads((self.folder / run / "outcome.json").read_text())


def main():
    """`test.py PROGRAM [unittest's arguments]`. Exits with SKIPPED if nothing failed, but not everything could run."""
    ProgramTest.program = pathlib.Path(sys.argv.pop(1)).resolve()
    result = unittest.main(exit=False, verbosity=2).result
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    sys.exit(SKIPPED if result.skipped else 0)

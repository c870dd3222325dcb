"""Shared code of the tests of analysis/: its modules, or a visible skip; and cells that are run once for a class."""

import csv
import pathlib
import re
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ANALYSIS = ROOT / "analysis"
sys.path[:0] = [str(ANALYSIS), str(HERE.parent / "cli")]

import harness  # noqa: E402
from stratagem_report import packages  # noqa: E402

if packages.missing():
    print(f"SKIPPED: needs {', '.join(packages.missing())} (pip install -r {packages.REQUIREMENTS})")
    sys.exit(harness.SKIPPED)

REPORT_S = 300  # a report takes seconds, but minutes on a busy machine

COMMON = [
    "model.name=lenet",
    "data.subset=192",
    "data.global_batch=24",
    "run.max_steps=0",
    "run.epochs=2",
    "trace.spans_every=2",
    "trace.device_sample_hz=20",
]
STRATEGIES = {
    "serial": ["strategy.name=serial"],
    "ddp": ["strategy.bucket_mb=0.5"],
    "fsdp": ["strategy.name=fsdp", "strategy.unit_mb=0.0625"],
    "ps-sync": ["strategy.name=ps", "strategy.chunk_mb=0.5"],
    "ps-async": ["strategy.name=ps", "strategy.chunk_mb=0.5", "strategy.mode=async"],
}
CELL_COLUMNS = (
    "index,cell,group,part,model,dataset,variant,strategy,workers,servers,ranks,seed,global_batch,input_size,"
    "precision,epochs,max_steps,threads,settings"
).split(",")


class StudyTest(harness.ProgramTest):
    """`study` is a study in the layout of `stratagem sweep`; its cells are run once for the class."""

    cells = []  # (variant, workers, seed)
    strategies = STRATEGIES  # settings by variant
    common = COMMON  # settings of all cells
    described = {}  # what the study says of all cells, if it is not what describe() says
    servers = {}  # by variant, where a parameter server has several

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="stratagem-analysis-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        (cls.made / "config.yaml").write_text(harness.CONFIG)
        maker = cls()
        rows = []
        for index, (variant, workers, seed) in enumerate(cls.cells):
            row = {**describe(index, variant, workers, seed, cls.servers.get(variant, 1)), **cls.described}
            rows.append(row)
            settings = [
                *cls.common,
                *cls.strategies[variant],
                f"run.seed={seed}",
                f"run.out=study/{row['cell']}",
            ]
            ended = maker.run_program(
                *harness.overridden(*settings), "-q", ranks=row["ranks"], folder=cls.made
            )
            assert ended.code == 0, str(ended)
        write_cells(cls.made / "study", rows)

    def setUp(self):
        super().setUp()
        self.study = self.folder / "study"
        shutil.copytree(self.made / "study", self.study)

    def report(self, *arguments, script="report.py"):
        if script == "report.py" and "--program" not in arguments:
            arguments = [*arguments, "--program", self.program]
        words = [sys.executable, "-B", ANALYSIS / script, *arguments]
        return self.wait(self.start(words), timeout=REPORT_S)

    def table(self, name):
        """Rows of a table of the report."""
        with open(
            self.study / "report" / "tables" / f"{name}.csv", newline="", encoding="utf-8"
        ) as file:
            return list(csv.DictReader(file))


def describe(index, variant, workers, seed, servers=1):
    strategy = {"zero1": "fsdp", "zero2": "fsdp"}.get(variant, variant.split("-")[0])
    servers = servers if strategy == "ps" else 0
    return {
        "index": index,
        "cell": f"head-lenet-{variant}-w{workers}-s{seed}",
        "group": f"head-lenet-{variant}-w{workers}",
        "part": "head",
        "model": "lenet",
        "dataset": "synthetic-digits",
        "variant": variant,
        "strategy": strategy,
        "workers": workers,
        "servers": servers,
        "ranks": workers + servers,
        "seed": seed,
        "global_batch": 24,
        "input_size": 32,
        "precision": "fp32",
        "epochs": 2,
        "max_steps": 0,
        "threads": 1,
        "settings": "",
    }


def write_cells(folder, rows):
    with open(folder / "cells.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, CELL_COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def rows_of(text):
    """The rows of the Markdown table in a text, by title."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    titles, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(titles, row)) for row in rows]


def text_of(document):
    return (ROOT / document).read_text(encoding="utf-8")


def blocks_of(document):
    """Lines of each block of code."""
    blocks = re.findall(r"^```\n(.*?)^```$", text_of(document), re.DOTALL | re.MULTILINE)
    return [block.splitlines() for block in blocks]

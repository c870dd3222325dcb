"""The report: sections of tables and figures, as Markdown, as one HTML file, and as files of their own."""

import base64
import dataclasses
import pathlib
import shutil

import jinja2

from . import (
    checks,
    claims,
    figures_memory,
    figures_servers,
    figures_step,
    figures_time,
    tables_servers,
    tables_study,
)
from . import tables_training
from .claims import CONFIRMED, REFUTED, UNTESTED
from .errors import ReportError, USAGE
from .style import look_of
from .tables_study import choices
from .trace import SCHEMA_VERSION

TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"


@dataclasses.dataclass
class Section:
    heading: str
    tables: list
    figures: list


def of_each(comparison, function):
    """A figure that is drawn for each family by itself."""
    return [function(comparison, family) for family in comparison.drawn]


def sections(comparison):
    """All tables and figures, drawn, in the order of the report."""
    found = [
        Section(
            "Time",
            [tables_training.t1_time(comparison)],
            [figures_time.f1_time_per_epoch(comparison), figures_time.f2_scaling(comparison)],
        ),
        Section(
            "Where the time goes",
            [tables_training.t5_use(comparison)],
            [
                figures_time.f15_phases(comparison),
                *of_each(comparison, figures_step.f8_timeline),
                figures_time.f11_exposed(comparison),
                *of_each(comparison, figures_memory.f4_utilisation),
            ],
        ),
        Section(
            "Memory",
            [tables_training.t2_memory(comparison), tables_training.t9_prediction(comparison)],
            [
                figures_memory.f3_peak_memory(comparison),
                figures_memory.f12_prediction(comparison),
                *of_each(comparison, figures_memory.f5_memory_over_time),
                *of_each(comparison, figures_step.f13_strategies),
            ],
        ),
        Section(
            "Accuracy and parameter servers",
            [
                tables_servers.t3_servers(comparison),
                tables_servers.t4_modified(comparison),
                tables_study.t10_bits(comparison),
            ],
            [
                figures_servers.f6_accuracy(comparison),
                *of_each(comparison, figures_servers.f7_staleness),
                figures_servers.f10_server_load(comparison),
            ],
        ),
        Section(
            "Which strategy to take",
            [tables_study.t6_decision(comparison)],
            [figures_memory.f9_pareto(comparison), figures_time.f14_batch(comparison)],
        ),
        Section(
            "What ran, and what is missing",
            [tables_study.t7_environment(comparison), tables_study.t8_missing(comparison)],
            [],
        ),
    ]
    for section in found:
        section.figures = [figure for figure in section.figures if figure is not None]
        section.tables = [table for table in section.tables if table.rows or table.note]
    return found


def summary(comparison, found):
    """A few sentences: what ran, what became of the claims, what to take."""
    cells, runs = comparison.cells, comparison.study.runs
    complete = cells[cells["state"] == "complete"]
    devices = sorted({f"{device}" for device in complete["device"]})
    lines = [
        f"{len(runs)} of {len(cells)} cells are complete:"
        f" {', '.join(sorted(set(complete['model'])))} on"
        f" {', '.join(sorted(set(complete['dataset'])))} under {complete['variant'].nunique()}"
        f" strategies with up to {int(complete['workers'].max())} workers, on {', '.join(devices)}"
        + ("." if comparison.on_gpu else ", without a GPU.")
    ]
    for mark in comparison.study.marks:
        lines.append(f"MIXED: {mark}.")
    for verdict in CONFIRMED, REFUTED, UNTESTED:
        of = [finding.number for finding in found if finding.verdict == verdict]
        if of:
            lines.append(f"Of the study's claims, {verdict}: {', '.join(of)}.")
    if not comparison.on_gpu:
        lines.append(
            "The study's figures are of A100 and A10G GPUs: ratios can be compared with these,"
            " times cannot."
        )
    made = [choice for choice in choices(comparison) if choice.distinct]
    for goal in dict.fromkeys(choice.goal.name for choice in made):
        won = [look_of(choice.best).label for choice in made if choice.goal.name == goal]
        ranked = sorted(set(won), key=lambda label: -won.count(label))
        lines.append(
            f"Best for {goal}, where a difference is significant: "
            + ", ".join(f"{label} ({won.count(label)} of {len(won)})" for label in ranked)
            + "."
        )
    return lines


def provenance(comparison):
    """The sentence under every figure."""
    shas = sorted({str(sha) for sha in comparison.cells["git_sha"].dropna()})
    return (
        f"{comparison.study.name}, {len(comparison.study.runs)} runs, stratagem {', '.join(shas)}, "
        f"trace schema {SCHEMA_VERSION}."
    )


def write(comparison, folder):
    """Writes the report to `folder`, which may hold an earlier one. It appears when it is whole."""
    if folder.exists() and not (folder / "report.html").exists():
        raise ReportError(
            f"{folder} exists and is no report: name another folder with --output", USAGE
        )
    building = folder.with_name(f".{folder.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    for part in "figures", "tables":
        (building / part).mkdir(parents=True)
    found = claims.findings(comparison)
    made = sections(comparison)
    for section in made:
        for table in section.tables:
            table.write(building / "tables")
        for figure in section.figures:
            figure.write(building / "figures")
    context = {
        "study": comparison.study,
        "summary": summary(comparison, found),
        "sections": made,
        "claims": found,
        "checks": checks.findings(comparison),
        "provenance": provenance(comparison),
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["cell"] = lambda text: text.replace("|", "\\|").replace("\n", " ")
    environment.filters["escape_html"] = lambda text: jinja2.utils.markupsafe.escape(text)
    environment.globals["image"] = lambda figure: base64.b64encode(
        (building / "figures" / f"{figure.name}.png").read_bytes()
    ).decode()
    for name in "report.md", "report.html":
        text = environment.get_template(f"{name}.j2").render(context)
        (building / name).write_text(text, encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    building.rename(folder)

"""The report: sections of tables and figures, as Markdown, as one HTML file, and as separate files."""

import base64
import dataclasses
import pathlib
import shutil

import jinja2

from . import (
    checks,
    claims,
    communication,
    conditions,
    evidence,
    figures_memory,
    figures_servers,
    figures_step,
    figures_time,
    overview,
    style,
    tables_servers,
    tables_study,
    tables_training,
    verdict,
)
from .errors import IO, ReportError, USAGE
from .trace import SCHEMA_VERSION

TEMPLATES = pathlib.Path(__file__).resolve().parent / "templates"


@dataclasses.dataclass
class Section:
    heading: str
    tables: list
    figures: list


def of_each(comparison, function):
    """A figure that is drawn separately for each family."""
    return [function(comparison, family) for family in comparison.drawn]


def sections(comparison):
    """All tables and figures except the first ones, drawn, in the order of the report."""
    several = sum(len(family.pairs()) for family in comparison.drawn) > 1
    found = [
        Section(
            "Which strategy to take",
            [tables_study.t6_decision(comparison), tables_training.t12_text(comparison)],
            [
                figures_memory.f9_pareto(comparison) if several else None,
                figures_time.f14_batch(comparison),
            ],
        ),
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
            "What is sent",
            [communication.t13_communication(comparison)],
            [communication.f16_communication(comparison)],
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
                tables_servers.t11_equal_resources(comparison),
                tables_study.t10_bits(comparison),
            ],
            [
                figures_servers.f6_accuracy(comparison),
                *of_each(comparison, figures_servers.f7_staleness),
                figures_servers.f10_server_load(comparison),
            ],
        ),
        Section(
            "What ran, and what is missing",
            [tables_study.t7_environment(comparison), tables_study.t8_missing(comparison)],
            [],
        ),
    ]
    for section in found:
        section.figures = [figure for figure in section.figures if figure is not None]
        section.tables = [table for table in section.tables if table.rows or table.remark]
    return [section for section in found if section.figures or section.tables]


def first_section(comparison, said):
    """The table and figure below the verdict."""
    family, workers = said.family, said.workers
    return Section(
        "Verdict",
        [overview.t0_overview(comparison, family, workers)],
        [overview.f0_overview(comparison, family, workers)],
    )


def what_ran(comparison):
    """Sentences about the runs that were available."""
    cells, runs = comparison.cells, comparison.study.runs
    complete = cells[cells["state"] == "complete"]
    strategies = complete["variant"].nunique()
    lines = [
        f"{len(runs)} of {len(cells)} runs are complete:"
        f" {', '.join(sorted(set(complete['model'])))} on"
        f" {', '.join(sorted(set(complete['dataset'])))}, {strategies} strateg"
        f"{'y' if strategies == 1 else 'ies'}, up to"
        f" {style.workers_text(int(complete['workers'].max()))}."
    ]
    if len(runs) < len(cells):
        lines[0] += " What is missing, and why, is in T8; only complete runs are compared."
    return lines + [f"MIXED: {mark}." for mark in comparison.study.marks]


def claims_of(comparison):
    """(findings on the paper's claims, findings of the checks, a line that says why there are none, else "")."""
    if evidence.of_the_paper(comparison):
        return claims.findings(comparison), checks.findings(comparison), ""
    ran = sorted({f"{family.key['model']} on {family.key['dataset']}" for family in comparison.families})
    return (
        [],
        [],
        "The published claims of arXiv 2505.12832 are not shown. They are about"
        f" {', '.join(conditions.SHARDING.models)} on {conditions.SHARDING.dataset} and"
        f" {', '.join(conditions.SERVERS.models)} on {conditions.SERVERS.dataset}; what ran here is"
        f" {', '.join(ran)}.",
    )


def provenance(comparison):
    """The sentence below every figure."""
    shas = sorted({str(sha) for sha in comparison.cells["git_sha"].dropna()})
    return (
        f"{comparison.study.name}, {len(comparison.study.runs)} runs, stratagem {', '.join(shas)}, "
        f"trace schema {SCHEMA_VERSION}."
    )


def render(folder, context):
    """report.md and report.html."""
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
        (folder / "figures" / f"{figure.name}.png").read_bytes()
    ).decode()
    for name in "report.md", "report.html":
        text = environment.get_template(f"{name}.j2").render(context)
        (folder / name).write_text(text, encoding="utf-8")


def build(comparison, folder):
    """Writes the report to an empty folder. Returns its first sentence."""
    for part in "figures", "tables":
        (folder / part).mkdir(parents=True)
    said = verdict.verdict(comparison)
    first, made = first_section(comparison, said), sections(comparison)
    for section in [first, *made]:
        for table in section.tables:
            table.write(folder / "tables")
        for figure in section.figures:
            figure.write(folder / "figures")
    found, checked, not_shown = claims_of(comparison)
    context = {
        "study": comparison.study,
        "verdict": said,
        "first": first,
        "ran": what_ran(comparison),
        "sections": made,
        "claims": found,
        "checks": checked,
        "not_shown": not_shown,
        "provenance": provenance(comparison),
    }
    render(folder, context)
    return said.headline


def write(comparison, folder):
    """Writes the report to `folder`, which may contain an earlier one. The new one appears when it is complete.
    Returns its first sentence."""
    if folder.exists() and not (folder / "report.html").exists():
        raise ReportError(
            f"{folder} exists and is no report: name another folder with --output", USAGE
        )
    building = folder.with_name(f".{folder.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    try:
        headline = build(comparison, building)
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    except OSError as problem:
        raise ReportError(
            f"{folder} cannot be written ({problem}): name another folder with --output", IO
        ) from problem
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return headline

"""The report: sections of tables and figures, as Markdown, as one HTML file, and as separate files."""

import base64
import dataclasses
import pathlib
import shutil
from collections.abc import Callable

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
    parts,
    style,
    tables_qualities,
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
    """A part of the report as it was made. `failures` are of tables and figures that could not be."""

    heading: str
    tables: list
    figures: list
    failures: list


@dataclasses.dataclass(frozen=True)
class Each:
    """A figure that is drawn once for each of `places`, such as every family."""

    function: Callable
    places: Callable


@dataclasses.dataclass(frozen=True)
class Chapter:
    """What belongs to a section. A function that finds nothing to show returns a table without rows, or None."""

    heading: str
    tables: tuple
    figures: tuple = ()


def families(comparison):
    return [(family,) for family in comparison.drawn]


CONTENTS = (
    Chapter(
        "Which strategy to take",
        (tables_study.t6_decision, tables_qualities.t15_qualities, tables_training.t12_text),
        (figures_memory.f9_pareto, figures_time.f14_batch),
    ),
    Chapter("Time", (tables_training.t1_time,), (figures_time.f1_time_per_epoch, figures_time.f2_scaling)),
    Chapter(
        "Where the time goes",
        (tables_training.t5_use,),
        (
            figures_time.f15_phases,
            Each(figures_step.f8_timeline, families),
            figures_time.f11_exposed,
            figures_memory.f17_utilisation,
            Each(figures_memory.f4_utilisation, figures_memory.course_places),
        ),
    ),
    Chapter("What is sent", (communication.t13_communication,), (communication.f16_communication,)),
    Chapter(
        "Memory",
        (tables_training.t2_memory, tables_training.t14_device_memory, tables_training.t9_prediction),
        (
            figures_memory.f3_peak_memory,
            figures_memory.f12_prediction,
            Each(figures_memory.f5_memory_over_time, figures_memory.course_places),
            Each(figures_step.f13_strategies, families),
        ),
    ),
    Chapter(
        "Accuracy and parameter servers",
        (
            tables_servers.t3_servers,
            tables_servers.t4_modified,
            tables_servers.t11_equal_resources,
            tables_servers.t16_unequal,
            tables_study.t10_bits,
        ),
        (
            figures_servers.f6_accuracy,
            Each(figures_servers.f7_staleness, families),
            figures_servers.f10_server_load,
        ),
    ),
    Chapter("What ran, and what is missing", (tables_study.t7_environment, tables_study.t8_missing)),
)


def drawn(part, comparison, attempts):
    """The figures of a function or of an Each."""
    if not isinstance(part, Each):
        return [attempts.make(parts.name_of(part), part, comparison)]
    name = parts.name_of(part.function)
    return [
        attempts.make(f"{name} of {place[0].title}", part.function, comparison, *place)
        for place in part.places(comparison)
    ]


def section_of(chapter, comparison):
    """The tables and figures of a chapter that have something to show."""
    attempts = parts.Attempts()
    tables = [attempts.make(parts.name_of(table), table, comparison) for table in chapter.tables]
    figures = [figure for part in chapter.figures for figure in drawn(part, comparison, attempts)]
    return Section(
        chapter.heading,
        [table for table in tables if table is not None and (table.rows or table.remark)],
        [figure for figure in figures if figure is not None],
        attempts.failures,
    )


def sections(comparison):
    """All tables and figures except the first ones, drawn, in the order of the report."""
    made = [section_of(chapter, comparison) for chapter in CONTENTS]
    return [section for section in made if section.figures or section.tables or section.failures]


def first_section(comparison):
    """(verdict, the section with its table and figure)."""
    attempts = parts.Attempts()
    said = attempts.make("the verdict", verdict.verdict, comparison, otherwise=verdict.none)
    place = comparison, said.family, said.workers
    made = [
        attempts.make(parts.name_of(function), function, *place) if said.family else None
        for function in (overview.t0_overview, overview.f0_overview)
    ]
    table, figure = ([part] if part is not None else [] for part in made)
    return said, Section("Verdict", table, figure, attempts.failures)


def write_parts(section, folder):
    """Files of tables and figures; a figure that cannot be drawn becomes a failure of its section."""
    attempts = parts.Attempts()
    for kind in "tables", "figures":
        kept = [part for part in getattr(section, kind) if written(part, folder / kind, attempts)]
        setattr(section, kind, kept)
    section.failures = section.failures + attempts.failures


def written(part, folder, attempts):
    """Whether its files could be made. An OSError is of the folder, not of the part."""
    problems = []

    def write():
        try:
            part.write(folder)
        except OSError as problem:
            problems.append(problem)
        return True

    done = attempts.make(part.name, write, otherwise=False)
    if problems:
        raise problems[0]
    for path in [] if done else folder.glob(f"{part.name}.*"):
        path.unlink()
    return done


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


def claims_of(comparison, attempts):
    """(findings on the paper's claims, findings of the checks, a line that says why there are none, else "")."""
    if evidence.of_the_paper(comparison):
        return (
            attempts.make("the claims", claims.findings, comparison, attempts, otherwise=[]),
            attempts.make("the checks", checks.findings, comparison, attempts, otherwise=[]),
            "",
        )
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
    """Writes the report to an empty folder. Returns its first sentence, and what could not be made."""
    for part in "figures", "tables":
        (folder / part).mkdir(parents=True)
    said, first = first_section(comparison)
    made = sections(comparison)
    for section in [first, *made]:
        write_parts(section, folder)
    attempts = parts.Attempts()
    found, checked, not_shown = claims_of(comparison, attempts)
    context = {
        "study": comparison.study,
        "verdict": said,
        "first": first,
        "ran": attempts.make("what ran", what_ran, comparison, otherwise=[]),
        "sections": made,
        "claims": found,
        "checks": checked,
        "not_shown": not_shown,
        "failures": attempts.failures,
        "provenance": attempts.make("the provenance", provenance, comparison, otherwise=comparison.study.name),
    }
    render(folder, context)
    return said.headline, [failure for section in [first, *made] for failure in section.failures] + attempts.failures


def write(comparison, folder):
    """Writes the report to `folder`, which may contain an earlier one. The new one appears when it is complete.
    Returns its first sentence, and the parts.Failure of each part that could not be made."""
    if folder.exists() and not (folder / "report.html").exists():
        raise ReportError(
            f"{folder} exists and is no report: name another folder with --output", USAGE
        )
    building = folder.with_name(f".{folder.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    try:
        done = build(comparison, building)
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    except OSError as problem:
        raise ReportError(
            f"{folder} cannot be written ({problem}): name another folder with --output", IO
        ) from problem
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return done

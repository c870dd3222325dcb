"""A table with full precision in its CSV, and rounded text everywhere else."""

import csv
import dataclasses
import html
import math
import numbers
import re

from .spread import Spread


NOTHING = "-"  # shown for a cell without a value


@dataclasses.dataclass(frozen=True)
class Column:
    """`title` contains the unit. `digits` after the decimal point; None shows text and whole numbers as they are."""

    title: str
    digits: int = None
    factor: float = 1.0  # from the unit of the value to that of the title
    sign: bool = False
    keep: bool = False  # shown even if all rows have the same value


COMPARISON = Column("comparison")  # the heading of a group of rows, if readers see it


@dataclasses.dataclass(frozen=True)
class Note:
    """A cell with words instead of a value: why there is none, or what it exceeds."""

    text: str


@dataclasses.dataclass
class Table:
    """Rows have one value per column: number, text, Spread, Note, or None for nothing."""

    name: str  # "T1"
    title: str
    columns: list
    rows: list = dataclasses.field(default_factory=list)
    note: str = ""
    remark: str = ""  # shown instead of a table without rows: why there are none

    def add(self, *values):
        assert len(values) == len(self.columns), (self.name, values)
        self.rows.append(values)

    def shown(self):
        return [
            [show(value, column) for value, column in zip(row, self.columns)] for row in self.rows
        ]

    def varying(self):
        """Indices of the columns that readers see: those in which rows differ, and those with `keep`."""
        columns = list(zip(*self.shown()))
        return [
            index
            for index, texts in enumerate(columns)
            if self.columns[index].keep
            or len(set(texts)) > 1
            or len(texts) == 1
            and texts[0] != NOTHING
        ]

    def constants(self):
        """A sentence with the values that are the same in all rows, instead of a column each; "" if there are none."""
        rows, varying = self.shown(), self.varying()
        alike = {
            column.title: rows[0][index]
            for index, column in enumerate(self.columns)
            if rows and index not in varying
        }
        told = [f"{title} {text}" for title, text in alike.items() if text != NOTHING]
        empty = [title for title, text in alike.items() if text == NOTHING]
        sentences = [f"In all rows: {'; '.join(told)}."] if told else []
        sentences += [f"Nothing is known of: {', '.join(empty)}."] if empty else []
        return " ".join(sentences)

    def caption(self):
        """The text below the table, or instead of it."""
        return " ".join(part for part in (self.constants(), self.note) if part) if self.rows else self.remark

    def visible(self):
        """Titles, whether they are numeric, and rows of texts, as readers see them."""
        varying = self.varying()
        return (
            [self.columns[index].title for index in varying],
            [self.columns[index].digits is not None for index in varying],
            [[row[index] for index in varying] for row in self.shown()],
        )

    def markdown(self):
        titles, numeric, rows = self.visible()
        lines = [
            "| " + " | ".join(titles) + " |",
            "| " + " | ".join("---:" if number else "---" for number in numeric) + " |",
        ]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        return "\n".join(lines) + "\n"

    def html(self):
        """Rows of one comparison are below a line with its name."""
        titles, numeric, rows = self.visible()
        grouped = bool(titles) and titles[0] == COMPARISON.title
        first = 1 if grouped else 0

        def cells(tag, texts):
            return "".join(
                f'<{tag}{" class=number" if number else ""}>{html_text(text)}</{tag}>'
                for number, text in zip(numeric[first:], texts[first:])
            )

        lines, group = [], None
        for row in rows:
            if grouped and row[0] != group:
                group = row[0]
                name = html.escape(group)
                lines.append(f'<tr class=group><td colspan={len(titles) - 1}>{name}</td></tr>')
            lines.append(f"<tr>{cells('td', row)}</tr>")
        body, head = "\n".join(lines), cells("th", titles)
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"

    def latex(self):
        titles, numeric, rows = self.visible()
        lines = [f"% {self.name}. {self.title}. {self.constants()}".rstrip()]
        lines += [
            "\\begin{tabular}{" + "".join("r" if number else "l" for number in numeric) + "}",
            "\\toprule",
            " & ".join(map(latex_text, titles)) + " \\\\",
            "\\midrule",
        ]
        lines += [" & ".join(map(latex_text, row)) + " \\\\" for row in rows]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"

    def write(self, folder):
        """NAME.csv, NAME.md and NAME.tex."""
        with open(folder / f"{self.name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(self.precise())
        (folder / f"{self.name}.md").write_text(
            f"**{self.name}. {self.title}**\n\n{self.markdown()}\n{self.caption()}\n", encoding="utf-8"
        )
        (folder / f"{self.name}.tex").write_text(self.latex(), encoding="utf-8")

    def precise(self):
        """Header and rows of the CSV; a Spread has four columns."""
        spreads = [
            any(isinstance(row[i], Spread) for row in self.rows) for i in range(len(self.columns))
        ]
        header = []
        for column, wide in zip(self.columns, spreads):
            header += (
                [f"{column.title}{part}" for part in ("", " least", " greatest", " n")]
                if wide
                else [column.title]
            )
        rows = [header]
        for row in self.rows:
            cells = []
            for value, column, wide in zip(row, self.columns, spreads):
                if isinstance(value, Spread):
                    scaled = value.scaled(column.factor)
                    cells += [plain(scaled.median), plain(scaled.low), plain(scaled.high), value.n]
                else:
                    scaled = value * column.factor if isinstance(value, float) else value
                    cells += [plain(scaled), *[""] * (3 if wide else 0)]
            rows.append(cells)
        return rows


def plain(value):
    if value is None or isinstance(value, float) and math.isnan(value):
        return ""
    if isinstance(value, Note):
        return value.text
    return repr(float(value)) if isinstance(value, float) else str(value)


def show(value, column):
    if isinstance(value, Note):
        return value.text
    if isinstance(value, Spread):
        return show_spread(value, column)
    if value is None or isinstance(value, float) and math.isnan(value):
        return NOTHING
    if isinstance(value, numbers.Real) and column.digits is not None:
        return number_text(value * column.factor, column)
    return str(value)


def show_spread(value, column):
    """Median and, for several runs, their range."""
    if not value.known:
        return NOTHING
    middle, low, high = (
        number_text(part * column.factor, column) for part in (value.median, value.low, value.high)
    )
    return middle if value.n == 1 or low == high else f"{middle} ({low} to {high})"


def number_text(value, column):
    if math.isinf(value):
        return "not reached"
    rounded = round(value, column.digits) + 0.0  # avoids a minus sign before zero
    return f"{rounded:{'+' if column.sign else ''},.{column.digits}f}"


def html_text(text):
    """With the range in small letters, which a page may put below the median."""
    return re.sub(r" (\([^()]+ to [^()]+\))$", r" <small>\1</small>", html.escape(text))


LATEX = {
    "%": "\\%",
    "&": "\\&",
    "_": "\\_",
    "#": "\\#",
    "$": "\\$",
    "\\": "\\textbackslash{}",
    "^": "\\^{}",
    "{": "\\{",
    "}": "\\}",
    "~": "\\~{}",
    ">": "$>$",
    "<": "$<$",
    "×": "$\\times$",
    "≥": "$\\ge$",
    "≤": "$\\le$",
}


def latex_text(text):
    return "".join(LATEX.get(character, character) for character in text)

"""A table with full precision in its CSV and rounded text everywhere else."""

import csv
import dataclasses
import html
import math
import numbers

from .spread import Spread


@dataclasses.dataclass(frozen=True)
class Column:
    """`title` names the unit. `digits` after the point; None shows text as it is, and whole numbers."""

    title: str
    digits: int = None
    factor: float = 1.0  # from the unit of the value to that of the title
    sign: bool = False


@dataclasses.dataclass(frozen=True)
class Note:
    """A cell that has words instead of a value: why there is none, or what it exceeds."""

    text: str


@dataclasses.dataclass
class Table:
    """Rows hold a value per column: number, text, Spread, Note, or None where there is nothing to say."""

    name: str  # "T1"
    title: str
    columns: list
    rows: list = dataclasses.field(default_factory=list)
    note: str = ""

    def add(self, *values):
        assert len(values) == len(self.columns), (self.name, values)
        self.rows.append(values)

    def shown(self):
        return [
            [show(value, column) for value, column in zip(row, self.columns)] for row in self.rows
        ]

    def is_number(self, index):
        return self.columns[index].digits is not None

    def markdown(self):
        lines = [
            "| " + " | ".join(column.title for column in self.columns) + " |",
            "| "
            + " | ".join("---:" if self.is_number(i) else "---" for i in range(len(self.columns)))
            + " |",
        ]
        lines += [
            "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
            for row in self.shown()
        ]
        return "\n".join(lines) + "\n"

    def html(self):
        def cells(tag, texts):
            return "".join(
                f'<{tag}{" class=number" if self.is_number(i) else ""}>{html.escape(text)}</{tag}>'
                for i, text in enumerate(texts)
            )

        body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in self.shown())
        head = cells("th", [column.title for column in self.columns])
        return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"

    def latex(self):
        lines = [
            "\\begin{tabular}{"
            + "".join("r" if self.is_number(i) else "l" for i in range(len(self.columns)))
            + "}",
            "\\toprule",
            " & ".join(latex_text(column.title) for column in self.columns) + " \\\\",
            "\\midrule",
        ]
        lines += [" & ".join(latex_text(cell) for cell in row) + " \\\\" for row in self.shown()]
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"

    def write(self, folder):
        """NAME.csv, NAME.md and NAME.tex."""
        with open(folder / f"{self.name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(self.precise())
        (folder / f"{self.name}.md").write_text(
            f"**{self.name}. {self.title}**\n\n{self.markdown()}\n{self.note}\n", encoding="utf-8"
        )
        (folder / f"{self.name}.tex").write_text(self.latex(), encoding="utf-8")

    def precise(self):
        """Header and rows of the CSV: a Spread takes four columns."""
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
        return "-"
    if isinstance(value, numbers.Real) and column.digits is not None:
        return number_text(value * column.factor, column)
    return str(value)


def show_spread(value, column):
    """Median and, of several runs, their range."""
    if not value.known:
        return "-"
    middle, low, high = (
        number_text(part * column.factor, column) for part in (value.median, value.low, value.high)
    )
    return middle if value.n == 1 or low == high else f"{middle} ({low} to {high})"


def number_text(value, column):
    rounded = round(value, column.digits) + 0.0  # no minus before a zero
    return f"{rounded:{'+' if column.sign else ''},.{column.digits}f}"


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

#!/usr/bin/env python3
"""Results as a Markdown table and as JSON.

  python3 analysis/bench/report.py FILE...     prints the tables of files that a benchmark wrote with --json
"""

import json
import sys
from pathlib import Path


def head(titles):
    """Markdown; the first column is text."""
    return f"| {' | '.join(titles)} |\n| --- |{' ---: |' * (len(titles) - 1)}"


def line(columns, row):
    """`columns` are titles and formats; a value that the row lacks is shown as a dash."""
    cells = []
    for form in columns.values():
        try:
            cells.append(form.format(**row))
        except KeyError:
            cells.append("–")
    return f"| {' | '.join(cells)} |"


def markdown(columns, rows):
    return "\n".join([head(columns), *(line(columns, row) for row in rows)]) + "\n"


class Table:
    """Prints a Markdown table, each row as soon as it is known; rewrites the file of --json with every row."""

    def __init__(self, options, columns, **facts):
        self.columns, self.path, self.facts, self.rows = columns, options.json, {**facts, "columns": columns}, []
        print(json.dumps(facts["machine"]))
        if getattr(options, "control", False):
            print("Control: the second program is on both sides.\n")
        print(head(columns), flush=True)

    def add(self, row):
        self.rows.append(row)
        print(line(self.columns, row), flush=True)
        if self.path:
            Path(self.path).write_text(json.dumps({**self.facts, "rows": self.rows}, indent=1) + "\n", encoding="utf-8")

    def markdown(self):
        """Markdown of all rows."""
        return markdown(self.columns, self.rows)


def main():
    for path in sys.argv[1:]:
        recorded = json.loads(Path(path).read_text(encoding="utf-8"))
        print(markdown(recorded["columns"], recorded["rows"]), end="")


if __name__ == "__main__":
    main()

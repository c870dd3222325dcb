#!/usr/bin/env python3
"""Results as a Markdown table and as JSON.

  python3 analysis/bench/report.py FILE...                     prints files that a benchmark wrote with --json: the
                                                               command that measured, and the table
  python3 analysis/bench/report.py --extremes ratio FILE...    prints the least and the greatest ratio of each file
"""

import argparse
import json
import shlex
import sys
from pathlib import Path

EXTREMES = {"what": "{title}", "least": "{least:.3f} ({least_of})", "greatest": "{greatest:.3f} ({greatest_of})",
            "rows": "{rows}"}


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
        self.columns, self.path, self.rows = columns, options.json, []
        self.facts = {**facts, "command": [shlex.join(["python3", *sys.argv])], "columns": columns}
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


def extremes(recorded, key):
    """The least and the greatest value of a column, each with the first column of its row."""
    name = next(iter(recorded["columns"].values()))
    least, greatest = (choose(recorded["rows"], key=lambda row: row[key]) for choose in (min, max))
    return {"title": recorded["title"], "least": least[key], "least_of": name.format(**least),
            "greatest": greatest[key], "greatest_of": name.format(**greatest), "rows": len(recorded["rows"])}


def origin(machine):
    """A comment that says which program was measured, and where."""
    known = [machine.get(name) for name in ("stratagem", "processor")]
    told = [name for name in known if name not in (None, "not recorded")]
    return [f"# {', '.join(told)}"] if told else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--extremes", metavar="KEY", help="of the rows")
    options = parser.parse_args()
    files = [{"title": path.stem, **json.loads(path.read_text(encoding="utf-8"))} for path in options.files]
    if options.extremes:
        print(markdown(EXTREMES, [extremes(recorded, options.extremes) for recorded in files]), end="")
        return
    for recorded in files:
        if "command" in recorded:
            print("```", *origin(recorded.get("machine", {})), *recorded["command"], "```", sep="\n")
        print(markdown(recorded["columns"], recorded["rows"]), end="")


if __name__ == "__main__":
    main()

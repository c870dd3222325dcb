#!/usr/bin/env python3
"""The report shows the numbers of a run that `stratagem collect` computed, and computes none of them again.

In analysis/stratagem_report, but for trace.py, which reads traces:
- traces are touched by the functions of DRAWS alone, which draw what ranks recorded, and read facts of processes;
- these take no mean, median, sum or the like of what they draw;
- no measure is computed from others of the same run: two names of measures do not meet in one piece of arithmetic;
- no statistic of a measure is taken over cells: collect's groups have median, least and greatest over the seeds.
Tables of a trace and measures are those that lib/trace/schema.cpp and lib/study/measures.cpp declare.
"""

import ast
import re

from common import run

PACKAGE = "analysis/stratagem_report"
READER = "trace.py"
DRAWS = {
    "figures_memory.py": {"sampled", "begin_of", "mark_epochs", "f4_utilisation", "memories_of", "f5_memory_over_time"},
    "figures_step.py": {"f8_timeline"},
    "timeline.py": {"sampled_steps", "choose_step", "spans_of_step", "draw_run"},
    "runs.py": {"facts_of", "read_run", "why_unreadable"},
    "study.py": {"load"},
    "tables_study.py": {"facts_of"},
}
STATISTICS = {"mean", "median", "quantile", "percentile", "average", "sum", "cumsum", "std", "var", "agg", "fmean",
              "value_counts", "spread"}  # fmt: skip
READS = {"read", "read_run", "read_file", "ranks_in"}


def names_in(root, path, pattern):
    file = root / path
    return set(re.findall(pattern, file.read_text(encoding="utf-8"))) if file.exists() else set()


def tables_of(root):
    return {name.removeprefix("/") for name in names_in(root, "lib/trace/schema.cpp", r'"(/[a-z/]+)"')}


def measures_of(root):
    return names_in(root, "lib/study/measures.cpp", r'(?:\{|count\()\s*"(\w+)",\s*"')


def reads_traces(node, tables):
    """x.trace, x["steps"] of a table's name, trace.read(...), or the use of h5py."""
    if isinstance(node, ast.Attribute):
        return node.attr == "trace" or (
            node.attr in READS and isinstance(node.value, ast.Name) and node.value.id == "trace"
        )
    if isinstance(node, ast.Subscript):
        of_rank = isinstance(node.value, ast.Name) and node.value.id in ("rank", "server", "worker")
        return of_rank and isinstance(node.slice, ast.Constant) and node.slice.value in tables
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any(alias.name == "h5py" for alias in node.names) or getattr(node, "module", "") == "h5py"
    return False


def takes_statistics(node):
    """x.mean(), spread(x), or sum(x["column"]): the sum of what is no column is none."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in STATISTICS
    name = getattr(node.func, "id", "")
    return name in STATISTICS and (name != "sum" or columns_in(node))


def columns_in(node):
    """Constants c of all x[c] in it."""
    return {
        inner.slice.value
        for inner in ast.walk(node)
        if isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant)
    }


def mixes_measures(node, measures):
    """Arithmetic on two different measures."""
    if not isinstance(node, ast.BinOp) or isinstance(node.op, ast.Mod):
        return False
    sides = [
        {inner.value for inner in ast.walk(side) if isinstance(inner, ast.Constant) and inner.value in measures}
        for side in (node.left, node.right)
    ]
    return bool(sides[0] and sides[1] and sides[0] != sides[1])


def with_functions(tree):
    """Every node with the name of the outermost function around it, "" where there is none."""
    for child in tree.body:
        inside = child.name if isinstance(child, (ast.FunctionDef, ast.ClassDef)) else ""
        for node in ast.walk(child):
            yield inside, node


def problems_of(path, text, tables, measures):
    allowed = DRAWS.get(path.name, set())
    for inside, node in with_functions(ast.parse(text)):
        place = f"{PACKAGE}/{path.name}:{getattr(node, 'lineno', 0)}: "
        if reads_traces(node, tables) and inside not in allowed:
            yield place + f"{inside or 'the file'} touches traces: take the number from collect's row, or draw in DRAWS"
        if takes_statistics(node) and inside in allowed:
            yield place + f"{inside} takes statistics of what it draws: collect has the number, or should"
        if takes_statistics(node) and columns_in(node) & measures:
            yield place + "takes statistics of a measure over cells: collect's groups have them"
        if mixes_measures(node, measures):
            yield place + "computes with two measures of a run: declare the result in lib/study/measures.cpp"


def find_problems(root):
    tables, measures = tables_of(root), measures_of(root)
    found = []
    for path in sorted((root / PACKAGE).glob("*.py")):
        if path.name != READER:
            found += problems_of(path, path.read_text(encoding="utf-8"), tables, measures)
    return found


if __name__ == "__main__":
    run(find_problems)

#!/usr/bin/env python3
"""No two modules need each other. A module is a header and its source; it needs what either includes. A factory may
know its products: a source may include a header that leads back to the source's own header."""

import re
from collections import defaultdict

from common import run, sources

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def module_of(path):
    return path.rsplit(".", 1)[0]


def reachable(module, needs):
    found, open_ends = set(), [module]
    while open_ends:
        for other in needs[open_ends.pop()] - found:
            found.add(other)
            open_ends.append(other)
    return found


def needs_of(root):
    """{module: those that it needs, but for a factory's products}."""
    by_header, by_source = defaultdict(set), defaultdict(set)
    for path in sources(root, ["lib"], [".hpp", ".cpp"]):
        module = module_of(path.relative_to(root / "lib").as_posix())
        needs = by_header if path.suffix == ".hpp" else by_source
        needs[module] |= {module_of(include) for include in INCLUDE.findall(path.read_text())} - {module}
    for module, others in list(by_source.items()):
        by_source[module] = {other for other in others if module not in reachable(other, by_header)}
    modules = set(by_header) | set(by_source)
    return defaultdict(set, {module: by_header[module] | by_source[module] for module in modules})


def way_back(module, needs):
    """The shortest circle through the module, as a list that begins and ends with it; or nothing."""
    ways = [[module]]
    seen = set()
    for way in ways:
        for other in sorted(needs[way[-1]] - seen):
            if other == module:
                return [*way, module]
            seen.add(other)
            ways.append([*way, other])
    return []


def find_problems(root):
    needs = needs_of(root)
    problems, told = [], set()
    for module in sorted(needs):
        if module not in told and (way := way_back(module, needs)):
            told |= set(way)
            problems.append(f"lib/{module}: a circle: {' -> '.join(way)}")
    return problems


if __name__ == "__main__":
    run(find_problems)

#!/usr/bin/env python3
"""Every header has #pragma once, and includes the standard headers of the names it uses, directly or through other
headers.

With the precompiled header, the compiler would not notice a missing one. The build checks what headers need from each
other, by compiling each of them alone.
"""

import re

from common import run, sources

HEADER_OF = {
    "array": r"std::array\b",
    "atomic": r"std::atomic\b",
    "chrono": r"std::chrono::",
    "condition_variable": r"std::condition_variable\b",
    "cstdint": r"std::u?int(8|16|32|64)_t\b",
    "deque": r"std::deque\b",
    "exception": r"std::exception_ptr\b",
    "filesystem": r"std::filesystem::",
    "functional": r"std::function\b",
    "future": r"std::(future|promise)\b",
    "limits": r"std::numeric_limits\b",
    "map": r"std::(multi)?map\b",
    "memory": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b",
    "mutex": r"std::(mutex|lock_guard|unique_lock|scoped_lock)\b",
    "optional": r"std::(optional|nullopt)\b",
    "set": r"std::(multi)?set\b",
    "span": r"std::span\b",
    "string": r"std::(string|to_string)\b",
    "string_view": r"std::string_view\b",
    "thread": r"std::j?thread\b",
    "tuple": r"std::tuple\b",
    "unordered_map": r"std::unordered_map\b",
    "utility": r"std::(exchange|pair)\b",
    "variant": r"std::variant\b",
    "vector": r"std::vector\b",
}
# A header that guarantees the names of another.
PROMISED = {"string": {"string_view"}, "map": {"utility"}}


def code_of(line):
    return line.split("//")[0]


def standard_headers(root, path, seen):
    """Names of the standard headers that `path` includes, directly or through headers of this project."""
    if path in seen or not path.is_file():
        return set()
    seen.add(path)
    found = set()
    for own, standard in re.findall(r'^\s*#include (?:"(.+)"|<(\w+)>)', path.read_text(), re.MULTILINE):
        if standard:
            found |= {standard} | PROMISED.get(standard, set())
        for folder in ("lib", "ctest", "app"):
            found |= standard_headers(root, root / folder / own, seen) if own else set()
    return found


def header_problems(root, path, text):
    lines = [code_of(line) for line in text.splitlines()]
    if not any(line.strip() == "#pragma once" for line in lines):
        yield f"{path}:1: #pragma once is missing"
    included = standard_headers(root, root / path, set())
    for header, pattern in HEADER_OF.items():
        if header in included:
            continue
        for number, line in enumerate(lines, 1):
            if re.search(pattern, line):
                yield f"{path}:{number}: uses {re.search(pattern, line)[0]} without #include <{header}>"
                break


def find_problems(root):
    problems = []
    for path in sources(root, ["lib", "app", "ctest"], [".hpp"]):
        problems += header_problems(root, path.relative_to(root), path.read_text())
    return problems


if __name__ == "__main__":
    run(find_problems)

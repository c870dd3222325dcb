#!/usr/bin/env python3
"""Loops compiled for wide registers use them: `simd.py LIBRARY...` checks this with objdump."""

import re
import subprocess
import sys

REGISTERS = {"avx2": "ymm", "avx512f": "zmm"}  # by clone
ARITHMETIC = r"\bv(?:(?:add|sub|mul|fmadd\d*)p[sd]|p(?:add|sub|max|and|or|xor|srl|sll)[dq])\b.*%"


def find_problems(disassembly):
    """`disassembly`: the output of `objdump -d`."""
    clones = 0
    for function in re.split(r"\n(?=[0-9a-f]{16} <)", disassembly):
        head = re.match(r"[0-9a-f]{16} <(?P<name>\S+)\.(?P<clone>avx2|avx512f)>:", function)
        if not head:
            continue
        clones += 1
        if not re.search(ARITHMETIC + REGISTERS[head["clone"]], function):
            yield f"{head['name']}: its clone for {head['clone']} computes one element at a time"
    if clones == 0:
        yield "no function has clones"


def main():
    problems = []
    for library in sys.argv[1:]:
        shown = subprocess.run(["objdump", "-d", library], check=True, capture_output=True, text=True).stdout
        problems += [f"{library}: {problem}" for problem in find_problems(shown)]
    print("\n".join(problems) or "nothing found")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

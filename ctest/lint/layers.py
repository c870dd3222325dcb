#!/usr/bin/env python3
"""Includes and CMake links only point down the layers; vendor headers stay in the layer that wraps them."""

import re

from common import run, sources

# What stands directly below each layer; a layer may use everything that can be reached from it.
BELOW = {
    "base": [],
    "keys": ["base"],
    "mpi": ["base"],
    "gpu": ["base"],
    "h5": ["base"],
    "trace": ["mpi", "gpu", "h5"],
    "params": ["trace"],
    "comm": ["trace"],
    "data": ["trace"],
    "model": ["params"],
    "optim": ["keys", "params"],
    "strategy": ["keys", "model", "data", "optim", "params", "comm"],
    "plan": ["strategy"],
    "run_files": ["strategy"],
    "predict": ["plan", "run_files"],
    "offline": ["plan"],
    "train": ["plan", "run_files"],
    "config": ["plan"],
    "study": ["config", "run_files"],
    "app": ["study", "train", "predict", "offline"],
}

# Which folders may include a vendor's headers.
VENDORS = {
    r"mpi\.h": ["lib/mpi"],
    r"(hdf5|H5\w+)\.h": ["lib/h5"],
    r"yaml-cpp/.*": ["lib/config"],
    r"boost/.*": ["app"],
    r"(cuda|cuda_\w+|nvml)\.h|c10/cuda/.*|ATen/cuda/.*": ["lib/gpu/cuda", "lib/comm/nccl"],
    r"nccl\.h": ["lib/comm/nccl"],
    r"zlib\.h": ["lib/data"],
    r"torch/torch\.h": [],  # slow to compile: ATen and torch/csrc/autograd are enough
}

# Targets whose usage must not leak through a layer's interface.
VENDOR_TARGETS = r"MPI::\w+|hdf5::\w+|HDF5::\w+|yaml-cpp\S*|Boost::\w+|CUDA::\w+|NCCL::\w+|ZLIB::\w+"

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')


def reachable(layer):
    found, open_ends = {layer}, [layer]
    while open_ends:
        for below in BELOW[open_ends.pop()]:
            if below not in found:
                found.add(below)
                open_ends.append(below)
    return found


def layer_of(path):
    parts = path.parts
    return parts[1] if parts[0] == "lib" else parts[0]


def include_problems(path, text):
    layer = layer_of(path)
    if layer not in BELOW:
        yield f"{path}:1: lib/{layer} is not a layer known to this lint"
        return
    allowed = reachable(layer)
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        own, system = match.groups()
        if own:
            target = own.split("/")[0]
            if "/" not in own and layer != "app":
                yield f"{path}:{number}: include \"{own}\" by its path from lib/"
            elif target in BELOW and target not in allowed:
                yield f"{path}:{number}: {layer} must not include {target}"
        for pattern, folders in VENDORS.items():
            if re.fullmatch(pattern, own or system) and not any(path.is_relative_to(f) for f in folders):
                yield f"{path}:{number}: {own or system} belongs to {' and '.join(folders) or 'nobody'}"


def link_problems(path, text):
    layer = layer_of(path)
    command = keyword = None
    for number, line in enumerate(text.splitlines(), 1):
        if begun := re.match(r"\s*(\w+)\s*\(", line):
            command = begun[1]
        if command not in ("add_layer", "target_link_libraries"):
            continue
        for word in re.findall(r"[\w:.-]+", line.split("#")[0]):
            if word in ("PUBLIC", "PRIVATE", "INTERFACE", "SOURCES"):
                keyword = word
            elif re.fullmatch(VENDOR_TARGETS, word) and keyword != "PRIVATE" and layer != "app":
                yield f"{path}:{number}: {word} must be linked PRIVATE"
            elif word.startswith("stratagem::") and word[11:] in BELOW and word[11:] not in reachable(layer):
                yield f"{path}:{number}: {layer} must not link {word[11:]}"


def find_problems(root):
    problems = []
    for path in sources(root, ["lib", "app"], [".hpp", ".cpp"]):
        problems += include_problems(path.relative_to(root), path.read_text())
    for path in sources(root, ["lib", "app"], ["CMakeLists.txt"]):
        relative = path.relative_to(root)
        if layer_of(relative) in BELOW:
            problems += link_problems(relative, path.read_text())
    return problems


if __name__ == "__main__":
    run(find_problems)

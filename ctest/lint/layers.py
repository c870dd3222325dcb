#!/usr/bin/env python3
"""Includes and CMake links only point down the layers; vendor headers stay in the layer that wraps them; a strategy is
named by its own folder and the registry alone; no folder is crowded."""

import re

from common import run, sources

# The layers directly below each layer; a layer may use everything that is reachable from it.
BELOW = {
    "base": [],
    "crypto": ["base"],
    "keys": ["base"],
    "mpi": ["base"],
    "gpu": ["base"],
    "h5": ["base"],
    "trace": ["mpi", "gpu", "h5"],
    "params": ["trace"],
    "comm": ["trace"],
    "compress": ["base"],
    "data": ["trace"],
    "model": ["params"],
    "optim": ["keys", "params"],
    "strategy": ["keys", "model", "data", "optim", "params", "comm", "compress", "crypto"],
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
    r"(cuda|cuda_\w+|nvml)\.h|c10/cuda/.*|ATen/cuda/.*": ["lib/gpu/cuda", "lib/optim/cuda", "lib/comm/nccl"],
    r"nccl\.h": ["lib/comm/nccl"],
    r"zlib\.h|jpeglib\.h|png\.h": ["lib/data"],
    r"openssl/.*": ["lib/crypto"],
    r"torch/torch\.h": [],  # slow to compile: ATen and torch/csrc/autograd are enough
}

MOST_FILES = 30  # of a folder

# The only files of lib/ and app/ that name a strategy outside its folder.
REGISTRY = {"lib/strategy/registry.cpp", "lib/strategy/strategy_config.hpp", "lib/strategy/strategy_config.cpp"}

# Targets whose usage must not leak through a layer's interface.
VENDOR_TARGETS = (
    r"MPI::\w+|hdf5::\w+|HDF5::\w+|yaml-cpp\S*|Boost::\w+|CUDA::\w+|NCCL::\w+|ZLIB::\w+|JPEG::\w+|PNG::\w+"
    r"|OpenSSL::\w+"
)

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


def strategies(root):
    """The folders of strategies: those with a configuration."""
    return [config.parent.name for config in root.glob("lib/strategy/*/*_config.hpp")]


def strategy_problems(path, text, names):
    """A strategy is named in its own folder and where all are listed."""
    if str(path) in REGISTRY:
        return
    for name in names:
        if path.is_relative_to(f"lib/strategy/{name}"):
            continue
        of_it = re.compile(rf"\"strategy/{name}/|(?i:\b{name}(Config|Plan|Mode)\b)|\b{name}_of\(")
        for number, line in enumerate(text.splitlines(), 1):
            if match := of_it.search(line.split("//")[0]):
                yield f"{path}:{number}: {match[0]} belongs to lib/strategy/{name}; say it through the registry"


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


def crowded(root):
    """Folders of more files than a reader can overlook."""
    for folder in [root / "app", *root.glob("lib/**/")]:
        files = [file for file in folder.glob("*") if file.is_file()]
        if len(files) > MOST_FILES:
            yield f"{folder.relative_to(root)}: {len(files)} files, of at most {MOST_FILES}; make rooms of it"


def find_problems(root):
    problems = list(crowded(root))
    names = strategies(root)
    for path in sources(root, ["lib", "app"], [".hpp", ".cpp"]):
        text = path.read_text()
        problems += include_problems(path.relative_to(root), text)
        problems += strategy_problems(path.relative_to(root), text, names)
    for path in sources(root, ["lib", "app"], ["CMakeLists.txt"]):
        relative = path.relative_to(root)
        if layer_of(relative) in BELOW:
            problems += link_problems(relative, path.read_text())
    return problems


if __name__ == "__main__":
    run(find_problems)

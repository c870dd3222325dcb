"""A run directory: configuration, manifest, outcome, trace, and the numbers that the program computed of it."""

import dataclasses
import json
import pathlib
import re

from . import trace
from .errors import BAD_DATA, ReportError
from .yardstick import ACCURACY

# Keys of a configuration that do not change what a run computes, or in which cells of a group differ. Digests tell what
# a file held.
BESIDE_THE_POINT = re.compile(
    r"run\.(name|seed|out|ranks|save_weights)|data\.(root|path)|model\.file|trace\..*|comm\..*|checkpoint\..*|"
    r"watchdog\..*|expect\..*"
)
# Facts of a manifest: digests of what was read.
DIGESTS = ("dataset", "graph", "initial weights")
# What tables say of a run's surroundings, by section of its manifest.
NAMED_IN_MANIFEST = {
    "build": ("version", "git_sha", "git_dirty", "flavour", "compiler", "build_type", "libtorch"),
    "loaded": ("mpi", "hdf5"),
}


@dataclasses.dataclass
class Run:
    """The contents of a run directory."""

    path: pathlib.Path
    config: dict  # "section.key" -> value
    manifest: dict
    outcome: dict
    trace: trace.RunTrace
    row: dict  # the numbers that the program computed
    facts: dict  # see facts_of


def parse_config(text):
    """A configuration printed by the program, as {"section.key": value}. It has two levels and one value per line."""
    config, section = {}, ""
    for line in text.splitlines():
        name, _, value = line.strip().partition(": ")
        if line.startswith(" "):
            config[f"{section}.{name}"] = parse_value(value)
        elif value:
            config[name] = parse_value(value)
        else:
            section = name.rstrip(":")
    return config


def parse_value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def read_json(path):
    """{} if there is none, a truncated one, or no object."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def variant_of(config):
    """The name of a strategy in tables, for runs outside of a study."""
    name = config["strategy.name"]
    if name == "fsdp":
        label = {"optimizer": "zero1", "gradients": "zero2", "full": "fsdp"}[
            config["strategy.shard"]
        ]
    elif name == "ps":
        mode = config["strategy.mode"].replace("_", "-")
        label = f"ps-{mode}" + (str(config.get("strategy.staleness", 2)) if mode == "ssp" else "")
    else:
        label = name
    return label + ("" if config.get("strategy.overlap", True) else "-no-overlap")


def settled_of(config):
    """The part of a configuration that decides what a run computes, without its seed."""
    return {key: value for key, value in config.items() if not BESIDE_THE_POINT.fullmatch(key)}


def recipe_of(config, manifest):
    """What two runs must share for synchronous strategies to give the same bits, as text."""
    shared = {
        key: value for key, value in settled_of(config).items() if not key.startswith("strategy.")
    }
    read = [manifest.get("facts", {}).get(name) for name in DIGESTS]
    return json.dumps([sorted(shared.items()), read, config.get("strategy.micro_batches", 1)])


def cell_of_run(path, config, manifest):
    """What cells.csv would say of a run that is in none."""
    plan, servers = manifest["plan"], config.get("strategy.servers", 0)
    ranks = len(manifest["ranks"])
    return {
        "cell": path.name,
        "group": "",  # the program tells it
        "part": "",
        "model": config["model.name"],
        "dataset": config["data.dataset"],
        "variant": variant_of(config),
        "strategy": config["strategy.name"],
        "workers": ranks - servers,
        "servers": servers,
        "ranks": ranks,
        "seed": config["run.seed"],
        "global_batch": plan["global_batch"],
        "input_size": config["data.input_size"],
        "precision": config["precision.compute"],
        "epochs": config["run.epochs"],
        "max_steps": config["run.max_steps"],
    }


def facts_of(config, manifest, traced, row):
    """{name: number or text} of a run, in addition to its measures."""
    first, dataset = traced.ranks[0].process, manifest["dataset"]
    return {
        "parameters": int(manifest["model"]["parameters"]),
        "planned_steps": int(manifest["plan"]["total_steps"]),
        "images": int(dataset["train_images"]),
        "counted": dataset.get("labels", ACCURACY.counted),
        "test_images": float(dataset.get("test_images", "nan")),
        "digest": row["digest"],
        "recipe": recipe_of(config, manifest),
        "sharers": max(len(traced.workers), int(config.get("strategy.emulate_ranks", 1))),
        "limited": row["reason"] == "time_limit",
        "git_sha": row["git_sha"],
        "device": first["device"],
        "damaged": bool(traced.remarks),
        "gpu": manifest["build"]["flavour"] != "cpu" and config.get("run.device") != "cpu",
        "slow": float(config.get("experiment.slow", 1)) if config.get("experiment.slow_worker", -1) >= 0 else 1.0,
        "host": first["host"],
        "threads": first["threads"],
    }


def check(config, manifest):
    """They have what tables and claims tell of beside the facts."""
    variant_of(config)
    for section, names in NAMED_IN_MANIFEST.items():
        for name in names:
            str(manifest[section][name])
    for name in "name", "fingerprint":
        str(manifest["dataset"][name])
    len(manifest["ranks"][0]["cores"])


def read_run(path, row):
    """ReportError if a part of it is missing or is not what the program writes."""
    manifest = read_json(path / "manifest.json")
    if not manifest:
        raise ReportError(f"{path / 'manifest.json'} is missing or damaged", BAD_DATA)
    try:
        config = parse_config((path / "config.yaml").read_text(encoding="utf-8"))
        traced = trace.read_run(path)
        check(config, manifest)
        facts = facts_of(config, manifest, traced, row)
    except OSError as problem:
        raise ReportError(f"{path} cannot be read: {problem}", BAD_DATA) from problem
    except (KeyError, IndexError, TypeError, ValueError) as problem:
        told = f"{type(problem).__name__}: {problem}"
        raise ReportError(
            f"{path} has no manifest.json, config.yaml or row of `collect` as the program writes them ({told})",
            BAD_DATA,
        ) from problem
    return Run(path, config, manifest, read_json(path / "outcome.json"), traced, row, facts)


def why_unreadable(path):
    """Why the program left a run out."""
    try:
        trace.read_run(path)
    except ReportError as problem:
        return str(problem)
    return "stratagem collect leaves it out"

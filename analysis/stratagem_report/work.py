"""What a run trains, and on what: what tells models and data apart that have the same name."""

import pathlib

# Settings that make another model, or another data set, of the same name.
SHAPES = {
    "model": ("layers", "heads", "width", "patch", "context", "experts", "tie", "num_classes"),
    "data": ("seq_len",),
}
FILES = {"model": "file", "data": "path"}
COLUMNS = {"model": "model", "dataset": "data"}  # of cells -> section of the configuration
DIGITS = 6


def path_of(section, run):
    return str(run.config.get(f"{section}.{FILES[section]}", ""))


def digest_of(section, run):
    """Of what the run read from the user's files, wherever those were; empty without such files."""
    if not path_of(section, run):
        return ""
    if section == "data":
        return run.manifest["dataset"]["fingerprint"]
    facts = run.manifest.get("facts", {})
    names = ("graph",) if run.config.get("model.weights") else ("graph", "initial weights")
    return "-".join(str(facts.get(name, ""))[:DIGITS] for name in names)


def contents_of(section, runs):
    """Texts that are equal for runs which read the same."""
    parts = {tuple(run.config.get(f"data.{key}") for key in ("subset", "holdout")) for run in runs}
    if section == "data" and len(parts) > 1:  # parts of the same data have different digests
        return [path_of(section, run) for run in runs]
    return [digest_of(section, run) for run in runs]


def replaced(runs):
    """[sentence] for files of the user's that held something else when another cell read them."""
    first, told = {}, []
    for cell, run in runs.items():
        config, facts = run.config, run.manifest.get("facts", {})
        parts = tuple(str(config.get(f"data.{key}")) for key in ("subset", "holdout", "seq_len"))
        for key, content in (
            (("data.path", path_of("data", run), parts), digest_of("data", run)),
            (("model.file", path_of("model", run), config.get("model.weights")), digest_of("model", run)),
            (("model.weights", config.get("model.weights"), config.get("model.head")), facts.get("initial weights")),
        ):
            other, before = first.setdefault(key, (cell, content))
            if key[1] and before != content:
                told.append(f"{other} and {cell} read other content from {key[0]}: {key[1]}")
    return told


def tails(paths):
    """{path: its shortest end that no other path has}."""
    parts = {path: pathlib.PurePath(path).parts for path in paths}
    for length in range(1, max(map(len, parts.values())) + 1):
        ends = {path: str(pathlib.PurePath(*of[-length:])) for path, of in parts.items()}
        if len(set(ends.values())) == len(ends):
            return ends
    return {path: path for path in paths}


def words_for(section, runs):
    """[what to add to the name of each run's model or data set]: where they differ, in what."""
    words = [""] * len(runs)
    for key in SHAPES[section]:
        values = [run.config.get(f"{section}.{key}") for run in runs]
        if len(set(map(str, values))) > 1:
            words = [f"{word} {key}={value}" for word, value in zip(words, values)]
    contents, paths = contents_of(section, runs), [path_of(section, run) for run in runs]
    if len(set(contents)) == 1:
        return words
    one_each = len(set(zip(paths, contents))) == len(set(paths)) == len(set(contents))
    told = tails(sorted(set(paths))) if one_each else {}
    return [
        f"{word} {FILES[section]}={told.get(path, content[: 2 * DIGITS])}"
        for word, path, content in zip(words, paths, contents)
    ]


def tell_apart(cells, runs):
    """Adds to the names of models and data sets of complete cells what differs between those of the same name: they
    are other work, and not another strategy."""
    complete = cells[cells["cell"].isin(list(runs))]
    for column, section in COLUMNS.items():
        for _, alike in complete.groupby(column, sort=False):
            words = words_for(section, [runs[cell] for cell in alike["cell"]])
            cells.loc[alike.index, column] += words

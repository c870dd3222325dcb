#!/usr/bin/env python3
"""stratagem's DDP against PyTorch's DDP on Gloo, both training the same GPT on text, at the same time.

  python3 analysis/bench/gpt_vs_torch.py                                a small GPT of characters, as nanoGPT's on CPUs
  python3 analysis/bench/gpt_vs_torch.py --size gpt2 --precision bf16   GPT-2, with sequences of 64 tokens
  ... --control     compares the opponent with itself: the smallest difference that the method (see paired.py) can show

Every byte of the text is a token. Both use AdamW, clip gradients, and keep freed heap pages. stratagem takes sequences
one after the other, shuffled; the opponent draws them from random places. A ratio above 1 means that stratagem is
faster. Needs Python with torch, numpy and h5py, and `build/stratagem`.
"""

import argparse
import functools
import importlib.metadata
import os
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

import paired
import programs
import report

SIZES = {
    "nano": {"layers": 4, "heads": 4, "width": 128, "seq_len": 64, "batch": 12, "vocabulary": 256},
    "gpt2": {"layers": 12, "heads": 12, "width": 768, "seq_len": 64, "batch": 8, "vocabulary": 50257},
    "gpt2-1024": {"layers": 12, "heads": 12, "width": 768, "seq_len": 1024, "batch": 16, "vocabulary": 50304},
}
OPPONENTS = {"eager": [], "graph": ["--graph"], "compiled": ["--graph", "--compile"]}
MEANINGS = {"layers": "of the transformer", "heads": "of attention", "width": "of the stream through the layers",
            "seq_len": "tokens of a sequence, and the longest that the model takes",
            "batch": "sequences per step of all ranks together", "vocabulary": "tokens that the model tells apart"}
TEXT_BYTES = 1_000_000

CONFIG = """\
schema: 1
run: {{name: bench, device: {device}, ranks: {ranks}, threads: {threads}, epochs: 100000, evaluate_every: 0}}
data: {{path: "{text}", seq_len: {seq_len}, global_batch: {batch}}}
model: {{name: gpt2, layers: {layers}, heads: {heads}, width: {width}, context: {seq_len}, num_classes: {vocabulary}}}
optimizer: {{name: adamw, lr: 1e-3, beta2: 0.99, weight_decay: 0.1, decay: weights, clip_norm: 1}}
precision: {{compute: {precision}}}
strategy: {{name: ddp}}
comm: {{timeout_s: 3600}}
trace: {{spans_every: 0, device_sample_hz: 0}}
"""


class Stratagem(programs.Stratagem):
    def __init__(self, folder, options, cell):
        programs.Program.__init__(self, folder)
        config = folder / "config.yaml"
        config.write_text(CONFIG.format(**{**vars(options), "ranks": cell.ranks}), encoding="utf-8")
        self.program = os.path.realpath(options.program)
        self.traces = [folder / f"run/trace/a0/rank-{rank:04}.h5" for rank in range(cell.ranks)]
        self.start([*programs.launch(options, cell.ranks), "run", config, "--out", folder / "run", "--progress",
                    "none"])


def start_opponent(options, cell):
    """Starts PyTorch in a folder."""
    shared = argparse.Namespace(**{**vars(options), "data": options.text, "size": options.seq_len})
    shape = [word for name in ("layers", "heads", "width", "vocabulary")
             for word in (f"--{name}", str(getattr(options, name)))]
    return functools.partial(programs.Torch, options=shared, cell=cell, script="torch_gpt.py",
                             script_arguments=shape + OPPONENTS[options.opponent])


def write_text(path):
    """Lines of made-up words, of which some are much more frequent than others: always the same."""
    source = random.Random(0)
    words = ["".join(source.choices("etaoinshrdlucmfwypvbgkjqxz", range(26, 0, -1), k=source.randint(2, 9)))
             for _ in range(2000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    lines, length = [], 0
    while length < TEXT_BYTES:
        lines.append(" ".join(source.choices(words, weights, k=12)).capitalize() + ".\n")
        length += len(lines[-1])
    path.write_text("".join(lines)[:TEXT_BYTES], encoding="ascii")


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="any file; default: made-up words")
    parser.add_argument("--size", nargs="+", choices=SIZES, default=["nano"], help="decides the following six")
    for name, meaning in MEANINGS.items():
        default = ", ".join(f"{size} {shape[name]}" for size, shape in SIZES.items())
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help=f"{meaning}; {default}")
    parser.add_argument("--precision", nargs="+", choices=["fp32", "tf32", "bf16"], default=["fp32"])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--opponents", nargs="+", choices=OPPONENTS, default=["eager"],
                        help="on a GPU, PyTorch also keeps its whole step as a CUDA graph, and compiles it")
    parser.add_argument("--ranks", nargs="+", type=int, default=[2])
    parser.add_argument("--threads", type=int, default=1, help="per rank")
    parser.add_argument("--program", default=str(programs.HERE.parent.parent / "build/stratagem"))
    parser.add_argument("--launcher", default="mpirun --bind-to none -n {ranks}")
    parser.add_argument("--json", help="also write everything to this file")
    paired.add_pairing(parser)
    return parser.parse_args()


def trainings(options):
    """For each row, its options and its cell."""
    for size in options.size:
        shape = {name: getattr(options, name) or value for name, value in SIZES[size].items()}
        for precision in options.precision:
            for ranks in options.ranks:
                for opponent in options.opponents:
                    of_row = argparse.Namespace(**{**vars(options), **shape, "precision": precision,
                                                   "opponent": opponent})
                    yield of_row, programs.Cell(size, ranks, of_row.batch // ranks)


def check(options):
    """Ends the program if both sides could not do the same work."""
    text = np.memmap(options.text, np.uint8, "r")
    for of_row, cell in trainings(options):
        if of_row.batch % cell.ranks != 0:
            sys.exit(f"a batch of {of_row.batch} cannot be divided among {cell.ranks} ranks")
        if of_row.width % of_row.heads != 0:
            sys.exit(f"{of_row.heads} heads cannot share a width of {of_row.width}")
        if text.max() >= of_row.vocabulary:
            sys.exit(f"{options.text}: has a byte {text.max()}, which a vocabulary of {of_row.vocabulary} lacks")
        if len(text) <= of_row.seq_len:
            sys.exit(f"{options.text}: {len(text)} bytes are too few for a sequence of {of_row.seq_len}")


def row_of(options, cell):
    row = paired.measure(options, cell, functools.partial(Stratagem, options=options, cell=cell),
                         start_opponent(options, cell))
    for side in ("ours", "theirs"):
        row[f"{side}_tokens_per_s"] = options.seq_len * row.pop(f"{side}_images_per_s")  # an image is a sequence here
    ratios = [theirs / ours for start in row["step_times_s"] for ours, theirs in start]
    first, third = np.quantile(ratios, [0.25, 0.75])
    shape = {name: getattr(options, name) for name in SIZES[cell.model]}
    return {**row, **shape, "precision": options.precision, "opponent": options.opponent,
            "ratio_quartiles": [float(first), float(third)]}


def columns_of():
    speed = {title: form for title, form in paired.speed_columns().items() if "images" not in title}
    return {"size": "{model}", "layers, heads, width": "{layers}, {heads}, {width}", "precision": "{precision}",
            "opponent": "{opponent}",
            "ranks": "{ranks}", "sequences/rank": "{batch_per_rank}", "tokens/sequence": "{seq_len}",
            "ours tokens/s": "{ours_tokens_per_s:.0f}", "theirs tokens/s": "{theirs_tokens_per_s:.0f}",
            "ratio": speed.pop("ratio"), "quartiles": "{ratio_quartiles[0]:.3f} to {ratio_quartiles[1]:.3f}", **speed}


def main():
    options = options_of()
    programs.MODELS.update({size: size for size in SIZES})
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as name:
        if options.text is None:
            options.text = Path(name) / "words.txt"
            write_text(options.text)
        options.text = options.text.resolve()
        check(options)
        facts = programs.machine(options, torch=importlib.metadata.version("torch"))
        table = report.Table(options, columns_of(), machine=facts)
        for of_row, cell in trainings(options):
            table.add(row_of(of_row, cell))


if __name__ == "__main__":
    main()

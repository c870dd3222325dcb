#!/usr/bin/env python3
"""stratagem's DDP against PyTorch's DDP on Gloo, with the same work at the same time.

  python3 analysis/bench/ddp_vs_torch.py --data $STRATAGEM_DATA/cifar-10-batches-bin --models resnet50
  ... --control     compares the opponent with itself: the smallest difference that the method (see paired.py) can show

A ratio above 1 means that stratagem is faster. Needs Python with torch, torchvision, numpy and h5py, and
`build/stratagem`.
"""

import functools
import importlib.metadata

import paired
import programs
import report

OPPONENTS = {"default": [], "strong": ["--strong"], "compiled": ["--strong", "--compile"]}


def main():
    parser = paired.arguments(__doc__, ranks=[2])
    parser.add_argument("--opponents", nargs="+", choices=OPPONENTS, default=["strong", "default"])
    options = parser.parse_args()

    columns = {"model": "{model}", "images/rank": "{batch_per_rank}", "ranks": "{ranks}", "opponent": "{opponent}",
               **paired.speed_columns()}
    facts = programs.machine(options, torch=importlib.metadata.version("torch"))
    table = report.Table(options, columns, machine=facts)
    for cell in programs.cells(options):
        ours = functools.partial(programs.Stratagem, options=options, cell=cell, strategy="{name: ddp}")
        for opponent in options.opponents:
            theirs = functools.partial(programs.Torch, options=options, cell=cell, script="torch_ddp.py",
                                       script_arguments=OPPONENTS[opponent])
            row = paired.measure(options, cell, ours, theirs)
            table.add({**row, "opponent": opponent})


if __name__ == "__main__":
    main()

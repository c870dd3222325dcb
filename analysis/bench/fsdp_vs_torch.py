#!/usr/bin/env python3
"""stratagem's FSDP against PyTorch's FSDP2 on Gloo (which keeps freed heap pages), with the same work at the same time.

  python3 analysis/bench/fsdp_vs_torch.py --data $STRATAGEM_DATA/cifar-10-batches-bin --models resnet50
  ... --control     compares FSDP2 with itself: the smallest difference that the method (see paired.py) can show

`--units` says how FSDP2 is divided: into blocks of the model, into units of 4 MiB as stratagem's, or not at all. A
ratio above 1 means that stratagem is faster. Needs Python with torch, torchvision, numpy and h5py, and
`build/stratagem`.
"""

import functools
import importlib.metadata

import paired
import programs
import report


def main():
    parser = paired.arguments(__doc__, ranks=[2])
    parser.add_argument("--fsdp", default="shard: full", help="options of the strategy, as YAML")
    parser.add_argument("--units", nargs="+", choices=["blocks", "equal", "one"], default=["blocks", "equal", "one"],
                        help="of FSDP2")
    options = parser.parse_args()

    strategy = f"{{name: fsdp, {options.fsdp}}}"
    columns = {"model": "{model}", "ranks": "{ranks}", "images/rank": "{batch_per_rank}", "FSDP2's units": "{units}",
               **paired.speed_columns()}
    facts = programs.machine(options, torch=importlib.metadata.version("torch"), strategy=strategy)
    table = report.Table(options, columns, machine=facts)
    for cell in programs.cells(options):
        ours = functools.partial(programs.Stratagem, options=options, cell=cell, strategy=strategy)
        for units in options.units:
            theirs = functools.partial(programs.Torch, options=options, cell=cell, script="torch_fsdp.py",
                                       script_arguments=["--units", units])
            table.add({**paired.measure(options, cell, ours, theirs), "units": units})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""DDP with coded gradients against PyTorch's DDP with its hooks, two ranks on two nodes that a link of a given rate
joins: the same model, images and link.

  python3 analysis/bench/torch_links.py --data $STRATAGEM_DATA/cifar-10-batches-bin --rates 1gbit

Both nodes are inside this machine (linked_nodes.py): needs root, and Python with torch, torchvision, numpy and h5py.
The two programs take turns, each started `--pairs` times; of each start the median step counts, without the first ones.
A ratio above 1 means that stratagem is faster.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compressed_links
import linked_nodes
import programs
import report

HERE = Path(__file__).resolve().parent
# A rank of mpirun becomes one of torch.distributed.
RANK = ("RANK=$OMPI_COMM_WORLD_RANK WORLD_SIZE=$OMPI_COMM_WORLD_SIZE MASTER_ADDR=" + linked_nodes.NODES["left"]
        + " MASTER_PORT=29511 GLOO_SOCKET_IFNAME=eth0 exec \"$0\" \"$@\" --log \"$LOG.$OMPI_COMM_WORLD_RANK\"")


def torch_step(options, nodes, hook):
    """Median time of a step of PyTorch [s]."""
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as name:
        log = Path(name) / "log"
        words = [sys.executable, HERE / "torch_ddp.py", "--strong", "--model", options.model, "--data", options.data,
                 "--batch", options.images // 2]
        words += [] if hook == "none" else ["--hook", hook]
        command = nodes.mpirun(1, ["-x", f"LOG={log}", "bash", "-c", RANK, *words])
        with open(Path(name) / "said", "w+", encoding="utf-8") as said:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            try:
                steps = wait_for_steps(options, process, Path(f"{log}.0"), said)
            finally:
                process.terminate()
                process.wait()
    return statistics.median(1e-9 * (end - begin) for begin, end in steps[options.warm_up:])


def wait_for_steps(options, process, log, said):
    deadline = time.monotonic() + options.timeout
    while len(steps := programs.logged_steps(log)) < options.steps:
        if process.poll() is not None or time.monotonic() > deadline:
            said.seek(0)
            raise RuntimeError(f"PyTorch made {len(steps)} steps: {said.read()[-2000:]}")
        time.sleep(0.2)
    return steps[: options.steps]


def main():
    parser = linked_nodes.arguments(__doc__, pairs=5)
    parser.add_argument("--data", required=True, help="cifar-10-batches-bin")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--images", type=int, default=32, help="of all ranks together")
    parser.add_argument("--rates", nargs="+", default=["1gbit"])
    parser.add_argument("--ways", nargs="+", default=["none:none", "bf16:fp16", "int8:fp16", "low_rank:fp16"],
                        metavar="CODE:HOOK", help="strategy.compression of ours, and PyTorch's hook")
    parser.add_argument("--steps", type=int, default=12, help="of each start")
    parser.add_argument("--warm-up", type=int, default=4, help="steps that do not count")
    options = parser.parse_args()
    options.dataset = "cifar10"
    columns = {"model": "{model}", "code": "{code}", "PyTorch's hook": "{hook}", "link": "{rate}",
               "step ms": "{ours_ms:.1f}", "PyTorch ms": "{theirs_ms:.1f}", **linked_nodes.RATIO_COLUMNS}
    table = report.Table(options, columns, machine=programs.machine(options))
    with linked_nodes.LinkedNodes() as nodes:
        for rate in options.rates:
            nodes.rate(rate)
            for code, hook in (way.split(":") for way in options.ways):
                steps = {"ours": lambda: compressed_links.step_of(options, nodes, code),
                         "theirs": lambda: torch_step(options, nodes, hook)}
                found = linked_nodes.compare(options, "ours", "theirs", lambda way: steps[way]())
                table.add({"model": options.model, "rate": rate, "code": code, "hook": hook, **found})


if __name__ == "__main__":
    main()

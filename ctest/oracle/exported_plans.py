"""What `plan` says about exported models, without Python: parameters, gradients and state to the byte, and the peak of
a rank within 5 % of what was measured, for DDP and ZeRO-3 on two ranks."""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import torch

import exported

CONFIG = """\
schema: 1
run: {{name: net, threads: 1, max_steps: 3, evaluate_every: 0}}
data: {{dataset: synthetic-shapes, input_size: {pixels}, global_batch: 32, subset: 96}}
model: {{file: {name}.pt2}}
strategy: {{name: ddp}}
"""
FAMILIES = "resnet18", "mobilenet_v2", "densenet121", "shufflenet_v2_x0_5", "convnext_tiny", "swin_t"
STRATEGIES = {"ddp": [], "zero3": ["-s", "strategy.name=fsdp"]}
RANKS, NEAR = 2, 0.05
EXACT = "parameters", "gradients", "optimizer", "buffers"


def run(folder, *words):
    command = [str(word) for word in words]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def measured(options, folder, settings, out):
    """What `collect` says of a run."""
    run(folder, options.mpiexec, "--bind-to", "none", "-n", RANKS, options.program, "run", "net.yaml", *settings, "-q",
        "--out", out)
    (cell,) = json.loads(run(folder, options.program, "collect", out, "--format", "json", "-q"))["cells"]
    return cell


def check(options, name, folder):
    make, shape = exported.MODELS[name]
    torch.manual_seed(1)
    exported.export(make().train(), torch.randn(2, *shape), folder / f"{name}.pt2")
    (folder / "net.yaml").write_text(CONFIG.format(pixels=shape[-1], name=name))
    for strategy, settings in STRATEGIES.items():
        plan = json.loads(run(folder, options.program, "plan", "net.yaml", *settings, "--ranks", RANKS, "--json"))
        cell = measured(options, folder, settings, folder / f"{name}-{strategy}")
        found, planned = cell["worker_peak_without_batches_B"], plan["peak_B"]
        print(f"{name:20} {strategy:6} peak {planned / 2**20:8.1f} MiB planned, {found / 2**20:8.1f} measured,"
              f" {100 * (planned / found - 1):+.1f} %", flush=True)
        assert abs(planned / found - 1) <= NEAR
        for kind in EXACT:
            assert plan["memory_B"][kind] == cell[f"peak_{kind}_B"], (kind, plan["memory_B"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--models", nargs="+", choices=FAMILIES, default=FAMILIES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models:
            check(options, name, Path(folder))


if __name__ == "__main__":
    main()

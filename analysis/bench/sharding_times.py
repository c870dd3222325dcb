#!/usr/bin/env python3
"""Predicted time of an FSDP step over that of a DDP step, from published figures of a node: which links would make FSDP
several times slower?

  python3 analysis/bench/sharding_times.py --json analysis/bench/data/sharding_times.json

The global batch is the study's on up to 4 ranks (128), and 32 images per rank beyond. `links` divides the speed of all
links, in and between nodes: 1 is NVLink and one HDR adapter per node, 12 about PCIe and 16 Gb/s. The calibration is
computed, not measured, so all times are predictions. One rank communicates nothing. Needs Python with numpy and h5py,
and `build/stratagem`.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import programs
import report

MODELS = ("vgg16", "efficientnetv2_l", "convnext_l")
RANKS = (1, 2, 4, 8, 16, 32, 64)
LINKS = (1, 12, 100, 1000)
ROOT = programs.HERE.parent.parent
STUDY_BATCH, IMAGES_PER_RANK = 128, 32


def slower(calibration, links):
    """The calibration of a machine whose links take so many times as long; copies of one rank stay."""
    changed = json.loads(json.dumps(calibration))
    for operation in changed["operations"]:
        if operation["ranks"] > 1:
            for point in operation["time"]:
                point["seconds"] *= links
    return changed


class Planner:
    def __init__(self, options, folder):
        self.options, self.file = options, pathlib.Path(folder) / "calibration.json"

    def step(self, model, ranks, strategy):
        """Seconds of a predicted step."""
        batch = max(STUDY_BATCH, IMAGES_PER_RANK * ranks)
        settings = [f"model.name={model}", f"data.global_batch={batch}", f"data.input_size={self.options.size}",
                    f"precision.compute={self.options.precision}", f"strategy.name={strategy}"]
        words = [self.options.program, "plan", self.options.config, "--ranks", str(ranks), "--calibration", self.file,
                 "--no-activations", "--json", *programs.set_words(settings)]
        told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        return told["time"]["step_s"]

    def row(self, calibration, model, links):
        self.file.write_text(json.dumps(slower(calibration, links)), encoding="utf-8")
        row = {"model": model, "links": links}
        for ranks in RANKS:
            row |= {f"{name}_{ranks}_s": self.step(model, ranks, name) for name in ("ddp", "fsdp")}
            row[f"ratio_{ranks}"] = row[f"fsdp_{ranks}_s"] / row[f"ddp_{ranks}_s"]
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "build/stratagem"))
    parser.add_argument("--config", default=str(ROOT / "inputs/smoke/cifar-vgg16-ddp.yaml"))
    parser.add_argument("--calibration", type=pathlib.Path, default=ROOT / "inputs/calibrations/a100-sxm4.json")
    parser.add_argument("--size", type=int, default=224, help="of the images [pixels]")
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--json", help="also write everything to this file")
    options = parser.parse_args()
    calibration = json.loads(options.calibration.read_text(encoding="utf-8"))
    columns = {"model": "{model}", "links": "{links}",
               **{f"{ranks} rank{'s' if ranks > 1 else ''}": f"{{ratio_{ranks}:.2f}}" for ranks in RANKS}}
    facts = {"calibration": options.calibration.name, "size": options.size, "precision": options.precision}
    with tempfile.TemporaryDirectory() as folder:
        planner = Planner(options, folder)
        table = report.Table(options, columns, machine=facts)
        for model in MODELS:
            for links in LINKS:
                table.add(planner.row(calibration, model, links))


if __name__ == "__main__":
    main()

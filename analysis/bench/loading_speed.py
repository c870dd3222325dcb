#!/usr/bin/env python3
"""Photographs in folders become a model's input: stratagem's threads against PyTorch's DataLoader and DALI on CPUs.

  python3 analysis/bench/loading_speed.py                      photographs of 500 x 375 pixels, made for this
  python3 analysis/bench/loading_speed.py --folder flowers     your own
  python3 analysis/bench/loading_speed.py --dali               against DALI, too, if Python can import it

Both take a random part of every JPEG, scale it to 224 pixels with antialiasing, mirror and normalise it, in batches of
32, with as many threads as the DataLoader has workers. The opponents are torchvision's ImageFolder with the transforms
of v2: `tensor` decodes with torchvision.io and transforms bytes, `pillow` is ImageFolder's own loader. `dali`
is its pipeline for CPUs. Each program measures itself for some seconds, in the order ABBA, after all files were read
once. A ratio above 1 means that stratagem is faster. Needs Python with numpy, Pillow, torch and torchvision.
"""

import argparse
import csv
import importlib.metadata
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import PIL.Image

import paired
import programs
import report

SIZE, BATCH = 224, 32
HEIGHT, WIDTH, CLASSES, QUALITY = 375, 500, 10, 90
LOADERS = ["tensor", "pillow"]
MEAN, STDDEV = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]  # of ImageNet


def photograph(random):
    """As smooth as a photograph, with detail and noise, so that a JPEG takes as much as one."""
    def field(cell):
        coarse = random.integers(0, 256, (HEIGHT // cell + 2, WIDTH // cell + 2, 3), dtype=numpy.uint8)
        return numpy.asarray(PIL.Image.fromarray(coarse).resize((WIDTH, HEIGHT), PIL.Image.Resampling.BICUBIC), float)

    mixed = 0.8 * field(24) + 0.2 * field(3) + random.normal(0, 5, (HEIGHT, WIDTH, 3))
    return PIL.Image.fromarray(mixed.clip(0, 255).astype(numpy.uint8))


def make_folder(folder, images):
    random = numpy.random.default_rng(0)
    for number in range(images):
        path = folder / "train" / f"class-{number % CLASSES}" / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        photograph(random).save(path, quality=QUALITY)


def loader_of(kind, folder, workers):
    import torch
    import torchvision
    from torchvision.transforms import v2

    torch.set_num_threads(1)
    crop = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()]
    scale = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STDDEV)]
    if kind == "tensor":
        def load(path):
            return torchvision.io.decode_image(torchvision.io.read_file(path), torchvision.io.ImageReadMode.RGB)

        images = torchvision.datasets.ImageFolder(folder, v2.Compose([*crop, *scale]), loader=load)
    else:
        images = torchvision.datasets.ImageFolder(folder, v2.Compose([*crop, v2.ToImage(), *scale]))
    return torch.utils.data.DataLoader(images, BATCH, shuffle=True, num_workers=workers, persistent_workers=True,
                                       drop_last=True)


def batches_of_loader(kind, folder, workers):
    """Endless."""
    loader = loader_of(kind, folder, workers)
    while True:
        yield from loader


def batches_of_dali(folder, threads):
    """Endless."""
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=threads, device_id=None)
    def pipeline():
        files, labels = fn.readers.file(file_root=str(folder), random_shuffle=True)
        images = fn.decoders.image_random_crop(files, device="cpu", random_area=[0.08, 1],
                                               random_aspect_ratio=[3 / 4, 4 / 3])
        images = fn.resize(images, resize_x=SIZE, resize_y=SIZE, antialias=True)
        inputs = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW",
                                          mean=[255 * value for value in MEAN], std=[255 * value for value in STDDEV],
                                          mirror=fn.random.coin_flip())
        return inputs, labels

    made = pipeline()
    made.build()
    while True:
        yield made.run()


def measure_loader(kind, folder, workers, seconds):
    """Prints images/s, without what was prefetched while the program started."""
    batches = batches_of_dali(folder, workers) if kind == "dali" else batches_of_loader(kind, folder, workers)
    for _ in range(8 * workers):
        next(batches)
    images, begin = 0, time.monotonic()
    while (now := time.monotonic()) - begin < seconds:
        next(batches)
        images += BATCH
    print(images / (now - begin))


def output_of(command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, check=False,
                          env=dict(os.environ, OMP_NUM_THREADS="1"))
    if done.returncode != 0:
        sys.exit(f"{command}: exit {done.returncode}\n{done.stderr[-3000:]}")
    return done.stdout


def rate_of_stratagem(options, folder, workers):
    told = output_of([options.program, "data", "rate", folder, "--threads", workers, "--input-size", SIZE,
                      "--seconds", options.seconds, "--format", "csv"])
    return float(list(csv.DictReader(told.splitlines()))[0]["images/s"])


def rate_of_loader(options, kind, folder, workers):
    return float(output_of([sys.executable, __file__, "--loader", kind, "--folder", folder, "--workers", workers,
                            "--seconds", options.seconds]))


def row_of(options, kind, folder, workers):
    pairs = []
    for pair in range(options.pairs):
        measures = [lambda: rate_of_stratagem(options, folder, workers),
                    lambda: rate_of_loader(options, kind, folder, workers)]
        turn = (0, 1) if pair % 2 == 0 else (1, 0)
        found = {index: measures[index]() for index in turn}
        pairs.append((found[0], found[1]))
    ratio, low, high, coverage = paired.median_interval([ours / theirs for ours, theirs in pairs])
    ours, theirs = (float(numpy.median(column)) for column in zip(*pairs))
    return {"loader": kind, "workers": workers, "pairs": len(pairs), "ours_images_per_s": ours,
            "theirs_images_per_s": theirs, "ratio": ratio, "ratio_low": low, "ratio_high": high, "coverage": coverage,
            "rates": pairs}


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(programs.HERE.parent.parent / "build/stratagem"))
    parser.add_argument("--json", help="also write everything to this file")
    parser.set_defaults(threads=1)  # of LibTorch, which neither side uses
    parser.add_argument("--folder", type=pathlib.Path, help="with train/CLASS/*.jpg; default: one that is made")
    parser.add_argument("--images", type=int, default=2000, help="in the folder that is made")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=4, help="of each measurement")
    parser.add_argument("--dali", action="store_true", help="against nvidia.dali, too")
    parser.add_argument("--loader", choices=[*LOADERS, "dali"], help="only print images/s of this one")
    return parser.parse_args()


def loaders_of(options):
    """Names, and versions of their packages."""
    versions = {name: importlib.metadata.version(name) for name in ("torch", "torchvision", "pillow")}
    if not options.dali:
        return LOADERS, versions
    try:
        from nvidia import dali
    except ImportError as problem:
        print(f"dali: skipped, {sys.executable} cannot import it: {problem}", file=sys.stderr)
        return LOADERS, versions
    return [*LOADERS, "dali"], {**versions, "dali": dali.__version__}


def main():
    options = options_of()
    if options.loader:
        return measure_loader(options.loader, options.folder / "train", options.workers[0], options.seconds)
    columns = {"loader": "{loader}", "threads, workers": "{workers}", "stratagem images/s": "{ours_images_per_s:.0f}",
               "loader images/s": "{theirs_images_per_s:.0f}", "ratio": "{ratio:.2f}",
               "interval (coverage)": "{ratio_low:.2f} to {ratio_high:.2f} ({coverage:.1%})", "pairs": "{pairs}"}
    loaders, versions = loaders_of(options)
    table = report.Table(options, columns, machine=programs.machine(options, **versions))
    with tempfile.TemporaryDirectory(prefix="stratagem-bench-") as name:
        folder = options.folder or pathlib.Path(name)
        if not options.folder:
            make_folder(folder, options.images)
        for workers in options.workers:
            for kind in loaders:
                table.add(row_of(options, kind, folder, workers))


if __name__ == "__main__":
    main()

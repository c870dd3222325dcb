#!/usr/bin/env python3
"""Packs a folder of images into a few large files, which stratagem reads like the folder: `data: {path: packed}`.

  python3 analysis/pack_images.py flowers packed --size 256      pixels: packed/train-0000.h5, ..., val-0000.h5, ...
  python3 analysis/pack_images.py flowers packed --format tar    files as they are: packed/train-0000.tar, ...

flowers has train/CLASS/*.jpg (or .jpeg, .png), and val/CLASS/... with no other classes. The labels are positions among
the names of train/, in bytewise order. Images are shuffled once, so that every file mixes the classes. Every image is
decoded: one that is damaged is named, and then no file is left. Needs Pillow, for HDF5 also h5py and numpy.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import functools
import importlib.util
import io
import os
import pathlib
import random
import shlex
import signal
import sys
import tarfile
import tempfile

import outputs

USAGE, ENVIRONMENT, BAD_DATA, IO = 2, 3, 5, 6  # exit codes, the same as those of `stratagem`
INTERRUPTED = 130
PARTS = ("train", "val")
SUFFIXES = (".jpg", ".jpeg", ".png")
JPEG = b"\xff\xd8"  # begins one
BATCH = 64  # images in memory at a time; whole chunks
CHUNK = 16  # images that are compressed together
MOST_CLASSES = 65536
NEEDED = {"hdf5": {"h5py": "h5py", "numpy": "numpy", "PIL": "Pillow"}, "tar": {"PIL": "Pillow"}}


class PackError(Exception):
    """What cannot be packed, and why."""

    def __init__(self, message, code=BAD_DATA):
        super().__init__(message)
        self.code = code


@dataclasses.dataclass(frozen=True)
class Image:
    path: pathlib.Path
    label: int


class Progress:
    """One line on a terminal, overwritten; nothing elsewhere."""

    def __init__(self, part, images):
        self.part, self.images, self.done = part, images, 0

    def add(self, count):
        self.done += count
        self.show(f"packing {self.part}: {self.done:,} of {self.images:,}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.show("")

    def show(self, text):
        if sys.stderr.isatty():
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def positive(text):
    if (number := int(text)) < 1:
        raise ValueError
    return number


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, metavar="FOLDER", help="with train/CLASS/ and val/CLASS/")
    parser.add_argument("output", type=pathlib.Path, metavar="PACKED", help="folder to write into")
    parser.add_argument("--format", choices=NEEDED, default="hdf5")
    parser.add_argument("--size", type=positive, metavar="N",
                        help="of hdf5: edge of the square in the middle once scaled [pixels]; default 256")
    parser.add_argument("--compress", action="store_true", help="of hdf5: gzip; smaller, but slower to read")
    parser.add_argument("--per-file", type=positive, default=10000, metavar="N", help="images; default 10000")
    parser.add_argument("--seed", type=int, default=0, help="of the order; default 0")
    parser.add_argument("--workers", type=positive, default=len(os.sched_getaffinity(0)), metavar="N",
                        help="threads that read images; default: as many as the cores")
    return parser.parse_args()


def check(options):
    missing = [package for module, package in NEEDED[options.format].items() if not importlib.util.find_spec(module)]
    if missing:
        raise PackError(f"{sys.executable} lacks {', '.join(missing)}: `{sys.executable} -m pip install"
                        f" {' '.join(missing)}`", ENVIRONMENT)
    if options.format == "tar" and (options.size or options.compress):
        raise PackError("--size and --compress are of hdf5: a tar file holds the images as they are", USAGE)
    if options.output.exists() and not options.output.is_dir():
        raise PackError(f"{options.output} is not a folder", USAGE)
    there = sorted(path.name for path in options.output.glob("*") if path.name.startswith(PARTS))
    if there:
        raise PackError(f"{options.output} holds {there[0]} already: name another folder, or remove it", USAGE)


def entries(folder):
    """What is visible in a folder, in bytewise order of the names."""
    try:
        found = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError as problem:
        raise PackError(f"{folder} cannot be listed: {problem.strerror}") from None
    for path in found:
        try:
            path.name.encode()
        except UnicodeEncodeError:
            raise PackError(f"{str(path)!r} has a name that is not UTF-8: rename it") from None
    return sorted(found, key=lambda path: path.name.encode())


def list_classes(part):
    """Names of the folders of a part."""
    folders = entries(part)
    for path in folders:
        if not path.is_dir():
            raise PackError(f"{path} is not a folder: images stand in {part}/CLASS/")
    if not 0 < len(folders) <= MOST_CLASSES:
        raise PackError(f"{part} holds {len(folders):,} folders of classes, must be 1 to {MOST_CLASSES:,}")
    return [path.name for path in folders]


def list_images(part, classes):
    """The images of a part, sorted by class and name."""
    labels = {name: label for label, name in enumerate(classes)}
    images = []
    for name in list_classes(part):
        if name not in labels:
            raise PackError(f"{part / name} is of a class that train/ has not: rename it, or remove it")
        files = entries(part / name)
        if not files:
            raise PackError(f"{part / name} holds no image: add some, or remove the folder")
        for path in files:
            if path.is_dir() or path.suffix.lower() not in SUFFIXES:
                raise PackError(f"{path} is neither .jpg, .jpeg nor .png: convert it, or remove it")
        images += [Image(path, labels[name]) for path in files]
    return images


def find_images(source, seed):
    """Names of the classes, and {part: its images in random order}."""
    if not (source / "train").is_dir():
        raise PackError(f"{source} has no train/: images stand in {source / 'train'}/CLASS/")
    classes = list_classes(source / "train")
    parts = {part: list_images(source / part, classes) for part in PARTS if (source / part).exists()}
    for images in parts.values():
        random.Random(seed).shuffle(images)
    return classes, parts


def read_file(path):
    try:
        return path.read_bytes()
    except OSError as problem:
        raise PackError(f"{path} cannot be read: {problem.strerror}") from None


def decoded(content, path):
    """The whole image, as Pillow reads it: not turned by EXIF."""
    import PIL.Image

    try:
        picture = PIL.Image.open(io.BytesIO(content), formats=["JPEG", "PNG"])
        picture.load()
    except PIL.UnidentifiedImageError:
        raise PackError(f"{path} is neither a JPEG nor a PNG image") from None
    except Exception as problem:  # Pillow raises whatever it likes
        raise PackError(f"{path} is damaged: {problem}") from None
    if picture.mode.startswith(("I", "F")):
        raise PackError(f"{path} has more than 8 bits per channel: convert it")
    return picture


def square(path, size):
    """The square in the middle of an image, scaled with antialiasing: uint8 [size, size, 3]."""
    import numpy
    import PIL.Image

    picture = decoded(read_file(path), path).convert("RGB")
    edge = min(picture.size)
    left, top = ((length - edge) // 2 for length in picture.size)
    box = (left, top, left + edge, top + edge)
    return numpy.asarray(picture.resize((size, size), PIL.Image.Resampling.BILINEAR, box=box))


def original(path):
    """The bytes of an image that stratagem can decode."""
    content = read_file(path)
    if decoded(content, path).mode == "CMYK":
        raise PackError(f"{path} has CMYK colours: convert it to RGB, or pack into hdf5, which does so")
    return content


def loaded(images, load, pool, progress):
    """Lists [(what `load` makes of a file, label)], each of a batch, in order."""
    for begin in range(0, len(images), BATCH):
        batch = images[begin : begin + BATCH]
        contents = list(pool.map(load, [image.path for image in batch]))
        yield list(zip(contents, [image.label for image in batch]))
        progress.add(len(batch))


def write_hdf5(path, batches, count, classes, options):
    """Datasets `images`, uint8 [count, size, size, 3], and `labels`; attribute `classes`. Without compression the
    images are one block of the file, so each can be read at its offset."""
    import h5py
    import numpy

    shape = (count, options.size, options.size, 3)
    packing = {}
    if options.compress:
        packing = {"chunks": (min(CHUNK, count), *shape[1:]), "compression": "gzip", "compression_opts": 4}
    with h5py.File(path, "w", libver="v110") as file:  # older files have no room for thousands of names
        file.attrs["classes"] = classes
        images = file.create_dataset("images", shape, "uint8", **packing)
        images.attrs["layout"] = "NHWC"
        labels = file.create_dataset("labels", (count,), "int64")
        at = 0
        for batch in batches:
            end = at + len(batch)
            images[at:end] = numpy.stack([pixels for pixels, _ in batch])
            labels[at:end] = [label for _, label in batch]
            at = end


def write_tar(path, batches):
    """Members KEY.jpg or KEY.png, the bytes of the file, and KEY.cls, the label. The same images make the same archive,
    whoever packs them, and whenever."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        samples = (sample for batch in batches for sample in batch)
        for key, (content, label) in enumerate(samples):
            kind = "jpg" if content.startswith(JPEG) else "png"
            for name, held in ((f"{key:08}.{kind}", content), (f"{key:08}.cls", b"%d" % label)):
                member = tarfile.TarInfo(name)
                member.size = len(held)
                archive.addfile(member, io.BytesIO(held))


@contextlib.contextmanager
def appearing(output):
    """A hidden folder in `output`, whose files move there in the end: all of them, or after an error none."""
    new = [path for path in (output, *output.parents) if not path.exists()]
    output.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix=".packing-", dir=output) as name:
            yield pathlib.Path(name)
            for path in sorted(pathlib.Path(name).iterdir()):
                path.rename(output / path.name)
    except BaseException:
        for path in new:
            with contextlib.suppress(OSError):  # something else is in it by now
                path.rmdir()
        raise


def write_part(folder, part, images, classes, options):
    """A row of the table."""
    load = original if options.format == "tar" else functools.partial(square, size=options.size)
    suffix = {"hdf5": "h5", "tar": "tar"}[options.format]
    begins = range(0, len(images), options.per_file)
    size = 0
    with Progress(part, len(images)) as progress, concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for number, begin in enumerate(begins):
            some = images[begin : begin + options.per_file]
            path = folder / f"{part}-{number:04}.{suffix}"
            batches = loaded(some, load, pool, progress)
            if options.format == "tar":
                write_tar(path, batches)
            else:
                write_hdf5(path, batches, len(some), classes, options)
            size += path.stat().st_size
    return [part, f"{len(begins):,}", f"{len(images):,}", f"{size / 2**20:,.1f}"]


def show(table):
    """The first row has the titles."""
    widths = [max(map(len, column)) for column in zip(*table)]
    for part, *numbers in table:
        print("  ".join([part.ljust(widths[0]), *map(str.rjust, numbers, widths[1:])]))


def run(options):
    check(options)
    options.size = options.size or 256
    classes, parts = find_images(options.source, options.seed)
    try:
        with appearing(options.output) as folder:
            rows = [write_part(folder, part, images, classes, options) for part, images in parts.items()]
    except (OSError, RuntimeError) as problem:  # h5py raises one or the other where a disk is full
        raise PackError(f"{options.output} cannot be written: {' '.join(str(problem).split())}", IO) from None
    show([["part", "files", "images", "MiB"], *rows])
    pixels = "" if options.format == "tar" else f", {options.size} x {options.size} pixels"
    print(f"wrote {options.output}: {len(classes):,} classes{pixels}, in the order of seed {options.seed}")
    if "val" not in parts:
        print(f"note: {options.source} has no val/; data.holdout can keep some of the training images to evaluate")
    print(f"next: stratagem data stats {shlex.quote(str(options.output))}")


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(arguments())
    except PackError as problem:
        print(f"pack_images.py: {problem}", file=sys.stderr)
        return problem.code
    except KeyboardInterrupt:
        print("pack_images.py: interrupted; no file is left", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(outputs.run("pack_images.py", main))

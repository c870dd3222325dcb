"""The user's own images as a model's input: parity with Pillow and torchvision, pixel for pixel.

`images_program` reads a data folder and says which part of every image it took. The same part is taken here by Pillow
and torchvision.transforms.v2.functional.resized_crop with antialiasing."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy
import PIL.Image
import torch
from torchvision.transforms.v2 import functional

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIZES = [(375, 500), (500, 333), (64, 48), (31, 57), (224, 224), (1200, 1600)]  # height, width [pixels]


def photograph(generator, height, width):
    """A picture as smooth as a photograph, with some detail: uint8 [height, width, 3]."""
    coarse = torch.rand((1, 3, height // 16 + 2, width // 16 + 2), generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")[0]
    noise = 0.05 * torch.randn((3, height, width), generator=generator)
    return ((smooth + noise).clamp(0, 1) * 255).to(torch.uint8).permute(1, 2, 0).numpy()


def write_folder(folder):
    """Every kind of file that is read, in two classes."""
    generator = torch.Generator().manual_seed(0)
    kinds = {
        "plain.jpg": {"quality": 90},
        "coarse.jpg": {"quality": 30, "subsampling": "4:2:0"},
        "fine.jpeg": {"quality": 95, "subsampling": "4:4:4"},
        "wide.jpg": {"quality": 85, "subsampling": "4:2:2"},
        "progressive.jpg": {"quality": 90, "progressive": True},
        "grey.jpg": {"mode": "L"},
        "colours.png": {},
        "palette.png": {"mode": "P"},
        "alpha.png": {"mode": "RGBA"},
        "grey.PNG": {"mode": "L"},
    }
    for label in "ab":
        (folder / "train" / label).mkdir(parents=True)
    for i, (height, width) in enumerate(SIZES):
        for name, settings in kinds.items():
            settings = dict(settings)
            picture = PIL.Image.fromarray(photograph(generator, height, width))
            picture = picture.convert(settings.pop("mode", "RGB"))
            picture.save(folder / "train" / "ab"[i % 2] / f"{i}-{name}", **settings)


def read_by_program(program, folder, size, epoch):
    """[(path, (top, left, height, width), mirrored)] and uint8 pixels [n, 3, size, size]."""
    with tempfile.NamedTemporaryFile() as file:
        shown = subprocess.run([program, str(folder), str(size), str(epoch), file.name], check=True, text=True,
                               capture_output=True).stdout
        values = numpy.fromfile(file.name, dtype=numpy.float32)
    lines = [line.split("\t") for line in shown.splitlines()]
    images = [(line[0], tuple(map(int, line[1:5])), line[5] == "1") for line in lines]
    pixels = numpy.rint(values * 255).astype(numpy.uint8).reshape(len(images), 3, size, size)
    return images, torch.from_numpy(pixels)


def expected(picture, region, mirrored, size):
    """uint8 [3, size, size] of an RGB picture [1, 3, height, width]: by LibTorch's kernel for bytes, which torchvision
    takes where it knows that it is fast. Elsewhere it computes in fp32 and rounds, to one level more or less."""
    top, left, height, width = region
    part = picture[:, :, top:top + height, left:left + width].contiguous(memory_format=torch.channels_last)
    taken = torch.nn.functional.interpolate(part, (size, size), mode="bilinear", antialias=True)[0]
    by_torchvision = functional.resized_crop(picture, *region, [size, size], antialias=True)[0]
    assert (taken.int() - by_torchvision.int()).abs().max() <= 1
    return taken.flip(2) if mirrored else taken


def snapped(region, whole, size):
    """(the nearest part that consists of whole pixels once a JPEG decoder has scaled the image, how often it halved).
    It halves as long as the part has `size` pixels both ways; `region` is (top, left, height, width)."""
    top, left, height, width = region
    edges = [(top, top + height), (left, left + width)]
    for factor in 8, 4, 2, 1:
        near = [[min((2 * edge + factor) // (2 * factor), -(-most // factor)) for edge in pair]
                for pair, most in zip(edges, whole)]
        if min(end - begin for begin, end in near) >= size or factor == 1:
            (top, bottom), (left, right) = [[min(factor * edge, most) for edge in pair]
                                            for pair, most in zip(near, whole)]
            return (top, left, bottom - top, right - left), factor


def pillow(path):
    return functional.pil_to_tensor(PIL.Image.open(path).convert("RGB"))[None]


class Images(unittest.TestCase):
    program = None

    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.held.name)
        write_folder(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def differences(self, size, epoch):
        """{path: (largest, mean) difference in levels, by what the decoder scaled}"""
        found = {}
        for (path, region, mirrored), pixels in zip(*read_by_program(self.program, self.folder, size, epoch)):
            picture, factor = pillow(path), 1
            if path.lower().endswith(("jpg", "jpeg")):
                region, factor = snapped(region, picture.shape[2:], size)
            distance = (pixels.int() - expected(picture, region, mirrored, size).int()).abs()
            found[path] = distance.max().item(), distance.float().mean().item(), factor
        self.assertEqual(len(found), 10 * len(SIZES) - 1)  # one is held out
        return found

    def test_pixels_are_those_of_pillow_and_torchvision(self):
        for size, epoch in (224, -1), (224, 0), (224, 1), (48, 2):
            exact = 0
            for path, (largest, mean, factor) in self.differences(size, epoch).items():
                with self.subTest(path=path, size=size, epoch=epoch):
                    if factor > 1:  # blocks are averaged, where torchvision weighs pixels by their distance
                        self.assertLess(mean, 10)  # pictures that differ are 60 to 80 apart
                    elif path.lower().endswith("png"):
                        self.assertEqual(largest, 0)
                        exact += 1
                    else:  # of JPEG, libraries may round differently
                        self.assertLessEqual(largest, 2)
            self.assertGreater(exact, 20)

    def test_scaling_in_the_decoder_is_met(self):
        factors = {of[2] for of in self.differences(48, 3).values()}
        self.assertEqual(factors, {1, 2, 4, 8})

    def test_packed_shards_hold_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, str(ROOT / "analysis" / "pack_images.py"), str(self.folder),
                            f"{folder}/packed", "--format", "tar", "--per-file", "25"], check=True, capture_output=True)
            images, packed = read_by_program(self.program, f"{folder}/packed", 48, -1)
        self.assertEqual({pathlib.Path(path.split(": ")[0]).name for path, *_ in images},
                         {f"train-{number:04}.tar" for number in range(3)})
        _, pixels = read_by_program(self.program, self.folder, 48, -1)
        known = {image.numpy().tobytes() for image in pixels}
        # Of each, another image is held out.
        self.assertGreaterEqual(len({image.numpy().tobytes() for image in packed} & known), 10 * len(SIZES) - 2)

    def test_hdf5_holds_the_same(self):
        generator = torch.Generator().manual_seed(1)
        pictures = numpy.stack([photograph(generator, 60, 80) for _ in range(30)])
        for settings in {}, {"chunks": (1, 60, 80, 3)}, {"chunks": (7, 60, 80, 3), "compression": "gzip"}:
            with tempfile.TemporaryDirectory() as folder:
                with h5py.File(f"{folder}/train-0.h5", "w") as file:
                    file.create_dataset("images", data=pictures, **settings)
                    file["labels"] = numpy.arange(30) % 3
                images, pixels = read_by_program(self.program, folder, 32, 5)
            for i, (_, region, mirrored) in enumerate(images):
                wanted = expected(torch.from_numpy(pictures[i]).permute(2, 0, 1)[None], region, mirrored, 32)
                self.assertTrue(torch.equal(pixels[i], wanted), f"{settings} {i}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    options, rest = parser.parse_known_args()
    Images.program = options.program
    unittest.main(argv=[sys.argv[0], *rest])

"""analysis/pack_images.py: what it writes holds the images of the folder, it refuses what is not one, and then leaves
no file."""

import io
import os
import sys
import tarfile

import support
import harness
import h5py
import numpy
import PIL.Image

USAGE, ENVIRONMENT, BAD_DATA, IO = 2, 3, 5, 6
SCRIPT = support.ANALYSIS / "pack_images.py"
CLASSES = ["Rose", "lily", "Ähre"]  # in bytewise order
PER_CLASS = {"train": 7, "val": 3}


def encoded(picture, kind="PNG", **settings):
    content = io.BytesIO()
    picture.save(content, kind, **settings)
    return content.getvalue()


def picture(label, number, width=24, height=24):
    """An image that tells its label and number in every pixel, and with blue where the pixel stands."""
    values = numpy.zeros((height, width, 3), numpy.uint8)
    values[..., 0], values[..., 1] = 80 * label, 10 * number
    values[..., 2] = numpy.add.outer(numpy.arange(height), numpy.arange(width)) % 256
    return PIL.Image.fromarray(values)


def flowers():
    """{name: content} of a folder to pack; hidden files do not count."""
    files = {f"flowers/{part}/{name}/{number}.png": encoded(picture(label, number if part == "train" else 20 + number))
             for part, count in PER_CLASS.items() for label, name in enumerate(CLASSES) for number in range(count)}
    return {**files, "flowers/.hidden": "", "flowers/train/.hidden": "", "flowers/train/lily/.hidden": ""}


def hdf5(folder, part):
    """Images, labels and classes of all files of a part."""
    files = [h5py.File(path, "r") for path in sorted(folder.glob(f"{part}-*.h5"))]
    images, labels = ([file[name][:] for file in files] for name in ("images", "labels"))
    classes, = {tuple(file.attrs["classes"]) for file in files}
    return numpy.concatenate(images), numpy.concatenate(labels), list(classes)


def tar(path):
    """{name: content} of an archive."""
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


class PackImages(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.new_folder(flowers())
        self.packed = self.folder / "packed"

    def pack(self, *words, code=0, environment=None):
        command = [sys.executable, "-B", SCRIPT, "flowers", "packed", *words]
        ended = self.wait(self.start(command, environment=environment))
        self.assertEqual(ended.code, code, str(ended))
        return ended

    def refused(self, code, told, *words, **how):
        """In one line, and without any change."""
        before = harness.snapshot(self.folder)
        ended = self.pack(*words, code=code, **how)
        self.assertRegex(ended.stderr, r"\Apack_images\.py: [^\n]*\n\Z")
        self.assertIn(told, ended.stderr)
        self.assertEqual(harness.snapshot(self.folder), before)

    def add(self, name, content):
        path = self.folder / "flowers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def names(self):
        return sorted(path.name for path in self.packed.iterdir())

    def test_hdf5_holds_every_image_with_its_label(self):
        shown = self.pack("--size", "24", "--per-file", "8").stdout
        self.assertEqual(self.names(), [*(f"train-000{i}.h5" for i in range(3)), *(f"val-000{i}.h5" for i in range(2))])
        for part, count in PER_CLASS.items():
            images, labels, classes = hdf5(self.packed, part)
            self.assertEqual((images.dtype, labels.dtype, classes), ("uint8", "int64", CLASSES))
            numbers = [number if part == "train" else 20 + number for number in range(count)]
            expected = {(label, number) for label in range(3) for number in numbers}
            found = [(int(label), int(image[0, 0, 1]) // 10) for image, label in zip(images, labels)]
            self.assertEqual((len(found), set(found)), (3 * count, expected))
            for image, (label, number) in zip(images, found):
                numpy.testing.assert_array_equal(image, numpy.asarray(picture(label, number)))
            self.assertIn(f"{3 * count}", shown)
        self.assertIn("stratagem data stats packed", shown)

    def test_hdf5_is_one_block_or_compressed_chunks_of_whole_images(self):
        self.pack("--size", "24")
        plain = hdf5(self.packed, "train")
        with h5py.File(self.packed / "train-0000.h5") as file:
            self.assertEqual((file["images"].chunks, file["images"].attrs["layout"]), (None, "NHWC"))
            offset = file["images"].id.get_offset()
        block = (self.packed / "train-0000.h5").read_bytes()[offset:][: plain[0].nbytes]
        self.assertEqual(block, plain[0].tobytes())
        self.packed.rename(self.folder / "plain")
        self.pack("--size", "24", "--compress")
        with h5py.File(self.packed / "train-0000.h5") as file:
            self.assertEqual((file["images"].chunks, file["images"].compression), ((16, 24, 24, 3), "gzip"))
            self.assertEqual(file["images"].compression_opts, 4)
        for one, other in zip(plain, hdf5(self.packed, "train")):
            numpy.testing.assert_array_equal(one, other)

    def test_the_square_in_the_middle_is_scaled_with_antialiasing(self):
        wide = picture(1, 9, width=90, height=60)
        tall = wide.transpose(PIL.Image.Transpose.ROTATE_90)
        for name, content in {"wide.png": encoded(wide), "tall.png": encoded(tall),
                              "small.png": encoded(picture(1, 9, 4, 4)),
                              "grey.jpg": encoded(picture(1, 9).convert("L"), "JPEG"),
                              "cmyk.JPEG": encoded(picture(1, 9).convert("CMYK"), "JPEG"),
                              "palette.png": encoded(picture(1, 9).convert("P"), transparency=b"\0\1"),
                              "alpha.png": encoded(picture(1, 9).convert("RGBA"))}.items():
            self.add(f"val/lily/{name}", content)
        self.pack("--size", "20")
        images, labels, _ = hdf5(self.packed, "val")
        self.assertEqual((images.shape, int((labels == 1).sum())), ((16, 20, 20, 3), 10))
        # Thrice smaller: a triangle of 5 pixels about the middle one.
        pixels = numpy.asarray(wide)[:, 15:75].astype(float)
        weights = numpy.zeros((20, 60))
        for to in range(20):
            for away in range(-2, 3):
                if 0 <= 3 * to + 1 + away < 60:
                    weights[to, 3 * to + 1 + away] = 3 - abs(away)
        weights /= weights.sum(1, keepdims=True)
        scaled = numpy.einsum("yh,hwc,xw->yxc", weights, pixels, weights)
        closest = [numpy.abs(images - turned).max((1, 2, 3)).min() for turned in (scaled, numpy.rot90(scaled))]
        self.assertLessEqual(max(closest), 1)

    def test_an_image_is_not_turned_by_exif(self):
        orientation = PIL.Image.Exif()
        orientation[0x0112] = 6  # turned by 90 degrees
        self.add("val/Rose/0.png", encoded(picture(0, 20), exif=orientation))
        self.pack("--size", "24")
        numbers = [int(image[0, 0, 1]) // 10 for image in hdf5(self.packed, "val")[0]]
        image = hdf5(self.packed, "val")[0][numbers.index(20)]
        self.assertTrue((image[..., 2] == numpy.add.outer(numpy.arange(24), numpy.arange(24))).all())

    def test_a_seed_decides_the_order_and_workers_do_not(self):
        written = []
        for words in [], ["--workers", "3"], ["--seed", "0"], ["--seed", "1"]:
            self.pack("--size", "8", *words)
            written.append((self.packed / "train-0000.h5").read_bytes())
            self.packed.rename(self.folder / f"packed-{len(written)}")
        self.assertEqual(written[:3], [written[0]] * 3)
        self.assertNotEqual(written[3], written[0])
        labels = hdf5(self.folder / "packed-1", "train")[1]
        self.assertNotEqual(labels.tolist(), sorted(labels))

    def test_tar_holds_the_bytes_of_the_files(self):
        jpeg = encoded(picture(1, 9), "JPEG", quality=90)
        self.add("val/lily/photo.of.it.jpeg", jpeg)
        self.add("val/lily/is a jpeg.png", jpeg)
        self.pack("--format", "tar", "--per-file", "8")
        self.assertEqual(self.names(), [f"{part}-{number:04}.tar" for part, files in (("train", 3), ("val", 2))
                                        for number in range(files)])
        for part, count in ("train", 21), ("val", 11):
            found = []
            for path in sorted(self.packed.glob(f"{part}-*")):
                members = tar(path)
                images = [name for name in members if not name.endswith(".cls")]
                order = [name for image in images for name in (image, image.split(".")[0] + ".cls")]
                self.assertEqual(list(members), order)
                self.assertTrue(all(name.endswith(".jpg") == (members[name] == jpeg) for name in images))
                found += [(members[name], int(members[name.split(".")[0] + ".cls"])) for name in images]
            files = [path for path in self.folder.glob(f"flowers/{part}/*/*") if not path.name.startswith(".")]
            self.assertEqual(sorted(found),
                             sorted((path.read_bytes(), CLASSES.index(path.parent.name)) for path in files))
            self.assertEqual(len(found), count)

    def test_tar_is_the_same_whenever_it_is_packed(self):
        self.pack("--format", "tar")
        for path in self.folder.glob("flowers/*/*/*.png"):
            os.utime(path, (1, 1))
        self.packed.rename(self.folder / "first")
        self.pack("--format", "tar")
        for path in self.packed.iterdir():
            self.assertEqual(path.read_bytes(), (self.folder / "first" / path.name).read_bytes())
            with tarfile.open(path) as archive:
                self.assertEqual({(member.mtime, member.uid, member.gid, member.uname) for member in archive},
                                 {(0, 0, 0, "")})

    def test_the_program_reads_the_same_of_all_layouts(self):
        self.pack("--size", "24", "--compress", "--per-file", "9")
        self.packed.rename(self.folder / "hdf5")
        self.pack("--format", "tar", "--per-file", "9")
        read = [self.expect(0, "data", "stats", path, "--format", "csv").stdout
                for path in ("flowers", "hdf5", "packed")]
        self.assertEqual(len(read[0].splitlines()), 3)
        self.assertEqual(read, [read[0]] * 3)

    def test_without_val_there_is_a_note(self):
        (self.folder / "flowers/val").rename(self.folder / "elsewhere")
        self.assertIn("flowers has no val/; data.holdout", self.pack("--size", "8").stdout)
        self.assertEqual(self.names(), ["train-0000.h5"])

    def test_thousands_of_classes_have_names(self):
        for number in range(6000):
            self.add(f"train/a class with a long name {number:04}/0.png", encoded(PIL.Image.new("RGB", (1, 1))))
        self.pack("--size", "1")
        self.assertEqual(len(hdf5(self.packed, "train")[2]), 6003)

    def test_nothing_is_overwritten(self):
        self.pack("--size", "8")
        for words in [], ["--format", "tar"]:
            self.refused(USAGE, "packed holds train-0000.h5 already", *words)
        self.refused(USAGE, "--size and --compress are of hdf5", "--format", "tar", "--size", "8")
        command = [sys.executable, "-B", SCRIPT, "flowers", "flowers"]
        self.assertIn("flowers holds train already", self.wait(self.start(command)).stderr)

    def test_bad_folders_are_named(self):
        self.add("val/lilly/0.png", b"")
        self.refused(BAD_DATA, "flowers/val/lilly is of a class that train/ has not")
        (self.folder / "flowers/val/lilly").rename(self.folder / "flowers/train/lilly")
        (self.folder / "flowers/train/lilly/0.png").unlink()
        self.refused(BAD_DATA, "flowers/train/lilly holds no image")
        self.add("train/lilly/notes.txt", b"")
        self.refused(BAD_DATA, "flowers/train/lilly/notes.txt is neither .jpg, .jpeg nor .png")
        (self.folder / "flowers/train/lilly/notes.txt").rename(self.folder / "flowers/train/0.png")
        self.refused(BAD_DATA, "flowers/train/0.png is not a folder")
        (self.folder / "flowers/train").rename(self.folder / "elsewhere")
        self.refused(BAD_DATA, "flowers has no train/")

    def test_bad_images_are_named_and_no_file_is_left(self):
        whole = encoded(picture(0, 0, 60, 60), "JPEG")
        for name, content, told in [
            ("text.jpg", b"no image", "is neither a JPEG nor a PNG image"),
            ("empty.png", b"", "is neither a JPEG nor a PNG image"),
            ("gif.jpg", encoded(picture(0, 0), "GIF"), "is neither a JPEG nor a PNG image"),
            ("cut.jpg", whole[: len(whole) // 2], "is damaged: "),
            ("cut.png", encoded(picture(0, 0))[:60], "is damaged: "),
            ("deep.png", encoded(PIL.Image.new("I;16", (9, 9))), "has more than 8 bits per channel"),
        ]:
            with self.subTest(name):
                self.add(f"val/lily/{name}", content)
                for layout in "hdf5", "tar":
                    self.refused(BAD_DATA, f"flowers/val/lily/{name} {told}", "--format", layout, "--per-file", "4")
                (self.folder / "flowers/val/lily" / name).unlink()
        self.add("val/lily/cmyk.jpg", encoded(picture(0, 0).convert("CMYK"), "JPEG"))
        self.refused(BAD_DATA, "flowers/val/lily/cmyk.jpg has CMYK colours", "--format", "tar")

    def test_a_full_disk_leaves_no_file(self):
        before = harness.snapshot(self.folder)
        for layout in "hdf5", "tar":
            words = ["sh", "-c", 'ulimit -f 10; exec "$@"', "sh", sys.executable, "-B", SCRIPT, "flowers", "packed"]
            ended = self.wait(self.start([*words, "--format", layout]))
            self.assertEqual(ended.code, IO, str(ended))
            self.assertRegex(ended.stderr, r"\Apack_images\.py: packed cannot be written: .*File too large.*\n\Z")
            self.assertEqual(harness.snapshot(self.folder), before)

    def test_missing_packages_are_named(self):
        self.refused(ENVIRONMENT, "lacks h5py, numpy, Pillow", environment={"PYTHONPATH": "", "PYTHONNOUSERSITE": "1"})


if __name__ == "__main__":
    harness.main()

"""Files that other programs wrote: HDF5 in every way of storing, against h5py; lone files; 300 shards. With h5py and
numpy, of the oracle's Python; without them, only the tests that need neither."""

import csv
import json
import pathlib
import resource
import struct
import sys
import unittest
import zlib

import harness
from harness import Refusal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from images import folder_files, shard, striped  # noqa: E402

try:
    import h5py
    import numpy
except ImportError:
    h5py = numpy = None

USAGE, BAD_DATA = 2, 5
COUNT, EDGE, CHANNELS = 20, 6, 3
CONFIG = """schema: 1
run: {name: own, threads: 1, max_steps: 1, out: out}
data: {path: own, input_size: 16, global_batch: 12}
model: {name: lenet}
strategy: {name: serial}
"""


@unittest.skipUnless(h5py, "needs h5py")
class Hdf5(harness.ProgramTest):
    """Pixels are those that h5py reads, or the file is refused."""

    def setUp(self):
        super().setUp()
        # No two images alike, and none like zeros: a wrong place shows in the statistics.
        self.pixels = numpy.random.default_rng(1).integers(0, 256, (COUNT, EDGE, EDGE, CHANNELS), dtype="uint8")
        self.pixels[: COUNT // 2] //= 3
        self.labels = numpy.arange(COUNT) % 2
        self.own = self.folder / "own"
        self.own.mkdir()
        self.path = self.own / "train.h5"

    def stats(self):
        return self.run_program("data", "stats", "own", "--format", "csv")

    def expect_pixels(self, pixels=None):
        pixels = self.pixels if pixels is None else pixels
        ended = self.stats()
        self.assertEqual(ended.code, 0, str(ended))
        row = next(csv.DictReader(ended.stdout.splitlines()))
        values = pixels.reshape(-1, CHANNELS) / 255
        for column, expected in (("mean", values.mean(0)), ("stddev", values.std(0))):
            self.assertEqual(row[column], " ".join(f"{value:.4f}" for value in expected))

    def expect_refusal(self, *words):
        self.check_refused(self.stats(), BAD_DATA, words)

    def write(self, path=None, name="images", file_options=None, labels=True, **how):
        with h5py.File(path or self.path, "w", **(file_options or {})) as file:
            file.create_dataset(name, data=self.pixels, **how)
            if labels:
                file["labels"] = self.labels

    def test_user_blocks(self):
        for how in {}, {"chunks": (7, EDGE, EDGE, CHANNELS)}, {"chunks": (4, EDGE, EDGE, CHANNELS), "compression": 4}:
            for block in 512, 4096:
                with self.subTest(how=how, block=block):
                    self.write(file_options={"userblock_size": block}, **how)
                    self.expect_pixels()
            with self.subTest("bytes that were put before a file", how=how):
                self.write(**how)
                self.path.write_bytes(b"\x01" * 2048 + self.path.read_bytes())
                self.expect_pixels()

    def test_links(self):
        other = self.own / "other.h5"
        for how in {}, {"chunks": (4, EDGE, EDGE, CHANNELS), "compression": 4, "shuffle": True}:
            for options in {}, {"userblock_size": 1024}:
                with self.subTest("external", how=how, options=options):
                    self.write(other, name="x", file_options=options, labels=False, **how)
                    with h5py.File(self.path, "w") as file:
                        file["images"] = h5py.ExternalLink("other.h5", "/x")
                        file["labels"] = self.labels
                        file["noise"] = numpy.zeros(200_000, "uint8")
                    self.expect_pixels()
        for kind in "soft", "hard":
            with self.subTest(kind):
                self.write(name="deep/x")
                with h5py.File(self.path, "a") as file:
                    file["images"] = h5py.SoftLink("/deep/x") if kind == "soft" else file["deep/x"]
                self.expect_pixels()
        other.unlink()
        with h5py.File(self.path, "w") as file:
            file["images"] = h5py.ExternalLink("other.h5", "/x")
        self.expect_refusal("there is no dataset images")

    def test_filters_that_were_left_out(self):
        """Mask 1 leaves out the first filter, 2 the second: of shuffle and gzip."""
        for mask, content in (1, zlib.compress), (2, bytes), (3, bytes):
            with self.subTest(mask=mask):
                self.write(chunks=(4, EDGE, EDGE, CHANNELS), compression=4, shuffle=True)
                with h5py.File(self.path, "a") as file:
                    for row in 0, 8, 16:
                        chunk = content(self.pixels[row:row + 4].tobytes())
                        file["images"].id.write_direct_chunk((row, 0, 0, 0), chunk, filter_mask=mask)
                self.expect_pixels()

    def test_other_ways_of_writing(self):
        for name, options in {"1.10": {"libver": ("v110", "v110")}, "earliest": {"libver": "earliest"},
                              "ordered": {"track_order": True},
                              "paged": {"fs_strategy": "page", "fs_page_size": 4096}}.items():
            with self.subTest(name):
                self.write(file_options=options, chunks=(3, EDGE, EDGE, CHANNELS), compression=4)
                self.expect_pixels()
        with self.subTest("unlimited"):
            self.write(chunks=(3, EDGE, EDGE, CHANNELS), maxshape=(None, EDGE, EDGE, CHANNELS), compression=1)
            self.expect_pixels()
        with self.subTest("big-endian"), h5py.File(self.path, "w") as file:
            kind = h5py.h5t.STD_U8BE
            space = h5py.h5s.create_simple(self.pixels.shape)
            made = h5py.h5d.create(file.id, b"images", kind, space)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, self.pixels)
            file["labels"] = self.labels.astype(">i4")
        self.expect_pixels()

    def test_bytes_that_stand_elsewhere_are_refused(self):
        cases = {
            "external storage": "in files beside it",
            "virtual": "of other datasets",
            "compact": "in its header",
            "unwritten": "was never written",
            "family": "train.h5: opening it failed",
            "split": "train.h5: opening it failed",
        }
        for name, words in cases.items():
            with self.subTest(name):
                if name == "external storage":
                    self.write(external=[(str(self.own / "raw.dat"), 0, h5py.h5f.UNLIMITED)])
                elif name == "virtual":
                    self.write(self.own / "source.h5", name="x", labels=False)
                    layout = h5py.VirtualLayout(self.pixels.shape, "uint8")
                    layout[:] = h5py.VirtualSource(self.own / "source.h5", "x", self.pixels.shape)
                    with h5py.File(self.path, "w") as file:
                        file.create_virtual_dataset("images", layout)
                        file["labels"] = self.labels
                elif name == "compact":
                    with h5py.File(self.path, "w") as file:
                        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                        properties.set_layout(h5py.h5d.COMPACT)
                        space = h5py.h5s.create_simple(self.pixels.shape)
                        made = h5py.h5d.create(file.id, b"images", h5py.h5t.STD_U8LE, space, properties)
                        made.write(h5py.h5s.ALL, h5py.h5s.ALL, self.pixels)
                elif name == "unwritten":
                    with h5py.File(self.path, "w") as file:
                        made = file.create_dataset("images", self.pixels.shape, "uint8", fillvalue=7,
                                                   chunks=(4, EDGE, EDGE, CHANNELS))
                        made[:12] = self.pixels[:12]
                        file["labels"] = self.labels
                elif name == "family":
                    self.write(self.own / "train%d.h5", file_options={"driver": "family", "memb_size": 3000})
                    self.path = (self.own / "train0.h5").rename(self.path)
                    for rest in self.own.glob("train[1-9]*.h5"):
                        rest.unlink()
                else:
                    self.path.unlink()
                    self.write(self.own / "train", file_options={"driver": "split"})
                    (self.own / "train-m.h5").rename(self.path)
                    (self.own / "train-r.h5").rename(self.own / "raw.h5")
                self.expect_refusal(words)

    def test_every_refusal_has_its_own_cure(self):
        cases = [
            ({"data": self.pixels, "chunks": (COUNT, EDGE // 2, EDGE, CHANNELS)},
             ["a chunk holds parts of images", f"chunks=(1, {EDGE}, {EDGE}, {CHANNELS})",
              f"h5repack -l images:CHUNK=1x{EDGE}x{EDGE}x{CHANNELS}"]),
            ({"data": self.pixels, "compression": "lzf", "chunks": (4, EDGE, EDGE, CHANNELS)},
             ["gzip or none", "lzf", 'compression="gzip"']),
            ({"data": self.pixels, "fletcher32": True, "chunks": (4, EDGE, EDGE, CHANNELS)},
             ["gzip or none", "fletcher32"]),
            ({"data": self.pixels / 255}, ["64-bit floating point", 'astype("uint8")']),
            ({"data": self.pixels[..., 0]}, ["4 dimensions", "grey images have 1 channel"]),
        ]
        for how, words in cases:
            with self.subTest(words):
                with h5py.File(self.path, "w") as file:
                    file.create_dataset("images", **how)
                    file["labels"] = self.labels
                self.expect_refusal(*words)
        with h5py.File(self.path, "w") as file:
            file["x_train"] = self.pixels
            file["y_train"] = self.labels
        self.expect_refusal("there is no dataset images", "found x_train, y_train", 'file.move("OLD", "images")')
        self.write(labels=False)
        with h5py.File(self.path, "a") as file:
            file["labels"] = numpy.eye(2)[self.labels].astype("int64")
        self.expect_refusal("dataset labels: its shape", "one label for each image")
        self.path.write_bytes(shard([("a", 0, striped(8, 0, 0))]))
        self.expect_refusal("train.h5: opening it failed", "it is a tar archive")

    def test_names_of_classes(self):
        for value, classes in [(json.dumps(["a", "b", "c"]), 3), (numpy.array(["a", "b"], "S1"), 2), (5, 5)]:
            with self.subTest(value):
                self.write()
                with h5py.File(self.path, "a") as file:
                    file.attrs["classes"] = value
                (self.folder / "own.yaml").write_text(CONFIG)
                told = self.succeed("run", "own.yaml", "-q", "--overwrite", "-s", "data.holdout=4") and json.loads(
                    (self.folder / "out/manifest.json").read_text())
                self.assertEqual(told["dataset"]["classes"], classes)
        for value in "a, b", '{"a": 0, "b": 1}', 0:
            with self.subTest(value):
                self.write()
                with h5py.File(self.path, "a") as file:
                    file.attrs["classes"] = value
                self.expect_refusal("attribute classes does not say how many", "a JSON list of them")


class LoneFiles(harness.ProgramTest):
    """`data stats` and `run` say the same of a path."""

    def both(self, files, code, *words):
        for command in ["data", "stats", "own"], ["run", "own.yaml"]:
            with self.subTest(command=command):
                self.check_refusals([Refusal(words[0], command, code, words, {"own.yaml": CONFIG, **files})])

    def test_what_they_are(self):
        tar = shard([("a", 0, striped(8, 0, 0))])
        self.both({"own": tar}, USAGE, "data.path: own is not plain text", "it is a tar archive", "as train.tar")
        self.both({"own": b"\x89HDF\r\n\x1a\n" + bytes(99)}, USAGE, "it is an HDF5 file", "as train.h5")
        packed = zlib.compress(bytes(range(256)) * 99)
        self.both({"own": packed}, USAGE, "own is not plain text", "its first bytes are 0x")
        self.both({"own": "text".encode("utf-16")}, USAGE, "it is text in UTF-16", "save it as plain text in UTF-8")

    def test_a_list_beside_the_images(self):
        files = {**folder_files(8, 4), "own/train_test_split.txt": "1 0\n", "own.yaml": CONFIG}
        self.folder = self.new_folder(files)
        for command in ["data", "stats", "own"], ["run", "own.yaml"]:
            told = self.succeed(*command).stderr
            self.assertIn("own/train_test_split.txt is not read", " ".join(told.split()))

    def test_shards_of_tokens_by_their_own_names(self):
        def tokens(count):
            header = struct.pack("<3i", 20240520, 1, count).ljust(1024, b"\0")
            return header + struct.pack(f"<{count}H", *range(count))

        self.folder = self.new_folder({"lone.bin": tokens(90), "own/fineweb_train_000001.bin": tokens(70),
                                       "own/fineweb_val_000000.bin": tokens(50)})
        rows = self.succeed("data", "stats", "lone.bin", "--format", "csv").stdout.splitlines()
        self.assertEqual(rows[1].split(",")[1:3], ["1", "90"])
        rows = self.succeed("data", "stats", "own", "--format", "csv").stdout.splitlines()
        self.assertEqual([row.split(",")[2] for row in rows[1:]], ["70", "50"])

    def test_images_that_viewers_turn(self):
        exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
        plain = striped(20, 0, 0)
        chunk = struct.pack(">I", len(exif)) + b"eXIf" + exif + struct.pack(">I", zlib.crc32(b"eXIf" + exif))
        turned = {"own/train/class-0/turned.png": plain[:33] + chunk + plain[33:]}
        self.folder = self.new_folder({**folder_files(2, 2), **turned})
        told = " ".join(self.succeed("data", "stats", "own").stderr.split())
        self.assertIn("1 image has an Exif orientation, which is not applied", told)


class ManyFiles(harness.ProgramTest):
    def test_more_shards_than_the_soft_limit(self):
        one = shard([(f"{i}", i, striped(8, i, i)) for i in range(2)])
        self.folder = self.new_folder({f"own/train-{i:04}.tar": one for i in range(300)})
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        try:
            told = self.succeed("data", "stats", "own", "--format", "csv").stdout
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        self.assertEqual(told.splitlines()[1].split(",")[1], "600")


if __name__ == "__main__":
    harness.main()

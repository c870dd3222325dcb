"""Datasets that differ from the published files: exit code 5 on every rank, with file, expected and found values."""

import struct

import harness
from harness import CONFIG, Refusal, overridden

BAD_DATA = 5
MNIST = CONFIG.replace("dataset: synthetic-digits", "dataset: mnist, root: .").replace(
    "subset: 96", "subset: 0"
)
CIFAR = MNIST.replace("mnist", "cifar10")
RECORD = 3073  # bytes: a label and an image


def idx(shape, values):
    return struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape) + bytes(values)


def images(count):
    return idx((count, 28, 28), (i * 7 % 251 for i in range(count * 28 * 28)))


def labels(values):
    return idx((len(values),), values)


def mnist(**changed):
    """A folder with 24 training and 12 test images; `changed` replaces files, None removes one."""
    files = {
        "train-images-idx3-ubyte": images(24),
        "train-labels-idx1-ubyte": labels([i % 10 for i in range(24)]),
        "t10k-images-idx3-ubyte": images(12),
        "t10k-labels-idx1-ubyte": labels([i % 10 for i in range(12)]),
    }
    for name, content in changed.items():
        files[next(file for file in files if file.startswith(name.replace("_", "-")))] = content
    return {"config.yaml": MNIST} | {
        f"mnist/{name}": content for name, content in files.items() if content is not None
    }


def records(count, label=lambda i: i % 10):
    return b"".join(bytes([label(i)]) + bytes(RECORD - 1) for i in range(count))


def cifar(**changed):
    files = (
        {f"data_batch_{i}": records(4) for i in range(1, 6)} | {"test_batch": records(4)} | changed
    )
    return {"config.yaml": CIFAR} | {
        f"cifar-10-batches-bin/{name}.bin": content
        for name, content in files.items()
        if content is not None
    }


def refusal(name, words, files, ranks=(1,)):
    return Refusal(name, ["run", "config.yaml"], BAD_DATA, words, files, ranks=ranks)


TRAIN_BYTES = len(images(24))
NOWHERE = {"config.yaml": MNIST.replace("root: .", "root: nowhere")}
UNNAMED = {"config.yaml": MNIST.replace(", root: .", "")}
FOLDERS = [
    refusal("no root", ["STRATAGEM_DATA", "fetch"], UNNAMED),
    refusal("no root folder", ["nowhere", "missing"], NOWHERE, ranks=(1, 2)),
    refusal("no dataset folder", ["mnist", "missing"], {"config.yaml": MNIST}),
    refusal(
        "no training labels",
        ["train-labels-idx1-ubyte", "missing"],
        mnist(train_labels=None),
        ranks=(2,),
    ),
    refusal("no test batch", ["test_batch.bin", "missing"], cifar(test_batch=None)),
]
FILES = [
    refusal(
        "truncated",
        ["train-images", f"expected {TRAIN_BYTES}", f"found {TRAIN_BYTES - 1}", "fetch-data.sh"],
        mnist(train_images=images(24)[:-1]),
        ranks=(1, 2),
    ),
    refusal(
        "cut in the header", ["train-labels", "cut off"], mnist(train_labels=labels(range(10))[:6])
    ),
    refusal(
        "bytes too many",
        ["t10k-labels", "expected 20", "found 21"],
        mnist(t10k_labels=labels([1] * 12) + b"x"),
    ),
    refusal(
        "wrong magic number",
        ["train-images", "0x00000803", "0x00000801"],
        mnist(train_images=labels(range(10))),
    ),
    refusal(
        "label out of range",
        ["train-labels", "label 23", "0 to 9", "10"],
        mnist(train_labels=labels([0] * 23 + [10])),
    ),
    refusal(
        "fewer labels than images",
        ["train-labels", "24", "23"],
        mnist(train_labels=labels([0] * 23)),
        ranks=(2,),
    ),
    refusal(
        "images of another size",
        ["t10k-images", "28x28", "27x28"],
        mnist(t10k_images=idx((12, 27, 28), bytes(12 * 27 * 28))),
    ),
    refusal(
        "part of a record",
        ["data_batch_2.bin", "3073", f"{4 * RECORD - 1}"],
        cifar(data_batch_2=records(4)[:-1]),
    ),
    refusal(
        "files of unequal length",
        ["data_batch_5.bin", "4 records", "3"],
        cifar(data_batch_5=records(3)),
    ),
    refusal(
        "label of a record",
        ["data_batch_3.bin", "record 2", "255"],
        cifar(data_batch_3=records(4, lambda i: 255 if i == 2 else 0)),
    ),
]


class BadData(harness.ProgramTest):
    def test_folders(self):
        self.check_refusals(FOLDERS)

    def test_files(self):
        self.check_refusals(FILES)

    def test_other_data_on_another_rank(self):
        others = labels([(i + 1) % 10 for i in range(24)])
        folders = [self.new_folder(mnist()), self.new_folder(mnist(train_labels=others))]
        before = [harness.snapshot(folder) for folder in folders]
        command = [
            self.program,
            *overridden(f"run.out={folders[0] / 'out'}", config=folders[0] / "config.yaml"),
        ]
        ended = self.run_words(
            harness.different_ranks([["env", "-C", folder, *command] for folder in folders])
        )
        self.check_refused(
            ended, BAD_DATA, ["dataset mnist of rank 1 is not that of rank 0", "same files"]
        )
        self.assertEqual([harness.snapshot(folder) for folder in folders], before)

    def test_small_files_are_good(self):
        for name, files in {"mnist": mnist(), "cifar10": cifar()}.items():
            with self.subTest(name):
                folder = self.new_folder(files)
                ended = self.expect(
                    0,
                    "run",
                    "config.yaml",
                    "-s",
                    "run.max_steps=1",
                    "-s",
                    "data.global_batch=10",
                    folder=folder,
                )
                self.assertIn("are not the published ones", ended.stderr)
                self.assertTrue((folder / "out" / "outcome.json").exists())


if __name__ == "__main__":
    harness.main()

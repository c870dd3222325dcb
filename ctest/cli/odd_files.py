"""Unusual files and names: pipes, files larger than memory, names longer than a system allows."""

import os
import pathlib

import harness
from bad_data import MNIST, mnist
from harness import overridden

USAGE, BAD_DATA, IO = 2, 5, 6
PLAN = ["plan", "config.yaml", "--no-activations"]
NO_FILE = "it is not a regular file"


class OddFiles(harness.ProgramTest):
    def refuse(self, code, words, *arguments):
        self.check_refused(self.run_program(*arguments), code, words)

    def test_a_pipe_is_not_waited_for(self):
        """Opened like a file, each of these would wait for a writer forever."""
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for code, arguments in [
            (USAGE, ["run", "pipe"]),
            (USAGE, ["plan", "pipe"]),
            (USAGE, ["sweep", "pipe", "--list"]),
            (USAGE, [*PLAN, "--calibration", "pipe"]),
            (BAD_DATA, overridden("model.weights=pipe")),
        ]:
            with self.subTest(arguments):
                self.refuse(code, ["pipe", NO_FILE], *arguments)
        ended = self.run_program("validate", "pipe")
        self.check_refused(ended, BAD_DATA, ["1 of 1 files"])
        self.assertIn(NO_FILE, ended.stdout)

    def test_a_pipe_in_a_run_directory(self):
        self.expect(0, "run", "config.yaml", "-q")
        outcome = self.folder / "out" / "outcome.json"
        outcome.unlink()
        os.mkfifo(outcome)
        self.refuse(IO, ["outcome.json", NO_FILE], "run", "config.yaml", "--resume")

    def test_a_pipe_among_the_data(self):
        folder = self.new_folder(mnist())
        images = folder / "mnist" / "train-images-idx3-ubyte"
        images.unlink()
        os.mkfifo(images)
        ended = self.run_program("run", "config.yaml", folder=folder)
        self.check_refused(ended, BAD_DATA, ["train-images", NO_FILE])

    def test_what_is_too_large_is_not_read(self):
        """A terabyte of nothing: reading it first would run out of memory, code 86."""
        for name in "big.yaml", "mnist/train-images-idx3-ubyte":
            (self.folder / name).parent.mkdir(exist_ok=True)
            with open(self.folder / name, "wb") as file:
                file.truncate(1 << 40)
        most = "1.00 TiB, more than "
        self.refuse(USAGE, ["big.yaml", most + "1.00 MiB"], "plan", "big.yaml")
        self.refuse(USAGE, ["big.yaml", most + "64.0 MiB"], *PLAN, "--calibration", "big.yaml")
        for name, content in mnist(train_images=None).items():
            (self.folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        self.refuse(BAD_DATA, ["train-images", most + "1.00 GiB"], "run", "config.yaml")
        self.assertIn("root: .", MNIST)

    def test_names_that_are_too_long(self):
        long = "x" * 300
        why = "File name too long"
        for arguments in [
            ["run", "config.yaml", "--out", long],
            ["run", "config.yaml", "--out", "a/" + long],
            ["demo", "--out", long],
            ["checkpoint", long],
            ["export-trace", long],
        ]:
            with self.subTest(arguments[0]):
                self.refuse(IO, [long, why], *arguments)
        self.expect(0, "run", "config.yaml", "-q")
        self.refuse(IO, [long], "collect", "out", "-o", long)
        self.assertEqual(list(pathlib.Path(self.folder).glob("x*")), [])


if __name__ == "__main__":
    harness.main()

"""Traces can be opened with HDF5's own tool and with h5py, without this program."""

import importlib.util
import shutil
import subprocess
import unittest

import harness


class OtherReaders(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.expect(0, "run", "config.yaml", "-q", ranks=2)
        self.expect(0, "collect", "out")
        self.files = {"": "out/trace/a0/rank-0001.h5", "/rank-0001": "out/collected.h5"}

    @unittest.skipUnless(shutil.which("h5dump"), "h5dump is not installed (package hdf5-tools)")
    def test_h5dump(self):
        for group, file in self.files.items():
            with self.subTest(file):
                words = [
                    "h5dump",
                    "-y",
                    "-d",
                    f"{group}/steps/step",
                    "-d",
                    f"{group}/steps/loss",
                    file,
                ]
                dumped = subprocess.run(
                    words, cwd=self.folder, capture_output=True, text=True, check=True
                ).stdout
                self.assertRegex(dumped, r"DATA \{\s+0, 1, 2\s+\}")
                self.assertIn("long_name", dumped)

    @unittest.skipUnless(importlib.util.find_spec("h5py"), "Python has no h5py")
    def test_h5py(self):
        import h5py

        for group, file in self.files.items():
            with self.subTest(file), h5py.File(self.folder / file, "r") as opened:
                self.assertEqual(list(opened[f"{group}/steps/step"]), [0, 1, 2])
                self.assertEqual(opened[f"{group}/steps/dur_step_ns"].attrs["unit"], b"ns")


if __name__ == "__main__":
    harness.main()

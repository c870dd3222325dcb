"""Where analysis/export_model.py writes: to a name that ends in .pt2, where nothing is, or an earlier export."""

import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NETS = pathlib.Path(__file__).resolve().parent / "export_nets.py"
USAGE, IO = 2, 6


class Outputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="stratagem-export-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def export(self, name, redirection="", **environment):
        words = (f"exec {sys.executable} -B {ROOT}/analysis/export_model.py {NETS}:Base --input 3x8x8 --no-check"
                 f" --program none -o '{name}' {redirection}")
        return subprocess.run(["bash", "-c", words], cwd=self.folder, env=os.environ | environment, text=True,
                              capture_output=True, check=False)

    def written(self, name, said):
        done = self.export(name)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(said, done.stdout)

    def refused(self, name, *words):
        done = self.export(name)
        self.assertEqual(done.returncode, USAGE, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertFalse([path.name for path in self.folder.iterdir() if ".part" in path.name])

    def test_an_export_is_replaced_also_through_a_link(self):
        self.written("net.pt2", "wrote net.pt2: ")
        self.written("net.pt2", "wrote net.pt2 (replaced): ")
        (self.folder / "there").mkdir()
        (self.folder / "net.pt2").rename(self.folder / "there" / "net.pt2")
        (self.folder / "link.pt2").symlink_to("there/net.pt2")
        before = (self.folder / "there" / "net.pt2").stat()
        self.written("link.pt2", "wrote link.pt2 (replaced): ")
        self.assertTrue((self.folder / "link.pt2").is_symlink())
        self.assertNotEqual((self.folder / "there" / "net.pt2").stat().st_ino, before.st_ino)

    def test_nothing_else_is_replaced(self):
        (self.folder / "text.pt2").write_text("precious")
        self.refused("text.pt2", "text.pt2 is there already, and is no exported model")
        self.assertEqual((self.folder / "text.pt2").read_text(), "precious")
        os.mkfifo(self.folder / "pipe.pt2")
        (self.folder / "folder.pt2").mkdir()
        (self.folder / "nothing.pt2").symlink_to("none.pt2")
        for name in "pipe.pt2", "folder.pt2", "nothing.pt2":
            self.refused(name, f"{name} is there already, and is no regular file")
        self.assertTrue((self.folder / "pipe.pt2").is_fifo())
        self.assertTrue((self.folder / "nothing.pt2").is_symlink())

    def test_a_device_stays_one(self):
        device = self.folder / "device.pt2"
        try:
            os.mknod(device, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        except PermissionError:
            self.skipTest("needs the right to make a device")
        self.refused("device.pt2", "no regular file")
        self.assertTrue(device.is_char_device())

    def test_a_name_that_stratagem_takes_for_a_models(self):
        for name in "net", "net.pt":
            self.refused(name, "ends in .pt2", f"take {name}.pt2")
        self.assertFalse(list(self.folder.iterdir()))

    def test_output_that_is_not_shown(self):
        done = self.export("full.pt2", "> /dev/full")
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertIn("cannot write all of the output to stdout", done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertTrue((self.folder / "full.pt2").exists())
        done = self.export("größer.pt2", PYTHONIOENCODING="ascii")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wrote gr\\xf6\\xdfer.pt2", done.stdout)

    def test_a_folder_that_takes_no_file(self):
        done = self.export(f"{'n' * 250}.pt2")
        self.assertEqual(done.returncode, IO, done.stderr)
        self.assertNotIn("Traceback", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""modules/check-in-chroot.sh: its help, and what it refuses before it creates or removes anything."""

import os
import pathlib
import unittest

import harness

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "modules/check-in-chroot.sh"
USAGE, ENVIRONMENT = 2, 3


class CheckInChroot(harness.ProgramTest):
    def check(self, code, arguments, *words):
        ended = self.run_words([SCRIPT, *arguments])
        self.assertEqual(ended.code, code, str(ended))
        for word in words:
            self.assertIn(word, ended.stderr)
        return ended

    def test_help(self):
        told = self.check(0, ["--help"]).stdout
        for word in "debian-12", "debian-13", "ubuntu-24.04", "--only", "--root", "--data", "--record":
            self.assertIn(word, told)

    def test_mistakes(self):
        for arguments, word in [
            ([], "which system?"),
            (["debian-11"], "unknown system debian-11"),
            (["debian-13", "ubuntu-24.04"], "one system at a time"),
            (["--frsh", "debian-13"], "unknown option --frsh"),
            (["debian-13", "--root"], "--root needs a value"),
            (["--only", "build", "debian-13"], "must be demo, test or gpu"),
            (["--data", "nowhere", "debian-13"], "--data nowhere: no such folder"),
        ]:
            with self.subTest(word):
                self.check(USAGE, arguments, word)

    def test_a_folder_with_other_things_stays(self):
        before = harness.snapshot(self.folder)
        for options in [], ["--fresh"]:
            self.check(USAGE, [*options, "--root", self.folder, "debian-13"], "name another --root")
        self.assertEqual(harness.snapshot(self.folder), before)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, whom it does not refuse")
    def test_a_distribution_whose_keys_are_not_here(self):
        """Nothing is created, and the message says what is missing."""
        arguments = ["--root", "new", "--keyring", "none.gpg", "--record", "record.txt"]
        ended = self.run_words([SCRIPT, *arguments, "ubuntu-24.04"])
        self.assertEqual(ended.code, ENVIRONMENT, str(ended))
        self.assertRegex(ended.stderr, "no none.gpg: install the package|no debootstrap")
        self.assertFalse((self.folder / "new").exists())


if __name__ == "__main__":
    harness.main()

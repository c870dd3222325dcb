"""Trace files that are damaged or something else: told by name, with exit code 5, and never touched."""

import harness

USAGE, BAD_DATA = 2, 5


class BadTraces(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.expect(0, "run", "config.yaml", "-q", ranks=2)
        self.traces = [
            self.folder / "out" / "trace" / "a0" / f"rank-000{rank}.h5" for rank in range(2)
        ]
        self.good = self.traces[0].read_bytes()

    def test_validate(self):
        damages = {
            "empty": b"",
            "text": b"not a trace",
            "cut to half": self.good[: len(self.good) // 2],
            "cut in the superblock": self.good[:20],
            "zeros in the middle": self.good[:2048] + bytes(4096) + self.good[6144:],
        }
        for name, content in damages.items():
            with self.subTest(name):
                self.traces[1].write_bytes(content)
                before = harness.snapshot(self.folder)
                ended = self.run_program("validate", "out")
                self.check_refused(ended, BAD_DATA, ["1 of 2 files"])
                self.assertIn("rank-0000.h5: good", ended.stdout)
                self.assertIn("rank-0001.h5: BAD", ended.stdout)
                self.assertEqual(harness.snapshot(self.folder), before)

    def test_validate_names_what_is_missing(self):
        (self.folder / "empty").mkdir()
        for path, word in {
            "nowhere": "1 of 1 files",
            "empty": "no .h5 file under empty",
            "config.yaml": "1 of 1 files",
        }.items():
            with self.subTest(path):
                self.check_refused(self.run_program("validate", path), BAD_DATA, [word])
        self.check_refused(self.run_program("validate"), USAGE, ["validate what?"])

    def test_collect_leaves_bad_files_out(self):
        self.traces[1].write_bytes(self.good[:1000])
        ended = self.expect(0, "collect", "out")
        self.assertIn("left out", ended.stderr)
        self.assertIn("rank-0001.h5", ended.stderr)
        self.assertEqual(self.traces[1].read_bytes(), self.good[:1000])
        self.traces[1].unlink()
        self.expect(0, "collect", "out")

    def test_collect_needs_one_good_file(self):
        for trace in self.traces:
            trace.write_bytes(b"not a trace")
        before = harness.snapshot(self.folder)
        self.check_refused(
            self.run_program("collect", "out"),
            BAD_DATA,
            ["no usable trace", "rank-0000.h5", "rank-0001.h5"],
        )
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_collect_needs_a_run(self):
        (self.folder / "empty").mkdir()
        self.check_refused(
            self.run_program("collect", "empty"), BAD_DATA, ["no trace under empty", "rank-0000.h5"]
        )
        self.check_refused(
            self.run_program("collect", "nowhere"), USAGE, ["nowhere", "run directory"]
        )
        self.check_refused(
            self.run_program("collect", "config.yaml"), USAGE, ["config.yaml", "run directory"]
        )
        self.check_refused(self.run_program("collect"), USAGE, ["collect what?"])
        self.check_refused(
            self.run_program("collect", "out", "--format", "pdf"), USAGE, ["--format pdf", "latex"]
        )
        self.check_refused(
            self.run_program("collect", "out", "out", "-o", "one.h5"), USAGE, ["-o", "several runs"]
        )


if __name__ == "__main__":
    harness.main()

"""Files that are damaged or not traces: named, with exit code 5, and never changed."""

import random
import shutil

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
        self.check_refused(self.run_program("validate"), USAGE, ["FILE|DIR is missing"])

    def test_collect_leaves_bad_files_out(self):
        self.traces[1].write_bytes(self.good[:1000])
        ended = self.expect(0, "collect", "out")
        self.assertIn("left out", ended.stderr)
        self.assertIn("rank-0001.h5", ended.stderr)
        self.assertEqual(self.traces[1].read_bytes(), self.good[:1000])
        self.traces[1].unlink()
        self.expect(0, "collect", "out")

    def test_a_file_of_another_rank(self):
        self.traces[1].write_bytes(self.good)
        ended = self.run_program("validate", "out")
        self.check_refused(ended, BAD_DATA, ["1 of 2 files"])
        self.assertRegex(ended.stdout, r"rank-0001.h5: BAD\n  it holds the trace of rank 0\n")
        self.assertIn("holds the trace of rank 0", self.expect(0, "collect", "out").stderr)

    def test_damage_takes_one_file_at_most(self):
        """Damage at random bytes, and damage that crashed readers of traces with texts in a heap."""
        random.seed(8)
        size = len(self.good)
        flips = [{random.randrange(size): random.randrange(256) for _ in range(8)} for _ in range(20)]
        flips.append({884: 0x80, 3907: 0xC3, 4985: 0xFF, 5420: 0x7F})
        flips.append({at: 0 for at in range(6000, 8909)})
        flips.append({at: 0xFF for at in range(size // 2, size)})
        for number, changes in enumerate(flips):
            with self.subTest(number):
                content = bytearray(self.good)
                for at, byte in changes.items():
                    content[at] = byte
                self.traces[0].write_bytes(content)
                ended = self.run_program("validate", "out")
                self.assertIn(ended.code, (0, BAD_DATA), str(ended))
                self.assertIn("rank-0001.h5: good", ended.stdout)
                self.expect(0, "collect", "out", "--no-write")
                self.expect(0, "export-trace", "out")

    def test_collect_of_several_leaves_out_what_is_no_run(self):
        (self.folder / "empty").mkdir()
        ended = self.expect(0, "collect", "empty", "out", "nowhere", "config.yaml")
        for word in "no trace under empty", "nowhere is not a directory", "config.yaml is not a directory":
            self.assertIn("left out: " + word, ended.stderr)
        self.assertRegex(ended.stdout, r"(?m)^out +ddp ")
        ended = self.run_program("collect", "empty", "nowhere")
        self.check_refused(ended, BAD_DATA, ["no trace under empty"])

    def test_collect_says_which_folder_to_name(self):
        for inside in "out/trace/a0", "out/trace", "out/trace/a0/rank-0000.h5":
            ended = self.run_program("collect", inside)
            self.check_refused(ended, ended.code, ["name the run: `stratagem collect out`"])

    def test_collect_where_nothing_can_be_written(self):
        table = self.expect(0, "collect", "out", "--no-write").stdout
        self.assertFalse((self.folder / "out" / "collected.h5").exists())
        (self.folder / "out" / "collected.h5").mkdir()  # in the way
        ended = self.expect(0, "collect", "out")
        self.assertEqual(ended.stdout, table)
        self.assertIn("out/collected.h5 was not written", ended.stderr)
        self.assertEqual(list((self.folder / "out").glob("*.tmp*")), [])
        self.check_refused(self.run_program("collect", "out", "-o", "no/x.h5"), 6, ["no/x.h5"])
        self.check_refused(
            self.run_program("collect", "out", "-o", "x.h5", "--no-write"), USAGE, ["contradict"]
        )

    def test_collect_replaces_nothing_else(self):
        """A name on the command line may be mistaken; the same run may be collected again."""
        self.expect(0, "collect", "out", "-o", "joined.h5")
        self.expect(0, "collect", "out", "-o", "joined.h5")
        self.expect(0, *harness.overridden("run.out=other", "run.seed=2"), "-q")
        shutil.copy(self.traces[0], self.folder / "rank.h5")
        for name in "thesis.tex", "thesis.h5":
            (self.folder / name).write_text("years of work")
        before = harness.snapshot(self.folder)
        for run, file, why in [
            ("other", "joined.h5", "is there already, and has the traces of another run"),
            ("out", "rank.h5", "is there already, and is no file of collected traces"),
            ("out", "thesis.h5", "is there already, and is no file of collected traces"),
            ("out", "thesis.tex", "would be HDF5"),
        ]:
            self.check_refused(self.run_program("collect", run, "-o", file), USAGE, [file, why])
        self.assertEqual(harness.snapshot(self.folder), before)

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
        self.check_refused(self.run_program("collect"), USAGE, ["DIR is missing"])
        self.check_refused(
            self.run_program("collect", "out", "--format", "pdf"), USAGE, ["--format pdf", "latex"]
        )
        self.check_refused(
            self.run_program("collect", "out", "out", "-o", "one.h5"), USAGE, ["-o", "several runs"]
        )


if __name__ == "__main__":
    harness.main()

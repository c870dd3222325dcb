"""`stratagem_report.trace` reads traces as the documents say; the documents' own examples are run."""

import re
import shutil
import sys

import support
import harness
import h5py
import pandas as pd
from stratagem_report import trace
from stratagem_report.errors import ReportError

ROOT = support.ANALYSIS.parent
RUN = "runs/mnist-lenet-ddp"  # as the examples call it


def steps_in(path):
    """Number of steps in a trace; 0 while its writer has only begun the file."""
    try:
        return len(trace.read(path).ranks[0]["steps"])
    except ReportError:
        return 0


class Examples(harness.ProgramTest):
    def test_the_lines_in_the_documents_run(self):
        self.expect(0, *harness.overridden(f"run.out={RUN}"), "-q")
        (self.folder / "analysis").symlink_to(support.ANALYSIS)
        found = 0
        for document in "README.md", "inputs/README.md", "slurm/README.md", "analysis/README.md":
            text = (ROOT / document).read_text(encoding="utf-8")
            for lines in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
                with self.subTest(document):
                    ended = self.run_words([sys.executable, "-B", "-c", lines])
                    self.assertEqual(ended.code, 0, str(ended))
                    self.assertRegex(ended.stdout, r"(?m)^0 [0-9.]+ ms per step$")
                    found += 1
        self.assertGreater(found, 0)


class Traces(harness.ProgramTest):
    def test_texts_are_text_and_times_are_comparable(self):
        self.expect(0, *harness.overridden("trace.spans_every=1", "run.ranks=2"), "-q", ranks=2)
        run = trace.read(self.folder / "out")
        self.assertEqual([rank.rank for rank in run.ranks], [0, 1])
        begins = []
        for rank in run.ranks:
            self.assertIsInstance(rank["steps"], pd.DataFrame)
            spans, events = rank.named_spans(), rank.named_events()
            self.assertTrue({"forward", "backward"} <= set(spans["name"]))
            for text in *spans["name"], *spans["lane"], *events["name"], *events["text"]:
                self.assertIsInstance(text, str)
            begins.append(spans["begin"].min())
        own = [rank["spans"]["t_begin_ns"].min() for rank in run.ranks]
        self.assertEqual(begins[0], own[0], "rank 0's own clock")
        self.assertLess(abs(begins[1] - begins[0]), 50e9)
        one = trace.read(self.folder / "out" / "trace" / "a0" / "rank-0001.h5")
        self.assertEqual([rank.rank for rank in one.ranks], [1])
        self.assertTrue(one.ranks[0]["steps"].equals(run.ranks[1]["steps"]))

    def test_a_name_that_is_not_written_yet(self):
        names, spans = pd.DataFrame({"name": ["forward"]}), pd.DataFrame()
        rank = trace.RankTrace(0, {"names": names, "spans": spans}, {}, {}, False)
        self.assertEqual(list(rank.texts([0, 1, -1])), ["forward", "", ""])

    def test_a_growing_trace_is_read_again_and_again(self):
        process = self.start([self.program, *harness.overridden(*harness.ENDLESS), "-q"])
        self.await_trace(0)
        path = self.folder / "out" / "trace" / "a0" / "rank-0000.h5"
        counts = []

        def grown():
            counts.append(steps_in(path))
            return counts[-1] > min(filter(None, counts), default=counts[-1])

        try:
            self.assertTrue(harness.comes_true(grown), counts)
            self.assertFalse(trace.read(path).ranks[0].closed)
            with h5py.File(path, "r", swmr=True) as file:  # as analysis/README.md says
                self.assertGreaterEqual(len(file["steps/step"]), counts[-1])
        finally:
            process.kill()
            self.wait(process)
        self.assertEqual(list(trace.read(path).ranks[0]["steps"]["step"])[:2], [0, 1])

    def test_a_killed_rank_s_trace_is_read(self):
        process = self.start([self.program, *harness.overridden(*harness.ENDLESS), "-q"])
        self.await_trace(0)
        path = self.folder / "out" / "trace" / "a0" / "rank-0000.h5"
        harness.comes_true(lambda: steps_in(path) > 10)
        process.kill()
        self.wait(process)
        read = trace.read_run(self.folder / "out")
        steps = read.ranks[0]["steps"]
        self.assertGreater(len(steps), 10)
        self.assertEqual(list(steps["step"]), list(range(len(steps))))
        self.assertIn(f"was not closed: {len(steps)} steps of rank 0 were read", read.remarks[0])

    def test_of_a_repeated_step_the_later_attempt_counts(self):
        self.expect(0, "run", "config.yaml", "-q")
        self.expect(0, *harness.overridden("run.out=again", "run.seed=2", "run.max_steps=2"), "-q")
        shutil.copytree(
            self.folder / "again" / "trace" / "a0", self.folder / "out" / "trace" / "a1"
        )
        first, second = (trace.read_run(self.folder / name).ranks[0] for name in ("out", "again"))
        self.assertEqual(
            list(first["steps"]["loss"]), list(second["steps"]["loss"]), "all steps were made again"
        )
        self.expect(0, "collect", "out", "-o", "joined.h5")
        joined = trace.read_file(self.folder / "joined.h5")[0]
        self.assertEqual(list(joined.tables), list(first.tables))
        for name in joined.tables:
            self.assertTrue(joined[name].equals(first[name]), name)

    def test_what_the_report_lists_by_name_is_what_the_file_has(self):
        self.expect(0, *harness.overridden("trace.spans_every=1"), "-q")
        rank = trace.read(self.folder / "out").ranks[0]
        self.assertLessEqual({"steps", "ps", "memory", "memory/breakdown"}, set(rank.tables))
        durations = {name for name in rank["steps"] if name.startswith("dur_")}
        self.assertEqual(durations, {*(f"dur_{phase}_ns" for phase in trace.PHASES), "dur_step_ns"})
        self.assertEqual(set(rank["memory/breakdown"]), {"t_ns", *trace.MEMORY_CATEGORIES})
        with h5py.File(self.folder / "out/trace/a0/rank-0000.h5", "r") as file:
            lanes = file["spans/lane"].attrs["long_name"]
            self.assertEqual(trace.text(lanes), ", ".join(f"{n} {name}" for n, name in enumerate(trace.LANES)))


if __name__ == "__main__":
    harness.main()

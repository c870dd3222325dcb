"""`stratagem export-trace` writes JSON for Perfetto with the same contents as the trace."""

import json

import support
import harness
from stratagem_report import trace

USAGE, BAD_DATA = 2, 5


class ExportTrace(support.StudyTest):
    cells = [("ddp", 2, 1), ("ps-async", 2, 1)]

    def test_spans_match_the_trace(self):
        for cell in "head-lenet-ddp-w2-s1", "head-lenet-ps-async-w2-s1":
            with self.subTest(cell):
                self.expect(0, "export-trace", f"study/{cell}")
                events = json.loads((self.study / cell / "trace.json").read_text())["traceEvents"]
                slices = [event for event in events if event["ph"] == "X"]
                read = trace.read_run(self.study / cell)
                origin = min(self.begins(read))
                for rank in read.ranks:
                    own = [event for event in slices if event["pid"] == rank.rank]
                    for lane in trace.LANES:
                        self.check_lane(
                            rank, lane, [event for event in own if event["cat"] == lane], origin
                        )
                    self.assertEqual(
                        len([event for event in own if event["cat"] == "steps"]), len(rank["steps"])
                    )
                    self.assertEqual(
                        len([event for event in own if event["cat"].startswith("updates")]),
                        len(rank["ps"]),
                    )
                self.check_rows(slices)

    @staticmethod
    def begins(read):
        """Begin times of everything that is exported, on rank 0's clock [ns]."""
        columns = [
            ("steps", "t_begin_ns"),
            ("spans", "t_begin_ns"),
            ("ps", "t_ready_ns"),
            ("memory", "t_ns"),
            ("device", "t_ns"),
        ]
        return [
            int(rank.on_rank0_clock(rank[table][column]).min())
            for rank in read.ranks
            for table, column in columns
            if len(rank[table])
        ]

    def check_lane(self, rank, lane, events, origin):
        spans = rank.named_spans()
        spans = spans[spans["lane"] == lane]
        expected = sorted(
            zip(
                spans["name"],
                (spans["begin"] - origin) / 1e3,
                (spans["end"] - spans["begin"]) / 1e3,
            )
        )
        told = sorted((event["name"], event["ts"], event["dur"]) for event in events)
        self.assertEqual([name for name, _, _ in told], [name for name, _, _ in expected])
        for (_, begin, duration), (_, ts, dur) in zip(expected, told):
            self.assertAlmostEqual(begin, ts, delta=0.002)  # both round to ns
            self.assertAlmostEqual(duration, dur, delta=0.002)

    def check_rows(self, slices):
        """Slices in one row do not overlap."""
        rows = {}
        for event in slices:
            rows.setdefault((event["pid"], event["tid"]), []).append(
                (event["ts"], event["ts"] + event["dur"])
            )
        for row in rows.values():
            for (_, end), (begin, _) in zip(sorted(row), sorted(row)[1:]):
                self.assertLessEqual(end, begin + 0.002)

    def test_refusals(self):
        (self.folder / "empty").mkdir()
        for arguments, code, words in [
            (["empty"], BAD_DATA, ["no trace under empty"]),
            (["nowhere"], USAGE, ["nowhere", "run directory"]),
            ([], USAGE, ["DIR is missing"]),
            (["study/head-lenet-ddp-w2-s1", "--format", "pdf"], USAGE, ["--format pdf", "chrome"]),
        ]:
            with self.subTest(arguments):
                self.check_refused(self.run_program("export-trace", *arguments), code, words)


if __name__ == "__main__":
    harness.main()

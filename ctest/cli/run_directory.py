"""The files of a run are never overwritten, and its end is recorded even if the disk is full."""

import json

import harness
from harness import Refusal, overridden

USAGE, IO, UNUSABLE, CELLS_MISSING = 2, 6, 7, 8
RUN = ["run", "config.yaml", "-q"]


class RunDirectory(harness.ProgramTest):
    def refused(self, words, *arguments, code=USAGE, ranks=1):
        before = harness.snapshot(self.folder)
        self.check_refused(self.run_program(*RUN, *arguments, ranks=ranks), code, words)
        self.assertEqual(harness.snapshot(self.folder), before)

    def edit_outcome(self, **changes):
        path = self.folder / "out" / "outcome.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    def test_complete(self):
        self.expect(0, *RUN)
        self.refused(["out is taken", "COMPLETE", "--overwrite"], ranks=2)
        self.refused(["finished run in out", "workers was 1 and is 2"], "--resume", code=UNUSABLE, ranks=2)
        before = harness.snapshot(self.folder)
        ended = self.expect(0, "run", "config.yaml", "--resume")
        self.assertIn("nothing to do", ended.stderr)
        self.assertEqual(harness.snapshot(self.folder), before)

    def test_overwrite_moves_aside(self):
        self.expect(0, *RUN)
        before = harness.snapshot(self.folder / "out")
        self.expect(0, *RUN, "--overwrite")
        aside = [path for path in self.folder.iterdir() if path.name.startswith("out.old-")]
        self.assertEqual([harness.snapshot(path) for path in aside], [before])
        self.assertEqual(self.outcome()["status"], "COMPLETE")

    def test_unfinished(self):
        self.expect(0, *RUN)
        first = (self.folder / "out" / "trace" / "a0" / "rank-0000.h5").read_bytes()
        for status in "FAILED", "RUNNING":  # the process that wrote RUNNING has ended
            self.edit_outcome(status=status)
            self.refused(["out is taken", "unfinished", "--resume"])
        self.expect(0, *RUN, "--resume")
        self.assertEqual((self.outcome()["status"], self.outcome()["attempt"]), ("COMPLETE", 1))
        self.assertEqual(
            (self.folder / "out" / "trace" / "a0" / "rank-0000.h5").read_bytes(), first
        )
        rows = (self.folder / "out" / "metrics.csv").read_text().splitlines()
        self.assertEqual([row.split(",")[0] for row in rows], ["attempt", "0", "1"])
        table = json.loads(self.expect(0, "collect", "out", "--format", "json").stdout)
        self.assertEqual(table["cells"][0]["steps"], 3, "of a repeated step the later attempt counts")

    def test_in_use(self):
        self.expect(0, *RUN)
        self.edit_outcome(status="RUNNING", process=1)  # a process that lives as long as this test
        for option in [], ["--resume"], ["--overwrite"]:
            self.refused(["out is taken", "process 1", "wait"], *option)

    def test_damaged_outcome(self):
        self.expect(0, *RUN)
        (self.folder / "out" / "outcome.json").write_text('{"status": "COMP')
        self.refused(["outcome.json is damaged", "aside"], code=IO)

    def test_taken_by_something_else(self):
        (self.folder / "out").write_text("a file")
        self.refused(["out is taken", "it is a file"], ranks=2)
        (self.folder / "out").unlink()
        (self.folder / "out").mkdir()
        (self.folder / "out" / "thesis.tex").write_text("years of work")
        for option in [], ["--resume"]:
            self.refused(["out is taken", "no run"], *option)

    def test_how_it_stands(self):
        self.expect(0, *RUN)
        told = self.expect(0, "status", "out", "--check").stdout
        self.assertRegex(told, r"(?m)^run +state +steps +train s +test % +updated +reason$")
        self.assertRegex(told, r"(?m)^out +complete +3 +[\d.]+ +[\d.]+ +\d+-\S+ +max_steps$")
        for changes, state in [
            ({"status": "SAVED", "exit_code": 75, "reason": "interrupted"}, "saved"),
            ({"status": "FAILED", "exit_code": 84, "reason": "the loss is not finite"}, "failed"),
            ({"status": "RUNNING", "process": 999999999}, "lost"),
        ]:
            self.edit_outcome(**changes)
            self.assertRegex(self.expect(0, "status", "out").stdout, rf"(?m)^out +{state} +3 ")
            self.expect(CELLS_MISSING, "status", "out", "--check")
        rows = self.expect(0, "status", "out", "--format", "csv").stdout.splitlines()
        self.assertEqual((len(rows), rows[0].split(",")[:2]), (2, ["run", "state"]))
        self.assertRegex(self.expect(0, "status", ".").stdout, r"(?m)^\./out +lost ")
        (self.folder / "empty").mkdir()
        self.check_refused(self.run_program("status", "empty"), USAGE, ["not a study directory"])

    def test_options_that_contradict(self):
        self.refused(["--resume and --overwrite"], "--resume", "--overwrite")

    def test_unwritable(self):
        self.check_refusals(
            [
                Refusal(
                    "below a file",
                    overridden("run.out=config.yaml/out"),
                    IO,
                    ["cannot create config.yaml/out", "writable"],
                    ranks=(2,),
                ),
                Refusal(
                    "in /proc",
                    overridden("run.out=/proc/out"),
                    IO,
                    ["cannot create /proc/out", "writable"],
                ),
            ]
        )


class FullDisk(harness.ProgramTest):
    """No file may grow beyond a limit that a trace reaches: training ends with its result."""

    limit_KiB = 200
    settings = [
        "run.max_steps=400",
        "run.epochs=100",
        "run.evaluate_every=100",
        "trace.spans_every=1",
        "data.subset=1200",
        "checkpoint.at_end=false",
    ]
    # Open MPI's shared memory is also a file.
    transport = ["--mca", "btl", "self,tcp"]

    def check(self, ranks, limited):
        run = [self.program, *overridden(*self.settings)]
        with_limit = ["bash", "-c", f'ulimit -f {self.limit_KiB}; exec "$@"', "bash", *run]
        jobs = [with_limit if rank in limited else run for rank in range(ranks)]
        ended = self.run_words(harness.different_ranks(jobs, *self.transport))
        self.assertEqual(ended.code, IO, str(ended))
        for rank in limited:
            self.assertIn(f"the trace of rank {rank} is incomplete", ended.stderr)
        outcome = self.outcome()
        self.assertEqual(
            {
                key: outcome[key]
                for key in ("status", "exit_code", "reason", "steps", "trace_complete")
            },
            {
                "status": "COMPLETE",
                "exit_code": IO,
                "reason": "max_steps",
                "steps": 400,
                "trace_complete": False,
            },
        )
        self.assertGreater(outcome["test_accuracy"], 0.3)
        self.assertEqual(len(outcome["digest"]), 16)
        return ended

    def test_one_rank(self):
        self.check(1, [0])

    def test_one_of_two_ranks(self):
        self.check(2, [1])
        collected = self.expect(0, "collect", "out", "--format", "json")
        self.assertEqual(
            json.loads(collected.stdout)["cells"][0]["steps"], 400, "rank 0 has a trace of all steps"
        )
        self.assertIn("rank-0001.h5", collected.stderr)


if __name__ == "__main__":
    harness.main()

"""A bit that changes on one rank alone is found, named, and never saved."""

import harness
from harness import overridden

DIVERGED = 83
RANKS = 3
STEPS = ["run.max_steps=40", "run.epochs=5"]
FIRST = "parameters/fc1.weight"  # the tensor in which the program's failpoint changes a bit


class Integrity(harness.ProgramTest):
    def train(self, code, *settings, flip=None, ranks=RANKS, more=()):
        """`flip`: a rank, and the step after which one of its bits changes."""
        fault = {"STRATAGEM_FAIL": f"optimizer:{flip[0]}:{flip[1]}:corrupt"} if flip else {}
        words = overridden(*STEPS, *settings)
        return self.expect(code, *words, *more, ranks=ranks, environment=fault)

    def check_named(self, ended, step, where):
        self.check_refused(ended, DIVERGED, [f"replicas differ at step {step}: {FIRST} {where}"])

    def test_within_the_interval(self):
        for rank, after, found in [(0, 0, 5), (1, 4, 5), (2, 5, 10), (1, 12, 15), (0, 34, 35)]:
            with self.subTest(rank=rank, after=after):
                out = f"out-{rank}-{after}"
                ended = self.train(
                    DIVERGED, "integrity.hash_every=5", f"run.out={out}", flip=(rank, after)
                )
                self.check_named(ended, found, f"on rank {rank}")
                self.assertIn("no checkpoint was saved", ended.stderr)
                outcome = self.outcome(out)
                self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", DIVERGED))

    def test_two_ranks_have_no_majority(self):
        ended = self.train(DIVERGED, "integrity.hash_every=5", flip=(1, 7), ranks=2)
        self.check_named(ended, 10, "between ranks 0, 1")

    def test_before_saving(self):
        settings = ["checkpoint.every_steps=10"]  # hashes go every 100 steps
        ended = self.train(DIVERGED, *settings, flip=(2, 15))
        self.check_named(ended, 20, "on rank 2")
        saved = self.folder / "out" / "checkpoint"
        self.assertEqual([path.name for path in saved.iterdir()], ["step-000000010"])
        self.assertIn("the newest checkpoint is out/checkpoint/step-000000010", ended.stderr)
        self.train(0, *settings, more=["--resume"])
        self.train(0, "run.out=straight")
        self.assertEqual(self.outcome()["digest"], self.outcome("straight")["digest"])

    def test_before_the_result(self):
        ended = self.train(DIVERGED, "run.save_weights=weights.safetensors", flip=(0, 39))
        self.check_named(ended, 40, "on rank 0")
        self.assertFalse((self.folder / "weights.safetensors").exists())

    def test_nobody_looks_where_nobody_is_told_to(self):
        self.train(0, "integrity.hash_every=0", "checkpoint.every_steps=10", flip=(1, 5))


if __name__ == "__main__":
    harness.main()

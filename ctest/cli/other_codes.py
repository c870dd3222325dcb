"""Gradients of which a few elements travel, or factors: what a plan promises, what is refused, and resumed runs."""

import json

import harness
from harness import overridden

USAGE = 2
SAVED_ONCE = ["checkpoint.every_steps=3", "checkpoint.at_end=false"]
TOP_K, RANDOM_K, LOW_RANK, INT8 = (f"strategy.compression={code}" for code in ("top_k", "random_k", "low_rank", "int8"))
FEEDBACK, CORRECTED = "strategy.error_feedback=true", "strategy.momentum_correction=true"
CODES = [TOP_K, "strategy.ratio=0.05"], [RANDOM_K, "strategy.ratio=0.05", CORRECTED], [LOW_RANK]


class OtherCodes(harness.ProgramTest):
    def plan(self, code, *more):
        words = ["plan", "config.yaml", "--ranks", "2", "-s", "model.name=lenet"]
        for text in more:
            words += ["-s", text] if "=" in text else [text]
        return self.expect(code, *words)

    def test_a_plan_tells_the_bytes_of_buckets(self):
        control = 2 * 32 * 4 // 2
        for code, exact in (([TOP_K, "strategy.ratio=0.1"], True), ([RANDOM_K], False), ([LOW_RANK, FEEDBACK], True)):
            told = json.loads(self.plan(0, "--json", "strategy.name=ddp", "strategy.bucket_mb=0.01", *code).stdout)
            coded = sum(bucket["coded_bytes"] for bucket in told["buckets"])
            # Two ranks send what they have once, or in an all-reduce as much.
            self.assertAlmostEqual(told["bytes_sent_per_step"] - control, coded, delta=0 if exact else 16, msg=code)
        self.assertIn("in top_k", self.plan(0, "strategy.name=ddp", TOP_K).stdout)

    def train(self, out, settings, ranks, *more):
        base = [f"run.out={out}", "model.name=lenet", "data.global_batch=24", "run.max_steps=6", *settings]
        self.expect(0, *overridden(*base), *more, ranks=ranks)
        return self.outcome(out)["digest"]

    def train_and_resume(self, out, first, ranks, second, others, *more):
        """As if the run had been interrupted after its checkpoint of step 3."""
        self.train(out, [*first, "run.max_steps=4"], ranks)
        path = self.folder / out / "outcome.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "SAVED"}))
        return self.train(out, second, others, *more)

    def test_resumed_with_what_codes_keep(self):
        for place, code in enumerate(CODES):
            with self.subTest(code=code):
                code = [*code, FEEDBACK, *SAVED_ONCE]
                ddp = ["strategy.name=ddp", "strategy.bucket_mb=0.01", *code]
                serial = ["strategy.name=serial", "strategy.emulate_ranks=2", *code]
                expected = self.train(f"straight{place}", ddp, 2)
                self.assertEqual(self.train_and_resume(f"a{place}", ddp, 2, serial, 1, "--resume"), expected)
                self.assertEqual(self.train_and_resume(f"b{place}", serial, 1, ddp, 2, "--resume"), expected)
        self.train_and_resume("c", ddp, 2, ["strategy.name=ddp", *CODES[0], FEEDBACK], 3, "--resume=compatible")

    def test_what_cannot_be(self):
        table = [
            (["strategy.ratio=0.1"], "strategy.ratio without strategy.compression"),
            ([CORRECTED], "momentum_correction: true without strategy.compression"),
            ([INT8, "strategy.ratio=0.1"], "strategy.ratio together with strategy.compression: int8"),
            ([INT8, "strategy.matrix_rank=3"], "strategy.matrix_rank together with strategy.compression: int8"),
            ([TOP_K, "strategy.matrix_rank=3"], "strategy.matrix_rank together with strategy.compression: top_k"),
            ([TOP_K, "strategy.rounding=stochastic"], "strategy.rounding: stochastic together with"),
            ([TOP_K, "strategy.ratio=0"], "ratio"),
            ([TOP_K, "strategy.ratio=1.01"], "ratio"),
            ([TOP_K, "strategy.ratio=.nan"], "ratio"),
            ([TOP_K, "precision.compute=fp64"], "together with precision.compute: fp64"),
            ([LOW_RANK], "strategy.compression: low_rank without strategy.error_feedback: true"),
            ([LOW_RANK, FEEDBACK, "strategy.matrix_rank=0"], "matrix_rank"),
            ([LOW_RANK, FEEDBACK, CORRECTED], "momentum_correction: true together with strategy.compression: low_rank"),
            ([TOP_K, CORRECTED], "momentum_correction: true without strategy.error_feedback: true"),
            ([TOP_K, FEEDBACK, CORRECTED, "optimizer.momentum=0"], "together with optimizer.momentum: 0"),
            ([TOP_K, FEEDBACK, CORRECTED, "optimizer.nesterov=true"], "together with optimizer.nesterov: true"),
            ([TOP_K, FEEDBACK, CORRECTED, "optimizer.name=adamw"], "together with optimizer.name: adamw"),
            (["strategy.name=fsdp", TOP_K], "compression"),
            (["strategy.name=fsdp", INT8, "strategy.ratio=0.1"], "ratio"),
        ]
        for settings, words in table:
            with self.subTest(settings=settings):
                ended = self.plan(USAGE, "strategy.name=ddp", *settings)
                self.assertIn(words, ended.stderr)
        ended = self.expect(USAGE, *overridden("strategy.name=serial", TOP_K, "strategy.compressed_sums=false"))
        self.assertIn("compressed_sums: false together with strategy.compression: top_k", ended.stderr)


if __name__ == "__main__":
    harness.main()

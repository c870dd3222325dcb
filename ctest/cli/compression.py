"""Gradients that travel in a code: what a plan promises, what is refused, and resumed runs."""

import json

import harness
from harness import overridden

USAGE, CHECKPOINT = 2, 7
SAVED_ONCE = ["checkpoint.every_steps=3", "checkpoint.at_end=false"]
CODES = "bf16", "fp16", "int8", "int4", "natural", "ternary", "sign"


class Compression(harness.ProgramTest):
    def settings(self, out, *more):
        return overridden(f"run.out={out}", "model.name=lenet", "data.global_batch=24", "run.max_steps=6", *more)

    def planned(self, *more):
        words = ["plan", "config.yaml", "--json", "--ranks", "2", "-s", "model.name=lenet"]
        return json.loads(self.expect(0, *words, *(word for text in more for word in ("-s", text))).stdout)

    def test_a_plan_tells_the_bytes(self):
        sent = {code: self.planned("strategy.name=ddp", f"strategy.compression={code}")["bytes_sent_per_step"]
                for code in ("none", *CODES)}
        control = 2 * 32 * 4 // 2
        blocks = (sent["bf16"] - control) // 64
        for code, wire in zip(CODES, (64, 64, 33, 17, 32, 10, 6)):
            self.assertEqual(sent[code], control + blocks * wire, code)
        self.assertLess(abs(sent["none"] - control - 128 * blocks), 0.01 * sent["none"])
        for code, wire in zip(CODES, (64, 64, 33, 17, 32, 10, 6)):
            pushed = self.planned("strategy.name=ps", f"strategy.compression={code}")["bytes_sent_per_step"]
            self.assertEqual(pushed, self.planned("strategy.name=ps")["bytes_sent_per_step"] * wire // 128, code)
        shown = self.expect(0, "plan", "config.yaml", "--ranks", "2", "-s", "strategy.compression=int8").stdout
        self.assertIn("in int8", shown)

    def test_commbench_tells_which_code_pays(self):
        ended = self.expect(0, "commbench", "--codes", "--ranks", "4", "--json", "codes.json")
        self.assertIn("pays below Gbit/s", ended.stdout)
        told = json.loads((self.folder / "codes.json").read_text())
        self.assertEqual(list(dict.fromkeys(row["code"] for row in told["codes"])), list(CODES))
        for row in told["codes"]:
            self.assertGreater(row["pays_below_B_per_s"], 0)
            self.assertIn(f"\n{row['code']} ", ended.stdout)

    def train_in_part(self, out, settings, ranks):
        """As if the run had been interrupted after its checkpoint of step 3."""
        self.expect(0, *self.settings(out, *settings, "run.max_steps=4"), ranks=ranks)
        path = self.folder / out / "outcome.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "SAVED"}))

    def train_and_resume(self, out, first, ranks, second, others, *more):
        self.train_in_part(out, first, ranks)
        ended = self.expect(0, *self.settings(out, *second), *more, ranks=others)
        self.assertIn("after step 3", ended.stderr)
        return self.outcome(out)["digest"]

    def expect_resumable(self, ranked, serial, other):
        """On 2 ranks, by one process, and on 2 ranks with other settings; tells the digest of all."""
        self.expect(0, *self.settings("straight", *ranked), ranks=2)
        expected = self.outcome("straight")["digest"]
        for out, first, ranks, second, others in [
            ("a", ranked, 2, serial, 1), ("b", serial, 1, ranked, 2), ("c", ranked, 2, other, 2)
        ]:
            found = self.train_and_resume(out, first, ranks, second, others, "--resume")
            self.assertEqual(found, expected, out)
        return expected

    def test_resumed_with_the_residuals_of_all(self):
        code = ["strategy.compression=sign", "strategy.error_feedback=true", *SAVED_ONCE]
        ddp = ["strategy.name=ddp", "strategy.bucket_mb=0.01", *code]
        serial = ["strategy.name=serial", "strategy.emulate_ranks=2", *code]
        expected = self.expect_resumable(ddp, serial, ddp)
        plain = ["strategy.name=ddp", *SAVED_ONCE]
        for place, (others, way) in enumerate([(3, ddp), (2, plain)]):
            found = self.train_and_resume(f"d{place}", ddp, 2, way, others, "--resume=compatible")
            self.assertNotEqual(found, expected)
        self.assertNotEqual(self.train_and_resume("e", plain, 2, ddp, 2, "--resume=compatible"), expected)

    def test_shards_resumed_with_the_residuals_of_all(self):
        """The sum is not coded, so only such a checkpoint fits."""
        code = ["strategy.compression=sign", "strategy.error_feedback=true", *SAVED_ONCE]
        fsdp = ["strategy.name=fsdp", "strategy.unit_mb=0.1", *code]
        serial = ["strategy.name=serial", "strategy.emulate_ranks=2", "strategy.compressed_sums=false", *code]
        expected = self.expect_resumable(fsdp, serial, [*fsdp, "strategy.shard=optimizer"])
        ddp = ["strategy.name=ddp", *code]
        self.assertNotEqual(self.train_and_resume("d", fsdp, 2, ddp, 2, "--resume=compatible"), expected)
        self.train_in_part("e", fsdp, 2)
        refused = self.expect(CHECKPOINT, *self.settings("e", *ddp), "--resume", ranks=2)
        self.assertIn("compressed_sums", refused.stderr)

    def test_resumed_with_parameters_that_are_gathered_in_a_code(self):
        code = ["strategy.parameter_compression=int8", *SAVED_ONCE]
        fsdp = ["strategy.name=fsdp", "strategy.unit_mb=0.1", *code]
        serial = ["strategy.name=serial", "strategy.emulate_ranks=2", *code]
        self.expect_resumable(fsdp, serial, [*fsdp, "strategy.shard=optimizer"])
        self.train_in_part("d", fsdp, 2)
        for others in ["strategy.name=ddp"], ["strategy.name=fsdp", "strategy.parameter_compression=int4"]:
            refused = self.expect(CHECKPOINT, *self.settings("d", *others), "--resume", ranks=2)
            self.assertIn("strategy.parameter_compression", refused.stderr)

    def test_a_plan_tells_the_bytes_of_gathers(self):
        planned = {code: self.planned("strategy.name=fsdp", f"strategy.parameter_compression={code}")
                   for code in ("none", "bf16", "int8", "int4")}
        gathered = {code: plan["fsdp"]["gathered_bytes_per_step"] for code, plan in planned.items()}
        for code, wire in ("bf16", 64), ("int8", 33), ("int4", 17):
            self.assertAlmostEqual(gathered[code] / gathered["none"], wire / 128, delta=0.02, msg=code)
            less = gathered["none"] - gathered[code]
            self.assertEqual(planned["none"]["bytes_sent_per_step"] - planned[code]["bytes_sent_per_step"], less)
        shown = self.expect(0, "plan", "config.yaml", "--ranks", "2", "-s", "strategy.name=fsdp",
                            "-s", "strategy.parameter_compression=int8").stdout
        self.assertIn("sent, in int8", shown)

    def test_pushes_resumed_with_the_residuals_of_all(self):
        code = ["strategy.compression=sign", "strategy.error_feedback=true", *SAVED_ONCE]
        ps = ["strategy.name=ps", "strategy.servers=2", "strategy.chunk_mb=0.25", *code]
        fsdp = ["strategy.name=fsdp", *code]
        serial = ["strategy.name=serial", "strategy.emulate_ranks=2", "strategy.compressed_sums=false", *code]
        self.expect(0, *self.settings("straight", *fsdp), ranks=2)
        expected = self.outcome("straight")["digest"]
        self.assertEqual(self.train_and_resume("a", serial, 1, ps, 4, "--resume"), expected)
        self.train_in_part("b", ps, 4)
        refused = self.expect(CHECKPOINT, *self.settings("b", "strategy.name=ddp", *code), "--resume", ranks=2)
        self.assertIn("compressed_sums", refused.stderr)
        self.expect(0, *self.settings("b", *fsdp), "--resume", ranks=2)
        self.assertEqual(self.outcome("b")["digest"], expected)

    def test_asynchronous_pushes_are_replayed(self):
        code = ["strategy.compression=int4", "strategy.rounding=stochastic", "strategy.error_feedback=true"]
        self.expect(0, *self.settings("run", "strategy.name=ps", "strategy.mode=dana", *code), ranks=3)
        self.assertIn("bit for bit", self.expect(0, "replay", "run").stdout)

    def test_what_cannot_be(self):
        int8 = "strategy.compression=int8"
        table = [
            (["strategy.error_feedback=true"], "strategy.error_feedback: true without strategy.compression"),
            (["strategy.rounding=stochastic"], "strategy.rounding: stochastic without strategy.compression"),
            ([int8, "precision.compute=fp64"], "together with precision.compute: fp64"),
            ([int8, "precision.compute=bf16", "precision.loss_scale=dynamic"], "precision.loss_scale: dynamic"),
            (["strategy.compression=int9"], "int8"),
            (["strategy.name=fsdp", int8, "strategy.reduce=compute"], "strategy.reduce: compute"),
            (["strategy.name=fsdp", int8, "strategy.micro_batches=2"], "accumulate: sharded"),
            (["strategy.name=fsdp", "strategy.parameter_compression=sign"], "int8"),
            (["strategy.parameter_compression=int8"], "strategy.parameter_compression"),
            (["strategy.name=fsdp", "strategy.parameter_compression=int8", "precision.compute=fp64"],
             "strategy.parameter_compression: int8 together with precision.compute: fp64"),
            (["strategy.name=ps", "strategy.rounding=stochastic"], "stochastic without strategy.compression"),
            (["strategy.name=ps", int8, "precision.compute=fp64"], "together with precision.compute: fp64"),
            (["strategy.name=ps", int8, "precision={compute: bf16, loss_scale: dynamic}"], "loss_scale: dynamic"),
            (["strategy.name=ps", "strategy.compression=top_k"], "int8"),
        ]
        for settings, words in table:
            with self.subTest(settings=settings):
                settings = settings if settings[0].startswith("strategy.name") else ["strategy.name=ddp", *settings]
                ended = self.expect(USAGE, *self.settings("x", *settings), ranks=2)
                self.assertIn(words, ended.stderr)
                self.assertFalse((self.folder / "x").exists())
        ended = self.expect(USAGE, *self.settings("x", "strategy.name=serial", int8, "strategy.accumulate=sharded"))
        self.assertIn("accumulate: sharded", ended.stderr)
        ended = self.expect(USAGE, *self.settings("x", "strategy.name=serial", "strategy.compressed_sums=false"))
        self.assertIn("compressed_sums: false without strategy.compression", ended.stderr)


if __name__ == "__main__":
    harness.main()

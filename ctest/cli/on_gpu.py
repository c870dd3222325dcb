"""The program on a real GPU; all ranks share it if there is only one."""

import json
import os

import harness
from harness import overridden


class OnGpu(harness.ProgramTest):
    common = ["model.name=lenet", "run.max_steps=8", "run.evaluate_every=0", "trace.spans_every=2"]

    def setUp(self):
        super().setUp()
        if '"GPUs": "none' in self.run_program("info", "--json").stdout:
            self.skipTest("needs a GPU")

    def finish(self, name, *settings, ranks=1):
        self.expect(0, *overridden(f"run.out={name}", "run.device=cuda", *self.common, *settings), "-q", ranks=ranks)
        outcome = self.outcome(name)
        self.assertEqual((outcome["status"], outcome["trace_complete"]), ("COMPLETE", True))
        return outcome

    def test_strategies_agree_bit_for_bit(self):
        for precision in ("fp32", "tf32", "bf16", "fp16"):
            common = ["run.deterministic=true", f"precision.compute={precision}"]
            emulated = ["strategy.name=serial", "strategy.emulate_ranks=2"]
            serial = self.finish(f"{precision}-serial", *common, *emulated)
            for strategy in ("ddp", "fsdp"):
                with self.subTest(precision, strategy=strategy):
                    spread = self.finish(
                        f"{precision}-{strategy}", *common, f"strategy.name={strategy}", ranks=2
                    )
                    self.assertEqual(spread["digest"], serial["digest"])

    def test_nccl_gives_the_bits_of_mpi(self):
        if os.environ.get("NCCL_MULTI_RANK_GPU_ENABLE") != "1":
            self.skipTest("needs NCCL >= 2.30 and NCCL_MULTI_RANK_GPU_ENABLE=1")
        for strategy in ("ddp", "fsdp"):
            common = ["run.deterministic=true", f"strategy.name={strategy}"]
            mpi = self.finish(f"{strategy}-mpi", *common, "comm.backend=mpi", ranks=2)
            nccl = self.finish(f"{strategy}-nccl", *common, "comm.backend=nccl", ranks=2)
            self.assertEqual(nccl["digest"], mpi["digest"])

    def test_a_graph_has_the_same_bits(self):
        cells = [("serial", "resnet50", "bf16"), ("ddp", "lenet", "fp16"), ("fsdp", "vit_tiny", "fp32")]
        for strategy, model, precision in cells:
            with self.subTest(strategy, model=model, precision=precision):
                settings = [
                    "run.deterministic=true", f"model.name={model}", f"strategy.name={strategy}",
                    f"precision.compute={precision}", "data.input_size=32",
                ]
                kept = self.finish(f"{strategy}-kept", *settings, "run.graph=on")
                anew = self.finish(f"{strategy}-anew", *settings, "run.graph=off")
                self.assertEqual(kept["digest"], anew["digest"])
                names = self.dumped(f"{strategy}-kept/trace/a0/rank-0000.h5", "/names/name")
                self.assertTrue(any("graph_captured" in name for name in names), names)

    def test_a_model_that_waits_for_the_device_has_no_graph(self):
        settings = ["model.name=gpt2", "model.layers=2", "model.heads=2", "model.width=32", "model.context=16",
                    "model.experts=4", "data.dataset=synthetic-text", "data.seq_len=16"]
        self.finish("experts", *settings)
        refused = self.run_program(
            *overridden("run.out=no", "run.device=cuda", *self.common, *settings, "run.graph=on"), "-q"
        )
        self.assertEqual(refused.code, 2)

    def test_workers_of_a_server(self):
        for name, settings in {
            "sync": [],
            "rma": ["strategy.transport=rma"],
            "async": ["strategy.mode=async"],
            "dana": ["strategy.mode=dana", "precision.compute=fp16"],
        }.items():
            with self.subTest(name):
                self.finish(name, "strategy.name=ps", *settings, ranks=3)
                self.expect(0, "validate", name)

    def test_a_killed_run_goes_on_as_if_it_were_whole(self):
        common = ["run.deterministic=true", "checkpoint.every_steps=4"]
        whole = self.finish("whole", *common)
        words = overridden("run.out=killed", "run.device=cuda", *self.common, *common)
        kill = {"STRATAGEM_FAIL": "optimizer:0:6:kill"}
        self.assertNotEqual(self.run_program(*words, environment=kill).code, 0)
        self.expect(0, *words, "--resume", "-q")
        self.assertEqual(self.outcome("killed")["digest"], whole["digest"])

    def test_the_traces_tell_of_the_gpu(self):
        self.finish("out", "trace.device_sample_hz=20", "data.subset=1200", "run.max_steps=100")
        powers = [float(value) for value in self.dumped("out/trace/a0/rank-0000.h5", "/device/power_W")]
        self.assertTrue(powers and all(power > 1 for power in powers), powers)
        table = json.loads(self.expect(0, "collect", "out", "--format", "json").stdout)
        self.assertEqual(table["cells"][0]["steps"], 100)


if __name__ == "__main__":
    harness.main()

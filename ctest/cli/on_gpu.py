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

"""What the machine or the launcher cannot provide is refused, never replaced."""

import os
import re

import harness
from harness import Refusal, different_ranks, overridden

USAGE, ENVIRONMENT, NON_FINITE = 2, 3, 84
NO_GPU = [
    *(
        Refusal(
            precision,
            overridden(f"precision.compute={precision}"),
            ENVIRONMENT,
            [precision, "needs a GPU", "take fp32 or bf16"],
            ranks=(1, 2),
        )
        for precision in ("fp16", "tf32")
    ),
    Refusal(
        "nccl",
        overridden("comm.backend=nccl"),
        ENVIRONMENT,
        ["comm.backend: nccl", "needs a GPU", "mpi"],
        ranks=(1, 2),
    ),
    *(
        Refusal(
            f"graph of {strategy}",
            overridden("run.graph=on", f"strategy.name={strategy}"),
            code,
            ["run.graph: on", why, "take run.graph: auto"],
            ranks=(2,),
        )
        for strategy, code, why in (
            ("ddp", ENVIRONMENT, "needs a GPU"),
            ("fsdp", ENVIRONMENT, "needs a GPU"),
            ("ps", USAGE, "together with strategy.name: ps"),
            ("local", USAGE, "together with strategy.name: local"),
            ("gossip", USAGE, "together with strategy.name: gossip"),
        )
    ),
    Refusal(
        "cuda",
        overridden("run.device=cuda"),
        ENVIRONMENT,
        ["run.device: cuda", "no GPU", "run.device: cpu"],
        ranks=(2,),
    ),
    *(
        Refusal(
            f"GPUs of a job, {' '.join(words)}",
            words,
            ENVIRONMENT,
            [f"this job holds GPUs ({name}=0,1)", "modules/bootstrap.sh build --gpu", "set run.device: cpu"],
            environment={name: "0,1"},
            ranks=ranks,
        )
        for words, name, ranks in (
            (["run", "config.yaml"], "SLURM_JOB_GPUS", (1, 2)),
            (["calibrate", "config.yaml"], "SLURM_STEP_GPUS", (1, 2)),
            (["commbench"], "CUDA_VISIBLE_DEVICES", (2,)),
            (["demo"], "SLURM_JOB_GPUS", (1,)),
        )
    ),
]
RANKS = Refusal(
    "another number of ranks",
    overridden("run.ranks=3"),
    ENVIRONMENT,
    ["run.ranks is 3", "mpirun -n 3"],
    ranks=(1, 2),
)
THREADS = Refusal(
    "threads without end",
    overridden("run.threads=1024"),
    ENVIRONMENT,
    ["run.threads: 1024 are too many on ", "or 0 for as many as the cores"],
    ranks=(1, 2),
)
SINGLETON = Refusal(
    "two tasks, each a world of its own",
    ["run", "config.yaml"],
    ENVIRONMENT,
    ["allocation of 2 tasks", "neither mpirun nor srun", "`mpirun --bind-to none stratagem"],
    environment={"SLURM_NTASKS": "2"},
)


class BadEnvironment(harness.ProgramTest):
    def test_no_gpu(self):
        if '"GPUs": "none' not in self.run_program("info", "--json").stdout:
            self.skipTest("this machine has a GPU")
        self.check_refusals(NO_GPU)
        in_job = {"SLURM_JOB_GPUS": "0"}
        self.assertIn("this job holds GPUs", self.run_program("info", environment=in_job).stdout)
        wanted = overridden("run.device=cpu", "run.out=wanted")
        self.assertEqual(self.run_program(*wanted, environment=in_job).code, 0)
        hidden = {**in_job, "CUDA_VISIBLE_DEVICES": "-1"}
        self.assertEqual(self.run_program(*overridden("run.out=hidden"), environment=hidden).code, 0)

    def test_what_the_configuration_expects(self):
        keys = re.findall(r"(?m)^(expect\.\w+)", self.expect(0, "list", "keys").stdout)
        self.assertIn("expect.ranks", keys)
        unmet = Refusal(
            "facts",
            overridden(*(f"{key}=else" for key in keys)),
            ENVIRONMENT,
            [f"{key} is else, but here it is " for key in keys],
            ranks=(2,),
        )
        self.check_refusals([RANKS, unmet])
        met = overridden("run.ranks=2", "expect.ranks=2", "expect.device=cpu")
        self.expect(0, *met, "--dry-run", ranks=2)

    def test_singletons(self):
        self.check_refusals([SINGLETON])
        self.expect(
            0, "run", "config.yaml", "--dry-run", ranks=2, environment={"SLURM_NTASKS": "2"}
        )

    def test_threads_are_bounded(self):
        if 4 * os.cpu_count() >= 1024:
            self.skipTest("this machine has that many cores")
        self.check_refusals([THREADS])

    def test_command_lines_that_differ(self):
        plain = ["run", "config.yaml"]
        for first, second, words in [
            (
                plain,
                [*plain, "--max-steps", "2"],
                ["the command line of rank 1", "--max-steps 2", "same arguments"],
            ),
            (plain, [*plain, "--max-stepz", "2"], ["the command line of rank 1", "--max-stepz 2"]),
            ([*plain, "--max-stepz", "2"], plain, ["the command line of rank 1", "--max-stepz 2"]),
        ]:
            with self.subTest(first=first, second=second):
                before = harness.snapshot(self.folder)
                jobs = [[self.program, *first], [self.program, *second]]
                ended = self.run_words(different_ranks(jobs))
                self.check_refused(ended, USAGE, words)
                self.assertEqual(harness.snapshot(self.folder), before)


class NonFiniteLoss(harness.ProgramTest):
    def test_message_and_outcome(self):
        for ranks in 1, 2:
            for overlap in "true", "false":
                with self.subTest(ranks=ranks, overlap=overlap):
                    out = f"out-{ranks}-{overlap}"
                    settings = [
                        f"run.out={out}",
                        f"strategy.overlap={overlap}",
                        "optimizer.lr=1e30",
                        "model.name=lenet",
                    ]
                    ended = self.run_program(*overridden(*settings), ranks=ranks)
                    self.check_refused(
                        ended,
                        NON_FINITE,
                        ["not finite at step 1 on rank 0", "output of block ", "optimizer.lr"],
                    )
                    outcome = self.outcome(out)
                    self.assertEqual(
                        (outcome["status"], outcome["exit_code"]), ("FAILED", NON_FINITE)
                    )
                    self.assertIn("at step 1", outcome["reason"])
                    collected = self.expect(0, "collect", out).stdout
                    self.assertIn("failed", collected)

    def test_serial_names_the_emulated_rank(self):
        ended = self.run_program(
            *overridden("strategy.name=serial", "strategy.emulate_ranks=2", "optimizer.lr=1e30")
        )
        self.check_refused(ended, NON_FINITE, ["at step 1 on rank 0", "output of block "])


if __name__ == "__main__":
    harness.main()

"""When memory runs out, all ranks end, and the message says where, and what holds the rest."""

import pathlib
import re
import time

import harness
from harness import ENDLESS, different_ranks, overridden

OUT_OF_MEMORY = 86
MIB = 1024  # in KiB, the unit of ulimit and /proc


class OutOfMemory(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.needed = self.address_space_of_a_small_run()

    def address_space_of_a_small_run(self):
        """The most address space that rank 1 used [KiB]: mostly libraries."""
        process = self.start(self.limited([None, None], *ENDLESS, "run.out=small"))
        status = pathlib.Path("/proc", str(self.pid_of_rank(1, "small")), "status")
        peak, before = self.peak_of(status), 0
        while peak > before:  # until all threads have allocated their memory
            time.sleep(1.5)
            peak, before = self.peak_of(status), peak
        process.terminate()
        self.wait(process)
        return peak

    def peak_of(self, status):
        return int(re.search(r"VmPeak:\s+(\d+) kB", status.read_text())[1])

    def limited(self, limits, *settings):
        """A run with one rank per limit of its address space [KiB]; None is no limit. Memory that ranks share is
        mapped far beyond what they take, and not at all under a limit. Threads share one heap: glibc reserves 64 MiB
        of addresses for each further one, and how many there are depends on how threads meet."""
        words = overridden("comm.node_memory=off", *settings)
        program = ["env", "MALLOC_ARENA_MAX=1", self.program, *words, "--progress", "none"]
        shells = [["sh", "-c", 'ulimit -v "$0"; exec "$@"', limit] if limit else [] for limit in limits]
        return different_ranks([[*shell, *program] for shell in shells])

    def check(self, ended, rank, where, wanted, held):
        self.assertEqual(ended.code, OUT_OF_MEMORY, str(ended))
        message = (
            rf"stratagem: error: .*rank {rank} ran out of memory {where}: no host memory for a "
            rf"tensor of {wanted} \(.* are left; the tensors there are hold .*{held}.*\); make "
        )
        self.assertRegex(ended.stderr, message)
        outcome = self.outcome()
        self.assertEqual((outcome["status"], outcome["exit_code"]), ("FAILED", OUT_OF_MEMORY))
        self.assertRegex(outcome["reason"], rf"rank {rank} ran out of memory {where}")

    def test_parameters_that_do_not_fit_on_any_rank(self):
        limit = self.needed + 1024 * MIB
        words = self.limited([limit, limit], "model.name=lenet", "data.input_size=1000")
        ended = self.run_words(words)
        self.check(ended, "[01]", "before the first step", r"5\.73 GiB", "workspace")

    def test_activations_that_do_not_fit_on_one_rank(self):
        words = self.limited(
            [None, self.needed + 96 * MIB],
            "model.name=lenet",
            "data.subset=4800",
            "data.global_batch=4800",
        )
        ended = self.run_words(words)
        self.check(ended, 1, "at step 0, forward", r"\d+(\.\d+)? MiB", "parameters .*gradients ")

    def test_smaller_batches_fit(self):
        limit = self.needed + 96 * MIB
        words = self.limited([limit, limit], "model.name=lenet", "data.subset=4800")
        self.assertEqual(self.run_words(words).code, 0)

    def test_a_model_that_fits_only_in_shards(self):
        vgg16 = [
            "model.name=vgg16",
            "optimizer.name=adamw",
            "data.dataset=synthetic-shapes",
            "data.input_size=32",
            "data.global_batch=8",
            "run.max_steps=2",
            "run.evaluate_every=0",
        ]
        # A checkpoint would gather whole tensors and copy them.
        sharded = [*vgg16, "strategy.name=fsdp", "checkpoint.at_end=false"]
        # DDP holds 2 GiB before the first step; FSDP on 4 ranks at most 1.2 GiB.
        limit = self.needed + 1900 * MIB
        self.check(
            self.run_words(self.limited([limit] * 2, *vgg16)), "[01]", "before the first step", ".*", ""
        )
        fits = self.run_words(self.limited([limit] * 4, *sharded, "run.out=sharded"))
        self.assertEqual(fits.code, 0, str(fits))
        memory = ["--ranks", "4", "--gpu-memory", "1536MiB", "--gpu-reserve", "0"]
        self.expect(4, "plan", *overridden(*vgg16)[1:], *memory)
        self.expect(0, "plan", *overridden(*sharded)[1:], *memory)


if __name__ == "__main__":
    harness.main()

"""Ranks of one node that share memory: the bits of messages, and what happens where they cannot."""

import json

import harness
from harness import mpirun, overridden

USAGE, ENVIRONMENT = 2, 3
LIMITED = ["sh", "-c", 'ulimit -v 40000000; exec "$@"', "sh"]  # KiB: enough for a run
NEWS = "ranks exchange messages, because they cannot share memory"


class NodeMemory(harness.ProgramTest):
    def settings(self, out, *more):
        return overridden(f"run.out={out}", "model.name=lenet", "data.global_batch=24", "run.max_steps=4", *more)

    def test_the_bits_are_those_of_messages(self):
        ways = [
            ["strategy.name=ddp", "strategy.bucket_mb=0.01"],
            ["strategy.name=fsdp", "strategy.unit_mb=0.05"],
            ["strategy.name=local", "strategy.inner_steps=2"],
            ["strategy.name=gossip"],
        ]
        for place, way in enumerate(ways):
            digests = set()
            for mode in "required", "off":
                out = f"{place}-{mode}"
                ended = self.expect(0, *self.settings(out, f"comm.node_memory={mode}", *way), ranks=3)
                self.assertNotIn(NEWS, ended.stderr)
                digests.add(self.outcome(out)["digest"])
            self.assertEqual(len(digests), 1, way)

    def test_where_it_cannot_be_shared_that_is_told(self):
        run = [self.program, *self.settings("auto", "comm.node_memory=auto")]
        ended = self.run_words(mpirun(2, [*LIMITED, *run]))
        self.assertEqual(ended.code, 0, str(ended))
        self.assertEqual(ended.stderr.count(NEWS), 1, str(ended))
        self.assertIn("ulimit -v", ended.stderr)
        run = [self.program, *self.settings("required", "comm.node_memory=required")]
        ended = self.run_words(mpirun(2, [*LIMITED, *run]))
        self.assertEqual(ended.code, ENVIRONMENT, str(ended))
        for words in "comm.node_memory is required", "ulimit -v", "comm.node_memory: auto":
            self.assertIn(words, ended.stderr)
        self.assertEqual(self.outcome("required")["exit_code"], ENVIRONMENT)

    def test_commbench(self):
        words = ["commbench", "--ops", "all_reduce,all_gather", "-b", "4K", "-e", "1M", "-f", "256", "--json", "b.json"]
        for mode, named in ("required", "backend mpi, node memory, 2 ranks"), ("off", "backend mpi, messages, 2 ranks"):
            ended = self.expect(0, *words, "--node-memory", mode, "--pairs", "3", ranks=2)
            self.assertIn(named, ended.stdout)
            self.assertIn("x MPI_Allreduce", ended.stdout)
            told = json.loads((self.folder / "b.json").read_text())
            self.assertEqual(told["route"], "node memory" if mode == "required" else "messages")
            self.assertTrue(all(row["wrong"] == 0 for row in told["rows"]))
            compared = [row["bytes"] for row in told["rows"] if row.get("speed_up_over_MPI_Allreduce", 0) > 0]
            self.assertEqual(compared, [4096, 1048576])
        ended = self.expect(USAGE, "commbench", "--backend", "inprocess", "--pairs", "3")
        self.assertIn("--pairs with --backend inprocess", ended.stderr)


if __name__ == "__main__":
    harness.main()

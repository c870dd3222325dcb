"""Sums that pass from node to node: the bits of one rank, whatever the nodes, and what happens where nodes differ."""

import harness
from harness import overridden

USAGE, ENVIRONMENT = 2, 3


class Chain(harness.ProgramTest):
    def settings(self, out, *more):
        return overridden(f"run.out={out}", "model.name=lenet", "data.global_batch=24", "run.max_steps=4", *more)

    def digests(self, ranks, *way):
        """Of messages between all, and over nodes of 1, 2 and 4 ranks."""
        settings = ["comm.node_memory=off"], *(
            ["comm.node_memory=required", "comm.algorithm=chain", f"comm.ranks_per_node={size}"]
            for size in (1, 2, 4)
            if ranks % size == 0
        )
        found = []
        for place, setting in enumerate(settings):
            out = f"{place}-{len(list(self.folder.iterdir()))}"
            self.expect(0, *self.settings(out, *setting, *way), ranks=ranks)
            found.append(self.outcome(out)["digest"])
        return found

    def test_the_bits_are_those_of_messages(self):
        for way in (
            ["strategy.name=ddp", "strategy.bucket_mb=0.01"],
            ["strategy.name=ddp", "precision.compute=bf16"],
            ["strategy.name=fsdp", "strategy.shard=full", "strategy.unit_mb=0.05"],
            ["strategy.name=fsdp", "strategy.shard=optimizer", "optimizer.clip_norm=1"],
            ["strategy.name=local", "strategy.inner_steps=2", "strategy.outer_momentum=0.9"],
            ["strategy.name=local", "strategy.inner_steps=2", "strategy.delay=1", "strategy.mixing_factor=0.5"],
        ):
            self.assertEqual(len(set(self.digests(4, *way))), 1, way)

    def test_the_bits_are_those_of_one_rank(self):
        self.expect(0, *self.settings("serial", "strategy.name=serial", "strategy.emulate_ranks=4"))
        self.assertEqual(set(self.digests(4, "strategy.name=ddp")), {self.outcome("serial")["digest"]})

    def test_nodes_must_be_alike(self):
        unlike = "comm.ranks_per_node=2"
        ended = self.expect(ENVIRONMENT, *self.settings("chain", "comm.algorithm=chain", unlike), ranks=3)
        for words in "comm.algorithm: chain cannot be used here", "unequally many ranks", "--ntasks-per-node":
            self.assertIn(words, ended.stderr)
        ended = self.expect(0, *self.settings("auto", unlike), ranks=3)
        self.assertEqual(ended.stderr.count("nodes have unequally many ranks"), 1, str(ended))

    def test_contradictions(self):
        for other in "comm.node_memory=off", "comm.backend=nccl":
            ended = self.expect(USAGE, *self.settings("x", "comm.algorithm=chain", other), ranks=2)
            self.assertIn("comm.algorithm: chain together with", ended.stderr)
            self.assertFalse((self.folder / "x").exists())

    def test_commbench(self):
        words = ["commbench", "-b", "4K", "-e", "1M", "-f", "16", "--ops", "all_reduce,reduce_scatter,all_gather"]
        for algorithm, route in ("chain", "chain of 2 nodes"), ("flat", "messages"):
            ended = self.expect(0, *words, "--algorithm", algorithm, "--ranks-per-node", "2", ranks=4)
            self.assertIn(f"backend mpi, {route}, 4 ranks", ended.stdout)


if __name__ == "__main__":
    harness.main()

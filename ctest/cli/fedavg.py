"""Federated averaging: the same numbers on every number of ranks, what plan tells of clients, and what is refused."""

import json

import harness
from harness import Refusal, overridden

USAGE = 2
FEDAVG = ["strategy.name=fedavg", "strategy.clients=20", "data.global_batch=0", "data.batch_per_worker=2"]
BOTH = (1, 2)


def refused(name, words, *settings, ranks=BOTH):
    return Refusal(name, overridden(*FEDAVG, *settings), USAGE, words, ranks=ranks)


MISTAKES = [
    refused("more clients than there are", ["22 of 20 clients", "take at most 20"], "strategy.per_round=22"),
    refused("clients that ranks cannot share", ["5 clients on 2 ranks", "a multiple of 2"], "strategy.per_round=5",
            ranks=(2,)),
    refused("fewer samples than clients", ["96 training samples", "97 clients", "take fewer clients"],
            "strategy.clients=97"),
    refused("pieces without samples", ["96 training samples", "49 clients, two pieces each"], "strategy.clients=49",
            "strategy.split=shards"),
    refused("a client without samples", ["has no sample", "larger split_alpha", "run.seed"], "strategy.split=dirichlet",
            "strategy.split_alpha=0.001"),
    refused("an alpha that is nobody's", ["strategy.split_alpha", "only split: dirichlet"], "strategy.split_alpha=2"),
    refused("an alpha of 0", ["strategy.split_alpha", "must be > 0"], "strategy.split=dirichlet",
            "strategy.split_alpha=0"),
    refused("clipping", ["optimizer.clip_norm", "does not know the others' gradients"], "optimizer.clip_norm=1"),
    refused("sums", ["optimizer.reduction: sum", "take mean"], "optimizer.reduction=sum"),
    refused("a loss scale", ["precision.loss_scale: dynamic"], "precision.compute=bf16",
            "precision.loss_scale=dynamic"),
    refused("a round larger than the data", ["for each of 50 steps of a worker", "96 training"],
            "strategy.local_steps=50"),
    refused("labels of text", ["strategy.split", "no label for each sample", "take split: iid"],
            "data.dataset=synthetic-text", "model.name=gpt2", "model.layers=1", "model.heads=1", "model.width=8",
            "model.context=8", "strategy.split=shards"),
]


class FedAvg(harness.ProgramTest):
    def digest(self, ranks, *settings):
        out = f"{ranks}-{len(list(self.folder.iterdir()))}"
        rounds = ["strategy.per_round=12", "strategy.local_steps=2", "strategy.server_momentum=0.9"]
        self.expect(0, *overridden(*FEDAVG, *rounds, f"run.out={out}", *settings), ranks=ranks)
        return self.outcome(out)["digest"]

    def test_mistakes(self):
        self.check_refusals(MISTAKES)

    def test_the_number_of_ranks_does_not_matter(self):
        for split in ["strategy.split=shards"], ["strategy.split=dirichlet", "strategy.split_alpha=2"]:
            found = {self.digest(ranks, *split) for ranks in (1, 2, 3, 4)}
            self.assertEqual(len(found), 1, split)

    def test_nor_does_the_way_of_sums(self):
        ways = (
            ["comm.node_memory=off"],
            ["comm.node_memory=required"],
            ["comm.node_memory=required", "comm.algorithm=chain", "comm.ranks_per_node=2"],
        )
        found = {self.digest(4, *way) for way in ways} | {self.digest(1)}
        self.assertEqual(len(found), 1)

    def test_plan_shows_the_split(self):
        words = ["plan", "config.yaml", "--ranks", "2", "--no-activations"]
        settings = [*FEDAVG, "strategy.per_round=4", "strategy.split=shards"]
        words += [word for setting in settings for word in ("-s", setting)]
        text = self.expect(0, *words).stdout
        for expected in "4 of 20 clients, 2 on each rank; 4 steps of each", "samples of a client", "labels of a client":
            self.assertIn(expected, text)
        document = json.loads(self.expect(0, *words, "--json").stdout)["fedavg"]
        self.assertEqual(document["samples_of_client"], {"least": 4, "median": 5, "most": 6})
        self.assertLessEqual(document["labels_of_client"]["most"], 4)
        self.assertEqual(document["value_bits"], 25)
        compared = self.expect(0, *words, "--compare").stdout
        self.assertIn("fedavg", compared)

    def test_clipped_changes_are_told_of(self):
        ended = self.expect(0, *overridden(*FEDAVG, "strategy.largest_change=0.000001"), ranks=2)
        self.assertIn("of the clients' changes were clipped", ended.stdout + ended.stderr)


if __name__ == "__main__":
    harness.main()

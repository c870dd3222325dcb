"""Federated averaging: the same numbers on every number of ranks, what plan tells of clients, and what is refused."""

import json

import harness
from harness import Refusal, overridden

USAGE = 2
FEDAVG = ["strategy.name=fedavg", "strategy.clients=20", "data.global_batch=0", "data.batch_per_worker=2"]
BOTH = (1, 2)
SECURE = ["strategy.secure=pairwise", "strategy.per_round=8"]


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
    refused("losses of all", ["experiment.lost_clients: 4 of 4", "take at most 3"], "strategy.per_round=4",
            "experiment.lost_clients=4"),
    refused("a threshold of plain sums", ["strategy.threshold", "only secure: pairwise"], "strategy.threshold=2"),
    refused("neighbours of plain sums", ["strategy.neighbours", "only secure: pairwise"], "strategy.neighbours=2"),
    refused("an unknown way of sums", ["strategy.secure", "none, pairwise"], "strategy.secure=pairs"),
    refused("a secure sum of one", ["pairwise with 1 client", "strategy.per_round"], "strategy.secure=pairwise",
            ranks=(1,)),
    refused("odd neighbours", ["strategy.neighbours: 3 of 8", "even number"], *SECURE, "strategy.neighbours=3"),
    refused("neighbours beside oneself", ["strategy.neighbours: 8 of 8"], *SECURE, "strategy.neighbours=8"),
    refused("a threshold of half", ["strategy.threshold: 4 of 8", "take at least 5"], *SECURE, "strategy.threshold=4"),
    refused("a threshold of more than all", ["strategy.threshold: 9 of 8", "take at most 8"], *SECURE,
            "strategy.threshold=9"),
    refused("a threshold that is not met", ["experiment.lost_clients: 3 of 8", "6 must answer"], *SECURE,
            "experiment.lost_clients=3"),
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

    def test_secure_sums_change_nothing(self):
        for lost in 0, 3:
            losing = f"experiment.lost_clients={lost}"
            found = {self.digest(ranks, losing, "strategy.secure=pairwise") for ranks in (1, 3)}
            found.add(self.digest(2, losing, "strategy.secure=pairwise", "strategy.neighbours=8"))
            self.assertEqual(found, {self.digest(1, losing)}, lost)

    def test_too_few_answers_around_a_client_end_the_run(self):
        """Only the draw of a round tells that those who are lost are neighbours."""
        lost = [*SECURE, "strategy.neighbours=2", "strategy.threshold=3", "experiment.lost_clients=4"]
        for ranks in BOTH:
            ended = self.expect(USAGE, *overridden(*FEDAVG, *lost, f"run.out=lost-{ranks}"), ranks=ranks)
            for words in "stays masked", "of the 3 clients", "strategy.threshold is 3":
                self.assertIn(words, " ".join((ended.stdout + ended.stderr).split()))

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
        words += ["-s", "strategy.secure=pairwise", "-s", "experiment.lost_clients=1"]
        self.assertIn("each client with 3 others; 3 of 4 must answer", " ".join(self.expect(0, *words).stdout.split()))
        document = json.loads(self.expect(0, *words, "--json").stdout)["fedavg"]
        self.assertEqual(document["secure"], {"threshold": 3, "neighbours": 3, "keys_B": 68, "shares_B": 435})
        self.assertEqual(document["lost_clients"], 1)
        compared = self.expect(0, *words, "--compare").stdout
        self.assertIn("fedavg", compared)

    def test_clipped_changes_are_told_of(self):
        ended = self.expect(0, *overridden(*FEDAVG, "strategy.largest_change=0.000001"), ranks=2)
        self.assertIn("of the clients' changes were clipped", ended.stdout + ended.stderr)


if __name__ == "__main__":
    harness.main()

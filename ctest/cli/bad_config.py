"""Invalid configurations are refused before anything is created."""

import harness
from harness import CONFIG, Refusal, overridden

USAGE, BAD_DATA = 2, 5
PLAIN = ["run", "config.yaml"]
BOTH = (1, 2)


def replaced(old, new):
    assert old in CONFIG
    return {"config.yaml": CONFIG.replace(old, new)}


FILES = [
    Refusal(
        "missing file", ["run", "nowhere.yaml"], USAGE, ["nowhere.yaml", "No such file"], ranks=BOTH
    ),
    Refusal("folder", ["run", "."], USAGE, ["cannot read ."]),
    Refusal(
        "empty file",
        PLAIN,
        USAGE,
        ["data.dataset", "model.name", "strategy.name", "missing"],
        {"config.yaml": ""},
    ),
    Refusal(
        "YAML syntax",
        PLAIN,
        USAGE,
        ["config.yaml:3:", "not YAML"],
        replaced("global_batch: 12,", "global_batch: 12"),
        ranks=BOTH,
    ),
    Refusal(
        "unknown key",
        PLAIN,
        USAGE,
        ["config.yaml:3:", "data.global_batsh", "unknown key", 'did you mean "global_batch"'],
        replaced("global_batch", "global_batsh"),
        ranks=BOTH,
    ),
    Refusal(
        "unknown section",
        PLAIN,
        USAGE,
        ["modell", 'did you mean "model"'],
        replaced("model:", "modell:"),
    ),
    Refusal(
        "duplicate key",
        PLAIN,
        USAGE,
        ["config.yaml:2:", "run.threads", "duplicate"],
        replaced("threads: 1", "threads: 1, threads: 2"),
    ),
    Refusal(
        "wrong type",
        PLAIN,
        USAGE,
        ["config.yaml:2:", "run.threads", "many"],
        replaced("threads: 1", "threads: many"),
    ),
    Refusal(
        "out of range",
        PLAIN,
        USAGE,
        ["config.yaml:2:", "run.threads", "-1", "[0, 1024]"],
        replaced("threads: 1", "threads: -1"),
    ),
    Refusal(
        "undefined variable",
        PLAIN,
        USAGE,
        ["config.yaml:2:", "run.name", "${NOWHERE}", "export NOWHERE"],
        replaced("name: cell", 'name: "${NOWHERE}"'),
        ranks=BOTH,
    ),
    Refusal("other schema", PLAIN, USAGE, ["schema", "2"], replaced("schema: 1", "schema: 2")),
]
NAMES = [
    Refusal(
        "unknown model",
        overridden("model.name=lonet"),
        USAGE,
        ["model.name", "lonet", 'did you mean "lenet"'],
        ranks=BOTH,
    ),
    Refusal(
        "unknown dataset",
        overridden("data.dataset=cifar11"),
        USAGE,
        ["data.dataset", "cifar11", 'did you mean "cifar10"'],
    ),
    Refusal(
        "unknown strategy",
        overridden("strategy.name=dpp"),
        USAGE,
        ["strategy.name", "dpp", 'did you mean "ddp"'],
    ),
    Refusal(
        "key of another strategy",
        overridden("strategy.emulate_ranks=2"),
        USAGE,
        ["strategy.emulate_ranks", "of strategy serial"],
    ),
    Refusal("override without value", overridden("optimizer.lr"), USAGE, ["optimizer.lr", "="]),
    Refusal(
        "override of nothing",
        overridden("optimizer.lrr=1"),
        USAGE,
        ["optimizer.lrr", 'did you mean "lr"'],
    ),
]
FIT = [
    *(
        Refusal(
            f"gossip: {words[0]}",
            overridden("strategy.name=gossip", "data.global_batch=24", *settings),
            USAGE,
            words,
            ranks=BOTH,
        )
        for settings, words in (
            (
                ["strategy.workers=4", "strategy.graph=star"],
                ["graph: star without push_sum", "strategy.push_sum: true"],
            ),
            (["strategy.graph=stars"], ["strategy.graph", 'did you mean "star"']),
            (["strategy.mix_every=0"], ["strategy.mix_every"]),
            (["optimizer.clip_norm=1"], ["optimizer.clip_norm with strategy gossip", "take strategy ddp"]),
            (["optimizer.reduction=sum"], ["optimizer.reduction: sum with strategy gossip", "take mean"]),
            (
                ["precision.compute=bf16", "precision.loss_scale=dynamic"],
                ["precision.loss_scale: dynamic with strategy gossip", "set it to none"],
            ),
        )
    ),
    Refusal(
        "workers that ranks cannot share",
        overridden("strategy.name=gossip", "strategy.workers=3"),
        USAGE,
        ["3 workers on 2 ranks", "a multiple of 2"],
        ranks=(2,),
    ),
    Refusal(
        "batch that the ranks do not divide",
        overridden("data.global_batch=13"),
        USAGE,
        ["data.global_batch", "13", "2 workers", "nearest values are 12 and 14"],
        ranks=(2,),
    ),
    Refusal(
        "batch that micro-batches do not divide",
        overridden("strategy.micro_batches=5"),
        USAGE,
        ["5 micro-batches", "10 and 15"],
    ),
    Refusal(
        "more ranks than samples",
        overridden("data.global_batch=1"),
        USAGE,
        ["data.global_batch", "least value is 2"],
        ranks=(2,),
    ),
    Refusal(
        "batch larger than the dataset",
        overridden("data.global_batch=128"),
        USAGE,
        ["128", "96 training images", "smaller"],
        ranks=(2,),
    ),
    Refusal(
        "subset larger than the dataset",
        overridden("data.subset=1000000"),
        USAGE,
        ["data.subset", "1000000"],
        ranks=(2,),
    ),
    Refusal(
        "fewer images left than a batch has",
        overridden("data.holdout=90"),
        USAGE,
        ["12 samples", "6 training images", "data.holdout smaller"],
        ranks=(2,),
    ),
    Refusal(
        "all images held out",
        overridden("data.holdout=96"),
        USAGE,
        ["data.holdout: 96 of 96", "none are left", "at most 95"],
        ranks=(2,),
    ),
    Refusal(
        "fewer than no images held out",
        overridden("data.holdout=-1"),
        USAGE,
        ["data.holdout", "-1", ">= 0"],
    ),
    Refusal(
        "no batch at all",
        overridden("data.global_batch=0"),
        USAGE,
        ["data.global_batch", "data.batch_per_worker"],
    ),
    Refusal(
        "two batch sizes",
        overridden("data.global_batch=8", "data.batch_per_worker=4"),
        USAGE,
        ["batch_per_worker", "leave one out"],
    ),
    Refusal(
        "input smaller than the images",
        overridden("data.input_size=20"),
        USAGE,
        ["data.input_size", "20", "28 or more"],
        ranks=(2,),
    ),
    Refusal(
        "input that the model cannot take",
        overridden("model.name=vgg16", "data.input_size=28"),
        USAGE,
        ["vgg16", "28", "32"],
    ),
    Refusal(
        "fewer classes than the data has",
        overridden("model.num_classes=5"),
        USAGE,
        ["model.num_classes", "5", "10"],
        ranks=(2,),
    ),
    Refusal(
        "serial on several ranks",
        overridden("strategy.name=serial"),
        USAGE,
        ["serial", "2 ranks", "ddp"],
        ranks=(2,),
    ),
    Refusal(
        "one sample per pass under batch normalisation",
        overridden("model.name=resnet50", "data.batch_per_worker=1", "data.global_batch=0"),
        USAGE,
        ["1 sample", "batch normalisation", "larger"],
        ranks=(2,),
    ),
    Refusal(
        "weights that are not there",
        overridden("model.weights=none.safetensors"),
        BAD_DATA,
        ["none.safetensors", "No such file"],
        ranks=(2,),
    ),
    Refusal(
        "fresh head without weights",
        overridden("model.head=fresh"),
        USAGE,
        ["model.head", "model.weights"],
    ),
]


class BadConfig(harness.ProgramTest):
    def test_files(self):
        self.check_refusals(FILES)

    def test_names(self):
        self.check_refusals(NAMES)

    def test_what_does_not_fit_together(self):
        self.check_refusals(FIT)

    def test_files_of_another_kind(self):
        study = "schema: 1\nname: x\nparts: {p: {matrix: {model.name: [mlp]}}}\n"
        run = {"r/config.yaml": CONFIG, "r/outcome.json": "{}"}
        self.check_refusals(
            [
                Refusal(
                    "study for a run",
                    ["run", "study.yaml"],
                    USAGE,
                    ["study.yaml is a study", "stratagem sweep study.yaml"],
                    {"study.yaml": study},
                    ranks=BOTH,
                ),
                Refusal("run directory", ["plan", "r"], USAGE, ["r/config.yaml"], run),
                Refusal(
                    "classes, told by plan",
                    ["plan", "config.yaml", "-s", "model.num_classes=5"],
                    USAGE,
                    ["model.num_classes is 5", "take 10 or more"],
                ),
                Refusal(
                    "a dataset's own folder",
                    overridden("data.dataset=mnist", "data.root=data/mnist"),
                    BAD_DATA,
                    ["name its parent", "/data"],
                    {"data/mnist/x": ""},
                ),
            ]
        )

    def test_all_problems_at_once(self):
        wrong = (
            CONFIG.replace("threads: 1", "threads: -1, sed: 2")
            .replace("mlp", "mlq")
            .replace("cell", '"${NOWHERE}"')
        )
        folder = self.new_folder({"config.yaml": wrong})
        ended = self.run_program("run", "config.yaml", "-s", "optimizer.lr=fast", folder=folder)
        self.check_refused(
            ended, USAGE, ["run.threads", "run.sed", "model.name", "NOWHERE", "optimizer.lr"]
        )
        lines = [
            int(line.split("config.yaml:")[1].split(":")[0])
            for line in ended.stderr.splitlines()
            if "config.yaml:" in line
        ]
        self.assertEqual(lines, [2, 2, 2, 4])


if __name__ == "__main__":
    harness.main()

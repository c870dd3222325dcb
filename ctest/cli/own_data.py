"""Images of the user's own, wherever a data set can be named: data, plan, calibrate, run, resume."""

import json
import pathlib
import sys

import harness
from harness import Refusal, mpirun, overridden

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from images import folder_files, shard, striped  # noqa: E402

USAGE, BAD_DATA, UNUSABLE = 2, 5, 7
CONFIG = """schema: 1
run: {name: own, threads: 1, max_steps: 4, evaluate_every: 1, out: out}
data: {path: own, input_size: 16, global_batch: 12, augment: standard}
model: {name: lenet}
optimizer: {lr: 0.01}
strategy: {name: ddp}
checkpoint: {every_steps: 2}
"""
TRAIN, VAL = 16, 4  # images of each of three classes
OWN = folder_files(TRAIN, VAL)
WITH_OWN = {"own.yaml": CONFIG, **OWN}
ONE_CLASS = {name: content for name, content in OWN.items() if "train/class-0" in name}
SHARD = shard([(f"{i:04}", i % 3, striped(20, i % 3, i)) for i in range(24)])
RUN = ["run", "own.yaml"]


def with_own(*settings):
    return overridden(*settings, config="own.yaml")


REFUSED = [
    Refusal("no such folder", with_own("data.path=none"), BAD_DATA,
            ["data.path: none is missing", "train/CLASS/*.jpg"], WITH_OWN, ranks=(1, 2)),
    Refusal("a file, which is text", with_own("data.path=own.yaml"), USAGE,
            ["model lenet takes images, and the data are text"], WITH_OWN),
    Refusal("a folder of something else", with_own("data.path=own/train"), BAD_DATA,
            ["holds no train/, train*.tar or train*.h5"], WITH_OWN),
    Refusal("a name, too", with_own("data.dataset=mnist"), USAGE,
            ["data.dataset: is given, and so is data.path"], WITH_OWN),
    Refusal("neither a name nor a folder", RUN, USAGE, ["data.dataset: missing", "or give data.path"],
            {"own.yaml": CONFIG.replace("path: own, ", "")}),
    Refusal("a mean of no images", overridden("data.mean=0.5", "data.stddev=0.5"), USAGE,
            ["data.mean: is of your own images, which need data.path"]),
    Refusal("a mean without a deviation", with_own("data.mean=0.5"), USAGE,
            ["data.mean: has 1 numbers, and data.stddev 0"], WITH_OWN),
    Refusal("a mean of other channels", with_own("data.mean=0.5 0.5", "data.stddev=0.2 0.2"), USAGE,
            ["have 2 numbers", "the model takes 3 channels"], WITH_OWN, ranks=(1, 2)),
    Refusal("no number", with_own("data.mean=0.5 x", "data.stddev=1"), USAGE,
            ['data.mean: has "x", must be numbers'], WITH_OWN),
    Refusal("nothing to evaluate", RUN, USAGE, ["holds nothing to evaluate", "data.holdout"],
            {"own.yaml": CONFIG, **ONE_CLASS}),
    Refusal("a class that is not trained on", RUN, BAD_DATA,
            ["own/val/klass-0 is of a class", 'did you mean "class-0"'],
            {**WITH_OWN, "own/val/klass-0/0.png": striped(20, 0, 0)}, ranks=(1, 2)),
    Refusal("a file of another kind", RUN, BAD_DATA, ["own/train/class-1/x.gif is neither .jpg, .jpeg nor .png"],
            {**WITH_OWN, "own/train/class-1/x.gif": "GIF89a"}),
    Refusal("both a folder and shards", RUN, BAD_DATA, ["holds train and train-0.tar"],
            {**WITH_OWN, "own/train-0.tar": SHARD}),
    Refusal("a shard that is cut", RUN, BAD_DATA, ["own/train-0.tar"],
            {"own.yaml": CONFIG, "own/train-0.tar": SHARD[:3000], "own/val-0.tar": SHARD}),
    Refusal("no HDF5 file", RUN, BAD_DATA, ["own/train.h5: opening it failed"],
            {"own.yaml": CONFIG, "own/train.h5": "text", "own/val.h5": "text"}),
    Refusal("too few classes in the model", with_own("model.num_classes=2"), USAGE,
            ["model.num_classes is 2", "own has 3 classes"], WITH_OWN, ranks=(1, 2)),
    Refusal("a larger subset", with_own("data.subset=49"), USAGE, ["than own has training images", "there are 48"],
            WITH_OWN),
    Refusal("statistics of nothing", ["data", "stats", "none"], BAD_DATA, ["data.path: none is missing"]),
    Refusal("statistics of damaged images", ["data", "stats", "own"], BAD_DATA,
            ["own/train/class-2/7.png", "1 image cannot be read"], {**WITH_OWN, "own/train/class-2/7.png": ""}),
]


class OwnData(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        shards = {f"shards/train-{i}.tar": SHARD for i in range(2)}
        self.folder = self.new_folder({**WITH_OWN, **shards, "shards/val.tar": SHARD})

    def digest(self, *settings, **how):
        return super().digest(*settings, config="own.yaml", **how)

    def test_refusals(self):
        self.check_refusals(REFUSED)

    def test_every_number_of_ranks_and_threads_ends_with_the_same_bits(self):
        for path in "own", "shards":
            settings = [f"data.path={path}"]
            for ranks in 1, 2, 4:
                alone = self.digest(*settings, "strategy.name=serial", f"strategy.emulate_ranks={ranks}",
                                    out=f"{path}-serial-{ranks}")
                ddp = self.digest(*settings, f"data.decode_threads={ranks}", out=f"{path}-ddp-{ranks}", ranks=ranks)
                self.assertEqual(ddp, alone, f"{path}, {ranks} ranks")
        fsdp = self.digest(*settings, "strategy.name=fsdp", out="fsdp", ranks=4)
        self.assertEqual(fsdp, alone)

    def test_the_manifest_says_what_was_read(self):
        self.succeed(*RUN, "-q")
        told = json.loads((self.folder / "out/manifest.json").read_text())["dataset"]
        self.assertEqual((told["name"], told["path"], told["classes"]), ("own", "own", 3))
        self.assertEqual((told["train_images"], told["test_images"]), (3 * TRAIN, 3 * VAL))
        self.assertEqual((told["mean"], told["stddev"]), ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))

    def test_it_goes_on_where_the_folder_was_moved(self):
        whole = self.digest("run.max_steps=6", out="whole", ranks=2)
        words = [self.program, *with_own("run.out=stopped", "run.max_steps=6"), "-q"]
        fails = {"STRATAGEM_FAIL": "forward:0:4:exit"}
        killed = self.wait(self.start(mpirun(2, words), environment=fails), timeout=120)
        if killed.code == 0:
            self.skipTest("built without failpoints")
        (self.folder / "elsewhere").mkdir()
        moved = (self.folder / "own").rename(self.folder / "elsewhere/own")
        words += ["--resume", "-s", "data.path=elsewhere/own"]
        away = (moved / "train/class-0/0.png").rename(self.folder / "0.png")
        other = self.wait(self.start(mpirun(2, words)), timeout=120)
        self.assertEqual(other.code, UNUSABLE, str(other))
        self.assertIn("dataset was", other.stderr)
        away.write_bytes((moved / "train/class-1/0.png").read_bytes())  # another picture of the same name
        away.rename(moved / "train/class-0/0.png")
        other = self.wait(self.start(mpirun(2, words)), timeout=120)
        self.assertEqual(other.code, UNUSABLE, str(other))
        self.assertIn("dataset was", other.stderr)
        (moved / "train/class-0/0.png").write_bytes(OWN["own/train/class-0/0.png"])
        self.succeed(*words[1:], ranks=2)
        self.assertEqual(json.loads((self.folder / "stopped/outcome.json").read_text())["digest"], whole)

    def test_a_damaged_image_ends_the_run_and_is_named(self):
        (self.folder / "own/train/class-1/3.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing more")
        for ranks in 1, 2:
            words = [self.program, *with_own("run.max_steps=0", f"run.out=damaged-{ranks}", "run.epochs=1")]
            ended = self.wait(self.start(mpirun(ranks, words) if ranks > 1 else words), timeout=120)
            self.assertEqual(ended.code, BAD_DATA, str(ended))
            self.assertIn("own/train/class-1/3.png", ended.stderr)

    def test_statistics(self):
        shown = self.succeed("data", "stats", "own").stdout
        for words in "48", "12", "3", 'data:\n  path: "own"\n  mean: ':
            self.assertIn(words, shown)
        (self.folder / "tested/test").mkdir(parents=True)
        (self.folder / "own/train").rename(self.folder / "tested/train")
        self.assertIn("tested/test is not read", self.succeed("data", "stats", "tested").stderr)
        (self.folder / "tested/train").rename(self.folder / "own/train")
        rows = self.succeed("data", "stats", "own", "--format", "csv").stdout.splitlines()
        self.assertEqual([row.split(",")[0] for row in rows], ["part", "train", "val"])
        lines = shown.splitlines()[shown.splitlines().index("data:"):]
        mean, stddev = (line.split(": ")[1] for line in lines[2:4])
        self.succeed(*with_own(f"data.mean={mean}", f"data.stddev={stddev}"), "-q")
        told = json.loads((self.folder / "out/manifest.json").read_text())["dataset"]
        self.assertEqual(told["mean"], [float(word) for word in mean.split()])

    def test_the_rate_is_measured_and_planned_with(self):
        shown = self.succeed("data", "rate", "own", "--input-size", "16", "--threads", "1", "--seconds", "1",
                              "--format", "csv").stdout
        self.assertGreater(float(shown.splitlines()[1].split(",")[2]), 0)
        self.succeed("calibrate", "own.yaml")
        read, = json.loads((self.folder / "calibration.json").read_text())["reads"]
        self.assertEqual((read["dataset"], read["size"], read["ranks_on_node"]), ("own", 16, 1))
        words = ["plan", "own.yaml", "--ranks", "1", "--calibration", "calibration.json"]
        time = json.loads(self.succeed(*words, "--json").stdout)["time"]
        self.assertEqual(time["reading"]["threads"], 1)
        self.assertAlmostEqual(time["reading"]["images_per_s"] * read["image_s"], 1)
        parts = [time[part] for part in ("compute_s", "exposed_s", "cores_s")] + [time["reading"]["images_s"]]
        self.assertAlmostEqual(time["step_s"], sum(parts))
        self.assertIn("1 thread of a rank: ", self.succeed(*words).stdout)
        read["image_s"] = 100
        calibration = json.loads((self.folder / "calibration.json").read_text())
        (self.folder / "calibration.json").write_text(json.dumps({**calibration, "reads": [read]}))
        self.assertIn("take data.decode_threads: ", self.succeed(*words).stdout)
        (self.folder / "calibration.json").write_text(json.dumps({**calibration, "reads": []}))
        self.assertIn("does not say how fast the images of own are read", self.succeed(*words).stdout)


if __name__ == "__main__":
    harness.main()

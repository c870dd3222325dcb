"""A model that torch.export wrote, wherever a model can be named: model, plan, run, resume, simulate, studies."""

import io
import json
import pathlib
import zipfile

import harness
from harness import Refusal, mpirun, overridden

USAGE, BAD_DATA, UNUSABLE = 2, 5, 7
FILES = pathlib.Path(__file__).resolve().parent.parent / "model" / "files"
CONFIG = """schema: 1
run: {name: net, threads: 1, max_steps: 3, evaluate_every: 1, out: out}
data: {dataset: synthetic-digits, input_size: 28, global_batch: 12, subset: 96}
model: {file: net.pt2}
optimizer: {lr: 0.01}
strategy: {name: ddp}
checkpoint: {every_steps: 2}
"""
STUDY = """schema: 1
name: nets
base:
  run: {max_steps: 2, threads: 1}
  data: {dataset: synthetic-digits, input_size: 28, global_batch: 12, subset: 48}
variants:
  ddp: {strategy: {name: ddp}}
  fsdp: {strategy: {name: fsdp}}
parts:
  all:
    matrix:
      model.file: [net.pt2, other.pt2]
      variant: [ddp, fsdp]
      workers: [2]
"""
NET, OTHER = ((FILES / f"tiny-{torch}.pt2").read_bytes() for torch in ("2.15", "2.10"))  # their graphs differ a little
WITH_NET = {"net.yaml": CONFIG, "net.pt2": NET}
RUN = ["run", "net.yaml"]


def with_first_loss(change):
    """The net, with another record of its first loss."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(NET)) as source, zipfile.ZipFile(target, "w") as changed:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("extra/stratagem.json"):
                record = json.loads(content)
                change(record["first_loss"])
                content = json.dumps(record).encode()
            changed.writestr(name, content)
    return target.getvalue()


OTHER_LOSS = with_first_loss(lambda first: first["training"].update(loss=2.3))

REFUSED = [
    Refusal("no such file", ["run", "net.yaml", "-s", "model.file=none.pt2"], USAGE,
            ["cannot open model file none.pt2", "check model.file"], WITH_NET, ranks=(1, 2)),
    Refusal("half a file", RUN, BAD_DATA, ["net.pt2", "analysis/export_model.py"],
            {**WITH_NET, "net.pt2": NET[: len(NET) // 2]}, ranks=(1, 2)),
    Refusal("another first loss", RUN, BAD_DATA, ["first loss in training is 2.37", "Python's was 2.3"],
            {**WITH_NET, "net.pt2": OTHER_LOSS}, ranks=(1, 2)),
    Refusal("another first loss, shown", ["model", "net.pt2"], BAD_DATA, ["first loss in training"],
            {"net.pt2": OTHER_LOSS}),
    Refusal("no archive", RUN, BAD_DATA, ["not a usable model file: net.pt2"], {**WITH_NET, "net.pt2": "text"}),
    Refusal("a name, too", overridden("model.name=lenet", config="net.yaml"), USAGE,
            ["model.name: is given, and so is model.file"], WITH_NET),
    Refusal("neither a name nor a file", RUN, USAGE, ["model.name: missing", "or give model.file"],
            {"net.yaml": CONFIG.replace("file: net.pt2", "")}),
    Refusal("another size", overridden("data.input_size=32", config="net.yaml"), USAGE,
            ["data.input_size is 32", "set data.input_size to 28"], WITH_NET, ranks=(1, 2)),
    Refusal("other classes", overridden("model.num_classes=100", config="net.yaml"), USAGE,
            ["model.num_classes is 100", "has 10 logits"], WITH_NET),
    Refusal("classes of no file", overridden("model.num_classes=0"), USAGE,
            ["model.num_classes: is 0, which needs model.file"]),
    Refusal("images of more channels", overridden("data.dataset=synthetic-shapes", "data.input_size=28",
                                                   config="net.yaml"), USAGE,
            ["data.input_size: 28 pixels are less than the 32"], WITH_NET),
    Refusal("a model of no name", ["model", "resnet5"], USAGE, ['did you mean "resnet50"']),
]


class Exported(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.folder = self.new_folder({**WITH_NET, "other.pt2": OTHER, "nets.yaml": STUDY})

    def digest(self, *settings, **how):
        return super().digest(*settings, config="net.yaml", **how)

    def test_refusals(self):
        self.check_refusals(REFUSED)

    def test_its_blocks_are_shown(self):
        shown = self.succeed("model", "net.pt2").stdout
        self.assertIn("net: 8,042 parameters, 7 blocks, 10 classes, images of 1 x 28 x 28, graph ", shown)
        rows = self.succeed("model", "net.pt2", "--format", "csv").stdout.splitlines()
        self.assertEqual([row.split(",")[0] for row in rows[1:]],
                         ["stem", "first", "second", "mix", "norm", "square", "head", "all"])

    def test_nothing_is_frozen_by_the_setting_alone(self):
        told = self.succeed("run", "net.yaml", "-s", "model.frozen=true", "-s", "run.max_steps=1").stderr
        self.assertIn("warning: model.frozen is true, and all layers of net.pt2 are in training mode", told)

    def test_every_strategy_ends_with_the_same_bits(self):
        expected = self.digest("strategy.name=serial", "strategy.emulate_ranks=2", out="serial")
        self.assertEqual(self.digest("strategy.bucket_mb=0.01", out="ddp", ranks=2), expected)
        self.assertEqual(self.digest("strategy.name=fsdp", out="fsdp", ranks=2), expected)
        self.assertEqual(self.digest("strategy.name=ps", out="ps", ranks=3), expected)
        self.digest("precision.compute=bf16", out="bf16", ranks=2)  # its first loss is compared in fp32

    def test_it_goes_on_with_its_own_graph_alone(self):
        whole = self.digest("run.max_steps=6", out="whole", ranks=2)
        words = [self.program, *overridden("run.out=stopped", "run.max_steps=6", config="net.yaml"), "-q"]
        fails = {"STRATAGEM_FAIL": "forward:0:4:exit"}
        killed = self.wait(self.start(mpirun(2, words), environment=fails), timeout=120)
        if killed.code == 0:
            self.skipTest("built without failpoints")
        other = self.wait(self.start(mpirun(2, [*words, "--resume", "-s", "model.file=other.pt2"])), timeout=120)
        self.assertEqual(other.code, UNUSABLE, str(other))
        self.assertIn("graph was", other.stderr)
        self.succeed(*words[1:], "--resume", ranks=2)
        self.assertEqual(json.loads((self.folder / "stopped/outcome.json").read_text())["digest"], whole)

    def test_weights_have_the_names_of_the_state_dict(self):
        self.digest("run.save_weights=weights.safetensors", out="out", ranks=2)
        names = self.names_in("weights.safetensors")
        self.succeed("export-weights", "out", "again.safetensors")
        self.assertEqual(self.names_in("again.safetensors"), names)
        self.assertEqual(len(names), 28)
        self.assertLessEqual({"stem.0.weight", "first.norm.num_batches_tracked", "shift", "square.bias"}, names)
        # And they are what another run can start from.
        self.digest("model.weights=weights.safetensors", "model.head=fresh", out="further")

    def names_in(self, file):
        content = (self.folder / file).read_bytes()
        length = int.from_bytes(content[:8], "little")
        return set(json.loads(content[8 : 8 + length])) - {"__metadata__"}

    def test_a_study_of_files(self):
        self.succeed("sweep", "nets.yaml", "--all", "--out", "study", "-q")
        shown = json.loads(self.succeed("collect", "study", "--format", "json").stdout)
        groups = shown["groups"] if isinstance(shown, dict) else shown
        names = {str(group) for group in groups}
        for model in "net", "other":
            self.assertTrue(any(model in name for name in names), names)

    def test_plans_and_simulations(self):
        plan = json.loads(self.succeed("plan", "net.yaml", "--ranks", "2", "--json").stdout)
        self.assertIn("8042", json.dumps(plan))
        compared = self.succeed("plan", "net.yaml", "--ranks", "2", "--compare").stdout
        self.assertIn("Would FSDP help?", compared)
        self.succeed("simulate", "net.yaml", "-s", "strategy.name=ps", "--workers", "2", "--max-steps", "3")


if __name__ == "__main__":
    harness.main()

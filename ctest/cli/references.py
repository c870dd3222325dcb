"""The calibrations in inputs/calibrations, which are not measured: what they are made of, and that `plan` uses them."""

import json
import pathlib
import subprocess
import sys

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "inputs/calibrations"
MODELS = ["mlp", "lenet", "vgg16", "resnet50", "densenet121", "efficientnetv2_l", "convnext_l"]
STUDY = f"""schema: 1
name: all
base:
  run: {{threads: 1}}
  data: {{dataset: synthetic-shapes, global_batch: 240}}
variants:
  ddp: {{strategy: {{name: ddp}}}}
  fsdp: {{strategy: {{name: fsdp}}}}
  sync: {{strategy: {{name: ps}}}}
  dana: {{strategy: {{name: ps, mode: dana}}}}
parts:
  p: {{matrix: {{model.name: [{', '.join(MODELS)}], variant: [ddp, fsdp, sync, dana], workers: [1, 4, 8]}}}}
"""
# Images per second of one GPU: NVIDIA/DeepLearningExamples, ResNet50 v1.5, and analysis/bench/RESULTS.md.
KNOWN = [
    ("a100-sxm4", "resnet50", 224, "fp16", 256, 2470),
    ("a100-sxm4", "resnet50", 224, "tf32", 256, 938),
    ("h100-sxm5", "resnet50", 224, "bf16", 128, 3548),
    ("h100-sxm5", "vgg16", 224, "bf16", 128, 3135),
    ("h100-sxm5", "resnet50", 32, "tf32", 128, 7907),
    ("h100-sxm5", "efficientnetv2_l", 32, "tf32", 128, 1324),
]


class References(harness.ProgramTest):
    def read(self, name):
        return json.loads((FOLDER / f"{name}.json").read_text())

    def names(self):
        return sorted(path.stem for path in FOLDER.glob("*.json"))

    def planned(self, name, file, *settings, ranks=()):
        words = [word for setting in settings for word in ("-s", setting)]
        words += ["--no-activations", "--json", "--calibration", FOLDER / f"{name}.json", *ranks]
        return json.loads(self.expect(0, "plan", file, *words).stdout)

    def time_of_step(self, name, model, size, precision, batch, ranks):
        settings = ["run.threads=1", "data.dataset=synthetic-shapes", "data.subset=0", f"model.name={model}"]
        settings += [f"data.input_size={size}", f"precision.compute={precision}", f"data.global_batch={batch}"]
        planned = self.planned(name, "config.yaml", *settings, ranks=("--ranks", ranks))
        self.assertNotIn("problem", planned["time"])
        return planned["time"]

    def test_they_are_what_the_formulas_say(self):
        ended = subprocess.run(
            [sys.executable, ROOT / "analysis/calibrations.py", "--check"], capture_output=True, text=True, timeout=30
        )
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        readme = (FOLDER / "README.md").read_text()
        self.assertEqual(len(self.names()), 3)
        for name in self.names():
            self.assertIn(f"| `{name}` |", readme)

    def test_each_says_where_its_figures_come_from(self):
        for name in self.names():
            document = self.read(name)
            self.assertIn("inputs/calibrations/README.md", document["published"])
            self.assertEqual((document["version"], document["measured"]), ("", ""), "nobody measured them")

    def test_every_model_under_every_strategy_has_a_time(self):
        (self.folder / "study.yaml").write_text(STUDY)
        for name in self.names():
            cells = self.planned(name, "study.yaml")["cells"]
            self.assertEqual(len(cells), len(MODELS) * 4 * 3)
            for cell, plan in cells.items():
                with self.subTest(name=name, cell=cell):
                    self.assertGreater(plan["time"].get("step_s", 0), 0, plan["time"])

    def test_known_speeds_of_one_gpu(self):
        for name, model, size, precision, batch, known in KNOWN:
            with self.subTest(name=name, model=model, size=size, precision=precision):
                step = self.time_of_step(name, model, size, precision, batch, 1)["step_s"]
                self.assertAlmostEqual(batch / step / known, 1, delta=0.35)

    def test_an_exchange_within_a_node_is_quicker_than_between_nodes(self):
        """VGG16 on small images: half a gigabyte of gradients, and little computation to hide them."""
        four, eight = (self.time_of_step("a100-sxm4", "vgg16", 32, "fp32", 64 * ranks, ranks) for ranks in (4, 8))
        self.assertGreater(eight["exposed_s"], 5 * four["exposed_s"])
        self.assertAlmostEqual(eight["compute_s"], four["compute_s"], delta=0.01 * four["compute_s"])


if __name__ == "__main__":
    harness.main()

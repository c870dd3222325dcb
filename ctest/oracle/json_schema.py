"""The JSON Schema with which editors check files: every configuration and study of inputs/ fits it, read by PyYAML, and
mistakes in a study do not."""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import unittest

import yaml

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "cli"))
from commands import conflicts  # noqa: E402

INPUTS = TESTS.parent / "inputs"
STUDY = """schema: 1
name: own
base: {data: {path: photos, global_batch: 8}, optimizer: {lr: 0.1}}
variants:
  ddp: {strategy: {name: ddp, bucket_mb: 1}}
  ps: {strategy: {name: ps, mode: async}}
parts:
  one:
    base: {run: {epochs: 1}}
    matrix: {model.file: [a.pt2, b.pt2], variant: [ddp, ps], workers: [1, 2], optimizer.lr: [0.1, "${LR}"]}
    exclude: [{variant: ps, workers: [2]}]
"""
OWN = "schema: 1\ndata: {path: photos, global_batch: 8}\nmodel: {file: net.pt2}\nstrategy: {name: ddp}\n"


class JsonSchema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        words = [cls.program, "list", "keys", "--format", "json-schema"]
        cls.schema = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)

    def found(self, document):
        return conflicts(self.schema, document)

    def test_all_inputs_fit(self):
        files = [*INPUTS.glob("smoke/*.yaml"), *INPUTS.glob("study/*.yaml")]
        self.assertGreater(len(files), 18)
        for file in files:
            self.assertEqual(self.found(yaml.safe_load(file.read_text())), [], file.name)

    def test_models_and_data_of_ones_own_fit(self):
        for text in OWN, STUDY:
            self.assertEqual(self.found(yaml.safe_load(text)), [], text)
        without = yaml.safe_load(OWN)
        del without["model"]["file"]
        self.assertNotEqual(self.found(without), [])

    def test_mistakes_in_a_study(self):
        right = yaml.safe_load(STUDY)
        for path, value in [
            (["base", "optimizer", "lrr"], 1),
            (["base", "optimizer", "lr"], "fast"),
            (["variants", "ddp", "strategy", "overlap"], "perhaps"),
            (["parts", "one", "base", "runn"], {}),
            (["parts", "one", "matrix", "workers"], [0]),
            (["parts", "one", "matrix", "optimizer.lr"], ["fast"]),
            (["parts", "one", "matrix", "optimizer.lrr"], [1]),
            (["parts", "one", "exclude"], [{"worker": 1}]),
            (["parts", "one", "matrices"], {}),
            (["name"], 7),
            (["bases"], {}),
        ]:
            wrong = copy.deepcopy(right)
            at = wrong
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            self.assertNotEqual(self.found(wrong), [], path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    options, rest = parser.parse_known_args()
    JsonSchema.program = options.program
    unittest.main(argv=[sys.argv[0], *rest])

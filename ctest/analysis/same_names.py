"""Models and data of different files with the same name: they are other work, and not other strategies."""

import sys

import support  # noqa: F401
import harness
from stratagem_report import compare, study
from stratagem_report.errors import ReportError

sys.path.insert(0, str(support.HERE.parent / "support"))
from images import folder_files, striped  # noqa: E402

FILES = support.HERE.parent / "model" / "files"
NET, OTHER = ((FILES / f"tiny-{torch}.pt2").read_bytes() for torch in ("2.15", "2.10"))
STUDY = """schema: 1
name: names
base:
  run: {max_steps: 2, threads: 1}
  data: {WHERE input_size: 28, global_batch: 12}
  model: {WHAT}
variants:
  ddp: {strategy: {name: ddp}}
  serial: {strategy: {name: serial}}
parts:
  all:
    matrix: {variant: [ddp, serial], AXIS}
"""


def study_of(axis, where="dataset: synthetic-digits, subset: 48,", what=""):
    return STUDY.replace("AXIS", axis).replace("WHERE", where).replace("WHAT", what)


class SameNames(harness.ProgramTest):
    def families(self, text, files):
        """Of the study, when it has run: {(model, data set): variants}."""
        folder = self.new_folder({"study.yaml": text, **files})
        words = [self.program, "sweep", "study.yaml", "--all", "--out", "study", "-q"]
        ended = self.wait(self.start(words, folder=folder), timeout=120)
        self.assertEqual(ended.code, 0, str(ended))
        found = compare.compare(study.load(folder / "study", program=self.program), {}).families
        for family in found:
            self.assertRegex(family.label, r"^[\w.-]+$", "is a part of file names")
        return {(family.key["model"], family.key["dataset"]): list(family.variants) for family in found}

    def test_models_of_files(self):
        files = {"a/net.pt2": NET, "b/net.pt2": OTHER}
        both = ["serial", "ddp"]
        self.assertEqual(
            self.families(study_of("model.file: [a/net.pt2, b/net.pt2]"), files),
            {(f"net file={name}/net.pt2", "synthetic-digits"): both for name in "ab"},
        )

    def test_models_of_the_zoo(self):
        small = "name: vit_tiny_4, layers: 1, heads: 2"
        found = self.families(study_of("model.width: [32, 64]", what=small), {})
        self.assertEqual([model for model, _ in found], ["vit_tiny_4 width=32", "vit_tiny_4 width=64"])

    def test_data_of_folders(self):
        one = folder_files(8, 4, edge=28, path="a/own")
        other = {name.replace("a/", "b/", 1): content for name, content in one.items()}
        other["b/own/train/class-0/3.png"] = striped(28, 2, 99)
        settings = {"axis": "data.path: [a/own, b/own]", "where": "", "what": "name: lenet"}
        self.assertEqual(
            [data for _, data in self.families(study_of(**settings), {**one, **other})],
            ["own path=a/own", "own path=b/own"],
        )

    def test_copies_are_the_same_work(self):
        one = folder_files(8, 4, edge=28, path="a/own")
        copies = {name.replace("a/", "b/", 1): content for name, content in one.items()}
        settings = {"axis": "data.path: [a/own, b/own]", "where": "", "what": "name: lenet"}
        self.assertEqual(
            self.families(study_of(**settings), {**one, **copies}),
            {("lenet", "own"): ["serial", "serial path=b/own", "ddp", "ddp path=b/own"]},
        )

    def test_settings_that_change_no_result(self):
        text = study_of("comm.node_memory: [auto, 'off'], run.seed: [1]", what="name: lenet")
        self.assertEqual(
            self.families(text, {}),
            {("lenet", "synthetic-digits"): ["serial", "serial node_memory=off", "ddp", "ddp node_memory=off"]},
        )

    def test_a_file_that_was_replaced_between_two_cells(self):
        text = study_of("run.seed: [1, 2]", what="file: net.pt2")
        self.folder = self.new_folder({"study.yaml": text, "net.pt2": NET})
        self.expect(0, "sweep", "study.yaml", "--out", "study", "--index", "0", "-q")
        (self.folder / "net.pt2").write_bytes(OTHER)
        self.expect(0, "sweep", "study.yaml", "--out", "study", "--all", "-q")
        told = "read other content from model.file: net.pt2"
        self.assertIn(told, self.expect(2, "collect", "study").stderr)
        self.assertIn("mixed", self.expect(0, "collect", "study", "--allow-mixed").stdout)
        with self.assertRaisesRegex(ReportError, told):
            study.load(self.folder / "study", program=self.program)
        families = compare.compare(study.load(self.folder / "study", True, self.program), {}).families
        self.assertEqual(len(families), 2)


if __name__ == "__main__":
    harness.main()

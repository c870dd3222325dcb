"""~/ is the home folder in every path that a user may name; nothing is ever written into a folder that is called ~."""

import csv
import io
import re

import harness
from harness import overridden

USAGE = 2
WITHOUT = {"data.path": ("dataset: synthetic-digits, ", ""), "model.file": ("{name: mlp}", "{}")}


class Home(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.home = self.folder / "home"
        self.home.mkdir()

    def printed(self, key, value, code=0, home=None):
        config = (self.folder / "config.yaml").read_text()
        (self.folder / "without.yaml").write_text(config.replace(*WITHOUT.get(key, ("", ""))))
        words = overridden(f"{key}={value}", config="without.yaml")
        variables = {"HOME": str(self.home) if home is None else home}
        return self.expect(code, *words, "--print-config", environment=variables)

    def keys(self):
        return list(csv.DictReader(io.StringIO(self.expect(0, "list", "keys", "--format", "csv").stdout)))

    def test_every_key_of_a_path(self):
        paths = {row["key"] for row in self.keys() if row["type"] == "path"}
        known = {"run.out", "run.save_weights", "data.path", "data.root", "model.file", "model.weights"}
        self.assertLessEqual(known, paths)
        for key in paths:
            with self.subTest(key):
                name = key.partition(".")[2]
                self.assertIn(f'  {name}: "{self.home}/a/b"\n', self.printed(key, "~/a/b").stdout)
                self.assertIn(f'  {name}: "/data/~/b"\n', self.printed(key, "/data/~/b").stdout)
                self.assertIn(f'  {name}: "./~b"\n', self.printed(key, "./~b").stdout)
                told = self.printed(key, "~bob/a", code=USAGE).stderr
                self.assertIn(f"{key}: begins with ~: only ~/ is known", told)
                self.assertIn("HOME is not set", self.printed(key, "~/a", code=USAGE, home="").stderr)

    def test_no_other_key_names_a_path(self):
        for row in self.keys():
            if row["type"] == "text" and not row["key"].startswith("expect."):
                self.assertIsNone(re.search(r"\b(file|folder|directory)\b", row["meaning"]), row["key"])

    def test_in_a_file_and_in_a_study(self):
        text = (self.folder / "config.yaml").read_text()
        (self.folder / "config.yaml").write_text(text.replace("out: out", "out: ~/runs/a"))
        ended = self.expect(0, "run", "config.yaml", environment={"HOME": str(self.home)})
        self.assertIn(f"stratagem collect {self.home}/runs/a", ended.stderr)
        self.assertTrue((self.home / "runs/a/outcome.json").exists())
        self.assertFalse((self.folder / "~").exists())
        study = "schema: 1\nname: s\nparts: {p: {matrix: {workers: [1], model.weights: [~/w, ~bob/w]}}}\n"
        base = "base: {data: {dataset: mnist}, model: {name: mlp}, strategy: {name: ddp}}\n"
        (self.folder / "study.yaml").write_text(study + base)
        told = self.expect(USAGE, "sweep", "study.yaml", "--list", environment={"HOME": str(self.home)}).stderr
        self.assertIn("~bob", told)
        self.assertEqual(told.count("begins with ~"), 1)

    def test_options_and_words(self):
        asked = 0
        commands = re.findall(r"^  ([a-z][a-z-]+) ", self.expect(0, "--help").stdout, re.MULTILINE)
        for command in commands:
            told = self.expect(0, command, "--help").stdout
            for option in re.findall(r"(--[a-z-]+) (?:FILE|DIR)\b", told):
                with self.subTest(command, option=option):
                    ended = self.run_program(command, f"{option}=~bob/a", *["x"] * told.split("\n")[0].count(" FILE"))
                    self.assertEqual(ended.code, USAGE, str(ended))
                    asked += 1
        self.assertGreater(asked, 8)
        for words in [
            *(["run", "config.yaml", "--out=~bob/a"], ["run", "~bob/c.yaml"], ["collect", "~bob/r"]),
            *(["calibrate", "config.yaml", "-o", "~bob/c"], ["export-weights", "r", "~bob/w"], ["model", "~bob/n.pt2"]),
        ]:
            self.assertIn("only ~/ is known", self.expect(USAGE, *words).stderr, words)
        self.expect(0, *overridden(), "--out=~/r", "-q", environment={"HOME": str(self.home)})
        self.expect(0, "export-weights", "~/r", "~/w.safetensors", environment={"HOME": str(self.home)})
        self.assertTrue((self.home / "w.safetensors").exists())
        self.assertEqual([path.name for path in self.folder.iterdir() if "~" in path.name], [])


if __name__ == "__main__":
    harness.main()

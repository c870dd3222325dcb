"""What calibrate measures, how plan uses it, and files that are not calibrations."""

import json

import harness
from harness import Refusal

USAGE = 2
PLAN = ["plan", "config.yaml", "--no-activations"]
WITH = [*PLAN, "--calibration", "calibration.json"]
NONE = {"schema_name": "stratagem-calibration", "schema_version": 2}
STUDY = """schema: 1
name: small
base:
  run: {threads: 1, max_steps: 3}
  data: {dataset: synthetic-digits, global_batch: 12, subset: 96}
  strategy: {name: ddp}
parts: {p: {matrix: {model.name: [mlp, lenet], workers: [1, 2]}}}
"""
SITES = {
    "slurm/sites/near.env": "site_scheduler=slurm\n",
    "slurm/sites/alone.env": "# here\nsite_scheduler=none\n",
}


def bad(name, content, words):
    files = {} if content is None else {"calibration.json": content}
    return Refusal(name, WITH, USAGE, ["calibration.json", *words], files)


MISTAKES = [
    bad("calibration that is not there", None, ["No such file"]),
    bad("calibration that is no JSON", "{", ["stratagem calibrate"]),
    bad("measurements of another kind", '{"rows": []}', ["not what `stratagem calibrate` writes"]),
    bad("another schema", json.dumps({**NONE, "schema_version": 7}), ["is 7", "is 2"]),
    bad("calibration without its machine", json.dumps(NONE), ["host"]),
    Refusal(
        "adding to what is no calibration",
        ["calibrate", "config.yaml", "-o", "calibration.json"],
        USAGE,
        ["not a usable calibration"],
        {"calibration.json": "{}"},
        ranks=(1, 2),
    ),
    Refusal(
        "link without a calibration",
        [*PLAN, "--link", "1gbit"],
        USAGE,
        ["--link says nothing alone", "--calibration"],
    ),
    Refusal(
        "link that is none",
        [*PLAN, "--calibration", "h100-sxm5", "--link", "fast"],
        USAGE,
        ["not a link: 'fast'", "1gbit"],
    ),
    Refusal("a site that the program's own tree lacks", [*PLAN, "--site", "hoper"], USAGE, ['did you mean "hopper"']),
    Refusal(
        "unknown site",
        [*PLAN, "--site", "nearr"],
        USAGE,
        ['did you mean "near"', "alone, near"],
        SITES,
    ),
    Refusal(
        "site without a scheduler",
        [*PLAN, "--site", "alone"],
        USAGE,
        ["no scheduler", "mpirun --bind-to none -n 2"],
        SITES,
    ),
    Refusal(
        "site of a study",
        ["plan", "study.yaml", "--site", "near"],
        USAGE,
        ["--site is for one run"],
        {**SITES, "study.yaml": STUDY},
    ),
]


class Calibration(harness.ProgramTest):
    def test_mistakes(self):
        self.check_refusals(MISTAKES)

    def test_from_measurement_to_plan(self):
        alone = self.expect(0, "calibrate", "config.yaml").stdout
        self.assertRegex(alone, r"(?m)^mlp at 32 x 32, fp32, 1 thread +1 +6 +\d")
        self.check_one_rank()
        self.expect(0, "calibrate", "config.yaml", ranks=2)
        measured = json.loads((self.folder / "calibration.json").read_text())
        self.assertEqual({row["ranks"] for row in measured["operations"]}, {1, 2})
        self.assertEqual({row["ranks_on_node"] for row in measured["savings"]}, {1, 2})
        self.assertEqual(list(self.folder.glob(".calibrate-*")), [])
        works = {row["work"] for row in measured["servers"]}
        self.assertEqual(works, {"sum", "each", "corrected", "look_ahead"})
        coded = {(row["code"], row["rounding"]) for row in measured["codings"][0]["codecs"]}
        self.assertEqual(len(coded), 16)
        self.assertEqual({row["ranks_on_node"] for row in measured["codings"]}, {1, 2})
        self.check_plan()
        self.check_codes()
        self.check_comparison()
        self.check_study()
        self.check_activations()
        self.check_other_machine()

    def check_one_rank(self):
        plan = json.loads(self.expect(0, *WITH, "--json").stdout)
        self.assertIn("no all_reduce among ranks", plan["time"]["problem"])

    def check_plan(self):
        time = json.loads(self.expect(0, *WITH, "--json").stdout)["time"]
        self.assertAlmostEqual(
            time["step_s"], time["compute_s"] + time["exposed_s"] + time["cores_s"]
        )
        self.assertGreater(time["compute_s"], 0)
        self.assertAlmostEqual(time["epoch_s"], 8 * time["step_s"])
        self.assertRegex(time["request"], r"^\d\d:\d\d:00$")
        self.assertGreater(time["save_s"], 0)
        self.assertLessEqual(60 + 2 * (2 * time["step_s"] + time["save_s"]), time["lead_s"])
        for name, content in SITES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(content)
        text = self.expect(0, *WITH, "--site", "near").stdout
        self.assertRegex(text, r"(?m)^step +\d.* [mu]?s$")
        asks = f"--time {time['request']} --lead {time['lead_s']}"
        self.assertRegex(
            text, rf"(?m)^submit: slurm/submit.sh --site near --workers 2 {asks} run config.yaml$"
        )
        other = self.expect(0, *WITH, "-s", "model.name=lenet").stdout
        self.assertIn("no time prediction: the calibration has no passes of lenet", other)
        self.assertIn("it has mlp at 32 x 32", other)
        self.assertIn("total, without activations", other)

    def check_codes(self):
        """Each code as it would be alone; a slow link makes them pay, and strategy local has none."""
        told = json.loads(self.expect(0, *WITH, "--json").stdout)
        codes = {row["compression"]: row for row in told["codes"]}
        self.assertAlmostEqual(codes["none"]["step_s"], told["time"]["step_s"])
        int8 = "strategy.compression=int8", "strategy.error_feedback=true"
        alone = json.loads(self.expect(0, *WITH, "--json", *(word for key in int8 for word in ("-s", key))).stdout)
        self.assertAlmostEqual(codes["int8"]["step_s"], alone["time"]["step_s"])
        self.assertEqual(codes["int8"]["bytes_sent_per_step"], alone["bytes_sent_per_step"])
        slow = json.loads(self.expect(0, *WITH, "--json", "--link", "1mbit,1ms").stdout)
        steps = {row["compression"]: row["step_s"] for row in slow["codes"]}
        self.assertGreater(slow["time"]["step_s"], 8 * told["bytes_sent_per_step"] / 1e6)
        self.assertGreater(steps["none"] / steps["int8"], 3.5)
        self.assertGreater(steps["none"] / steps["sign"], 15)
        self.assertRegex(self.expect(0, *WITH).stdout, r"(?m)^int8 .*(bit/s|never)$")
        self.assertNotIn("codes", json.loads(self.expect(0, *WITH, "--json", "-s", "strategy.name=local").stdout))

    def check_comparison(self):
        compare = [*WITH, "--compare", "-s", "data.subset=480"]  # some for each of 100 clients
        compared = json.loads(self.expect(0, *compare, "--json").stdout)
        times = {one["strategy"]: one["time"]["step_s"] for one in compared["strategies"]}
        self.assertEqual(len(times), 9)
        alike = [time for name, time in times.items() if name not in ("local", "gossip", "fedavg", "ps async")]
        error = max(one["time"]["ratio_error"] for one in compared["strategies"])
        self.assertLessEqual(times[compared["recommended"]], (1 + error) * min(alike))
        text = self.expect(0, *compare).stdout
        self.assertRegex(text, r"Take .*: its\s+step\s+is\s+predicted\s+to\s+take")

    def check_study(self):
        (self.folder / "study.yaml").write_text(STUDY)
        words = ["plan", "study.yaml", "--no-activations", "--calibration", "calibration.json"]
        cells = json.loads(self.expect(0, *words, "--json").stdout)["cells"]
        self.assertGreater(cells["p-mlp-w2"]["time"]["step_s"], 0)
        self.assertIn("no passes of lenet", cells["p-lenet-w1"]["time"]["problem"])
        text = self.expect(0, *words).stdout
        self.assertRegex(text, r"(?m)^p-mlp-w1 .* can run$")
        self.assertIn("no time for 2 cells: the calibration has no passes of lenet", text)

    def check_activations(self):
        """Passes in the calibration are taken from it, not run."""
        words = ["plan", "config.yaml", "--json"]
        own = json.loads(self.expect(0, *words).stdout)
        path = self.folder / "calibration.json"
        measured = json.loads(path.read_text())
        for item in measured["activations"]:
            item["kept"] *= 1000
        (self.folder / "thousandfold.json").write_text(json.dumps(measured))
        for name, factor in {path.name: 1, "thousandfold.json": 1000}.items():
            planned = json.loads(self.expect(0, *words, "--calibration", name).stdout)
            self.assertEqual(planned["activations_B"], factor * own["activations_B"])

    def check_other_machine(self):
        path = self.folder / "calibration.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "device": "a better one"}))
        refused = self.expect(USAGE, "calibrate", "config.yaml")
        for words in "cannot be added to", "its device is a better one", "-o":
            self.assertIn(words, refused.stderr)


if __name__ == "__main__":
    harness.main()

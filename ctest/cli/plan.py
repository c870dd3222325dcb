"""Plans with published figures: memory, servers and times, for questions that users have."""

import json
import re

import harness
from harness import Refusal

USAGE, DOES_NOT_FIT = 2, 4
PLAN = ["plan", "config.yaml"]
COMPARE = [*PLAN, "--compare", "--no-activations"]
REFERENCES = "inputs/calibrations/"


def curve(size, *points):
    return [{size: at, "seconds": seconds} for at, seconds in points]


def joined(text):
    """Without line ends."""
    return " ".join(text.split())


def published(**changes):
    """A GPU whose speed was published."""
    message = curve("bytes", (1024, 1e-5), (1 << 30, 1e-1))
    operations = "all_reduce", "reduce_scatter", "all_gather", "send_receive"
    document = {
        "schema_name": "stratagem-calibration",
        "schema_version": 2,
        "published": "a table of somebody, https://example.org/table",
        **{"host": "a box of 8", "device": "a GPU", "on_gpu": True, "cores": 64},
        **{"version": "", "libtorch": "", "mpi": "", "measured": "2024"},
        "passes": [
            {
                **{"model": "mlp", "classes": 1000, "channels": 3, "size": 32, "threads": 1},
                **{"memory_format": "channels_last", "precision": "fp32", "recompute": 0},
                **{"dropout": True, "ranks_on_node": 1, "optimizer_s": 1e-3},
                "forward": curve("samples", (100, 1e-2)),
                "backward": curve("samples", (100, 2e-2)),
            }
        ],
        "operations": [
            {"operation": name, "backend": "nccl", "ranks": 8, "ranks_per_node": 8, "time": message}
            for name in operations
        ],
        **{"servers": [], "savings": [], "activations": []},
    }
    return json.dumps({**document, **changes})


HOME = {REFERENCES + "box8.json": published(), REFERENCES + "slow.json": published(device="slow")}
KNOWN = {"STRATAGEM_HOME": "."}
MISTAKES = [
    Refusal(
        "a batch that no strategy can divide",
        [*COMPARE, "--ranks", "6", "-s", "data.global_batch=64"],
        USAGE,
        ["64 samples cannot be divided by 6 workers", "60 and 66"],
    ),
    Refusal(
        "a reference that there is not",
        [*COMPARE, "--calibration", "box9"],
        USAGE,
        ["box9", 'did you mean "box8"', "take one of box8, slow"],
        HOME,
        KNOWN,
    ),
    Refusal(
        "adding to published figures",
        ["calibrate", "config.yaml", "-o", "published.json"],
        USAGE,
        ["published figures, not measurements", "-o"],
        {"published.json": published()},
        ranks=(1, 2),
    ),
    Refusal(
        "a size that is none, told first",
        [*PLAN, "--gpu-memory", "much", "--calibration", "box9"],
        USAGE,
        ["--gpu-memory"],
    ),
]


class Plan(harness.ProgramTest):
    def test_mistakes(self):
        self.check_refusals(MISTAKES)

    def test_rows_of_memory_add_up(self):
        text = self.expect(0, *PLAN).stdout
        table = text[text.index("memory per rank") :].split("\n\n")[0]
        rows = dict(re.findall(r"(?m)^(\w[\w, ]*?)  +([\d,]+)  ", table))
        rows = {name: int(number.replace(",", "")) for name, number in rows.items()}
        peak, total = rows.pop("peak, predicted"), rows.pop("total, without activations")
        self.assertEqual(sum(rows.values()), peak, text)
        self.assertLess(total, peak)

    def test_a_plan_says_whether_it_fits(self):
        peak = json.loads(self.expect(0, *PLAN, "--json").stdout)["peak_B"]
        for gib, words, code in (9, "fits, 8.00 GiB spare", 0), (1, "lacks ", DOES_NOT_FIT):
            ended = self.expect(code, *PLAN, "--gpu-memory", f"{gib}GiB")
            self.assertIn(
                f"a GPU of {gib}.00 GiB, of which 1.00 GiB for its context, libraries and communicator: "
                + words,
                ended.stdout,
            )
        tight = self.expect(0, *PLAN, "--gpu-memory", f"{peak // 1024 + 1}KiB", "--gpu-reserve", "0")
        self.assertRegex(tight.stdout, r": tight, [\d.]+ (B|KiB) spare\n")
        room = json.loads(self.expect(0, *PLAN, "--json", "--gpu-memory", "9GiB").stdout)["room"]
        self.assertEqual(room["spare_B"], (8 << 30) - peak)

    def test_servers_are_told_about_how_busy_they_are(self):
        text = self.expect(0, *PLAN, "--ranks", "3", "-s", "strategy.name=ps").stdout
        two_digits = r"(\d\d?|\d\.\d|0\.\d+|[1-9]\d0+)"
        self.assertRegex(
            text,
            rf"busiest server, predicted: about {two_digits} % \(measured on this machine: "
            rf"about {two_digits} ms per push, a worker's pass about {two_digits} ms\)",
        )

    def test_times_of_published_figures_are_marked(self):
        self.folder = self.new_folder(HOME)
        listed = self.expect(0, "list", "calibrations", environment=KNOWN).stdout
        for words in "box8", "a box of 8", "https://example.org/table", "not measured":
            self.assertIn(words, listed)
        words = ["--ranks", "4", "--calibration", "box8"]
        source = "times are from published figures, not measured: a table of somebody"
        text = self.expect(0, *PLAN, *words, environment=KNOWN).stdout
        self.assertIn(source, joined(text))
        self.assertRegex(text, r"time, from published figures +not measured")
        time = json.loads(self.expect(0, *PLAN, *words, "--json", environment=KNOWN).stdout)["time"]
        self.assertEqual((time["measured"], time["compute_s"] > 0), (False, True))
        text = self.expect(0, *COMPARE, *words, environment=KNOWN).stdout
        self.assertIn(source, joined(text))
        self.assertEqual(joined(text).count("has no times of servers"), 1, text)
        by_path = self.expect(0, *COMPARE, "--ranks", "4", "--calibration", REFERENCES + "box8.json")
        self.assertEqual(by_path.stdout, text)

    def test_no_time_is_told_once(self):
        self.folder = self.new_folder(HOME)
        words = [*COMPARE, "--ranks", "2", "--calibration", "box8", "-s", "model.name=lenet"]
        text = self.expect(0, *words, environment=KNOWN).stdout
        self.assertEqual(joined(text).count("has no passes of"), 1, text)

    def test_a_comparison_fits_into_80_columns(self):
        words = ["--ranks", "4", "--gpu-memory", "24GiB", "--calibration", REFERENCES + "box8.json"]
        self.folder = self.new_folder(HOME)
        for line in self.expect(0, *PLAN, "--compare", *words).stdout.splitlines():
            self.assertLessEqual(len(line), 80, line)


if __name__ == "__main__":
    harness.main()

"""What README, RESULTS and FINDINGS quote is what recorded data says, and no figure is left unchecked."""

import math
import re
import statistics
import unittest

import support
from quoted import FINDINGS, PS, RESULTS, Sentences, unchecked
from quoted import accuracy, data_of, lost, modes_of, moved, rows_of, table_of, verdict_of
from stratagem_report import checks_arithmetic


class Unchecked(unittest.TestCase):
    def test_a_figure_that_nobody_checks_is_shown(self):
        text = "With Open MPI 4.1.4 and momentum 0.9, async loses 20 points at 8 and gains 0.7 at 4."
        quoted = "async loses 20 points at 8"
        self.assertEqual(unchecked(text, [quoted]), ["With  and ,  and gains 0.7 at 4."])
        self.assertEqual(len(unchecked(text, [])), 2)


class OfReadme(Sentences):
    def test_all(self):
        eager, graph = ratios_of("gpu_vs_eager_h100"), ratios_of("gpu_vs_graph_h100")
        for name in ("one_process", "one_process_224", "two_ranks", "speed_control"):
            for row in rows_of(name):
                self.assertGreaterEqual((row["starts"], row["pairs"]), (3, 18), (name, row["model"]))
        larger = {row["model"] for row in rows_of("gpu_vs_graph_h100") if row["pixels"] == 224}
        self.assertEqual(len(larger), 2)
        self.check_all(
            "README.md",
            f"[{eager[0]:.1f} to {eager[-1]:.1f}]",
            f"{graph[0]:.2f} to {graph[-1]:.2f} against a CUDA graph",
            f"[one process at 32 pixels]({RESULTS}#one-process): {each_of('one_process')}",
            f"at 224 pixels {each_of('one_process_224')}",
            f"DDP on 2 ranks at 32 pixels: {each_of('two_ranks')}",
            "PyTorch over itself: {:.2f} to {:.2f}".format(*ends_of_intervals("speed_control")),
        )

    def test_demo(self):
        data = data_of("bench/data/demo")
        (lines,) = (lines for lines in support.blocks_of("README.md") if "what this says:" in lines)
        titles, _, *rows = (re.split(r" {2,}", line) for line in lines[: lines.index("...")])
        self.assertEqual(titles, list(data["columns"]))
        self.assertEqual(rows, [[form.format(**row) for form in data["columns"].values()] for row in data["rows"]])
        first_round = {name: round(speeds[0]) for name, speeds in data["images_per_s"].items()}
        self.assertEqual(first_round, {row["run"]: row["images_per_s"] for row in data["rows"]})
        self.check("README.md", *said_of(data["images_per_s"]))
        self.check("analysis/README.md", *said_of(data["images_per_s"]))


def ends(ordered):
    return ordered[0], ordered[-1]


def each_of(data):
    ratios = {row["model"]: row["ratio"] for row in rows_of(data)}
    return "ResNet50 {resnet50:.2f}, DenseNet121 {densenet121:.2f}, VGG16 {vgg16:.2f}".format(**ratios)


def ends_of_intervals(data):
    rows = rows_of(data)
    return min(row["ratio_low"] for row in rows), max(row["ratio_high"] for row in rows)


def ratios_of(data):
    return sorted(row["ratio"] for row in rows_of(data))


def percent(share):
    return f"{100 * share:.{1 if share < 0.1 else 0}f} %"


def said_of(speeds):
    """As the program says it: speeds of each run in three rounds (lib/study/conclusion.cpp)."""
    logs = {name: [math.log(speed) for speed in each] for name, each in speeds.items()}
    common = [statistics.mean(turn) for turn in zip(*logs.values())]
    own = [[value - shared for value, shared in zip(each, common)] for each in logs.values()]
    chance = max(max(each) - min(each) for each in own)
    told_apart = 1.5 * chance  # of three rounds
    means = {name: statistics.mean(each) for name, each in logs.items()}
    fastest = max(means, key=means.get)
    behind = {name: means[fastest] - mean for name, mean in means.items() if name != fastest}
    level = [f"{name} {percent(-math.expm1(-by))}" for name, by in behind.items() if by <= told_apart]
    slower = [f"{name} {percent(-math.expm1(-by))}" for name, by in behind.items() if by > told_apart]
    return (
        f"fastest, or not told apart: {fastest} with {math.exp(means[fastest]):.0f} images/s,"
        f" {', '.join(level)} less; slower: {', '.join(slower)}",
        f"in 3 rounds, runs of the same differed by up to {percent(math.expm1(chance))};"
        f" means that differ by less than {percent(-math.expm1(-told_apart))} may do so by chance",
    )


class OfResults(Sentences):
    def test_all(self):
        waited_s = max(row["waited_s"] for row in rows_of("checkpoint_cost"))
        share = 100 * waited_s / (30 * 60)
        (links,) = (row["ratio"] for row in rows_of("torch_links") if row["code"] == "bf16")
        ddp = {row["model"]: row for row in rows_of("ddp_vs_torch") if row["batch_per_rank"] == 16}
        fsdp_of_ddp = sorted(
            row["theirs_images_per_s"] / ddp[row["model"]]["theirs_images_per_s"] for row in rows_of("fsdp_vs_torch")
        )
        now = {row["model"]: row for row in rows_of("gpu_vs_eager_h100")}
        earlier = {
            row["model"]: 1000 * row["batch_per_rank"] / row["theirs_images_per_s"]
            for row in rows_of("ddp_vs_torch_h100")
            if (row["precision"], row["pixels"]) == ("tf32", 32)
        }
        self.check_all(
            RESULTS,
            f"interval of 30 minutes, this is at most {share:.2f} % of the time",
            "the limit is then 1.5",  # three computing ranks on two cores
            "stratagem is {:.2f} to {:.2f} times as fast".format(*ends(ratios_of("gpu_vs_eager_h100"))),
            "it is {:.2f} to {:.2f} times as fast".format(*ends(ratios_of("gpu_vs_graph_h100"))),
            f"`torch_links` has {links:.2f} times",
            f"{fsdp_of_ddp[0]:.2f} to {fsdp_of_ddp[-1]:.2f} of the images per second of PyTorch's own DDP",
            "took {:.1f} and {:.1f} ms".format(*(earlier[model] for model in ("resnet50", "vgg16"))),
            "now {:.1f} and {:.1f} ms".format(*(now[model]["theirs_ms"] for model in ("resnet50", "vgg16"))),
            "would be {:.1f} and {:.1f}".format(
                *(earlier[model] / now[model]["ours_ms"] for model in ("resnet50", "vgg16"))
            ),
        )


class OfFindings(Sentences):
    def test_speeds(self):
        one_rank = [row for row in rows_of("fsdp_vs_ddp") if row["ranks"] == 1]
        ratios = [row["ratio"] for row in one_rank]
        self.assertEqual(len({row["model"] for row in one_rank}), 5)
        images = {(row["model"], row["mode"]): row for row in rows_of("ps_study")}
        models = {model for model, _ in images}
        sync_is_faster = [
            images[model, "sync"][rate] > images[model, "async"][rate]
            for model in models
            for rate in ("images_per_s_1", "images_per_s_2", "images_per_s_4")
        ]
        self.check(
            FINDINGS,
            f"{min(ratios):.2f} to {max(ratios):.2f} times DDP's images per second on five models",
            f"sync makes more images per second in {sum(sync_is_faster)} of {len(sync_is_faster)} pairs",
        )

    def test_servers(self):
        modes = modes_of("ps_modes")
        transferred = moved(modes["8", "async"])
        rows = {row["mode"]: row for row in table_of(PS, "data/ps_small_batch_4.json")}
        small_steps = [accuracy(rows[mode]) for mode in ("async,workers=1", "async")]
        initial = [float(row["initial %"].split()[0]) for row in table_of(PS, "data/running_statistics.json")]
        self.check(
            FINDINGS,
            f"async loses {lost(modes['16', 'async']):.1f} points at 16 workers, and no difference is found at 4 and 8",
            f"it has {transferred:.1f} % at 8",
            "reach {:.1f} % with one worker, and {:.1f} % with four".format(*small_steps),
            f"guess ({min(initial):.1f} to {max(initial):.1f} %)",
        )

    def test_longer_trainings(self):
        modes, longest = modes_of("ps_plateau"), modes_of("ps_plateau_32")
        (verdict, margin), (later, _) = (verdict_of(modes[workers, "async"]) for workers in ("16", "32"))
        self.assertEqual((verdict, later), ("equivalent", "worse"))
        self.assertIn("underpowered", verdict_of(longest["32", "async"])[0])
        self.check(
            FINDINGS,
            f"async is equivalent to sync at 16 workers ({-lost(modes['16', 'async']):+.2f} points)",
            f"{lost(modes['32', 'async']):.2f} points below it at 32",
            f"equivalent means within {margin} points",
        )

    def test_kernels_that_the_host_launches(self):
        tf32 = {row["model"]: row for row in rows_of("ddp_vs_torch_h100") if row["precision"] == "tf32"}
        rates = [tf32[model]["ours_images_per_s"] for model in ("resnet50", "densenet121")]
        self.check(FINDINGS, "128 images at {:,} and {:,} per second".format(*rates))
        for model, seconds in checks_arithmetic.HOST_BOUND.items():
            self.assertEqual(seconds, tf32[model]["batch_per_rank"] / tf32[model]["ours_images_per_s"])


if __name__ == "__main__":
    unittest.main(argv=["sentences"])

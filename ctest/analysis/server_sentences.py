"""What PS.md quotes is what recorded trainings say, and no figure is left unchecked."""

import re
import unittest

from quoted import PS, Sentences
from quoted import accuracy, data_of, gained, interval, lost, modes_of, moved, published, pushes_of, rows_of
from quoted import seeds_of, table_of, verdict_of
from stratagem_report import inference


class OfServers(Sentences):
    def test_all(self):
        parts = conclusions, which_mode, three_epochs, longer_trainings, thirty_epochs, small_steps, cifar10
        parts += adamw, batch_norm, slow_worker, other_clusters, stability, collapse
        self.check_all(PS, *(words for part in parts for words in part()))

    def test_verdicts_behind_them(self):
        short, longer, longest, cifar, slow = map(
            modes_of, ("ps_modes", "ps_plateau", "ps_plateau_32", "ps_cifar10", "ps_slow")
        )
        self.assertEqual([verdict_of(short[workers, "dana"])[0] for workers in ("4", "8")], ["equivalent"] * 2)
        for mode in "async", "modified", "dana":
            self.assertIn(verdict_of(short["16", mode])[0], ("worse", "worse by ranks"))
            self.assertEqual(verdict_of(longer["16", mode])[0], "equivalent")
            self.assertIn("underpowered", verdict_of(longest["32", mode])[0])
        for workers in "4", "8":
            self.assertIn("underpowered", verdict_of(short[workers, "async"])[0])
            self.assertIn("underpowered", verdict_of(short[workers, "sync,nesterov"])[0])
        self.assertEqual([verdict_of(cifar["4", mode])[0] for mode in ("dana", "async")], ["equivalent", "worse"])
        for mode in "ssp", "ssp,cached_reads=true":
            self.assertEqual(verdict_of(slow["8", mode])[0], "equivalent")


ASYNCHRONOUS = "async", "modified", "dana"


def best_of(rows, workers, measure):
    return max(ASYNCHRONOUS, key=lambda mode: measure(rows[workers, mode]))


def seeds_to_tune(data):
    """With which all modes of a table chose their rates."""
    found = {}
    for one in data_of(f"data/{data}")["trainings"]:
        if one["training"]["seed"] > 1000:
            found.setdefault(one["training"]["mode"], set()).add(one["training"]["seed"])
    (number,) = {len(seeds) for seeds in found.values()}
    return number


def ahead(data, workers, ours, theirs):
    """(mean, low, high) of paired differences of two modes as they were scored, of this pair alone, in points."""
    rows = modes_of(data)
    points = [{}, {}]
    for one in data_of(f"data/{data}")["trainings"]:
        training = one["training"]
        for mode, of in zip((ours, theirs), points):
            row = rows[workers, mode]
            chosen = [float(row[key].split()[0]) for key in ("lr", "momentum")]
            if (training["mode"], str(training["workers"])) == (mode, workers) and training["seed"] < 1001:
                if [training["lr"], training["momentum"]] == chosen:
                    of[training["seed"]] = 100 * one["result"]["test_accuracy"]
    found = inference.paired(*points).interval()
    return found.mean, found.low, found.high


def which_mode():
    """For rates that were not, and that were, chosen for the number of workers."""
    short, longer = modes_of("ps_modes"), modes_of("ps_plateau")
    assert [best_of(short, workers, moved) for workers in ("8", "16")] == ["modified"] * 2
    assert best_of(longer, "32", moved) == best_of(longer, "32", accuracy) == "modified"
    assert [best_of(short, workers, accuracy) for workers in ("4", "8", "16")] == ["dana"] * 3
    modified, dana = ([moved(short[workers, mode]) for workers in ("8", "16")] for mode in ("modified", "dana"))
    mean, low, high = ahead("ps_modes", "16", "dana", "modified")
    assert low > 0
    return [
        f"it has {modified[0]:.1f} % at 8 and {modified[1]:.1f} % at 16, DANA {dana[0]:.1f} and {dana[1]:.1f} %.",
        f"ends {mean:.1f} points above `modified` ({low:.1f} to {high:.1f} for this pair alone",
    ]


def conclusions():
    short, cifar = map(modes_of, ("ps_modes", "ps_cifar10"))
    assert [seeds_to_tune(data) for data in ("ps_modes", "ps_slow", "ps_adamw")] == [3, 3, 2]
    once = "ps_plateau", "ps_plateau_32", "ps_small_batch_4", "ps_cifar10"
    assert {seeds_to_tune(data) for data in once} == {1}
    missed = [float(re.search(r"finds (.*)\)", verdict_of(short[workers, "async"])[0])[1]) for workers in ("4", "8")]
    transferred = accuracy(short["8", "sync"]) - moved(short["8", "async"])
    least, most = (lost(short["16", mode]) for mode in ("dana", "async"))
    return [
        "but a loss of less than {:.1f} and {:.1f} points would have been missed.".format(*missed),
        f"With what is best for 4 workers, async loses {transferred:.0f} points at 8.",
        f"every asynchronous mode is {least:.1f} to {most:.0f} points behind",
        f"with Nesterov's rule, and async loses {lost(cifar['4', 'async']):.0f} points.",
    ]


def three_epochs():
    rows = modes_of("ps_modes")
    first, second, third = (rows[workers, "async"] for workers in ("4", "8", "16"))
    assert second["momentum"] == third["momentum"]
    low, _ = interval(second)
    leads = [-lost(rows[workers, "sync,nesterov"]) for workers in ("4", "8", "16")]
    return [
        f"falls from {first['momentum']} at 4 workers to {second['momentum']} at 8 and 16.",
        f"async has {moved(second):.1f} % at 8 workers and fails at 16 ({moved(third):.1f} %).",
        f"it loses {lost(second):.1f} points at 8, which the test cannot tell from nothing, nor from a loss of up to"
        f" {-low:.2f}.",
        f"at 4 and 8 workers** and loses {lost(rows['16', 'dana']):.1f} points at 16",
        f"async by {lost(third):.0f} points, `modified` by {lost(rows['16', 'modified']):.1f}.",
        f"Each worker makes only {pushes_of('ps_modes', 16)} pushes",
        f"`sync,nesterov` is up to {max(leads):.1f} points above `sync`",
    ]


def longer_trainings():
    rows = modes_of("ps_plateau")
    assert {key: rows["16", "async"][key] for key in ("lr", "momentum")} == {"lr": "0.02", "momentum": "0"}
    for workers in "16", "32":
        for key in "accuracy %", "lr", "momentum":
            assert rows[workers, "async"][key] == rows[workers, "dana"][key]
    async_, sync, late = rows["16", "async"], rows["16", "sync"], rows["32", "async"]
    assert gained(async_) == gained(rows["16", "dana"])
    return [
        "Each worker makes {} pushes with 16 workers, {} with 32.".format(
            *(pushes_of("ps_plateau", workers) for workers in (16, 32))
        ),
        f"Async and DANA still gain {gained(async_):.1f} points in the last three epochs, sync {gained(sync):.1f}.",
        f"Async is {lost(late):.1f} points below sync, and still gains {gained(late):.1f} in the last three epochs.",
        f"`modified` is {lost(rows['32', 'modified']):.2f} below",
    ]


def thirty_epochs():
    rows = modes_of("ps_plateau_32")
    low = {round(interval(row)[0], 1) for row in rows.values() if row["difference"]}
    (low,) = low
    margin = float(verdict_of(rows["32", "async"])[1])
    most = max(gained(row) for row in rows.values())
    return [
        f"all intervals begin at {low} points, and the margin is {margin}.",
        f"end more than {margin} *above*",
        f"none gains more than {most:.1f} points",
    ]


def small_steps():
    alone, stale, dana = (seeds_of("ps_small_batch_4", mode) for mode in ("async,workers=1", "async", "dana"))
    assert stale[0] < 15 and max(stale) < min(alone) and min(dana) >= 97
    return [
        f"one of them near guessing, the others between {stale[1]:.0f} and {stale[-1]:.0f} %",
        f"none of its seeds ends below {int(dana[0])} %",
    ]


def cifar10():
    rows = modes_of("ps_cifar10")
    stale, nesterov, dana = (rows["4", mode] for mode in ("async", "sync,nesterov", "dana"))
    assert float(nesterov["lr"]) == 8 * float(dana["lr"])
    margin = float(verdict_of(stale)[1])
    return [
        "at an eighth of its rate",
        f"Async is {lost(stale):.0f} points below sync",
        f"{accuracy(nesterov):.0f} % is far from what LeNet can reach",
        f"the margin of {margin:.1f} points is a tenth",
    ]


def adamw():
    rows = modes_of("ps_adamw")
    two, four, sync = rows["2", "async"], rows["4", "async"], rows["4", "sync"]
    assert [verdict_of(row)[0] for row in (two, four)] == ["equivalent"] * 2
    low, high = interval(four)
    assert low > 0 and float(sync["lr"].split()[0]) == 2 * float(four["lr"].split()[0])
    assert four["beta1"].split()[0] == "0"
    pushes = [
        f"{one['result']['pushes']:,}"
        for one in data_of("data/ps_adamw")["trainings"]
        if one["training"]["seed"] == 1 and one["training"]["mode"] == "async"
    ]
    return [
        f"Two workers make {pushes[0]} pushes, four {pushes[1]}",
        f"within {verdict_of(two)[1]} nats",
        f"async is {float(four['difference'].split()[0]):.3f} nats behind",
        f"its interval is {low:.3f} to {high:.3f}",
        f"on a plateau, at {moved(four):.3f} nats",
    ]


def batch_norm():
    normalised = published(("ps_sync", "ps_async"), "resnet50", "densenet121")
    vgg16 = published(("ps_sync", "ps_async"), "vgg16")
    guessed = [float(row["initial %"].split()[0]) for row in table_of(PS, "data/running_statistics.json")]
    said = f"{min(normalised):.0f} to {max(normalised):.0f} %"
    return [
        f"reach {said} with synchronous and asynchronous servers",
        f"VGG16, which has no BatchNorm, up to {max(vgg16)} %?",
        f"would explain {min(guessed):.0f} to {max(guessed):.0f} %, not {said}.",
    ]


def slow_worker():
    rows = modes_of("ps_slow")
    stale, bounded, cached = (rows["8", mode] for mode in ("async", "ssp", "ssp,cached_reads=true"))
    assert stale["predicted time"] == "0.33" and cached["pulls per push"] == "0.87"
    assert all(float(row["predicted time"]) > 0.9 for row in (bounded, cached))
    return [
        "Async needs a third of sync's time",
        f"It ends {lost(stale):.1f} points lower, which ten seeds cannot tell from nothing",
        "Cached reads save an eighth of the pulls",
    ]


def other_clusters():
    rows = rows_of("ps_times")
    equal = [row for row in rows if row["slow"] == 1 and row["update"] == 0.01 and row["jitter"] == 0.1]
    saved = [100 * (1 - row["async"]) for row in equal]
    (slow,) = (row for row in rows if row["workers"] == 4 and row["slow"] == 4)
    return [
        f"asynchrony saves little**: {min(saved):.0f} to {max(saved):.0f} % of the time if the server is fast",
        f"four times slower, async needs {slow['async']:.2f} of sync's time",
    ]


def stability():
    rows = table_of(PS, "data/ps_stability.json")
    lag = {(row["momentum"], row["W"]): row for row in rows}
    assert [lag["0", "4"]["mean lag"], lag["0.9", "2"]["mean lag"]] == ["3.0", "1.0"]
    assert lag["0.5", "4"]["edge"] == lag["0.9", "4"]["edge"] == "none"
    losses = [float(lag["0.9", workers]["lr 0.01"]) for workers in ("1", "2", "4", "8")]
    return [
        f"A mean lag of 3 is safe up to {lag['0', '4']['edge']} without momentum, and at no rate tried with 0.5 or 0.9",
        f"a lag of 1 is safe up to {lag['0.9', '2']['edge']} with momentum 0.9.",
        "one and two workers lose {0:.0f} point, four lose {2:.0f}, eight {3:.0f}.".format(*losses),
    ]


def collapse():
    rows = table_of(PS, "data/ps_collapse.json")
    key = "samples", "gradients", "learning rate"
    change = {tuple(row[word] for word in key): row["change"].split()[0] for row in rows}
    of_all_images = [row["w4"] for row in data_of("data/ps_collapse_vgg16_images")["rows"] if "60,000" in row["images"]]
    first, others = of_all_images
    assert [float(seed) > 90 for seed in first.split(", ")].count(True) == 2 and others == "mean 93.8 ± 0.8"
    vgg16 = published(("ps_sync",), "vgg16")
    return [
        f"four workers lose {-float(change['64 per worker', 'mean', 'unscaled']):.1f} points, because",
        f"synchronous VGG16, which falls from {vgg16[0]} to {vgg16[-1]} %.",
        "with four workers and all 60,000 images, five of six seeds reach 90 %",
    ]


if __name__ == "__main__":
    unittest.main(argv=["server_sentences"])

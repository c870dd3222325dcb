"""Checks of the paper's own tables, with measured figures where there are some."""

from . import published
from .findings import UNTESTED, Finding, listing, points, smaller, times
from .spread import ratio, spread
from .tables_study import all_bits_agree, exact_cells

HOLDS, FAILS = "holds", "does not hold"
FP32 = 4
A100_FP16_FLOPS = 312e12
VGG16_FORWARD_FLOPS = {
    224: 30.9e9,
    32: 0.87e9,
}  # two per multiply-add, 10 classes; a step takes three times that
CIFAR_IMAGES = 50_000
SLOW_LEARNERS = ("resnet50", "densenet121")  # in the paper
MNIST_STEPS = 938  # per epoch of 60,000 images at a batch of 64


def both(comparison, *variants, least_workers=1, known="epoch_s"):
    """The (family, workers) where all of the variants are complete and have the measure."""
    return [
        (family, workers)
        for family in comparison.families
        for workers in family.workers
        if workers >= least_workers
        and all(family.spread(known, variant, workers).known for variant in variants)
    ]


def judged(bearing):
    """The finding from a list of comparisons, each of which passes or fails the check."""
    if not bearing:
        return UNTESTED
    return HOLDS if all(bearing) else FAILS


def title(family, workers):
    return f"{family.title}, {workers} worker" + ("" if workers == 1 else "s")


def one_worker_is_exact(comparison):
    """A server with one worker has no staleness, so async must equal sequential SGD."""
    told, equal = [], []
    for family in comparison.families:
        cells = exact_cells(family.of("ps-async", 1))
        for variant in "serial", "ps-sync", "ddp":
            for _, cell in cells.iterrows():
                others = family.of(variant, 1).query("seed == @cell.seed")
                if len(others):
                    equal.append(others["digest"].iloc[0] == cell["digest"])
                    told.append(
                        f"{family.title}, seed {cell['seed']}:"
                        f" {'bitwise equal to' if equal[-1] else 'DIFFERS from'} {variant}"
                    )
    return Finding(
        "a",
        "One worker has no staleness: async on 1 GPU loses 6 to 15 points to sync in table 4, so"
        " that staleness cannot be the cause there. A one-worker async server must equal sequential"
        " SGD.",
        "v2, table 4",
        judged(equal),
        listing(told) or "no asynchronous run with one worker is complete together with a synchronous one",
    )


def one_rank_has_no_communication(comparison):
    told, shares = [], []
    for family, workers in both(comparison, "fsdp", "ddp"):
        if workers == 1:
            slower = ratio(family.spread("epoch_s", "fsdp", 1), family.spread("epoch_s", "ddp", 1))
            sent = family.spread("sent_per_step_B", "fsdp", 1).median
            shares.append(sent)
            told.append(
                f"{family.title}: FSDP takes {times(slower)} of DDP's time and sends {sent:.0f}"
                " bytes per step"
            )
    return Finding(
        "b",
        "One GPU has no communication: FSDP is 2.2 to 5.8 times slower than DDP at 1 GPU in table"
        " 3, so that all-gathers cannot be the cause there, but host overhead, recomputation or"
        " offloading.",
        "v2, table 3",
        judged([not share for share in shares]),
        listing(told) or "no pair of DDP and FSDP on one worker is complete",
    )


def speed_ups(comparison):
    told, above = [], []
    for family in comparison.families:
        for variant, workers in family.pairs():
            gain = family.speed_up(variant, workers)
            if workers > 1 and gain.known and variant in ("ddp", "fsdp"):
                above.append(gain.low > workers)
                if variant == "ddp" or above[-1]:
                    told.append(f"{title(family, workers)}: {variant} {times(gain)}")
    table = published.times()
    printed = {
        model: published.lookup(table, model, "ddp", 1) / published.lookup(table, model, "ddp", 4)
        for model in ("vgg16", "efficientnetv2_l", "convnext_l")
    }
    return Finding(
        "c",
        "Published speed-ups of DDP on 4 GPUs are "
        + ", ".join(f"{value:.2f} ({model})" for model, value in printed.items())
        + ". Beyond linear, two of them: the runs on one GPU were handicapped.",
        "v2, table 3",
        judged([not found for found in above]),
        (
            (f"{sum(above)} of {len(above)} measured speed-ups are beyond linear. " + listing(told))
            if above
            else "no strategy is complete with one and several workers"
        ),
    )


def sharding_is_bounded(comparison):
    told, within = [], []
    for family, workers in both(comparison, "fsdp", "ddp", least_workers=2):
        states = ratio(
            family.spread("worker_state_B", "ddp", workers), family.spread("worker_state_B", "fsdp", workers)
        )
        peaks = ratio(
            family.spread("worker_peak_B", "ddp", workers), family.spread("worker_peak_B", "fsdp", workers)
        )
        within.append(states.median <= workers * 1.01 and peaks.median <= workers * 1.01)
        told.append(f"{title(family, workers)}: state {smaller(states)}, peak {smaller(peaks)}")
    return Finding(
        "d",
        "4 to 6 times less memory on at most 4 GPUs is more than sharding can give: at most N times"
        " of the state on N workers, and nothing of the activations.",
        "v2, figures 15-19",
        judged(within),
        listing(told) or "no pair of DDP and FSDP on several workers is complete",
    )


def mnist_in_an_epoch(comparison):
    told, good = [], []
    for family in comparison.families:
        if family.key["dataset"] != "mnist" or family.key["model"] not in SLOW_LEARNERS:
            continue
        if family.key["images"] < published.TRAINING_IMAGES["mnist"]:
            continue  # no whole epoch
        for variant, workers in family.pairs():
            first = family.spread("first_epoch_accuracy", variant, workers)
            if first.known:
                good.append(first.median > 0.65)
                told.append(f"{title(family, workers)}, {variant}: {100 * first.median:.1f} %")
    return Finding(
        "e",
        "MNIST at 40 to 65 % for ResNet50 and DenseNet121 is far below what a correct run reaches"
        " in its first epoch.",
        "v2, table 4",
        judged(good),
        (
            ("Test accuracy after one epoch: " + listing(told))
            if told
            else "neither was trained on all of MNIST, and evaluated after an epoch"
        ),
    )


def server_bandwidth(comparison):
    table = published.times()
    seconds = float(
        table[
            (table["version"] == "v1")
            & (table["model"] == "resnet50")
            & (table["variant"] == "ps-sync")
        ]["value"].iloc[0]
    )
    rate = 100 * MNIST_STEPS / seconds
    needed = rate * 23_528_522 * FP32 * 4
    told = []
    for family in comparison.families:
        for variant, workers in family.pairs():
            flow = family.spread("server_bytes_per_s", variant, workers)
            if flow.known:
                told.append(
                    f"{title(family, workers)}, {variant}: "
                    f"{family.spread('updates_per_s', variant, workers).median:.1f} updates/s, "
                    f"{flow.median / 1e9:.2f} GB/s received"
                )
    return Finding(
        "f",
        f"100 epochs of {MNIST_STEPS} steps in {seconds:.0f} s (ResNet50, 4 workers, version 1) are"
        f" {rate:.0f} steps per second; with 94 MB pushed by each worker that is {needed / 1e9:.0f}"
        " GB/s into one server, and as much out of it.",
        "v1, table III",
        HOLDS,
        "Servers here: " + (listing(told) or "none is complete"),
    )


def arithmetic_of_time(_):
    seconds = published.lookup(published.times(), "vgg16", "ddp", 1)
    rate = 10 * CIFAR_IMAGES / seconds
    shares = {
        size: rate * 3 * flops / A100_FP16_FLOPS for size, flops in VGG16_FORWARD_FLOPS.items()
    }
    bound = 10 * CIFAR_IMAGES * 3 * VGG16_FORWARD_FLOPS[32] / A100_FP16_FLOPS
    return Finding(
        "g",
        "DDP's published times fit images of 224 pixels, not of 32.",
        "v2, table 3",
        HOLDS,
        f"VGG16 on one GPU: {rate:,.0f} images/s are {100 * shares[224]:.0f} % of an A100's peak at"
        f" 224 pixels and {100 * shares[32]:.1f} % at 32; at 32 the time is {seconds / bound:.0f}"
        f" times the arithmetic bound of {bound:.1f} s. From the published times alone.",
    )


def shard_sizes(comparison):
    sizes = {
        family.key["model"]: int(family.cells["parameters"].iloc[0])
        for family in comparison.families
    }
    told = [
        f"{model}: {count:,} parameters, {FP32 * count / 1e6:.0f} MB in fp32, {count / 4e6:.1f}"
        " million in a quarter"
        for model, count in sorted(sizes.items())
    ]
    return Finding(
        "h",
        "800 MB under DDP and 49 million parameters a shard, printed for VGG16, fit ConvNeXt-L (198"
        " M x 4 B = 792 MB, a quarter 49.5 M); VGG16 with 1,000 classes would be 554 MB and"
        " 34.6 M.",
        "v2, figures 7, 8",
        HOLDS,
        "From the published sizes. Models here, with 10 classes: " + listing(told),
    )


def copied_cell(_):
    table = published.times()
    modified = published.lookup(table, "densenet121", "ps-modified", 2)
    sync = published.lookup(table, "resnet50", "ps-sync", 2)
    return Finding(
        "i",
        "The time of modified async for DenseNet121 at 2 GPUs equals that of sync for ResNet50 at 2"
        " GPUs: a copied cell?",
        "v2, tables 5 and 6",
        HOLDS if modified == sync else FAILS,
        f"{modified} s and {sync} s.",
    )


def mislabelled_rows(_):
    table = published.accuracies()
    old, one, four = (
        published.lookup(table, "vgg16", "ps-sync", workers, version)
        for workers, version in ((4, "v1"), (1, "v2"), (4, "v2"))
    )
    return Finding(
        "j",
        "Version 1's rows, said to be of 4 GPUs, resemble version 2's of one GPU.",
        "v1, table IV; v2, table 4",
        HOLDS if abs(old - one) < abs(old - four) else FAILS,
        f"VGG16, sync: {old} % in version 1; in version 2 {one} % with 1 GPU and {four} % with 4.",
    )


def sync_has_no_staleness(comparison):
    told, drops = [], []
    for family, workers in both(comparison, "ps-sync", "ddp", known="test_accuracy"):
        own, ddp = (
            family.of(variant, workers).set_index("seed")["test_accuracy"]
            for variant in ("ps-sync", "ddp")
        )
        changes = spread(own - ddp)  # seed by seed
        if changes.known:
            drops.append(changes.low == changes.high == 0)
            told.append(f"{title(family, workers)}: {points(changes)} against DDP")
    same = all_bits_agree(comparison)
    bits = {
        True: " Final parameters are equal bit for bit (T10).",
        False: " Final parameters DIFFER (T10).",
        None: "",
    }[same]
    return Finding(
        "k",
        "A synchronous server has no staleness, yet VGG16 falls from 98.4 to 47.6 % at 4 workers in"
        " table 4: the batch, summed gradients, the learning rate or loss scaling must differ.",
        "v2, table 4",
        judged(drops),
        (
            (listing(told) + "." + bits)
            if told
            else "no pair of a synchronous server and DDP was evaluated"
        ),
    )


CHECKS = [
    one_worker_is_exact,
    one_rank_has_no_communication,
    speed_ups,
    sharding_is_bounded,
    mnist_in_an_epoch,
    server_bandwidth,
    arithmetic_of_time,
    shard_sizes,
    copied_cell,
    mislabelled_rows,
    sync_has_no_staleness,
]


def findings(comparison):
    return [check(comparison) for check in CHECKS]

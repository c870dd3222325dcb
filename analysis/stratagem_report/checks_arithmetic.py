"""Checks of the paper's own numbers. They hold or fail by arithmetic, whatever was run; where a result depends on what
the paper does not say, it is a range."""

from . import published
from .claims_sharding import bound_text, greatest_saving
from .claims_servers import gap_of_async
from .conditions import SERVERS, SHARDING
from .findings import ARITHMETIC, FAILS, HOLDS, Finding

MNIST_STEPS = 938  # per epoch of 60,000 images at a batch of 64
GB = 1e9
FP32, FP16 = 4, 2  # bytes
RESNET50_PARAMETERS = 23_528_522  # with 10 classes
NETWORK = 5 * GB  # 40 Gbit/s, in bytes per second
A100_FP16_FLOPS = 312e12
VGG16_FORWARD_FLOPS = {224: 30.9e9, 32: 0.87e9}  # two per multiply-add, 10 classes; a step takes three times that
CIFAR_IMAGES = 50_000
PARAMETERS = {"VGG16": 138_357_544, "ConvNeXt-L": 197_767_336}  # with 1,000 classes
PRINTED_MB, PRINTED_SHARD = 800, 49e6  # of VGG16, in figures 7 and 8
# Images per second of an H100 at 32 pixels, 128 per step, tf32, where the host that launches kernels is the limit
# (analysis/bench/RESULTS.md). A step of 64 images launches as many kernels.
HOST_BOUND = {"resnet50": 128 / 7907, "densenet121": 128 / 3161}  # s per step
FASTER = 2  # times, that the paper's host may be at most
EPOCHS_OF_V1 = 100


def finding(number, holds, where, statement, measured):
    return Finding(number, statement, where, HOLDS if holds else FAILS, measured, basis=ARITHMETIC)


def by_model(values, form):
    return ", ".join(f"{form.format(value)} ({model})" for model, value in values.items())


def time_of(model, variant, workers, version="v2"):
    return published.value(published.TIMES, model, variant, workers, version)


def loss_without_staleness():
    losses = {model: [gap_of_async(model, workers) for workers in (1, 2, 4)] for model in SERVERS.models}
    holds = all(of[0] > 0 for of in losses.values()) and any(of[-1] < of[0] for of in losses.values())
    told = "; ".join(f"{model} {', '.join(f'{loss:.1f}' for loss in of)}" for model, of in losses.items())
    return finding(
        "a",
        holds,
        "v2, table 4",
        "The published loss of async is there with one worker, where no gradient is stale, and does not always grow"
        " with staleness: staleness cannot be its only cause.",
        f"Points that async loses against sync on 1, 2, 4 GPUs: {told}.",
    )


def one_gpu_sends_nothing():
    slower = {
        workers: {model: time_of(model, "fsdp", workers) / time_of(model, "ddp", workers) for model in SHARDING.models}
        for workers in (1, 4)
    }
    return finding(
        "b",
        min(slower[1].values()) > 2,
        "v2, table 3",
        "One GPU has nobody to send to, yet FSDP takes more than twice DDP's time there: not all-gathers, but something"
        " else must be slow, such as the host, recomputation or offloading.",
        f"FSDP's time over DDP's on one GPU: {by_model(slower[1], '{:.1f}x')}; on four:"
        f" {by_model(slower[4], '{:.1f}x')}.",
    )


def speed_ups():
    gains = {model: time_of(model, "ddp", 1) / time_of(model, "ddp", 4) for model in SHARDING.models}
    return finding(
        "c",
        max(gains.values()) > 4,
        "v2, table 3",
        "Speed-ups of DDP on 4 GPUs beyond 4 say that something other than the GPU was slow in the runs on one GPU.",
        f"{by_model(gains, '{:.2f}')}.",
    )


def sharding_is_bounded():
    least = published.claims()["2"]["low"]
    return finding(
        "d",
        least > greatest_saving(2)[1],
        "v2, figures 15-19",
        f"{least:.0f} times less memory is more than FSDP can save on 2 GPUs.",
        f"On 2: {bound_text(2)} On 4: at most {greatest_saving(4)[0]} times, or {greatest_saving(4)[1]:.1f} with those"
        " copies.",
    )


def server_bandwidth():
    seconds = time_of("resnet50", "ps-sync", 4, "v1")
    steps = EPOCHS_OF_V1 * MNIST_STEPS / seconds
    most = steps * 4 * RESNET50_PARAMETERS * FP32
    per_worker, half = most / 4, most / 4 * FP16 / FP32
    return finding(
        "f",
        half > NETWORK,
        "v1, table III",
        f"{EPOCHS_OF_V1} epochs in {seconds:.0f} s (ResNet50, 4 workers) need more than the {NETWORK / GB:.0f} GB/s of"
        " a 40 Gbit/s network into one server, and as much out of it, however the batch is read.",
        f"{half / GB:.1f} to {most / GB:.0f} GB/s: {most / GB:.0f} with four fp32 pushes per step of 64 images"
        f" ({steps:.0f} steps/s), {per_worker / GB:.0f} with 64 images per worker, {half / GB:.1f} in fp16 as well.",
    )


def size_of_images():
    seconds = time_of("vgg16", "ddp", 1)
    rate = 10 * CIFAR_IMAGES / seconds
    shares = {size: rate * 3 * flops / A100_FP16_FLOPS for size, flops in VGG16_FORWARD_FLOPS.items()}
    return finding(
        "g",
        shares[32] < 0.05 < shares[224] < 1,
        "v2, table 3",
        "DDP's published times fit images of 224 pixels; at 32, the GPU would have been idle nearly all of the time,"
        " waiting for something else, such as the reading of images.",
        f"VGG16 on one GPU: {rate:,.0f} images/s are {100 * shares[224]:.0f} % of an A100's peak at 224 pixels and"
        f" {100 * shares[32]:.1f} % at 32.",
    )


def shard_sizes():
    sizes = {model: (FP32 * count / 1e6, count / 4) for model, count in PARAMETERS.items()}

    def fits(model):
        size, quarter = sizes[model]
        return abs(size / PRINTED_MB - 1) < 0.03 and abs(quarter / PRINTED_SHARD - 1) < 0.03

    told = "; ".join(f"{model} {size:.0f} MB, {quarter / 1e6:.1f} million" for model, (size, quarter) in sizes.items())
    return finding(
        "h",
        fits("ConvNeXt-L") and not fits("VGG16"),
        "v2, figures 7, 8",
        f"{PRINTED_MB} MB under DDP and {PRINTED_SHARD / 1e6:.0f} million parameters a shard, printed for VGG16, are"
        " ConvNeXt-L's.",
        f"Parameters in fp32, and a quarter of them: {told}.",
    )


def copied_cell():
    modified, sync = time_of("densenet121", "ps-modified", 2), time_of("resnet50", "ps-sync", 2)
    return finding(
        "i",
        modified == sync,
        "v2, tables 5 and 6",
        "DenseNet121's time with modified async on 2 GPUs equals ResNet50's with sync on 2 GPUs: a copied cell?",
        f"{modified} s and {sync} s.",
    )


def mislabelled_rows():
    old, one, four = (
        published.value(published.ACCURACIES, "vgg16", "ps-sync", workers, version)
        for workers, version in ((4, "v1"), (1, "v2"), (4, "v2"))
    )
    return finding(
        "j",
        abs(old - one) < abs(old - four),
        "v1, table IV; v2, table 4",
        "Version 1's rows, said to be of 4 GPUs, resemble version 2's of one GPU.",
        f"VGG16, sync: {old} % in version 1; in version 2 {one} % on 1 GPU and {four} % on 4.",
    )


def epochs_in_the_time():
    told, most = [], []
    for model, step in HOST_BOUND.items():
        seconds = time_of(model, "ps-sync", 1)
        epochs = seconds / (MNIST_STEPS * step)
        most.append(FASTER * epochs)
        told.append(
            f"{model}: {seconds:.0f} s are about {epochs:.0f} epochs if a step takes at least {1000 * step:.1f} ms,"
            f" {most[-1]:.0f} if it takes half of that; {EPOCHS_OF_V1} need steps of"
            f" {1000 * seconds / (EPOCHS_OF_V1 * MNIST_STEPS):.1f} ms"
        )
    return finding(
        "k",
        max(most) < EPOCHS_OF_V1,
        "v2, table 5; v1",
        f"Experiments 2 and 3 cannot have had the {EPOCHS_OF_V1} epochs of version 1, unless steps were more than"
        f" {FASTER} times faster than the host of an H100 launches them (RESULTS.md).",
        f"On one GPU, {MNIST_STEPS} steps per epoch: {'; '.join(told)}. VGG16, which has few kernels, is no bound.",
    )


CHECKS = (
    loss_without_staleness,
    one_gpu_sends_nothing,
    speed_ups,
    sharding_is_bounded,
    server_bandwidth,
    size_of_images,
    shard_sizes,
    copied_cell,
    mislabelled_rows,
    epochs_in_the_time,
)


def findings():
    return [check() for check in CHECKS]

"""Tables of time and memory: T1, T2, T5, T9, T12, T14."""

import math

from . import published
from .spread import Spread, difference, ratio, spread
from .style import kind_of, look_of
from .table import COMPARISON, Column, Note, Table
from .trace import MEMORY_CATEGORIES, PHASES, STATE_CATEGORIES
from .yardstick import PERPLEXITY, counted_of

MIB = 1 / 2**20
WHAT = [COMPARISON, Column("strategy", keep=True), Column("workers", 0)]
CATEGORY_SIZES = [Column(f"{category} MiB", 1, MIB) for category in MEMORY_CATEGORIES]


def of_run(family, variant, workers):
    """The first columns of every table."""
    return family.title, look_of(variant).label, workers


def time_or_limit(family, variant, workers):
    time = family.spread("train_time_s", variant, workers)
    return Note(f"> {time.median:.0f}, its limit") if family.limited(variant, workers) else time


def t1_time(comparison):
    """Time, speed-up, efficiency, and FSDP against DDP next to the published ratio."""
    counted = counted_of(comparison.cells)
    table = Table(
        "T1",
        "Training time",
        [
            *WHAT,
            Column("training s", 2),
            Column("published s", 1),
            Column("s per epoch", 2),
            Column(f"{counted}/s", 0),
            Column("with evaluation s", 2),
            Column(f"{counted}/s with evaluation", 0),
            Column("step ms", 2),
            Column("speed-up", 2),
            Column("efficiency %", 0, 100),
            Column("time / DDP", 2),
            Column("published / DDP", 2),
            Column("runs", 0),
        ],
        note=(
            "Median and, of several runs, their range. An epoch's time is that of its median steps,"
            f" so that short runs count as well; training time and {counted}/s are the whole run's,"
            " evaluation and saving apart. The limit behind `>` (run.max_time_s) is of the same time."
            " With evaluation: the wall time of the whole loop, saving included."
            " Speed-up is against the same strategy on one worker, else the serial run (strong"
            " scaling: the global batch stays). `time / DDP` compares epochs on the same number of"
            " workers; `published / DDP` is the same ratio in arXiv 2505.12832, and `published s` its training time: of"
            " 10 epochs on A100 with CIFAR-10; with MNIST on A10G, of a number of epochs that it does not tell."
        ),
    )
    for family in comparison.families:
        times = published.times(family.key["dataset"])
        for variant, workers in family.pairs():
            gain = family.speed_up(variant, workers)
            ddp = family.find("ddp", workers)
            over_ddp = ratio(
                family.spread("epoch_s", variant, workers), family.spread("epoch_s", "ddp", workers)
            )
            table.add(
                *of_run(family, variant, workers),
                time_or_limit(family, variant, workers),
                published.lookup(times, family.key["model"], kind_of(variant), workers),
                *(
                    family.spread(name, variant, workers)
                    for name in ("epoch_s", "images_per_s", "wall_time_s", "wall_images_per_s", "step_ms")
                ),
                gain,
                gain.scaled(1 / workers),
                over_ddp if variant != ddp else None,
                (
                    published.ratio(family.key, kind_of(variant), "ddp", workers)
                    if variant != ddp
                    else None
                ),
                len(family.of(variant, workers)),
            )
    return table


def t12_text(comparison):
    """Models of text: the figures that their users know."""
    table = Table(
        "T12",
        "Text: speed, and what was learned",
        [
            *WHAT,
            Column("tokens/s", 0),
            Column("MFU %", 1, 100),
            Column("peak of a rank MiB", 1, MIB),
            Column("train loss", 4),
            Column("test loss", 4),
            Column("perplexity", 2),
            Column("bits/byte", 4),
            Column("runs", 0),
        ],
        note=(
            "Tokens/s: of all workers at their median steps. MFU: model FLOPs over what the GPUs could do; known of"
            " transformers in 16 bit on GPUs whose peak is known. Losses in nats per token, in training of the last"
            " epoch; perplexity: exp of the test loss; bits/byte: the test loss per byte of text, if tokens stand for"
            " a known number of bytes."
        ),
    )
    quantities = ("steady_images_per_s", "mfu", "peak_B", "train_loss", "test_loss", "perplexity", "bits_per_byte")
    for family in comparison.families:
        if family.yardstick is PERPLEXITY:
            for variant, workers in family.pairs():
                table.add(
                    *of_run(family, variant, workers),
                    *(family.spread(name, variant, workers) for name in quantities),
                    len(family.of(variant, workers)),
                )
    return table


def t2_memory(comparison):
    """Peak memory of a worker: three measures, by category, and compared with DDP."""
    table = Table(
        "T2",
        "Peak memory of a worker",
        [
            *WHAT,
            Column("live MiB", 1, MIB),
            *CATEGORY_SIZES,
            Column("reserved MiB", 1, MIB),
            Column("device MiB", 1, MIB),
            Column("against DDP %", 0, 100, sign=True),
            Column("state against DDP %", 0, 100, sign=True),
            Column("server live MiB", 1, MIB),
            Column("data set MiB", 1, MIB),
        ],
        note=(
            "Live: bytes of tensors, by category at the moment of the peak, of the worker that"
            " needed most; without the data set, which every rank holds in host memory, on GPUs too."
            " Reserved: what the allocator held. Device: memory in use on the GPU; on"
            " a CPU, the resident set of the process. On a CPU both include the data set. State:"
            " parameters, gradients, optimizer and buffers, the part that sharding can divide. Against"
            " DDP on as many workers: minus is less. arXiv 2505.12832 published reductions of 75 to"
            ' 83 % ("4-6x", version 2) and of more than 60 % (version 1).'
        ),
    )
    for family in comparison.families:
        for variant, workers in family.pairs():
            peak, state = (family.spread(name, variant, workers) for name in ("worker_peak_B", "worker_state_B"))
            ddp = family.find("ddp", workers)
            of_ddp = (family.spread(name, ddp, workers) for name in ("worker_peak_B", "worker_state_B"))
            changes = [
                difference(ratio(own, ddp), Spread(1, 1, 1, own.n))
                for own, ddp in zip((peak, state), of_ddp)
            ]
            table.add(
                *of_run(family, variant, workers),
                peak,
                *(
                    family.spread(f"worker_peak_{category}_B", variant, workers)
                    for category in MEMORY_CATEGORIES
                ),
                family.spread("reserved_B", variant, workers),
                family.spread("device_used_B", variant, workers),
                *(changes if variant != ddp else (None, None)),
                family.spread("server_peak_B", variant, workers),
                family.spread("data_set_B", variant, workers),
            )
    return table


def t14_device_memory(comparison):
    """How much of a device is in use, how steadily, and how much of it no tensor fills."""
    table = Table(
        "T14",
        "Memory of the device: its share, steadiness and fragmentation",
        [
            *WHAT,
            Column("in use MiB", 1, MIB),
            Column("of the device %", 1, 100),
            Column("deviation over time MiB", 2, MIB),
            Column("reserved MiB", 1, MIB),
            Column("of it not filled %", 1, 100),
            Column("runs", 0),
        ],
        note=(
            "In use: as the driver tells for all processes of the GPU; on a CPU, the resident set of the process, and"
            " the host's memory for the device's. Of the worker with most. Deviation over time: standard deviation of"
            " the samples while training, mean over workers; lower is steadier. Not filled: of what the allocator holds"
            " from the system, the share beyond the peak of live tensors; that is fragmentation, and what was freed and"
            " kept for later."
        ),
    )
    names = "device_used_B", "device_used_share", "device_used_sd_B", "reserved_B", "unfilled_share"
    for family in comparison.families:
        for pair in family.pairs():
            values = [family.spread(name, *pair) for name in names]
            if any(value.known for value in values):
                table.add(*of_run(family, *pair), *values, len(family.of(*pair)))
    return table


def t5_use(comparison):
    """Where a step's time goes, and how busy the devices were."""
    unit = "utilisation %" if comparison.on_gpu else "cores in use"
    table = Table(
        "T5",
        "Where the time goes",
        [
            *WHAT,
            *(Column(f"{phase.replace('_', ' ')} ms", 2) for phase in PHASES),
            Column("exposed %", 1, 100),
            Column("of it transfer %", 1, 100),
            Column("waiting for others %", 1, 100),
            Column("server's work %", 1, 100),
            Column("overlap %", 0, 100),
            Column("sent MiB/step", 2, MIB),
            Column(unit, 2 if unit[0] == "c" else 0, 1 if unit[0] == "c" else 100),
            Column("energy J", 0),
        ],
        note=(
            "Phases are means over steps and workers. Exposed: share of the steps that waited for"
            " communication; the next three columns add up to it, as the sampled steps have them, on"
            " CPUs and with parameter servers. Transfer: data moved. Waiting: another rank had not"
            " come so far. Server's work: a server treated this push or one before it. Overlap: share"
            " of the time in which communication was under way that nobody waited for, in the sampled"
            " steps. Sent: by each worker, as planned. Energy and"
            " utilisation come from NVML; a CPU tells its process's cores instead, and no energy."
        ),
    )
    for family in comparison.families:
        for variant, workers in family.pairs():
            quantities = [
                *(f"{phase}_ms" for phase in PHASES),
                "exposed_comm_share",
                "exposed_transfer_share",
                "exposed_waiting_share",
                "exposed_server_share",
                "overlap_share",
                "sent_per_step_B",
                "utilization",
                "energy_J",
            ]
            table.add(
                *of_run(family, variant, workers),
                *(family.spread(name, variant, workers) for name in quantities),
            )
    return table


def prediction_rows(comparison):
    """(family, variant, workers, plan) of what the program predicted."""
    for family in comparison.families:
        for variant, workers in family.pairs():
            plan = comparison.predictions.get(family.of(variant, workers)["cell"].iloc[0])
            if plan:
                yield family, variant, workers, plan


def errors_text(what, errors):
    """A sentence about the errors of a prediction."""
    known = sorted(abs(error) for error in errors if math.isfinite(error))
    if not known:
        return ""
    ninth = known[min(len(known) - 1, math.ceil(0.9 * len(known)) - 1)]
    return (
        f" {what}: median error {100 * spread(known).median:.1f} %, nine of ten within"
        f" {100 * ninth:.1f} %, greatest {100 * known[-1]:.1f} %."
    )


def t9_prediction(comparison):
    """Memory and time, as predicted by `stratagem plan` and as measured."""
    table = Table(
        "T9",
        "Predicted and measured memory and time of a worker",
        [
            *WHAT,
            Column("state planned MiB", 2, MIB),
            Column("state measured MiB", 2, MIB),
            Column("peak planned MiB", 1, MIB),
            Column("peak measured MiB", 1, MIB),
            Column("error %", 1, 100, sign=True),
            Column("step planned ms", 2, 1000),
            Column("step measured ms", 2, 1000),
            Column("step error %", 1, 100, sign=True),
        ],
        note=(
            "Planned by `stratagem plan` from the configuration alone, times from a calibration of"
            " the machine, where there is one. Errors are measured over planned. The data of batches"
            " are taken off the measured peak, as a plan does not hold them. A step is a global batch at the rate of"
            " the workers' median steps, the first one apart."
        ),
    )
    peak_errors, step_errors = [], []
    for family, variant, workers, plan in prediction_rows(comparison):
        state = float(sum(plan["memory_B"][category] for category in STATE_CATEGORIES))
        measured = family.spread("worker_peak_without_batches_B", variant, workers)
        peak = float(plan.get("peak_B", math.nan))
        peak_errors.append(measured.median / peak - 1)
        step = float(plan.get("time", {}).get("step_s", math.nan))
        step_measured = family.spread("steady_step_s", variant, workers)
        step_errors.append(step_measured.median / step - 1)
        table.add(
            *of_run(family, variant, workers),
            state,
            family.spread("worker_state_B", variant, workers),
            peak,
            measured,
            peak_errors[-1],
            step,
            step_measured,
            step_errors[-1],
        )
    table.remark = "No predictions: there is no program (--program names one), or `stratagem plan` refuses these runs."
    if table.rows:
        table.note += errors_text("Peak", peak_errors) + errors_text("Step", step_errors)
    return table

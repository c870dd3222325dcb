"""The look of figures: one colour and marker per strategy, the same everywhere; sizes; how figures are written."""

import dataclasses

import matplotlib
from matplotlib.figure import Figure as Canvas

# Distinguishable with the common kinds of colour blindness (Okabe and Ito; Tol); in grey, markers distinguish them.
STRATEGIES = {
    "serial": ("#555555", "s", "serial"),
    "ddp": ("#0072B2", "o", "DDP"),
    "zero1": ("#F0C36D", "<", "ZeRO-1"),
    "zero2": ("#E69F00", ">", "ZeRO-2"),
    "fsdp": ("#D55E00", "^", "FSDP (ZeRO-3)"),
    "local": ("#56B4E9", "2", "local SGD"),
    "gossip": ("#44AA99", "3", "gossip"),
    "fedavg": ("#661100", "4", "FedAvg"),
    "ps-sync": ("#009E73", "D", "PS sync"),
    "ps-async": ("#CC79A7", "v", "PS async"),
    "ps-modified": ("#882255", "P", "PS modified async"),
    "ps-ssp": ("#AA4499", "X", "PS bounded"),
    "ps-lag-cap": ("#DDCC77", "p", "PS lag cap"),
    "ps-dana": ("#332288", "*", "PS DANA"),
    "ps-dc": ("#88CCEE", "h", "PS delay-compensated"),
    "ps-delayed-sync": ("#117733", "d", "PS delayed sync"),
    "ps-softsync": ("#999933", "H", "PS softsync"),
    "ps-backup": ("#CC6677", "1", "PS backup workers"),
}
OTHER = ("#777777", "8")
# Short forms of a variant's further settings in labels.
SETTINGS = {"reduction": "{}", "lr_scaling": "lr {}", "emulate_ranks": "as {} ranks"}
PHASE_COLOURS = {
    "data": "#BBBBBB",
    "forward": "#88CCEE",
    "backward": "#4477AA",
    "comm_exposed": "#CC3311",
    "optimizer": "#DDAA33",
}
PHASE_LABELS = {"comm_exposed": "waiting for communication"}
OPERATION_COLOURS = {
    "gradients": "#AA3377",
    "parameters": "#228833",
    "control": "#999933",
    "apply": "#009E73",
}
CATEGORY_COLOURS = {
    "parameters": "#0072B2",
    "gradients": "#56B4E9",
    "optimizer": "#009E73",
    "buffers": "#999999",
    "activations": "#E69F00",
    "workspace": "#F5D9A0",
}

WIDTH = 7.2  # inches, of a page's column
matplotlib.rcParams.update(
    {
        "figure.dpi": 100,
        "savefig.dpi": 130,
        "font.size": 9,
        "axes.titlesize": 9.5,
        "axes.labelsize": 9,
        "legend.fontsize": 8,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": "#E4E4E4",
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "svg.fonttype": "none",
        "pdf.fonttype": 42,
        "figure.constrained_layout.use": True,
        "lines.linewidth": 1.6,
        "lines.markersize": 5.5,
    }
)


@dataclasses.dataclass(frozen=True)
class Look:
    colour: str
    marker: str
    label: str
    line: str = "-"
    hatch: str = ""
    place: int = 99  # among the strategies of a legend
    hollow: bool = False

    @property
    def face(self):
        """The fill of the marker."""
        return "white" if self.hollow else self.colour

    @property
    def points(self):
        """How points are drawn, in matplotlib's format."""
        return {"color": self.colour, "marker": self.marker, "markerfacecolor": self.face}


def kind_of(variant):
    """The longest known strategy name that a variant's name begins with; None if there is none."""
    return max((name for name in STRATEGIES if variant.startswith(name)), key=len, default=None)


def setting(word):
    """A word of a variant's name, as shown in labels: `lr_scaling=linear` is "lr linear"."""
    name, _, value = word.partition("=")
    return SETTINGS[name].format(value) if name in SETTINGS else word


def look_of(variant):
    """The look of a variant's kind. The rest of its name, such as a bound or another setting, changes its label,
    line, hatch and marker, which is hollow then."""
    known = kind_of(variant)
    if known is None:
        return Look(*OTHER, variant)
    colour, marker, label = STRATEGIES[known]
    rest = " ".join(map(setting, variant[len(known) :].strip("-_ ").replace("-", " ").split()))
    return Look(
        colour,
        marker,
        f"{label} {rest}".strip(),
        "--" if rest else "-",
        "//" if rest else "",
        list(STRATEGIES).index(known),
        bool(rest),
    )


def in_order(variants):
    """Variants in the order of every legend and table."""
    return sorted(set(variants), key=lambda variant: (look_of(variant).place, variant))


@dataclasses.dataclass
class Figure:
    """A drawn figure, the data it shows, and its caption."""

    name: str  # "F1-time-per-epoch"
    title: str
    caption: str
    canvas: Canvas
    data: object  # DataFrame

    def write(self, folder):
        """NAME.png, NAME.pdf and NAME.csv."""
        self.data.to_csv(folder / f"{self.name}.csv", index=False)
        self.canvas.draw_without_rendering()
        self.canvas.set_layout_engine("none")  # the layout is computed once, for both files
        for kind, more in ("png", {}), ("pdf", {"metadata": {"CreationDate": None}}):
            self.canvas.savefig(folder / f"{self.name}.{kind}", bbox_inches="tight", pad_inches=0.08, **more)


def panels(count, columns=3, height=2.6, width=WIDTH, **how):
    """A figure with `count` axes in rows of at most `columns`, as a list; unused axes of the last row are hidden."""
    width *= max(0.62, min(1, count / columns))  # a few panels do not need a whole page
    columns = min(columns, max(count, 1))
    rows = -(-count // columns)
    figure = Canvas(figsize=(width, height * rows))
    grid = figure.subplots(rows, columns, squeeze=False, **how)
    axes = list(grid.ravel())
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


def bar_panels(rows_of_each):
    """Panels of horizontal bars, two per row, with a height for their numbers of bars."""
    pairs = [rows_of_each[index : index + 2] for index in range(0, len(rows_of_each), 2)]
    heights = [1.7 + 0.2 * max(pair) for pair in pairs]  # title, axis and legend, and the bars
    return panels(
        len(rows_of_each),
        columns=2,
        height=sum(heights) / len(heights),
        gridspec_kw={"height_ratios": heights},
    )


def label_outer(axes, columns=3):
    """For panels with shared axes: labels only at the left and at the bottom."""
    for index, axis in enumerate(axes):
        lowest = index + columns >= len(axes)
        axis.tick_params(labelbottom=lowest, labelleft=index % columns == 0)
        if not lowest:
            axis.set_xlabel("")
        if index % columns:
            axis.set_ylabel("")


def legend_below(figure, axes):
    """One legend below all axes, each label once, in as many columns as fit."""
    handles = {}
    for one in axes:
        for handle, label in zip(*one.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    if handles:
        widest = 0.55 + 0.062 * max(map(len, handles))  # inches: handle and distance, plus characters of 8 points
        columns = max(1, int(figure.get_figwidth() / widest))
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside lower center",
            ncols=min(columns, len(handles)),
        )


def workers_text(number):
    return f"{number} worker" + ("" if number == 1 else "s")


def family_conditions(family):
    """The conditions of a model's comparison."""
    text = f"{family['dataset']}"
    if family["input_size"] not in (28, 32):
        text += f" at {family['input_size']} px"
    if family["global_batch"]:
        text += f", batch {family['global_batch']}"
    return text + ("" if family["precision"] == "fp32" else f", {family['precision']}")

"""Runs many trainings with `stratagem simulate`, for the scripts that compare modes of the parameter server."""

import concurrent.futures
import dataclasses
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import scores

ROOT = pathlib.Path(__file__).resolve().parent.parent
NON_FINITE = 84  # the exit code of a training whose loss is not finite
DIVERGED = {"test_accuracy": scores.GUESS, "diverged": True}
NESTEROV = "optimizer.nesterov=true"
HOLDOUT = "data.holdout="
WORKERS = "workers="  # a part of a mode
# What is kept of a training, beside its score; of one that only chooses a learning rate, nothing.
KEPT = ("predicted_time", "lag_mean", "pulls", "pushes", "curve")

# Parts of a policy that belong to section `advanced` of the configuration.
ADVANCED = {"gate", "over_cap", "weight", "momentum", "pushes", "pull_every", "pull_at_lag", "pulls", "warm_start",
            "cached_reads"}


def setting_of(part):
    """The override for a part of a mode: staleness=3 is strategy.staleness=3, gate=ssp is advanced.gate=ssp, and
    optimizer.nesterov=true stays as it is. A word alone is a switch of the optimizer, such as nesterov."""
    name, *value = part.split("=", 1)
    if not value:
        return f"optimizer.{name}=true"
    if "." in name:
        return part
    return f"{'advanced' if name in ADVANCED else 'strategy'}.{part}"


@dataclasses.dataclass(frozen=True)
class Training:
    mode: str = "sync"  # MODE[,PART...], see setting_of(); workers=1 is a control with other workers than its row
    workers: int = 1
    lr: float = 0.01
    momentum: float = 0.9  # of AdamW: beta1
    seed: int = 1
    further: tuple = ()  # KEY=VALUE

    def holds_out(self):
        """It only chooses a learning rate."""
        return any(setting.startswith(HOLDOUT) for setting in self.further)

    def trained_by(self):
        """How many workers there really are."""
        own = [int(part[len(WORKERS) :]) for part in self.mode.split(",") if part.startswith(WORKERS)]
        return own[0] if own else self.workers


def add_options(parser):
    """The options that are the same for all trainings of a script."""
    parser.add_argument("--program", default=str(ROOT / "build" / "stratagem"))
    parser.add_argument("--config", default=str(ROOT / "inputs" / "smoke" / "digits-lenet-ps.yaml"))
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--subset", type=int, default=10000, help="training images; 0 all")
    parser.add_argument("--batch", type=int, default=64, help="samples of a push; sync takes W times as many per step")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--jitter", type=float, default=0.1)
    parser.add_argument("--slow", type=float, default=1, help="factor of worker 0's passes")
    parser.add_argument("--emulated", metavar="CONFIG", nargs="?",
                        const=str(ROOT / "inputs" / "smoke" / "digits-lenet-serial.yaml"),
                        help="for mode sync: use `run` with strategy serial instead, on a GPU if there is one")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="for all trainings")
    parser.add_argument("--json", type=pathlib.Path, help="keeps what was trained: what it has is not repeated")
    parser.add_argument("--recorded", action="store_true", help="train nothing: --json has everything")


# Options that decide what a training computes.
SHARED = ("config", "dataset", "model", "subset", "batch", "epochs", "jitter", "slow", "emulated", "set")


def in_project(path):
    """The path from the project's folder, if it is in there: it is the same on other machines."""
    path = pathlib.Path(path).resolve()
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


class Simulations:
    """Runs each requested training once, and stores it in the file of `--json`, with the settings and the program."""

    names = SHARED  # of the settings

    def __init__(self, options, score=scores.ACCURACY):
        self.options, self.score = options, score
        self.shared = {name: getattr(options, name) for name in self.names}
        self.shared |= {name: in_project(path) for name in ("config", "emulated") if (path := self.shared.get(name))}
        self.program = None  # its version, as soon as something is trained
        self.results = self._kept() if options.json and options.json.exists() else {}
        self.kept = len(self.results)

    def _kept(self):
        path = self.options.json
        stored = json.loads(path.read_text())
        if not isinstance(stored, dict):
            sys.exit(f"{path} is of older scripts, which did not keep the settings: name another file with --json")
        other = [name for name in self.names if stored["settings"].get(name) != self.shared[name]]
        if other:
            sys.exit(f"{path} has trainings with another --{', --'.join(other)}: name another file with --json")
        self.program = stored["program"]
        return {
            Training(**row["training"] | {"further": tuple(row["training"]["further"])}): row["result"]
            for row in stored["trainings"]
        }

    def run(self, trainings):
        """The results of the trainings, in order, as `simulate --json` prints them."""
        trainings = list(trainings)
        missing = [training for training in dict.fromkeys(trainings) if training not in self.results]
        if missing:
            self._check_program()
        began = told = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            try:
                for done, (training, result) in enumerate(zip(missing, pool.map(self._train, missing)), 1):
                    self.results[training] = result
                    now = time.monotonic()
                    if now - told > 30:
                        told = now
                        left = (now - began) / done * (len(missing) - done)
                        print(f"{done} of {len(missing)} trainings, {left / 60:.0f} min left", file=sys.stderr)
                        self._keep()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                self._keep()
        return [self.results[training] for training in trainings]

    def _check_program(self):
        """Trainings of different programs are not compared."""
        options = self.options
        if options.recorded:
            sys.exit(f"{options.json} lacks some of the trainings: leave out --recorded to make them")
        words = [options.program, "--version"]
        version = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
        if self.program not in (None, version):
            sys.exit(f"{options.json} was made by {self.program}, and {options.program} is {version}: use that program,"
                     " or name another file with --json")  # fmt: skip
        self.program = version

    def _train(self, training):
        """A training that diverges gets the accuracy of guessing, and a mark."""
        options = self.options
        if options.emulated:
            return self._train_emulated(training)
        words = [options.program, "simulate", options.config, "--json"]
        words += ["--workers", str(training.trained_by()), "--jitter", str(options.jitter)]
        for setting in self._settings(training):
            words += ["-s", setting]
        ended = subprocess.run(words, capture_output=True, text=True)
        if ended.returncode == NON_FINITE:
            return dict(DIVERGED)
        if ended.returncode != 0:
            sys.exit(f"{' '.join(words)}\n{ended.stderr}")
        told = json.loads(ended.stdout)
        return {name: told[name] for name in (self.score.measure, *(() if training.holds_out() else KEPT))}

    def _train_emulated(self, training):
        """The same numbers as mode sync, computed by one process for all workers, on a GPU if there is one."""
        options = self.options
        if training.mode != "sync":
            sys.exit(f"mode {training.mode} has workers that are ahead of each other: none can stand for all")
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "run"
            words = [options.program, "run", options.emulated, "--quiet", "--out", out]
            settings = [*self._settings(training), "strategy.name=serial"]
            settings.append(f"strategy.emulate_ranks={training.trained_by()}")
            settings.append(f"run.evaluate_every={options.epochs}")
            for setting in settings:
                if not setting.startswith(("strategy.mode", "strategy.name=ps")):
                    words += ["-s", setting]
            ended = subprocess.run(list(map(str, words)), capture_output=True, text=True)
            if ended.returncode == NON_FINITE:
                return dict(DIVERGED)
            if ended.returncode != 0:
                sys.exit(f"{' '.join(map(str, words))}\n{ended.stderr}")
            return {self.score.measure: json.loads((out / "outcome.json").read_text())[self.score.measure]}

    def _settings(self, training):
        options = self.options
        mode, *parts = training.mode.split(",")
        settings = [
            f"run.seed={training.seed}",
            "run.threads=1",
            f"run.evaluate_every={options.epochs if training.holds_out() else 1}",
            f"run.epochs={options.epochs}",
            f"data.dataset={options.dataset}",
            f"data.subset={options.subset}",
            "data.global_batch=0",
            f"data.batch_per_worker={options.batch}",
            f"model.name={options.model}",
            f"optimizer.lr={training.lr}",
            f"optimizer.{inertia(options.set)}={training.momentum}",
            "strategy.name=ps",
            f"strategy.mode={mode}",
            *(setting_of(part) for part in parts if not part.startswith(WORKERS)),
        ]
        if training.momentum == 0 and NESTEROV in settings:
            settings.remove(NESTEROV)  # refused: without momentum, it is the plain rule
        if options.slow > 1:
            settings += ["experiment.slow_worker=0", f"experiment.slow={options.slow}"]
        return settings + options.set + list(training.further)

    def _keep(self):
        if self.options.json is None or len(self.results) == self.kept:
            return
        self.kept = len(self.results)
        trainings = [{"training": dataclasses.asdict(of), "result": result} for of, result in self.results.items()]
        head = json.dumps({"program": self.program, "settings": self.shared})[:-1]
        lines = ",\n".join(map(json.dumps, trainings))  # one per line, so that files can be compared
        beside = self.options.json.with_suffix(".new")
        beside.write_text(f'{head}, "trainings": [\n{lines}\n]}}\n')
        beside.replace(self.options.json)


def inertia(settings):
    """The optimizer's key for what momentum is."""
    return "beta1" if "optimizer.name=adamw" in settings else "momentum"


def mean(results, name):
    """Over the trainings that did not diverge; NaN if all did."""
    known = [result[name] for result in results if name in result]
    return statistics.fmean(known) if known else math.nan


def markdown(titles, rows, words=()):
    """A Markdown table; columns whose titles are in `words` are aligned left."""
    lines = [titles, ["---" if title in words else "---:" for title in titles], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)

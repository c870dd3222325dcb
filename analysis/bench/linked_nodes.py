"""Two machines inside this one, joined by a link of a given rate: each has its own network, host name and
shared memory. mpirun starts ranks on both; nsenter takes the place of ssh. Files are shared. Needs root, and the
packages iproute2 and util-linux."""

import argparse
import os
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import paired

NODES = {"left": "10.78.0.1", "right": "10.78.0.2"}
# What a node runs first; its end of the cable comes later.
FIRST_PROCESS = """set -eu
hostname "$1"
mount --bind "$3" /etc/hosts
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
until ip link show eth0 > /dev/null 2>&1; do sleep 0.05; done
ip addr add "$2/24" dev eth0
ip link set eth0 up
exec sleep infinity
"""


RATIO_COLUMNS = {"ratio": "{ratio:.2f}", "interval (coverage)": "{ratio_low:.2f} to {ratio_high:.2f} ({coverage:.1%})",
                 "pairs": "{pairs}"}


def arguments(description, pairs):
    """The options of every benchmark between such nodes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/stratagem")
    parser.add_argument("--pairs", type=int, default=pairs, help="of starts")
    parser.add_argument("--timeout", type=float, default=300, help="of one start [s]")
    parser.add_argument("--control", action="store_true", help="the second way on both sides")
    parser.add_argument("--json", help="also write the raw numbers to this file")
    parser.set_defaults(threads=1)
    return parser


def compare(options, ours, theirs, time_of):
    """What a row of a table says of two ways that take turns, each first in every second pair. time_of(way) starts one
    and tells its time [s]."""
    times = []
    for number in range(options.pairs):
        order = [ours, theirs] if number % 2 == 0 else [theirs, ours]
        found = {way: time_of(theirs if options.control else way) for way in order}
        times.append((found[ours], found[theirs]))
    ratio, low, high, coverage = paired.median_interval([b / a for a, b in times])
    own, other = map(statistics.median, zip(*times))
    return {"ours_s": own, "ours_ms": 1e3 * own, "theirs_ms": 1e3 * other, "ratio": ratio, "ratio_low": low,
            "ratio_high": high, "coverage": coverage, "pairs": len(times), "control": options.control,
            "times_s": times}


def cores_of_nodes(apart):
    """The list of cores that each node's programs may use, as taskset takes it."""
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    lists = (cores[:half], cores[half:]) if apart and half else (cores, cores)
    return {node: ",".join(map(str, own)) for node, own in zip(NODES, lists)}


class LinkedNodes:
    """`with LinkedNodes() as nodes`: connected by a cable without a limit, until rate() sets one. Both nodes share the
    cores of this machine; where they are to be `apart`, each has half of them."""

    def __init__(self, apart=False):
        self.cores = cores_of_nodes(apart)

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="stratagem-nodes-")
        folder = Path(self.folder.name)
        (folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{a} {n}\n" for n, a in NODES.items()))
        self.processes = {node: self.boot(node, folder) for node in NODES}
        self.first = {node: self.first_process(process) for node, process in self.processes.items()}
        left, right = self.first.values()
        self.run(["ip", "link", "add", "eth0", "netns", left, "type", "veth", "peer", "name", "eth0", "netns", right])
        cases = "".join(f"{node}) to={first} cores={self.cores[node]} ;;\n" for node, first in self.first.items())
        self.agent = folder / "agent"
        there = f'{self.enter("$to")} taskset -c $cores sh -c "$*"'
        self.agent.write_text(f"#!/bin/sh\ncase $1 in\n{cases}esac\nshift\n{there}\n")
        self.agent.chmod(0o755)
        self.wait_for_network()
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.folder.cleanup()

    @staticmethod
    def boot(node, folder):
        own = ["--net", "--uts", "--mount", "--ipc", "--fork", "--kill-child"]
        return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", *own, "bash", "-c", FIRST_PROCESS,
                                 "first", node, NODES[node], folder / "hosts"], stdin=subprocess.DEVNULL)

    @staticmethod
    def first_process(process):
        """Its number outside of the node."""
        path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for _ in range(200):
            if children := path.read_text().split():
                return children[0]
            time.sleep(0.02)
        raise RuntimeError("a node does not start")

    @staticmethod
    def enter(first):
        return f"nsenter --target {first} --net --uts --mount --ipc"

    @staticmethod
    def run(words, **how):
        return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=True, **how)

    def wait_for_network(self):
        for node, first in self.first.items():
            for _ in range(100):
                shown = self.run(["nsenter", "--target", first, "--net", "ip", "-o", "addr", "show", "eth0"]).stdout
                if NODES[node] in shown:
                    break
                time.sleep(0.05)
            else:
                raise RuntimeError(f"{node} has no network")

    def rate(self, text):
        """Limits what each node sends: "1gbit". None: no limit."""
        for first in self.first.values():
            qdisc = ["nsenter", "--target", first, "--net", "tc", "qdisc"]
            subprocess.run([*qdisc, "del", "dev", "eth0", "root"], capture_output=True, check=False)
            if text:
                limit = ["tbf", "rate", text, "burst", "256k", "latency", "50ms"]
                self.run([*qdisc, "add", "dev", "eth0", "root", *limit])

    def mpirun(self, ranks_per_node, words):
        """The command line that starts ranks on both nodes, consecutive ones on each."""
        hosts = ",".join(f"{node}:{ranks_per_node}" for node in NODES)
        launcher = ["mpirun", "--allow-run-as-root", "--bind-to", "none", "--host", hosts, "--mca", "plm_rsh_agent",
                    self.agent, "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"]
        return [*self.enter(self.first["left"]).split(), "taskset", "-c", self.cores["left"], "env",
                f"--chdir={os.getcwd()}", "TMPDIR=/dev/shm", *map(str, launcher), "-x",
                "OMP_NUM_THREADS=1", *map(str, words)]

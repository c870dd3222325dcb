"""A Slurm with several machines inside this one: the controller and every node have their own namespaces (network,
host name, processes, shared memory), connected by a bridge. A node can lose power, and its cable can be pulled or
made slow. Files are shared, as on a cluster's file system. Needs root."""

import os
import shutil
import signal
import subprocess
import time

import slurm_box

NEEDED = ["ip", "tc", "unshare", "nsenter", "setpriv"]
CONTROLLER = "ctl"
# What a machine runs when it is switched on; its cable is connected from outside. The first process stays, to reap
# orphans.
FIRST_PROCESS = """set -eu
name=$1 address=$2 hosts=$3
hostname "$name"
mount --bind "$hosts" /etc/hosts
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
if [ "$name" = ctl ]; then
  ip link add eth0 type bridge
  daemon="slurmctld -c -D"
else
  for _ in $(seq 200); do ip link show eth0 > /dev/null 2>&1 && break; sleep 0.05; done
  daemon="slurmd -D"
fi
ip addr add "$address/24" dev eth0
ip link set eth0 up
$daemon &
while :; do sleep 1000 & wait $! || :; done
"""


def why_not():
    """What this machine lacks for it; empty if nothing."""
    if missing := [tool for tool in NEEDED if shutil.which(tool, path=slurm_box.search_path()) is None]:
        return f"{', '.join(missing)} not found (packages iproute2, util-linux)"
    if os.geteuid() != 0:
        return "only root can make namespaces with a network of their own"
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "--pid", "--ipc", "--fork", "--mount-proc", "bash", "-euc",
         "ip link add bridge0 type bridge; ip link add veth0 type veth peer name veth1; mount -t tmpfs tmpfs /dev/shm;"
         " tc qdisc add dev veth0 root tbf rate 100mbit burst 64k latency 50ms"],
        env={**os.environ, "PATH": slurm_box.search_path()}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=30, check=False,
    )  # fmt: skip
    return "" if tried.returncode == 0 else f"no namespaces as they are needed: {tried.stderr.strip()}"


class Machine:
    """The controller or a node, switched on until power_off()."""

    def __init__(self, name, address, box):
        words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount", "--pid", "--ipc", "--fork"]
        words += ["--mount-proc", "--kill-child", "bash", "-c", FIRST_PROCESS, "first", name, address]
        with open(box.folder / "log" / f"{name}.out", "ab") as output:
            self.process = subprocess.Popen(
                [*words, box.folder / "hosts"], env=box.environment, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True,
            )  # fmt: skip
        deadline = time.monotonic() + 10
        while not (children := self.children()) and time.monotonic() < deadline:
            time.sleep(0.02)
        if not children:
            self.power_off()
            raise RuntimeError(f"{name} does not start")
        self.first = int(children[0])  # process id on this machine

    def children(self):
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
                return file.read().split()
        except OSError:
            return []

    def power_off(self):
        """All its processes are gone at once, and so is its end of the cable."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def enter(self, words, cwd, seconds):
        """The command line that runs `words` on it, with a time limit."""
        into = ["nsenter", "--target", str(self.first), "--net", "--uts", "--mount", "--pid", "--ipc"]
        return [*into, "env", f"--chdir={cwd}", "timeout", "-k", "2", str(seconds), *words]

    def network(self, *words):
        """A command in its network, but with this machine's processes and files."""
        subprocess.run(
            ["nsenter", "--target", str(self.first), "--net", *map(str, words)], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=10, check=True,
            env={**os.environ, "PATH": slurm_box.search_path()},
        )  # fmt: skip


class SlurmNodes(slurm_box.SlurmBox):
    """`with SlurmNodes(folder) as box`: nodes n1, n2, ...; run() runs commands on the controller."""

    def __init__(self, folder, nodes=2):
        super().__init__(folder)
        self.controller = f"{CONTROLLER}(10.77.0.1)"
        self.nodes = {f"n{number}": f"10.77.0.{10 + number}" for number in range(1, nodes + 1)}
        self.settings = {"SlurmdTimeout": 10}  # [s] until a silent node counts as lost
        self.machines = {}
        # Each machine has its own, like /tmp.
        self.environment["TMPDIR"] = "/dev/shm"

    def start_slurm(self):
        addresses = {"localhost": "127.0.0.1", CONTROLLER: "10.77.0.1", **self.nodes}
        (self.folder / "hosts").write_text("".join(f"{a} {name}\n" for name, a in addresses.items()))
        self.machines[CONTROLLER] = Machine(CONTROLLER, addresses[CONTROLLER], self)
        for node in self.nodes:
            self.boot(node)

    def boot(self, node):
        shutil.rmtree(self.folder / "spool" / node, ignore_errors=True)
        shutil.rmtree(self.folder / "tmp" / node, ignore_errors=True)
        (self.folder / "tmp" / node).mkdir()
        machine = self.machines[node] = Machine(node, self.nodes[node], self)
        self.plug_in(node, machine)

    def plug_in(self, node, machine):
        """Connects a cable from the bridge, which the controller may be about to make."""
        bridge = self.machines[CONTROLLER]
        card = f"02:00:00:00:00:{list(self.nodes).index(node):02x}"  # the same after each boot
        cable = ["ip", "link", "add", node, "type", "veth", "peer", "name", "eth0", "address", card]
        deadline = time.monotonic() + 10
        while True:
            try:
                bridge.network("ip", "link", "show", "eth0")
                bridge.network(*cable, "netns", machine.first)
                break
            except subprocess.CalledProcessError:  # or the cable of a node that lost power still exists
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        bridge.network("ip", "link", "set", node, "master", "eth0")
        bridge.network("ip", "link", "set", node, "up")

    def power_off(self, node):
        self.machines[node].power_off()

    def cut(self, node):
        """Pulls its cable."""
        self.machines[CONTROLLER].network("ip", "link", "set", node, "down")

    def mend(self, node):
        self.machines[CONTROLLER].network("ip", "link", "set", node, "up")

    def rate(self, node, speed):
        """Limits the rate in each direction, such as 100mbit; None: no limit."""
        limit = ["tbf", "rate", speed, "burst", "64k", "latency", "50ms"] if speed else ["noqueue"]
        for machine, device in (CONTROLLER, node), (node, "eth0"):
            self.machines[machine].network("tc", "qdisc", "replace", "dev", device, "root", *limit)

    def on_login_node(self, words, cwd, seconds):
        return self.machines[CONTROLLER].enter(words, cwd, seconds)

    def stop(self):
        for machine in self.machines.values():
            machine.power_off()
        self.machines.clear()
        super().stop()

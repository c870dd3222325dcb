"""A real Slurm on this machine for the length of a test: munge, slurmctld and slurmd in a folder of their own,
with fake GPUs, so that the requests of a GPU cluster are accepted. /etc stays untouched.

Facts of Slurm 22.05 that shape it: every client gets a time limit, for without a controller they hang for
minutes; limits of jobs are looked at every 30 s; a requeued job starts after two minutes, or when its start
time is set more than 5 s after it became pending.
"""

import os
import pathlib
import pwd
import re
import shutil
import socket
import stat
import subprocess
import time

NEEDED = ["munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo", "scancel", "mpirun"]
DAEMONS = {"munged", "slurmctld", "slurmd", "slurmstepd"}


def missing_tools():
    return [tool for tool in NEEDED if shutil.which(tool, path=search_path()) is None]


def search_path():
    """With the folders of daemons, which are on root's path only."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def free_port_range(size):
    """First of `size` ports that nobody listens on, as far as two of them tell."""
    for base in range(21000 + os.getpid() % 400 * size, 60000, size):
        try:
            for port in (base, base + 1):
                with socket.socket() as probe:
                    probe.bind(("", port))
            return base
        except OSError:
            continue
    raise RuntimeError("no free ports")


class SlurmBox:
    """`with SlurmBox(folder) as box`: started on entry, everything ended on exit."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if len(str(self.folder)) > 70:
            raise ValueError(f"{folder} is too long for sockets")
        self.conf = self.folder / "slurm.conf"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SLURM_")},
            "PATH": search_path(),
            "SLURM_CONF": str(self.conf),
        }

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def run(self, *words, timeout=30, check=True, **options):
        """A client, or any command that sees this Slurm; its output."""
        ended = subprocess.run(
            [str(word) for word in words],
            env={**self.environment, **options.pop("environment", {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            **options,
        )
        if check and ended.returncode != 0:
            raise RuntimeError(f"{words} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended

    # ---- daemons ---------------------------------------------------------------------------------

    def start(self):
        for name in "state", "spool", "log", "dev", "tmp":
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.make_devices()
        self.write_configuration(free_port_range(100))
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(stat.S_IRUSR)
        self.run(
            "munged", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.sock",
            f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/log/munged.log",
            f"--seed-file={self.folder}/munge.seed", "--num-threads=2",
        )  # fmt: skip
        for daemon in ["slurmctld", "-c"], ["slurmd"]:
            subprocess.run(
                daemon, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, timeout=30, check=True,
            )  # fmt: skip
        for _ in range(100):
            nodes = self.run("timeout", "2", "sinfo", "-h", "-N", "-p", "normal", "-t", "idle", check=False)
            if nodes.returncode == 0 and nodes.stdout.strip():
                return
            time.sleep(0.1)
        logs = "".join(path.read_text() for path in (self.folder / "log").iterdir())
        raise RuntimeError("Slurm does not start:\n" + logs[-3000:])

    def make_devices(self):
        """Device nodes where allowed: only then does Slurm set CUDA_VISIBLE_DEVICES."""
        for number in range(8):
            path = self.folder / "dev" / f"nvidia{number}"
            try:
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                path.touch()

    def write_configuration(self, port):
        host, user, here = socket.gethostname().split(".")[0], self.user(), self.folder
        lines = {
            "ClusterName": "box",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": port,
            "SlurmdPort": port + 1,
            "SrunPortRange": f"{port + 10}-{port + 99}",
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthInfo": f"socket={here}/munge.sock",
            "StateSaveLocation": here / "state",
            "SlurmdSpoolDir": here / "spool",
            "TmpFS": here / "tmp",
            "SlurmctldPidFile": here / "slurmctld.pid",
            "SlurmdPidFile": here / "slurmd.pid",
            "SlurmctldLogFile": here / "log/slurmctld.log",
            "SlurmdLogFile": here / "log/slurmd.log",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "MpiDefault": "pmix",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_Core",
            "SchedulerParameters": "sched_interval=1,bf_interval=1,batch_sched_delay=0",
            "SlurmdParameters": "config_overrides",
            "GresTypes": "gpu",
            "ReturnToService": 2,
            "KillWait": 2,
        }
        self.conf.write_text(
            "".join(f"{name}={value}\n" for name, value in lines.items())
            + f"NodeName={host} NodeAddr=127.0.0.1 CPUs=64 RealMemory=500000"
            + " Gres=gpu:A100.80gb:4,gpu:1g.10gb:4\n"
            + f"PartitionName=DEFAULT Nodes={host} MaxTime=INFINITE DefaultTime=10 State=UP\n"
            + "PartitionName=normal Default=YES\nPartitionName=gpuq\n"
        )
        (here / "gres.conf").write_text(
            f"Name=gpu Type=A100.80gb File={here}/dev/nvidia[0-3]\n"
            f"Name=gpu Type=1g.10gb File={here}/dev/nvidia[4-7]\n"
        )
        (here / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    @staticmethod
    def user():
        return pwd.getpwuid(os.geteuid()).pw_name

    def processes(self):
        """Of this Slurm: its daemons, and what its jobs left, known by their environment."""
        mark = f"SLURM_CONF={self.conf}".encode()
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                name = (entry / "comm").read_text().strip()
                dead = re.search(r"^State:\s+Z", (entry / "status").read_text(), re.MULTILINE)
            except OSError:
                continue
            of_a_job = any(variable.startswith(b"SLURM_JOB_ID=") for variable in variables)
            if mark in variables and not dead and (name in DAEMONS or of_a_job):
                found[int(entry.name)] = name
        return found

    def stop(self):
        for _ in range(100):
            left = self.processes()
            if not left:
                return
            for process in left:
                try:
                    os.kill(process, 9)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)
        raise RuntimeError(f"still running: {left}")

    # ---- jobs ------------------------------------------------------------------------------------

    def submit(self, *words, **options):
        return self.run("sbatch", "--parsable", *words, **options).stdout.strip()

    def show(self, job):
        """What the controller knows of a job: a dictionary per element of an array, or one."""
        text = self.run("timeout", "5", "scontrol", "-o", "show", "job", job).stdout
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in text.splitlines() if line.strip()]

    def wait(self, job, seconds=90, states=("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")):
        """Until all elements are in one of `states`; the same as show()."""
        deadline = time.monotonic() + seconds
        while True:
            elements = self.show(job)
            if all(element["JobState"] in states for element in elements):
                return elements
            if time.monotonic() > deadline:
                known = [{key: e.get(key) for key in ("JobId", "JobState", "Reason")} for e in elements]
                raise TimeoutError(f"job {job} after {seconds} s: {known}")
            time.sleep(0.3)

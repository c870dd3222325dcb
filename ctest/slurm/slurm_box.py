"""A real Slurm on this machine for the duration of a test: munge, slurmctld and slurmd in their own folder, with fake
GPUs, so that the requests of a GPU cluster are accepted. /etc is not changed.

Facts about Slurm 22.05 that matter here: every client gets a time limit, because clients hang for minutes without a
controller; time limits of jobs are checked every 30 s; a requeued job starts after two minutes, or when its start time
is set more than 5 s after it became pending.
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
DAEMONS = {"munged", "slurmctld", "slurmd", "slurmstepd", "unshare"}


def missing_tools():
    return [tool for tool in NEEDED if shutil.which(tool, path=search_path()) is None]


def search_path():
    """Includes the folders of daemons, which are only on root's path."""
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def free_port_range(size):
    """First of `size` consecutive free ports, as far as two of them tell."""
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
        host = socket.gethostname().split(".")[0]
        self.controller = f"{host}(127.0.0.1)"
        self.nodes = {host: "127.0.0.1"}  # and their addresses
        self.settings = {}  # of slurm.conf, in addition to those below
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

    def run(self, *words, timeout=30, check=True, cwd=None, environment=None):
        """Runs a client, or any command that uses this Slurm; returns its output."""
        cwd = pathlib.Path(cwd or os.getcwd())
        ended = subprocess.run(
            self.on_login_node([str(word) for word in words], cwd, timeout),
            env={**self.environment, **(environment or {})},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout + 10,
        )
        if check and ended.returncode != 0:
            raise RuntimeError(f"{words} ended with {ended.returncode}\n{ended.stdout}{ended.stderr}")
        return ended

    def on_login_node(self, words, _cwd, seconds):
        """The command line that runs `words` on the login node, with a time limit."""
        return ["timeout", "-k", "2", str(seconds), *words]

    # ---- daemons ---------------------------------------------------------------------------------

    def start(self):
        for name in "state", "spool", "log", "dev", "tmp":
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for node in self.nodes:
            (self.folder / "tmp" / node).mkdir(exist_ok=True)
        self.make_devices()
        self.write_configuration(free_port_range(100))
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(stat.S_IRUSR)
        self.start_daemon(
            "munged", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.sock",
            f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/log/munged.log",
            f"--seed-file={self.folder}/munge.seed", "--num-threads=2",
        )  # fmt: skip
        self.start_slurm()
        self.await_idle(self.nodes)

    def start_slurm(self):
        self.start_daemon("slurmctld", "-c")
        self.start_daemon("slurmd")

    def start_daemon(self, *words):
        subprocess.run(
            words, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, timeout=30, check=True,
        )  # fmt: skip

    def await_idle(self, nodes, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            told = self.run("sinfo", "-h", "-N", "-p", "normal", "-t", "idle", "-o", "%N", timeout=2, check=False)
            if told.returncode == 0 and set(nodes) <= set(told.stdout.split()):
                return
            time.sleep(0.1)
        logs = "".join(path.read_text() for path in (self.folder / "log").iterdir())
        raise RuntimeError(f"{list(nodes)} are not ready:\n" + logs[-3000:])

    def make_devices(self):
        """Creates device nodes where allowed: only then does Slurm set CUDA_VISIBLE_DEVICES."""
        for number in range(8):
            path = self.folder / "dev" / f"nvidia{number}"
            try:
                os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            except PermissionError:
                path.touch()

    def write_configuration(self, port):
        user, here = self.user(), self.folder
        lines = {
            "ClusterName": "box",
            "SlurmctldHost": self.controller,
            "SlurmctldPort": port,
            "SlurmdPort": port + 1,
            "SrunPortRange": f"{port + 10}-{port + 99}",
            "SlurmUser": user,
            "SlurmdUser": user,
            "AuthInfo": f"socket={here}/munge.sock",
            "StateSaveLocation": here / "state",
            "SlurmdSpoolDir": here / "spool/%n",
            "TmpFS": here / "tmp/%n",
            "SlurmctldPidFile": here / "slurmctld.pid",
            "SlurmdPidFile": here / "slurmd-%n.pid",
            "SlurmctldLogFile": here / "log/slurmctld.log",
            "SlurmdLogFile": here / "log/slurmd-%n.log",
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
            **self.settings,
        }
        self.conf.write_text(
            "".join(f"{name}={value}\n" for name, value in lines.items())
            + "NodeName=DEFAULT CPUs=64 RealMemory=500000 Gres=gpu:A100.80gb:4,gpu:1g.10gb:4\n"
            + "".join(f"NodeName={name} NodeAddr={address}\n" for name, address in self.nodes.items())
            + f"PartitionName=DEFAULT Nodes={','.join(self.nodes)} MaxTime=INFINITE DefaultTime=10 State=UP\n"
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
        """The processes of this Slurm: its daemons, and leftovers of its jobs, recognised by their environment."""
        return {
            process: name
            for process, name, variables in self.those_that_see_it()
            if name in DAEMONS or b"SLURM_JOB_ID" in variables
        }

    def ranks(self):
        """The processes of all jobs' programs by rank, with this machine's process ids."""
        found = {}
        for process, name, variables in self.those_that_see_it():
            rank = variables.get(b"PMIX_RANK")
            if name == "stratagem" and rank is not None:
                found[int(rank)] = process
        return found

    def those_that_see_it(self):
        """Living processes with this Slurm in their environment."""
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
                name = (entry / "comm").read_text().strip()
                dead = re.search(r"^State:\s+Z", (entry / "status").read_text(), re.MULTILINE)
            except OSError:
                continue
            variables = dict(word.partition(b"=")[::2] for word in words)
            if not dead and variables.get(b"SLURM_CONF") == str(self.conf).encode():
                yield int(entry.name), name, variables

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
        """The controller's information about a job: one dictionary per element of an array, or one."""
        text = self.run("scontrol", "-o", "show", "job", job).stdout
        return [dict(re.findall(r"(\w+)=(\S*)", line)) for line in text.splitlines() if line.strip()]

    def start_again(self, job):
        """Lets a requeued job start at once; Slurm would take up to two minutes."""
        begin = time.monotonic()
        while True:
            [now] = self.show(job)
            waited = time.monotonic() - begin
            if now["JobState"] != "PENDING":
                return
            if waited > 60:
                raise TimeoutError(f"job {job} stays queued: {now['Reason']}")
            if waited > 6 and now["Reason"] == "BeginTime":  # earlier, it would stay on hold
                self.run("scontrol", "update", f"job={job}", "StartTime=now", timeout=10, check=False)
            time.sleep(0.5)

    def wait(self, job, seconds=90, states=("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")):
        """Waits until all elements are in one of `states`; returns the same as show()."""
        deadline = time.monotonic() + seconds
        while True:
            elements = self.show(job)
            if all(element["JobState"] in states for element in elements):
                return elements
            if time.monotonic() > deadline:
                known = [{key: e.get(key) for key in ("JobId", "JobState", "Reason")} for e in elements]
                raise TimeoutError(f"job {job} after {seconds} s: {known}")
            time.sleep(0.3)

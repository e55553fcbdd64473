"""A real Slurm on this one host, from Debian's packages: two nodes and a head, as root, without systemd. For tests alone.

Each machine is a set of namespaces: its own processes, host name and /etc/hosts, but the files and the network of this host. So
a node loses its power in one stroke, with everything that a job may have left in the background, and nothing can outlive the
tests: the machines also die with the process that started them, however that ends.
"""

import atexit
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from typing import NamedTuple

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "setpriv", "unshare")
HEAD = "head"
NODES = ("n1", "n2")

# A requeued job waits until its old credential has expired, by default 120 s. A dead node is missed after 15 s with these timeouts.
# A job in `high` takes its node from one in `main`: all processes of that one get TERM, KILL after KillWait, and it is requeued.
# GraceTime would let a batch script wait for its TERM, until the time has passed; only job steps get theirs at once.
# Every node has one CPU, whatever this host has, so that tasks never share a node.
SETTINGS = """\
ClusterName=basin
SlurmctldHost={head}(127.0.0.1)
SlurmctldPort={ports[head]}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdTimeout=5
MessageTimeout=5
BatchStartTimeout=2
KillWait=5
MinJobAge=300
{more}
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=60 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes={names} MaxTime=60 PriorityTier=10 PreemptMode=OFF
"""
# No cgroup is used. slurmd loads a plugin nevertheless, and this one minds neither what is mounted here nor a missing systemd.
CGROUP_SETTINGS = "CgroupPlugin=cgroup/v1\n"
NODE = "NodeName={name} NodeHostname={name} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=2000"

OWN = ("unshare", "--uts", "--pid", "--mount-proc", "--fork", "--kill-child")
# The shell is the machine's first process: it adopts and reaps what a job leaves behind, as slurmd would not.
MACHINE = 'hostname "$1" && mount --bind "$2/hosts" /etc/hosts && cd "$2" && {{ {daemons} wait; }}'
HEAD_DAEMONS = (
    "munged --foreground --force --key-file=munge.key --socket=munge.socket --pid-file=munged.pid --log-file=munged.log"
    ' --seed-file=munged.seed & slurmctld -D -f "$2/slurm.conf" &'
)
NODE_DAEMONS = 'slurmd -D -N "$1" -f "$2/slurm.conf" &'


def why_not():
    """Why there can be no cluster here, in one line, or None."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root"
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if missing:
        return f"not installed: {', '.join(missing)} (scripts/setup cluster)"
    tried = subprocess.run([*OWN, "true"], capture_output=True, text=True)
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode else None


class Queued(NamedTuple):
    """A line of squeue. `job` is JOB, or JOB_INDEX for a task of an array; `node` is empty while it waits."""

    job: str
    state: str  # PENDING, RUNNING, COMPLETING, ...
    reason: str
    node: str


class SlurmCluster:
    """with SlurmCluster(folder) as cluster: both nodes are idle then, and nothing is left afterwards.

    `folder` is made if it's missing; slurm.conf, logs and spool folders go there. `more` is further lines of slurm.conf.
    `environment` is what a client needs, Basin for one. There are two partitions: `main`, the default, and `high`, whose jobs
    preempt those of `main`.
    """

    def __init__(self, folder, more=""):
        self.folder = pathlib.Path(folder).resolve()
        self.more = more
        self._machines = {}  # name: (unshare's process, the file that has the PID of its child)
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH", "SQUEUE"))}
        self.environment = dict(clean, SLURM_CONF=str(self.folder / "slurm.conf"))

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.stop()

    def start(self):
        """Writes the settings and returns when both nodes are idle."""
        atexit.register(self.stop)
        self._write_settings()
        try:
            for name in (HEAD, *NODES):
                self._switch_on(name)
            self.wait_until(lambda: self._states() == dict.fromkeys(NODES, "idle"), 30)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        """Ends every process of every machine. May be called at any time, more than once."""
        for name in list(self._machines):
            self._switch_off(name)
        atexit.unregister(self.stop)

    def run(self, arguments, **options):
        """subprocess.run() of a client, the output as text; an exit code other than 0 is an error unless check=False."""
        settings = dict(env=self.environment, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if "input" in options:
            del settings["stdin"]
        return subprocess.run([str(word) for word in arguments], **{**settings, **options})

    def submit(self, script, *options):
        """The number of a batch job. `script` is its text, `options` are those of sbatch; it writes to `folder` without --output."""
        command = ["sbatch", "--parsable", f"--output={self.folder}/job-%j.out", *options]
        return self.run(command, input=script).stdout.strip()

    def queue(self):
        """All that squeue lists, a task of an array per row. What has ended is not in it."""
        lines = self.run(["squeue", "--noheader", "--array", "--format=%i|%T|%r|%N"]).stdout.splitlines()
        return [Queued(*line.split("|")) for line in lines]

    def job(self, job):
        """The fields of `scontrol show job` by name: JobState, Restarts, ... Remembered for five minutes after its end."""
        text = self.run(["scontrol", "--oneliner", "show", "job", job]).stdout
        return dict(re.findall(r"(?:^|(?<= ))([\w:/]+)=(\S*)", text))

    def processes(self, name):
        """What runs on a machine, as PIDs of this host."""
        if name not in self._machines:
            return []
        first = self._machines[name][1].read_text().strip()
        return [int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*") if _namespace(entry.name) == _namespace(first)]

    def kill_node(self, name):
        """Pulls the plug: slurmd, the jobs on it and all they started get SIGKILL at once. Slurm misses it after some 15 s."""
        self._switch_off(name)

    def start_node(self, name):
        """Boots a node that was killed. Its jobs are requeued at once, and those that began in the last 7 s within half a minute."""
        self._switch_on(name)

    def stop_head(self):
        """Clients fail from now on, after four seconds each; jobs go on. No power cut: a slurmctld forgets its last jobs in one."""
        self.run(["scontrol", "shutdown", "slurmctld"])
        self.wait_until(lambda: not (self.folder / "slurmctld.pid").exists(), 30)
        self._switch_off(HEAD)

    def start_head(self):
        """Returns when clients are served again."""
        self._switch_on(HEAD)
        self.wait_until(lambda: self._states(), 30)

    def reset(self):
        """Boots what was killed, cancels all jobs, and returns when both nodes are idle: for the end of a test."""
        for name in (HEAD, *NODES):
            if name not in self._machines:
                self._switch_on(name)
        self.wait_until(lambda: self.run(["scancel", "--user=root"], check=False).returncode == 0, 60)
        self.wait_until(lambda: not self.queue() and self._states() == dict.fromkeys(NODES, "idle"), 60)

    def wait_until(self, predicate, seconds):
        """Polls until `predicate()` is true and returns what it returned; AssertionError with the queue after `seconds`."""
        end = time.monotonic() + seconds
        while True:
            value = predicate()
            if value:
                return value
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s\n{self._report()}")
            time.sleep(0.2)

    def _write_settings(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "state").mkdir(exist_ok=True)
        key = self.folder / "munge.key"
        key.touch(mode=0o400)
        key.write_bytes(os.urandom(128))
        known = pathlib.Path("/etc/hosts").read_text().rstrip("\n")
        (self.folder / "hosts").write_text(f"{known}\n127.0.0.1 {HEAD} {' '.join(NODES)}\n")
        ports = _free_ports((HEAD, *NODES))
        nodes = "\n".join(NODE.format(name=name, port=ports[name]) for name in NODES)
        values = dict(head=HEAD, ports=ports, folder=self.folder, more=self.more, nodes=nodes, names=",".join(NODES))
        (self.folder / "slurm.conf").write_text(SETTINGS.format(**values))
        (self.folder / "cgroup.conf").write_text(CGROUP_SETTINGS)

    def _switch_on(self, name):
        assert name not in self._machines, f"{name} is on"
        script = MACHINE.format(daemons=HEAD_DAEMONS if name == HEAD else NODE_DAEMONS)
        # A session of its own, so that control-C doesn't reach the daemons before stop() does. No pipes: daemons keep them open.
        with (self.folder / f"{name}.err").open("a") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *OWN, "sh", "-c", script, "sh", name, str(self.folder)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        # unshare's only child is the first process of the machine.
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        self._machines[name] = process, children
        self.wait_until(children.read_text, 10)

    def _switch_off(self, name):
        process, children = self._machines.pop(name)
        # The kernel kills the rest of a PID namespace with its first process, and lets that one go last.
        for first in children.read_text().split():
            os.kill(int(first), signal.SIGKILL)
        process.wait()

    def _states(self):
        lines = self.run(["sinfo", "--noheader", "--Node", "--partition=main", "--format=%N %T"], check=False).stdout
        return dict(line.split() for line in lines.splitlines())

    def _report(self):
        """For the reader of a failed test."""
        texts = [self.run(command, check=False).stdout for command in (["squeue"], ["sinfo"])]
        for log in sorted(self.folder.glob("*.log")) or sorted(self.folder.glob("*.err")):
            texts.append(f"{log.name}:\n" + "".join(log.read_text(errors="replace").splitlines(keepends=True)[-20:]))
        return "\n".join(texts)


def _namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


def _is_free(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def _free_ports(names):
    """A port by name. The system gives none of this range to a client, so that of a dead node stays free."""
    free = (port for port in random.sample(range(10_000, 20_000), 1_000) if _is_free(port))
    return dict(zip(names, free))

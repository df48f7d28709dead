"""A real Slurm on the mini-Cray's nodes: its files and the commands that start it."""

from __future__ import annotations

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from placement.errors import LaunchError, UsageError, printable
from placement.machine import FREE_STATES
from placement.scheduler.switches import members, slurm_switches
from placement.slurm.command import version_numbers
from placement.support.child import Deadline, run_child
from workloads.minicray import net as lay
from workloads.minicray.client import may_administer
from workloads.minicray.daemon import HOME
from workloads.minicray.net import Net

#: How Slurm may choose nodes.
TOPOLOGIES = ("tree", "none", "dragonfly")

#: Oldest Slurm whose settings these are.
_OLDEST = (20, 11)

#: From here on Slurm can do without control groups by its own setting.
_WITHOUT_GROUPS = (24, 5)

#: Cores that a node is given where the machine does not say.
_CORES = 64

#: slurm.conf of a private Slurm, but for its nodes and partitions: no munge, no accounting, no
#: control groups, pretended cores; the tests' own clusters have the same.
CONF = """\
ClusterName={cluster}
SlurmctldHost={host}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType={scheduler}
SchedulerParameters=batch_sched_delay=0{scheduling}
PriorityType=priority/basic
SlurmdTimeout=0
InactiveLimit=0
KillWait=1
MinJobAge={age}
{more}
"""

#: The daemons and the commands that a mini-Cray with Slurm needs.
_PROGRAMS = ("slurmctld", "slurmd", "sinfo", "squeue", "srun", "scontrol")

_PATH = (
    "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/opt/slurm/sbin:/opt/slurm/bin"
)


@dataclass(frozen=True, slots=True)
class Slurm:
    """The Slurm that is installed here.

    Attributes
    ----------
    version : tuple of int
    programs : dict of str to str
        Paths of daemons and commands.
    topology : str
        One of `TOPOLOGIES`.
    """

    version: tuple[int, ...]
    programs: dict[str, str]
    topology: str = "tree"


def find_slurm(topology: str = "tree") -> tuple[Slurm | None, str]:
    """Return the Slurm that can run here, or None and why there is none.

    Parameters
    ----------
    topology : str
        How it is to choose nodes, one of `TOPOLOGIES`.
    """
    programs = {p: shutil.which(p, path=f"{os.environ.get('PATH', '')}:{_PATH}") for p in _PROGRAMS}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        return None, f"{', '.join(missing)} not installed"
    version = version_of(str(programs["slurmctld"]))
    if version < _OLDEST:
        said = ".".join(map(str, version)) or "of an unknown version"
        return None, f"Slurm {said} is too old: {_OLDEST[0]}.{_OLDEST[1]:02d} is needed"
    why = _one_id() if may_administer() else maps_ids()
    if why:
        return None, f"{why}; as root, or with mapped ids, it can run"
    return Slurm(version, {k: str(v) for k, v in programs.items()}, topology), ""


def version_of(slurmctld: str) -> tuple[int, ...]:
    """Return what a Slurm says it is; () where it does not."""
    try:
        text = run_child([slurmctld, "-V"], os.environ, Deadline(10)).output
    except LaunchError:
        return ()
    return version_numbers(text)


def _one_id() -> str:
    """Return why root is not root enough: in a user namespace of a single id."""
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return ""
    mapped = sum(int(line.split()[2]) for line in lines)
    return "slurmd needs several user ids, and this user namespace has one" if mapped < 2 else ""


def maps_ids() -> str:
    """Return why this user cannot map more ids than the own one, '' where that is possible."""
    if not (shutil.which("newuidmap") and shutil.which("newgidmap")):
        return "slurmd needs several user ids, and newuidmap (package uidmap) is not installed"
    for path in ("/etc/subuid", "/etc/subgid"):
        if not _has_subordinate_ids(path):
            return f"slurmd needs several user ids, and {path} has none for this user"
    return ""


def _has_subordinate_ids(path: str) -> bool:
    """Tell whether a file of subordinate ids has an entry for this user."""
    user = {str(os.getuid())}
    try:
        user.add(pwd.getpwuid(os.getuid()).pw_name)
        lines = Path(path).read_text(errors="replace").splitlines()
    except (KeyError, OSError):
        return False
    return any(line.split(":")[0] in user for line in lines if ":" in line)


def cgroup_conf(version: tuple[int, ...]) -> str:
    """Return the text of cgroup.conf for a Slurm that is to leave control groups alone.

    Examples
    --------
    >>> cgroup_conf((22, 5, 8)), cgroup_conf((24, 11, 5))
    ('CgroupPlugin=autodetect\\n', 'CgroupPlugin=disabled\\n')
    """
    return f"CgroupPlugin={'disabled' if version >= _WITHOUT_GROUPS else 'autodetect'}\n"


def slurm_files(net: Net, slurm: Slurm) -> dict[str, tuple[str, int]]:
    """Return the text and mode of each of Slurm's files."""
    tree = slurm.topology != "none"  # no plugin named: Slurm's default, under whatever name
    words = "TopologyPlugin=topology/tree" if tree else ""
    words += "\nTopologyParam=Dragonfly" if slurm.topology == "dragonfly" else ""
    conf = CONF.format(
        cluster="minicray", host=f"{lay.LOGIN}({lay.management_address(-1)})", user="root",
        folder=HOME, scheduler="sched/backfill", scheduling=",sched_min_interval=0", age=60,
        more=f"TreeWidth=64\n{words}",
    )  # fmt: skip
    lines = [_node_line(net, k) for k in range(len(net.names))]
    everything = ",".join(net.names)
    lines.append(f"PartitionName=debug Nodes={everything} Default=YES MaxTime=INFINITE State=UP")
    files = {
        "slurm.conf": conf + "\n".join(lines) + "\n",
        "cgroup.conf": cgroup_conf(slurm.version),
    }
    if tree:
        files["topology.conf"] = _switch_lines(net)
    return {name: (text, 0o644) for name, text in files.items()}


def _switch_lines(net: Net) -> str:
    """Return topology.conf: the machine's switches, without the nodes that have no namespace."""
    switches = slurm_switches(net.machine)
    if switches.kind not in ("tree", "flat"):
        raise UsageError(
            f"topology.conf cannot say {printable(switches.kind)}", "use --topology none"
        )
    own = {int(row): name for row, name in zip(net.rows.tolist(), net.names, strict=True)}
    lines: list[str] = []
    kept: list[list[str]] = [[] for _ in switches.names]
    leaves = members(switches)
    for k in sorted(range(len(switches.names)), key=lambda k: int(switches.level[k])):
        below = [own[int(row)] for row in leaves[k] if int(row) in own]
        words = [f"Nodes={','.join(below)}"] if below else []
        words += [f"Switches={','.join(kept[k])}"] if kept[k] else []
        if words:
            lines.append(f"SwitchName={switches.names[k]} {' '.join(words)}")
            if switches.parent[k] >= 0:
                kept[int(switches.parent[k])].append(switches.names[k])
    return "\n".join(lines) + "\n"


def _node_line(net: Net, node: int) -> str:
    row = int(net.rows[node])
    cores = int(net.machine.cores[row]) or _CORES
    down = str(net.machine.state[row]) not in FREE_STATES
    return (
        f"NodeName={net.names[node]} NodeAddr={lay.management_address(node)} CPUs={cores} "
        f"Sockets=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory=1000"
        f"{' State=DRAIN Reason=machine' if down else ''}"
    )


def slurm_start(net: Net, slurm: Slurm) -> dict[str, Any]:
    """Return what is started, and how long it may take."""
    conf = str(HOME / "slurm.conf")
    state = net.machine.state[net.rows].tolist()
    return {
        "folders": ["state", *(f"spool.{name}" for name in net.names)],
        "controller": [slurm.programs["slurmctld"], "-D", "-f", conf],
        "nodes": {
            name: [str(HOME / "on"), name, slurm.programs["slurmd"], "-D", "-N", name, "-f", conf]
            for name in net.names
        },
        "up": [n for n, word in zip(net.names, state, strict=True) if word in FREE_STATES],
        "wait": 120.0 + 0.2 * len(net.names),
    }

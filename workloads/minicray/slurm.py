# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on the mini-Cray's nodes: its files and the commands that start it."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nidmap.placement import exports
from nidmap.placement.errors import LaunchError, UsageError, printable
from nidmap.placement.records import FREE_STATES
from nidmap.placement.slurm.command import version_numbers
from nidmap.placement.support.child import Deadline, run_child
from nidmap.placement.switch_tree import slurm_switches
from nidmap.workloads.minicray import net as lay
from nidmap.workloads.minicray.client import may_administer
from nidmap.workloads.minicray.daemon import HOME
from nidmap.workloads.minicray.net import Net

#: How Slurm may choose nodes.
TOPOLOGIES = ("tree", "none", "dragonfly")

#: Oldest Slurm whose settings these are.
_OLDEST = (20, 11)

#: From here on Slurm can do without control groups by its own setting.
_WITHOUT_GROUPS = (24, 5)

#: Cores of a node if the machine does not say.
_CORES = 64

#: slurm.conf of a private Slurm, but for its nodes and partitions: no munge, no accounting, no
#: control groups, pretended cores; the tests' own clusters have the same.
CONF = Path(__file__).with_name("slurm.conf").read_text(encoding="utf-8")

#: The daemons and the commands that a mini-Cray with Slurm needs.
_PROGRAMS = ("slurmctld", "slurmd", "sinfo", "squeue", "srun", "scontrol")

_PATH = (
    "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/opt/slurm/sbin:/opt/slurm/bin"
)


@dataclass(frozen=True, slots=True)
class Slurm:
    """The Slurm that is installed here."""

    version: tuple[int, ...]
    programs: dict[str, str]  # paths of daemons and commands
    topology: str = "tree"  # one of `TOPOLOGIES`


def find_slurm(topology: str = "tree") -> tuple[Slurm | None, str]:
    """Return a Slurm that can run here, or None and the reason.

    `topology`: how it is to choose nodes, one of `TOPOLOGIES`.
    """
    programs = {p: shutil.which(p, path=f"{os.environ.get('PATH', '')}:{_PATH}") for p in _PROGRAMS}
    missing = [name for name, path in programs.items() if path is None]
    if missing:
        return None, f"{', '.join(missing)} not installed"
    version = version_of(str(programs["slurmctld"]))
    if version < _OLDEST:
        version_text = ".".join(map(str, version)) or "of an unknown version"
        return None, f"Slurm {version_text} is too old: {_OLDEST[0]}.{_OLDEST[1]:02d} is needed"
    if why := _ids_missing():
        return None, f"{why}; as root, or with mapped ids, it can run"
    return Slurm(version, {k: str(v) for k, v in programs.items()}, topology), ""


def version_of(slurmctld: str) -> tuple[int, ...]:
    """Return the version of a Slurm; () if it prints none."""
    try:
        text = run_child([slurmctld, "-V"], os.environ, Deadline(10)).output
    except LaunchError:
        return ()
    return version_numbers(text)


def _ids_missing() -> str:
    """Return why slurmd lacks the user ids that it needs, '' if it has them."""
    words = [] if may_administer() else ["unshare", "--map-root-user", "--map-auto"]
    answer = run_child([*words, "cat", "/proc/self/uid_map"], os.environ, Deadline(10))
    if sum(int(line.split()[2]) for line in answer.output.splitlines()) > 1:
        return ""
    why = printable(answer.messages.strip() or "this user namespace has one", 200)
    return f"slurmd needs several user ids ({why})"


def cgroup_conf(version: tuple[int, ...]) -> str:
    """Return the text of cgroup.conf for a Slurm that must not use control groups."""
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
    """Return topology.conf: the machine's switches, without nodes that have no namespace."""
    switches = slurm_switches(net.machine)
    if switches.kind != "tree":
        raise UsageError(
            f"topology.conf cannot describe {printable(switches.kind)}", "use --topology none"
        )
    leaf_of = np.full_like(switches.leaf_of, -1)
    leaf_of[net.rows] = switches.leaf_of[net.rows]
    machine = replace(net.machine, switches=replace(switches, leaf_of=leaf_of), _cache={})
    return str(exports.topology_conf(machine))


def _node_line(net: Net, node: int) -> str:
    row = int(net.rows[node])
    cores = int(net.machine.cores[row]) or _CORES
    down = str(net.machine.state[row]) not in FREE_STATES
    return (
        f"NodeName={net.names[node]} NodeAddr={lay.management_address(node)} CPUs={cores} "
        f"Sockets=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory=1000"
        f"{' State=DRAIN Reason=machine' if down else ''}"
    )


def slurm_programs(net: Net, slurm: Slurm) -> dict[str, Any]:
    """Return the programs to start, and the time allowed for that."""
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

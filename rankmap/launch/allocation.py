# SPDX-License-Identifier: Apache-2.0
"""The allocation of the surrounding job, as described by the batch system's variables.

Slurm states it in variables, PBS, Torque, Grid Engine and OAR in a file of hosts, LSF in
either, Cobalt in a list of NIDs, Flux when asked (`nidmap.rankmap.launch.flux`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nidmap.placement.errors import LaunchError, ParseError
from nidmap.placement.lookup import nodes_of, rows_of
from nidmap.placement.nodelist import NodeList
from nidmap.placement.support.child import Deadline, run_child
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.reading import load
from nidmap.rankmap.launch.pbs_job import hosts_of_job
from nidmap.rankmap.place_ranks import parse_counts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from nidmap.placement.machine import Machine
    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Ints

#: Variables that name a file of a job's hosts, and those that hold such a list: PBS and Torque,
#: Cobalt, LSF (its reference: LSB_MCPU_HOSTS is "hosta 5 hostb 4"), Grid Engine (sge_pe(5)), OAR.
_FILES = ("PBS_NODEFILE", "COBALT_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "OAR_NODEFILE")
_LISTS = ("LSB_MCPU_HOSTS", "LSB_HOSTS")
#: Variables that hold a job's id; Grid Engine's JOB_ID is that of nobody else's job.
_JOB = (
    *("SLURM_JOB_ID", "PBS_JOBID", "COBALT_JOBID", "FLUX_JOB_ID", "LSB_JOBID", "OAR_JOB_ID"),
    "JOB_ID",
)
#: Variables by which Open MPI 5 and 4 have a host file of their own.
_HOST_FILES = ("PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile")
#: Seconds within which Flux must have listed its hosts.
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """The allocation of a job."""

    nodes: NodeList  # in the batch system's order; Slurm's is sorted, and every step follows it
    # (n,), ranks each node is for: SLURM_TASKS_PER_NODE, repeats or slots of a host file
    tasks: Ints | None = None
    cpus: Ints | None = None  # (n,), SLURM_JOB_CPUS_PER_NODE
    ranks: int | None = None  # SLURM_NTASKS (or SLURM_NPROCS): the ranks of a step without ``-n``
    job: str = ""  # job id, '' where none is set
    # SLURM_NTASKS_PER_NODE: the ranks per node of a step without ``-n``
    per_node: int | None = None
    # (k,), node of each slot as a host file lists them; None where a list of nodes says it all
    turns: Ints | None = None
    note: str = ""  # remark for the user: it may be only part of the job

    def counts(self, ranks: int, cpus_per_task: int = 1, nodes: int | None = None) -> Ints:
        """Return how many of a step's ranks Slurm itself puts on each of the job's nodes.

        The job's own layout where it has as many ranks, otherwise what srun's
        block distribution gives on the job's CPUs (`deal_ranks`). A step of fewer
        nodes, or of fewer ranks than nodes, is put on the first ones; the
        others get none.

        `nodes`: how many nodes the step is for; None means all.
        """
        all_nodes = nodes in (None, len(self.nodes))
        if all_nodes and self.tasks is not None and int(self.tasks.sum()) == ranks:
            return self.tasks
        room = None if self.cpus is None else self.cpus[:nodes] // cpus_per_task
        if room is None or room.sum() < ranks or room.min() < 1:
            raise unclear_counts(ranks, nodes or len(self.nodes))
        counts = np.zeros(len(self.nodes), dtype=np.int64)
        counts[: len(room)] = deal_ranks(ranks, room)
        return counts

    @property
    def words(self) -> str:
        """The job's nodes in words, with remarks."""
        note = f" ({self.note})" if self.note else ""
        return f"the {counted(len(self.nodes), 'node')} of this job{note}"

    def refuse_more(self, placement: Placement, room: Ints, what: str) -> None:
        """Raise if a node has more ranks than it has room for; `room` is in node order."""
        room_on = dict(zip(self.nodes, room.tolist(), strict=True))
        for name, count in zip(placement.names.tolist(), placement.counts.tolist(), strict=True):
            most = room_on.get(name, 0)
            if count > most:
                raise LaunchError(f"{count} {what} on {name}, which has room for {most}")

    def on(self, machine: Machine) -> Allocation:
        """Return the allocation with the machine's names for its nodes, without NIDs or domains."""
        try:
            rows = rows_of(machine, self.nodes, "the job's node list", repeats=True)
        except ParseError as error:
            strangers = [name for name in self.nodes if not _is_node(machine, name)]
            if not strangers:
                raise
            names = ", ".join(strangers[:4]) + (" …" if len(strangers) > 4 else "")
            what = f"{machine.name or 'the machine'} does not have this job's nodes: {names}"
            hint = f"{error.hint}; " if error.hint else ""
            hint += "-m names another machine, --nodes other nodes"
            raise ParseError("the job's node list", 0, what, hint) from None
        if len(rows) != len(self.nodes):
            raise ParseError(
                "the job's node list", 0, "contains more than node names", "use --nodes"
            )
        if not machine.compute[rows].any():
            what = f"{machine.names[rows[0]]} is not a compute node"
            hint = "a batch system may list only its own node (MOM): name the job's with --nodes"
            prefix = f"{self.note}; " if self.note else ""
            raise ParseError("the job's node list", 0, what, prefix + hint)
        merged = self._with_each_once(rows)
        return replace(merged, nodes=nodes_of(machine, np.array([*dict.fromkeys(rows.tolist())])))

    def _with_each_once(self, rows: Ints) -> Allocation:
        """Merge names of different length that denote the same node (n1 and n1.cm)."""
        place = {row: k for k, row in enumerate(dict.fromkeys(rows.tolist()))}
        at = np.array([place[row] for row in rows.tolist()], dtype=np.int64)
        if len(place) == len(at):
            return self
        tasks, cpus = (
            None if column is None else np.bincount(at, column).astype(np.int64)
            for column in (self.tasks, self.cpus)
        )
        turns = None if self.turns is None else at[self.turns]
        return replace(self, nodes=NodeList(), tasks=tasks, cpus=cpus, turns=turns)

    def stated_counts(self) -> Ints | None:
        """Return the ranks per node with which the job was submitted; None if none were given.

        Slurm's variables have tasks for every job: without ``-n`` they are its CPUs.
        """
        if self.ranks is not None:
            try:
                counts = self.counts(self.ranks)
            except LaunchError:
                return None
            return counts if int(counts.min()) else None
        if self.per_node is not None:
            return np.full(len(self.nodes), self.per_node)
        return self.tasks if self.cpus is None else None


def _is_node(machine: Machine, name: str) -> bool:
    try:
        rows_of(machine, [name])
    except ParseError:
        return False
    return True


def unclear_counts(ranks: int, nodes: int) -> LaunchError:
    """Return a remark on an unclear distribution of ranks over nodes."""
    what = f"how {ranks} ranks are spread over {nodes} nodes"
    return LaunchError(f"{what} is not known", "give --ppn")


def job_id(env: Mapping[str, str]) -> str:
    """Return the id of the surrounding job; '' outside of any job."""
    names = _JOB if env.get("PE_HOSTFILE") or env.get("SGE_ROOT") else _JOB[:-1]
    return next((env[name] for name in names if env.get(name)), "")


def allocation(env: Mapping[str, str]) -> Allocation | None:
    """Return the allocation that an environment describes; None outside of any.

    Slurm's variables, else the hosts that another batch system lists, else COBALT_PARTNAME
    (NIDs, which need a machine).
    """
    if env.get("SLURM_HET_SIZE") or env.get("SLURM_PACK_SIZE"):  # its name up to Slurm 19.05
        several = "heterogeneous jobs, which have several node lists, are not supported"
        raise LaunchError(several)
    text = env.get("SLURM_JOB_NODELIST") or env.get("SLURM_NODELIST")
    if text:
        nodes = NodeList.parse(text, "SLURM_JOB_NODELIST")
        return Allocation(
            nodes,
            _per_node(env, "SLURM_TASKS_PER_NODE", len(nodes)),
            _per_node(env, "SLURM_JOB_CPUS_PER_NODE", len(nodes)),
            _number_of(env, "SLURM_NTASKS") or _number_of(env, "SLURM_NPROCS"),
            env.get("SLURM_JOB_ID", ""),
            _number_of(env, "SLURM_NTASKS_PER_NODE"),
        )
    job = job_id(env).partition(".")[0]
    for name in _FILES:
        if env.get(name):
            listed = from_hosts(load(env[name]), env[name], job)
            names_one_node = name == "PBS_NODEFILE" and len(listed.nodes) == 1
            return _whole_job(listed, env) if names_one_node else listed
    for name in _LISTS:
        if env.get(name):
            hosts = env[name] if name == "LSB_HOSTS" else _paired_hosts(env[name], name)
            return from_hosts(hosts, name, job)
    nids = env.get("COBALT_PARTNAME")
    return Allocation(NodeList.parse(f"[{nids}]", "COBALT_PARTNAME"), job=job) if nids else None


def _whole_job(listed: Allocation, env: Mapping[str, str]) -> Allocation:
    """Return a PBS job with all nodes that PBS reports, if its node file names only one."""
    hosts, why = hosts_of_job(env)
    if len(hosts) > 1:
        note = f"PBS_NODEFILE names {listed.nodes[0]} alone: hosts by qstat -f"
        cpus = np.array([*hosts.values()])
        return Allocation(NodeList(hosts), cpus=cpus, job=listed.job, note=note)
    stated = _number_of(env, "PBS_NUM_NODES")  # Torque's
    if stated is not None and stated > 1:
        what = f"PBS_NODEFILE names one node of {stated} (PBS_NUM_NODES)"
        raise LaunchError(f"{what}; {why}" if why else what, "use --nodes")
    return replace(listed, note=f"PBS_NODEFILE names one node; {why}") if why else listed


def _paired_hosts(text: str, source: str) -> str:
    """Convert LSF's pairs of host and slots to a host file."""
    words = text.split()
    hosts, slots = words[::2], words[1::2]
    hint = "LSF writes pairs: host slots host slots; is it cut off?"
    for host, count in zip(hosts, [*slots, ""], strict=False):
        if not (count.isascii() and count.isdigit() and int(count[:9])):
            what = (
                f"'{count}' is not a number of slots for {host}"
                if count
                else f"{host} has no slots"
            )
            raise ParseError(source, 0, f"{what} in {text[:80]!r}", hint)
    return "\n".join(f"{host}:{count}" for host, count in zip(hosts, slots, strict=True))


def flux_instance(env: Mapping[str, str], program: str = "flux") -> Allocation | None:
    """Return the hosts of the surrounding Flux instance, as Flux reports them."""
    if not env.get("FLUX_URI"):
        return None
    answer = run_child([program, "getattr", "hostlist"], env, Deadline(_PATIENCE))
    if answer.code:
        raise LaunchError(f"flux getattr hostlist failed (exit code {answer.code})")
    nodes = NodeList.parse(answer.output.strip(), "flux getattr hostlist")
    return Allocation(nodes, job=env.get("FLUX_JOB_ID", ""))


def job_here(env: Mapping[str, str]) -> Allocation | None:
    """Return the surrounding job of Slurm, PBS, Cobalt or Flux, or Open MPI's host file."""
    job = allocation(env) or flux_instance(env)
    path = next((env[name] for name in _HOST_FILES if env.get(name)), "")
    return job if job is not None or not path else from_hosts(load(path), path)


def from_hosts(text: str, source: str, job: str = "") -> Allocation:
    """Return the allocation in a host file, with slots as repeats, ``:2`` or ``slots=2``."""
    listed = NodeList.parse(text, source)
    slots = Counter(listed)
    if not slots:
        raise LaunchError(f"{source} lists no hosts")
    place = {name: k for k, name in enumerate(slots)}
    turns = np.array([place[name] for name in listed], dtype=np.int64)
    return Allocation(NodeList([*slots]), np.array([*slots.values()]), job=job, turns=turns)


def job_on(machine: Machine, env: Mapping[str, str]) -> Allocation | None:
    """Return the surrounding job (`job_here`), its nodes by the machine's names.

    None outside of one: inside of one whose nodes nothing says, no others are taken for them.
    """
    job = job_here(env)
    if job is None and job_id(env):
        raise LaunchError(f"cannot tell which nodes job {job_id(env)} has", "name them")
    return None if job is None else job.on(machine)


def fill_nodes(ranks: int, room: Ints) -> Ints:
    """Return ranks per node, filling node after node; the last nodes may get none."""
    before = np.cumsum(room) - room
    counts: Ints = np.clip(ranks - before, 0, room)
    if int(counts.sum()) != ranks:
        raise LaunchError(f"{ranks} ranks requested, but there are {int(room.sum())} slots")
    return counts


def deal_ranks(ranks: int, room: Ints) -> Ints:
    """Return ranks per node, dealt out one per node in turn while there is room.

    This is srun's block distribution of a step over all nodes of its job
    (checked against Slurm 22.05.8, which ``test_srun_deals_as_we_say`` repeats).

    `ranks`: at most ``room.sum()``. `room` (n,): ranks that each node can take.
    """
    counts: Ints = np.zeros_like(room)
    while left := ranks - int(counts.sum()):
        free = np.flatnonzero(room > counts)
        rounds = min(left // len(free), int((room - counts)[free].min()))
        counts[free if rounds else free[:left]] += max(rounds, 1)
    return counts


def _per_node(env: Mapping[str, str], name: str, nodes: int) -> Ints | None:
    text = env.get(name, "")
    if text and "(" not in text and "," not in text:
        text = f"{text}(x1)"  # a plain number is one node's; only (x3) says how many follow suit
    return parse_counts(text, nodes, name) if text else None


def _number_of(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise LaunchError(f"{name}={text} is not a number of ranks")
    return int(text) if text else None

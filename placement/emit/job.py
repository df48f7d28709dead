"""A job as a scheduler is told of it: the one place that writes the options of its header.

Every header, and the question that ``--check`` puts to Slurm, is made from
one `Job`, so that what the nodes were chosen with is also what the job asks
for.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from placement.errors import UsageError, printable
from placement.nodelist import NodeList

__all__ = ["Emission", "Job", "pbs_options", "slurm_options"]

_NO_NODES = NodeList()
_NEEDS_NO_QUOTES = re.compile(r"[\w.,:;&|()@%+\[\]-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Job:
    """What a job asks for.

    Attributes
    ----------
    count : int
        Nodes that its program runs on.
    slack : int
        Nodes more than that.
    ppn : int or None
        Ranks a node; None: not said, which is one.
    partition, constraint, reservation : str or None
        As of sbatch; a partition is also PBS's queue.
    nodelist : NodeList
        Nodes that it must have: all of them where it is pinned.
    exclude : NodeList
        Nodes that it must not have.
    switches : int
        At most so many leaf switches, for ten minutes' wait; 0: any number.
    contiguous : bool
        One run of consecutive nodes.
    segment : int
        Nodes of each segment, under topology/block; 0: no segments.
    placement_set : str
        PBS's vnode resource whose value all nodes share, such as ``tier0``, instead of
        the very nodes; '' for these.
    select : tuple of (str, int)
        PBS's vnode resource with a value (``tier0=g3``), and how many nodes have to have
        it, instead of the very nodes; () for these.
    """

    count: int
    slack: int = 0
    ppn: int | None = None
    partition: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    nodelist: NodeList = _NO_NODES
    exclude: NodeList = _NO_NODES
    switches: int = 0
    contiguous: bool = False
    segment: int = 0
    placement_set: str = ""
    select: tuple[tuple[str, int], ...] = ()

    @property
    def ranks(self) -> int:
        """Ranks of the program, one a node where nothing says how many."""
        return self.count * (self.ppn or 1)


def slurm_options(job: Job) -> list[str]:
    """Return the options of sbatch for a job that has its nodes to itself.

    Examples
    --------
    >>> slurm_options(Job(2, ppn=4, constraint="gpu", nodelist=NodeList(["n1", "n2"])))
    ['--nodes=2', '--ntasks-per-node=4', '--constraint=gpu', '--nodelist=n[1-2]', '--exclusive']
    """
    values = {
        "nodes": job.count + job.slack,
        "ntasks-per-node": job.ppn,
        "partition": job.partition,
        "constraint": job.constraint,
        "reservation": job.reservation,
        "nodelist": job.nodelist.fold() or None,
        "exclude": job.exclude.fold(sort=True) or None,
        "segment": job.segment or None,
        "switches": f"{job.switches}@00:10:00" if job.switches else None,
    }
    given = {name: str(value) for name, value in values.items() if value is not None}
    options = [f"--{name}={_quote_word(value)}" for name, value in given.items()]
    return [*options, "--exclusive", *(["--contiguous"] if job.contiguous else [])]


def _quote_word(value: str) -> str:
    """Quote as a shell would, which sbatch understands, only where something needs it."""
    if not value or not value.isprintable():
        raise UsageError(f"{printable(value)!r} is not a name")
    return value if _NEEDS_NO_QUOTES.fullmatch(value) else shlex.quote(value)


def pbs_options(job: Job, batch: str) -> list[str]:
    """Return the options of qsub for a job pinned to its nodes, or to a placement set.

    Parameters
    ----------
    job : Job
    batch : str
        ``torque`` and ``alps`` take ``nodes``, PBS itself ``select``.

    Raises
    ------
    UsageError
        A constraint or a reservation, which are Slurm's and no option of qsub; a placement
        set for Torque, which has none.

    Examples
    --------
    >>> job = Job(2, ppn=4, partition="big", nodelist=NodeList(["n1", "n2"]))
    >>> pbs_options(job, "torque")
    ['-q big', '-l nodes=n1:ppn=4+n2:ppn=4']
    >>> pbs_options(Job(2, ppn=4, placement_set="tier0"), "pbs")
    ['-l select=2:mpiprocs=4', '-l place=scatter:excl:group=tier0']
    """
    for name in ("constraint", "reservation"):
        if getattr(job, name) is not None:
            raise UsageError(f"a PBS header cannot say --{name}", "use --format sbatch")
    queue = [f"-q {_quote_word(job.partition)}"] if job.partition else []
    if job.placement_set and batch in ("torque", "alps"):
        raise UsageError(f"{batch} has no placement sets", "leave --placement-set out")
    if job.select and batch in ("torque", "alps"):
        raise UsageError(f"{batch} selects no vnodes", "leave --select out")
    if batch in ("torque", "alps"):
        ppn = f":ppn={job.ppn}" if job.ppn else ""
        return [*queue, "-l nodes=" + "+".join(f"{name}{ppn}" for name in job.nodelist)]
    ranks = f":mpiprocs={job.ppn}" if job.ppn else ""
    if job.placement_set:
        select = f"-l select={job.count + job.slack}{ranks}"
        return [*queue, select, f"-l place=scatter:excl:group={_quote_word(job.placement_set)}"]
    hosts = [(f"host={name}", 1) for name in job.nodelist]
    chunks = "+".join(f"{n}:{having}{ranks}" for having, n in job.select or hosts)
    return [*queue, f"-l select={chunks}", "-l place=scatter:excl"]


@dataclass(frozen=True, slots=True)
class Emission:
    """A plan as an emitter gets it.

    Attributes
    ----------
    nodes : NodeList
        The chosen nodes in the planner's order.
    nids : tuple of int
        Their NIDs, in the same order.
    cnames : tuple of str
        Their cnames or xnames; empty strings where the machine has none.
    job : Job
        What the job asks its scheduler for.
    scheduler : str
        What the site runs: ``slurm``, ``pbs``, ``alps``; '' unknown.
    batch : str
        What takes job scripts there: the same, or ``torque`` or ``cobalt``
        before ALPS.
    remarks : tuple of str
        Lines for a header's comments.
    choosing : str
        Shell command that chooses among the nodes of the job that it runs in, up to
        its option ``--from``, for a job with slack.
    document : dict
        The JSON document.
    """

    nodes: NodeList
    nids: tuple[int, ...]
    cnames: tuple[str, ...]
    job: Job
    scheduler: str = ""
    batch: str = ""
    remarks: tuple[str, ...] = ()
    choosing: str = ""
    document: dict[str, Any] = field(default_factory=dict)

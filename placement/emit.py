# SPDX-License-Identifier: Apache-2.0
"""Output formats of a plan, one function each: node lists, job headers, launch commands.

An emitter gets an `Emission`, which holds all it may need as plain values,
and returns text. It asks no topology and runs no command.

Every header, and the question that ``--check`` puts to Slurm, is made from
one `HeaderJob`, so that what the nodes were chosen with is also what the job asks
for. A header for another scheduler than the site's own is refused: a job that
sits in no queue helps nobody.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from json import dumps
from typing import Any

from nidmap.placement.errors import UsageError
from nidmap.placement.nodelist import NodeList, nid_ranges

_NO_NODES = NodeList()
_NEEDS_NO_QUOTES = re.compile(r"[\w.,:;&|()@%+\[\]-]+", re.ASCII)

#: Batch systems: name in a message, and the format that suits them.
_BATCH = {
    "slurm": ("Slurm", "sbatch"),
    "pbs": ("PBS", "pbs"),
    "torque": ("Torque", "pbs"),
    "cobalt": ("Cobalt", "aprun"),
    "alps": ("ALPS (aprun)", "aprun"),
}

#: Batch systems that accept a format; formats not listed suit all.
_TAKERS = {
    **dict.fromkeys(("sbatch", "exclude"), ("slurm",)),
    "aprun": ("alps", "torque", "cobalt", "pbs"),
    "pbs": ("pbs", "torque", "alps"),
}

#: The variable in which a job finds its nodes, a list or a file; of others ``PBS_NODEFILE``.
JOB_NODES = {"slurm": "SLURM_JOB_NODELIST", "cobalt": "COBALT_PARTNAME", "pbs": "PBS_NODEFILE"}


class OwnNodes(str):
    """The nodes of the surrounding job, by name: usable by it whatever their states."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class HeaderJob:
    """What a job asks for."""

    count: int  # nodes that its program runs on
    ppn: int | None = None  # ranks per node; None means not said, which is one
    # partition, constraint, reservation: as of sbatch; a partition is also PBS's queue
    partition: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    nodelist: NodeList = _NO_NODES  # nodes that it must have: all of them where it is pinned
    exclude: NodeList = _NO_NODES  # nodes that it must not have
    segment: int = 0  # nodes of each segment, under topology/block; 0: no segments
    # Leaf switches that the nodes are on, where Slurm honours ``--switches``; 0: it does not
    leaves: int = 0
    # How long Slurm may wait for so few leaf switches, as sbatch takes a time; '': the nodes
    # are pinned, and the header names the other way
    wait: str = ""


def slurm_options(job: HeaderJob) -> list[str]:
    """Return the sbatch options for a job with exclusive nodes."""
    values = {
        "nodes": job.count,
        "ntasks-per-node": job.ppn,
        "partition": job.partition,
        "constraint": job.constraint,
        "reservation": job.reservation,
        "nodelist": job.nodelist.fold() or None,
        "switches": f"{job.leaves}@{job.wait}" if job.wait else None,
        "exclude": job.exclude.fold(sort=True) or None,
        "segment": job.segment or None,
    }
    texts = {name: str(value) for name, value in values.items() if value is not None}
    options = [f"--{name}={_quote_word(value)}" for name, value in texts.items()]
    return [*options, "--exclusive"]


def _quote_word(value: str) -> str:
    """Quote a word as a shell would, which sbatch understands, but only if necessary."""
    if not value or not value.isprintable():
        raise UsageError(f"{value!r} is not a name")
    return value if _NEEDS_NO_QUOTES.fullmatch(value) else shlex.quote(value)


def pbs_options(job: HeaderJob, batch: str) -> list[str]:
    """Return the qsub options for a job pinned to its nodes.

    `batch`: ``torque`` and ``alps`` take ``nodes``, PBS itself ``select``.
    """
    for name in ("constraint", "reservation"):
        if getattr(job, name) is not None:
            raise UsageError(f"a PBS header has no --{name}", "use --format sbatch")
    queue = [f"-q {_quote_word(job.partition)}"] if job.partition else []
    if batch in ("torque", "alps"):
        ppn = f":ppn={job.ppn}" if job.ppn else ""
        return [*queue, "-l nodes=" + "+".join(f"{name}{ppn}" for name in job.nodelist)]
    ranks = f":mpiprocs={job.ppn}" if job.ppn else ""
    chunks = "+".join(f"1:host={name}{ranks}" for name in job.nodelist)
    return [*queue, f"-l select={chunks}", "-l place=scatter:excl"]


@dataclass(frozen=True, slots=True)
class Emission:
    """A plan as passed to an emitter."""

    nodes: NodeList  # the chosen nodes in the planner's order
    nids: tuple[int, ...]  # their NIDs, in the same order
    cnames: tuple[str, ...]  # their cnames or xnames; empty strings where the machine has none
    job: HeaderJob  # what the job requests from its scheduler
    # The batch system: ``slurm``, ``pbs``, ``alps``, or ``torque`` or ``cobalt`` in front of ALPS;
    # '' unknown
    batch: str = ""
    remarks: tuple[str, ...] = ()  # lines for a header's comments
    document: dict[str, Any] = field(default_factory=dict)  # the JSON document


def nodelist(plan: Emission) -> str:
    """Return Slurm's folded list, in the plan's order: ``nid[00045,00012]``."""
    return plan.nodes.fold() + "\n"


def lines(plan: Emission) -> str:
    """Return one node name per line."""
    return "".join(f"{name}\n" for name in plan.nodes)


def nids(plan: Emission) -> str:
    """Return NIDs as ``aprun -L`` takes them, in the plan's order: ``45,12-14``."""
    return nid_ranges(plan.nids) + "\n"


def cnames(plan: Emission) -> str:
    """Return one cname or xname per line."""
    if not all(plan.cnames):
        raise UsageError("this machine's nodes have no cnames", "use --format nodelist or lines")
    return "".join(f"{name}\n" for name in plan.cnames)


def hostfile(plan: Emission) -> str:
    """Return each node once per rank, or once where no ``--ppn`` was given."""
    return "".join(f"{name}\n" * (plan.job.ppn or 1) for name in plan.nodes)


def json(plan: Emission) -> str:
    """Return the JSON document of the plan."""
    return dumps(plan.document, indent=2) + "\n"


def sbatch(plan: Emission) -> str:
    """Return an sbatch header that pins the job's nodes, or constrains them less strictly.

    ``exclude`` takes any free nodes, but none outside the plan's part of the machine.
    """
    header = [f"#SBATCH {option}" for option in slurm_options(plan.job)]
    leaves = plan.job.leaves
    below = "one leaf switch" if leaves == 1 else f"at most {leaves} leaf switches"
    bound = "no longer than max_switch_wait of slurm.conf (default: 5 minutes)"
    if plan.job.wait:
        header += [
            f"# --switches: any nodes on {below}, waiting as long as stated, and",
            f"# {bound}",
        ]
    elif leaves and plan.job.nodelist:
        header += [
            f"# Instead of --nodelist: any nodes on {below}, waiting as long as stated, and",
            f"# {bound}:",
            f"##SBATCH --switches={leaves}@5:00",
        ]
    return _batch_script(plan, header)


def aprun(plan: Emission) -> str:
    """Return an ``aprun`` command for these nodes, which ALPS orders itself."""
    nids, job = nid_ranges(sorted(plan.nids)), plan.job
    return f"aprun -L {nids} -n {job.count * (job.ppn or 1)} -N {job.ppn or 1} ./app\n"


def pbs(plan: Emission) -> str:
    """Return a PBS header (``select`` by host, or ``nodes`` where the site runs Torque)."""
    options = [f"#PBS {option}" for option in pbs_options(plan.job, plan.batch)]
    return _batch_script(plan, options)


def _batch_script(plan: Emission, header: list[str]) -> str:
    remarks = [f"# {line}" for line in plan.remarks]
    return "\n".join(["#!/bin/bash", *remarks, *header]) + "\n"


#: The formats by name.
FORMATS: dict[str, Callable[[Emission], str]] = {
    "nodelist": nodelist,
    "lines": lines,
    "nids": nids,
    "cnames": cnames,
    "hostfile": hostfile,
    "sbatch": sbatch,
    "aprun": aprun,
    "pbs": pbs,
    "json": json,
    "exclude": sbatch,
}


def formats_for(batch: str) -> list[str]:
    """Return the formats that suit a site's batch system; all where it is unknown."""
    return [name for name in FORMATS if not batch or batch in _TAKERS.get(name, (batch,))]


def emit(plan: Emission, name: str) -> str:
    """Return the plan as text in the format `name`."""
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}", f"choose from {', '.join(sorted(FORMATS))}")
    if name not in formats_for(plan.batch):
        runs, other = _BATCH.get(plan.batch, (plan.batch, "nodelist"))
        text = f"--format {name} does not fit: this site runs {runs}"
        raise UsageError(text, f"use --format {other}")
    return FORMATS[name](plan)

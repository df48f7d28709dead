# SPDX-License-Identifier: Apache-2.0
"""A request to launch: the job, and the order in which its ranks start."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nidmap.placement.errors import NidmapError, UsageError
from nidmap.placement.machine_option import machine_from, named_specs
from nidmap.placement.ui import say

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine
    from nidmap.placement.nodelist import NodeList
    from nidmap.placement.placement import Placement
    from nidmap.rankmap.predict import Job

#: The part of the patience that choosing an order may take: as long as ``nidmap order`` usually.
_SEARCH = 2 / 3

#: Seconds that a launcher or Slurm may take to answer before a launch: as asked where patience
#: ends, and where it has no limit.
_ANSWER, _ANSWER_UNHURRIED = 2.0, 10.0


@dataclass(frozen=True, slots=True)
class JobArguments:
    """Machine, nodes, ranks and their traffic, from a command's options."""

    specs: tuple[str, ...] = ()
    nodes: str | None = None
    ppn: str | None = None
    pattern: str | None = None
    bytes: float | None = None
    algorithm: str | None = None
    background: str | None = None

    def machine(self) -> Machine:
        """Load the machine."""
        return machine_from(self.specs)

    def named_pattern(self, needed: bool = True) -> str:
        """Return the pattern; '' if none is given and none needed."""
        if needed and not self.pattern:
            raise UsageError("no pattern given", "use --pattern P")
        return self.pattern or ""

    def sending(self) -> dict[str, Any]:
        """Return the other traffic options, as a `Job` takes them."""
        options = {name: getattr(self, name) for name in ("bytes", "algorithm", "background")}
        return {name: value for name, value in options.items() if value is not None}

    def job(self, needed: bool = True) -> Job:
        """Return the job with ranks per node as given."""
        from nidmap.rankmap import predict

        return predict.Job(self.named_pattern(needed), self.ppn, **self.sending())

    def placement(self, machine: Machine) -> Placement:
        """Return the job's ranks on a machine, with rank r on slot r.

        Where no nodes are named those of the job that this runs in, with the ranks that it was
        asked for with, else all free ones.
        """
        from nidmap.rankmap import place_ranks

        if self.nodes is None:
            nodes, counts = _allocated_nodes(machine)
            return place_ranks.place_ranks(machine, nodes, self.ppn or counts)
        return self._named(machine)

    def placement_anywhere(self) -> Placement:
        """Return the placement even if only node names are known, enough for some orders.

        So it is where no machine is named, and none is here to ask.
        """
        from nidmap.rankmap import place_ranks
        from nidmap.rankmap.launch import allocation

        try:
            machine = self.machine()
        except NidmapError:
            if named_specs(self.specs):
                raise
            if self.nodes is not None:
                placement = self._named(None)
            elif (job := allocation.job_here(os.environ)) is not None:
                counts = job.stated_counts()
                stated = None if counts is None else counts.tolist()
                placement = place_ranks.place_ranks(None, job.nodes, self.ppn or stated)
            else:
                raise
            say("nidmap: no machine is named: only the nodes' names are known")
            return placement
        return self.placement(machine)

    def _named(self, machine: Machine | None) -> Placement:
        from nidmap.placement.names import pasted
        from nidmap.rankmap import place_ranks

        text, source = pasted.read_list(self.nodes or "", "--nodes")
        return place_ranks.place_ranks(machine, text, self.ppn, source, repeats=source != "--nodes")


def _allocated_nodes(machine: Machine) -> tuple[NodeList | None, list[int] | None]:
    """Return nodes and ranks per node of the surrounding job; None if unknown."""
    from nidmap.rankmap.launch import allocation

    job = allocation.job_on(machine, os.environ)
    if job is None:
        return None, None
    say(f"nidmap: on {job.words}; override with --nodes")
    counts = job.stated_counts()
    return job.nodes, None if counts is None else counts.tolist()


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A call of ``nidmap run``, or the part of another command that launches."""

    command: tuple[str, ...]  # the launcher, its options, the program
    job: JobArguments  # machine, nodes, ranks and pattern
    strategy: str = "auto"
    # A file with the order, of the format that its name states; None means one is made
    order_file: str | None = None
    bind: bool = False  # arrange ranks inside the nodes too, and bind them to their cores
    launcher_order: str | None = None  # ``sorted`` or ``given``; None: not stated
    # ``cray-mpich``, ``other``, or ``auto``: by the machine's network, else by the modules loaded
    mpi: str = "auto"
    # Directory for the order file; None means one of its own, until the job has ended
    order_dir: str | None = None
    # As ``--mapping-limit`` gives it; None means the library's own
    mapping_limit: str | None = None
    patience: float = 0.0  # seconds of processor time that planning may take; 0: no limit
    dry_run: bool = False  # True if nothing will be started or queried

    @property
    def search_seconds(self) -> float:
        """Limit on processor seconds for choosing an order."""
        return _SEARCH * self.patience or math.inf

    @property
    def answer_seconds(self) -> float:
        """Seconds within which a launcher or Slurm must have answered a query."""
        return min(self.patience, _ANSWER) or _ANSWER_UNHURRIED

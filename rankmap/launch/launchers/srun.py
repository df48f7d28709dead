# SPDX-License-Identifier: Apache-2.0
"""srun of native Slurm, in two variants: with a host file, and for Cray MPICH.

A host file names the node of every rank and srun keeps it. It is given as
``--nodelist=FILE --distribution=arbitrary``: SLURM_HOSTFILE does the same, but
srun passes it on to the ranks, where an srun of theirs would take it for its
own. Cray MPICH's PMI does not take that distribution:
there the node list goes in as it is (Slurm sorts it), ranks in blocks, and
the library itself renumbers them from MPICH_RANK_ORDER.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nidmap.placement.errors import LaunchError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.slurm.command import slurm_settings
from nidmap.placement.support.child import Deadline
from nidmap.rankmap.emit.process_mapping import PMI2
from nidmap.rankmap.emit.process_mapping import Mapping as ProcessMapping
from nidmap.rankmap.launch import CRAY, LAUNCH, Launch, Launcher
from nidmap.rankmap.launch.allocation import unclear_counts
from nidmap.rankmap.launch.launchers import CrayOrder
from nidmap.rankmap.launch.options import OptionTable

if TYPE_CHECKING:
    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Ints

__all__ = ["CraySrun", "HostfileSrun"]

#: Remark if neither the command nor Slurm names a PMI.
_ALONE = (
    "srun has no --mpi and Slurm's MpiDefault is none: ranks of an MPI that needs PMI start as"
    " singletons (srun --mpi=list shows the choices)"
)


class Srun(Launcher):
    """What both variants share."""

    options = OptionTable(
        ranks="ntasks= n=",
        nodes="nodes= N=",
        per_node="ntasks-per-node=",
        cores="cpus-per-task= c=",
        list="nodelist= w=",
        distribution="distribution= m=",
        overcommit="overcommit O",
        bind="cpu-bind=",
        mpi="mpi=",
        several="multi-prog het-group=",
        # With these, srun 22.05.8 fails or puts ranks elsewhere; it obeys other options as well.
        placing="exclude= x= relative= r= nodefile= F= jobid= no-allocate Z ntasks-per-gpu=",
        passed="prolog= epilog= task-prolog= task-epilog= exact exclusive label overlap pty"
        " unbuffered preserve-env E spread-job use-min-nodes",
        letters="AbBcCdDeFGiJLMmNnopqrStTWwx",
    )
    binder = "srun"
    rank_variables = ("SLURM_PROCID",)
    host = "${SLURMD_NODENAME:-$(uname -n)}"

    def check(self) -> None:
        """Refuse a distribution specified by the user."""
        super().check()
        kind = self.parsed.values.get("distribution") or self.env.get("SLURM_DISTRIBUTION", "")
        if kind.partition(":")[0].partition(",")[0].lower() not in ("", "block", "*"):
            raise LaunchError(f"srun --distribution={kind} places ranks itself")

    def ranks(self, nodes: int) -> int:
        """Return srun's number of ranks: ``-n``, the job's, or ranks per node times nodes, else 1.

        With ``-c`` alone it is what the CPUs have room for, which is not guessed.
        """
        known = self.parsed.number("ranks") or (self.allocation and self.allocation.ranks)
        if known:
            return known
        if not self.per_node() and "cores" in self.parsed.values:
            return super().ranks(nodes)
        return (self.per_node() or 1) * (self.parsed.number("nodes") or nodes)

    def per_node(self) -> int | None:
        """Return the command's ranks per node, else the job's."""
        return super().per_node() or (self.allocation.per_node if self.allocation else None)

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return srun's own counts; a single number for all nodes only if it divides evenly."""
        wanted = self.parsed.number("nodes") or nodes
        if wanted > nodes:
            raise LaunchError(f"{wanted} nodes requested, but the job has {nodes}")
        if ranks in (wanted, (self.per_node() or 0) * wanted):
            even = np.full(wanted, ranks // wanted)
            return np.append(even, np.zeros(nodes - wanted, dtype=np.int64))
        if self.allocation is None or nodes != len(self.allocation.nodes):
            raise unclear_counts(ranks, nodes)
        return self.allocation.counts(ranks, self.cores(), wanted)

    def asked_remarks(self, seconds: float) -> list[str]:
        """Return remarks that depend on Slurm's settings: without PMI, ranks are singletons."""
        if "mpi" in self.parsed.values or self.env.get("SLURM_MPI_TYPE"):
            return []
        try:
            default = slurm_settings(Deadline(seconds)).get("MpiDefault", "")
        except LaunchError:
            return []
        return [_ALONE] if default == "none" else []


class HostfileSrun(Srun):
    """srun with a host file, line r being rank r's node; ranks find it through `LAUNCH`."""

    samples = (
        "srun -p debug -t 10 -A me -J tool -n 4 -N2 -c 2 --mpi pmi2 -l ./app",
        "srun -vvn4 --overlap --mem 0 ./app",
        "srun --task-prolog ./app --spread-job -E -n 4 ./app",
    )
    format = "slurm"
    limit = PMI2
    variables: ClassVar[dict[str, str]] = {LAUNCH: "{path}"}
    placing_variables = ("SLURM_HOSTFILE",)

    def check(self) -> None:
        """Refuse options that would override a host file."""
        super().check()
        if "list" in self.parsed.values:
            raise LaunchError("srun -w overrides a host file", "give run --nodes instead")

    def mapping(self) -> ProcessMapping | None:
        """Return PMI-2's mapping, Slurm's default; PMIx has no limit."""
        mpi = self.parsed.values.get("mpi") or self.env.get("SLURM_MPI_TYPE", "")
        return None if mpi.startswith("pmix") else self.limit

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the same command with the host file."""
        return self.command([], path, list=path, distribution="arbitrary", ranks=order.ranks)


class CraySrun(CrayOrder, Srun):
    """srun for Cray MPICH: sorted nodes, ranks in blocks, MPICH_RANK_ORDER."""

    samples = ("srun --exclusive --exact --ntasks=4 --cpu-bind=cores -K1 -ul ./app",)
    library = CRAY

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command with the node list, block distribution and reordering variables."""
        placement = order.sorted()
        if placement.ppn is None and not np.array_equal(
            placement.counts, self.counts(order.ranks, len(placement.counts))
        ):
            raise LaunchError(f"srun's block distribution does not yield {placement.words()}")
        return self.command(
            [],
            path,
            list=NodeList(placement.names.tolist()).fold(),
            nodes=len(placement.counts),
            ranks=order.ranks,
            distribution=self.parsed.values.get("distribution", "block"),
            **({"per_node": placement.ppn} if placement.ppn else {}),
        )

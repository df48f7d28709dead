"""srun of native Slurm, in two ways: with a host file, and for Cray MPICH.

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

from placement.errors import LaunchError, printable
from rankmap.emit.process_mapping import PMI2
from rankmap.emit.process_mapping import Mapping as ProcessMapping
from rankmap.launch import CRAY, LAUNCH, ORDER_OF_CRAY, OTHER, Launch, Launcher, launcher
from rankmap.launch.allocation import unclear_counts
from rankmap.launch.options import OptionTable, Parsed

if TYPE_CHECKING:
    from placement.support.array_types import Ints
    from rankmap.order import Order

__all__ = ["CraySrun", "HostfileSrun"]

#: What is said where neither the command nor Slurm names a PMI.
_ALONE = (
    "srun has no --mpi and Slurm's MpiDefault is none: ranks of an MPI that needs PMI start as"
    " singletons (srun --mpi=list says which there are)"
)


#: Options that start several programs, or parts of a job with nodes of their own.
_SEVERAL = {
    "multi-prog": "other programs on other ranks, of which one pattern says nothing",
    "het-group": "parts of a heterogeneous job, which have their own nodes",
}


class Srun(Launcher):
    """What both ways have in common."""

    binder = "srun"
    options = OptionTable(
        valued="n=ntasks ntasks N=nodes nodes w=nodelist nodelist c=cpus-per-task cpus-per-task"
        " ntasks-per-node m=distribution distribution cpu-bind mpi het-group"
        " prolog epilog task-prolog task-epilog",
        flags="O=overcommit overcommit multi-prog exact exclusive label overlap pty unbuffered",
        refused="x=exclude exclude jobid Z=no-allocate no-allocate F=nodefile nodefile"
        " ntasks-per-core ntasks-per-gpu ntasks-per-socket E=preserve-env preserve-env"
        " r=relative relative spread-job use-min-nodes",
        letters="AbBcCdDeFGiJLMmNnopqrStTWwx",
    )
    ranks_option, cores_option, list_option = "ntasks", "cpus-per-task", "nodelist"
    per_node_options = ("ntasks-per-node",)
    rank_variables = ("SLURM_PROCID",)
    host = "${SLURMD_NODENAME:-$(uname -n)}"

    def check(self) -> None:
        """Refuse several programs, and a distribution of the user's own."""
        super().check()
        for option, why in _SEVERAL.items():
            if option in self.step.values:
                raise LaunchError(f"--{option} starts {why}")
        asked = self.step.values.get("distribution") or self.env.get("SLURM_DISTRIBUTION", "")
        if asked.partition(":")[0].partition(",")[0].lower() not in ("", "block", "*"):
            raise LaunchError(f"ranks are to be distributed by '{printable(asked, 30)}' already")

    def ranks(self, nodes: int) -> int:
        """Return srun's number of ranks: ``-n``, the job's, or so many on each node, else one.

        With ``-c`` alone it is what the CPUs have room for, which is not guessed.
        """
        known = self.step.number("ntasks") or (self.allocation and self.allocation.ranks)
        if known:
            return known
        if not self.per_node() and "cpus-per-task" in self.step.values:
            return super().ranks(nodes)
        return (self.per_node() or 1) * (self.step.number("nodes") or nodes)

    def per_node(self) -> int | None:
        """Return that of the command, else the job's."""
        return super().per_node() or (self.allocation.per_node if self.allocation else None)

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return srun's own counts; so many a node hold where they divide exactly."""
        wanted = self.step.number("nodes") or nodes
        if wanted > nodes:
            raise LaunchError(f"srun asks for {wanted} nodes, there are {nodes}")
        if ranks in (wanted, (self.per_node() or 0) * wanted):
            each = np.full(wanted, ranks // wanted)
            return np.append(each, np.zeros(nodes - wanted, dtype=np.int64))
        if self.allocation is None or nodes != len(self.allocation.nodes):
            raise unclear_counts(ranks, nodes)
        return self.allocation.counts(ranks, self.cores(), wanted)

    def asked_remarks(self, seconds: float) -> list[str]:
        """Return what Slurm's settings make of the command: without PMI ranks are alone."""
        if "mpi" in self.step.values or self.env.get("SLURM_MPI_TYPE"):
            return []
        from placement.slurm.command import Deadline, configuration

        try:
            default = configuration(Deadline(seconds)).get("MpiDefault", "")
        except LaunchError:
            return []
        return [_ALONE] if default == "none" else []

    def unbound(self) -> str:
        """Return what leaves ranks unbound: ``--cpu-bind=none``, or nothing said of it."""
        asked = self.step.values.get("cpu-bind") or self.env.get("SLURM_CPU_BIND", "")
        kinds = [part.strip().lower() for part in asked.split(",")]
        if "none" in kinds or "no" in kinds:
            return f"--cpu-bind={printable(asked, 30)}"
        loose = set(kinds) <= {"", "v", "verbose", "q", "quiet"}
        return "no --cpu-bind" if loose else ""

    def refuse_other_size(self, order: Order) -> None:
        """Refuse a ``-N`` that is not the number of nodes ordered."""
        asked, nodes = self.step.number("nodes"), len(order.on.counts)
        if asked not in (None, nodes):
            raise LaunchError(f"srun asks for {asked} nodes, the order is for {nodes}")


@launcher(("srun", OTHER))
class HostfileSrun(Srun):
    """srun with a host file: line r is the node of rank r."""

    form = "slurm"
    on_nodes = False
    variables: ClassVar[dict[str, str]] = {LAUNCH: "{path}"}

    def check(self) -> None:
        """Refuse what would win over a host file: another one, and ``-w``."""
        if self.env.get("SLURM_HOSTFILE"):
            raise LaunchError("SLURM_HOSTFILE is set already")
        super().check()
        if "nodelist" in self.step.values:
            raise LaunchError("srun -w wins over a host file", "name the nodes by --nodes instead")

    def mapping(self) -> ProcessMapping | None:
        """Return PMI-2's, which is what Slurm's PMI is where none is named; PMIx has no limit."""
        asked = self.step.values.get("mpi") or self.env.get("SLURM_MPI_TYPE", "")
        return None if asked.startswith("pmix") else PMI2

    def launch(self, order: Order, path: str) -> Launch:
        """Return the same command with the host file; ranks find its name in `LAUNCH`."""
        self.refuse_other_size(order)
        bare = self.step.without("distribution")
        words = _missing(bare, nodelist=path, distribution="arbitrary", ntasks=len(order))
        return self.insert(bare, words, path)


@launcher(("srun", CRAY))
class CraySrun(Srun):
    """srun for Cray MPICH: sorted nodes, ranks in blocks, MPICH_RANK_ORDER."""

    form = "mpich"
    variables = ORDER_OF_CRAY

    def launch(self, order: Order, path: str) -> Launch:
        """Return the command with the node list, block distribution and reordering variables."""
        from placement.nodelist import NodeList

        on = order.on.sorted()
        self.refuse_other_size(order)
        if on.ppn is None:
            own = self.counts(len(order), len(on.counts))
            if not np.array_equal(on.counts, own):
                raise LaunchError(f"srun in blocks does not give {on.words()} as wanted")
        words = _missing(
            self.step,
            nodelist=NodeList(on.names.tolist()).fold(),
            nodes=len(on.counts),
            ntasks=len(order),
            distribution="block",
        )
        if on.ppn and "ntasks-per-node" not in self.step.values:
            words.append(f"--ntasks-per-node={on.ppn}")
        return self.insert(self.step, words, path)


def _missing(step: Parsed, **wanted: str | int) -> list[str]:
    """Return the options that the command does not have yet."""
    return [f"--{name}={value}" for name, value in wanted.items() if name not in step.values]

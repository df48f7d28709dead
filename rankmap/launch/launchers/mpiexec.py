# SPDX-License-Identifier: Apache-2.0
"""Launchers called mpiexec or mpirun: what they share, and each of them.

They take their nodes from a host file or from the batch system, fill them in
order, and know nothing of srun's way of dealing ranks out.

*Hydra* (MPICH) gives a rank to each slot of its host file, line by line, so that lines ``A``,
``B``, ``A``, ``B`` are ranks on A, B, A, B, and begins again where there are more ranks than slots;
``-ppn`` is the slots of each line (checked on MPICH 5.0.2). The host file keeps an order of ranks
only without a batch system's help:
under ``-launcher slurm`` its lines are matched to the nodes as Slurm sorts
them, and a host that is listed twice is two nodes to MPICH. So the host file has
each node once, sorted, and ``-rankmap`` says which node each rank is on; that
holds under every launcher (checked on MPICH 5.0.2, and inside Slurm 22.05.8).
MPICH 4 takes ``-rankmap`` and does nothing with it (4.1.3, 4.3.2): there only
orders that keep each node's ranks together are launched, and not by Slurm's
proxies. *Intel MPI* descends from it and has no ``-rankmap``; its machine file
keeps the order, except when it is bootstrapped by Slurm.

*Open MPI*: ``--map-by seq:OVERSUBSCRIBE:file=F`` (5) and ``--hostfile F --mca rmaps seq`` (4)
keep the order of the lines and leave binding to mpirun; a plain host file does not
keep it: the node of mpirun comes first. (Without OVERSUBSCRIBE, 5 starts nothing
and exits with 0 where a node has fewer cores than ranks; with it ranks are bound to no
core, so it is left out where the cores are known to suffice.) A rankfile says the core
too: ranks are bound by it. Checked on Open MPI 5.0.11 and 4.1.8, and inside Slurm 22.05.8.

*PALS* of HPE (PBS on Aurora, Polaris and their like) takes the nodes as the job lists
them, unless told otherwise, and passes the environment on; Cray MPICH renumbers the ranks
from its order file. That list is asked from it, not assumed. What is known of its options
is from its published help; it could not be run here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from nidmap.placement.errors import LaunchError
from nidmap.placement.support.reading import load
from nidmap.rankmap.emit.process_mapping import HYDRA, HYDRA_FILE, mapping_vector
from nidmap.rankmap.emit.process_mapping import Mapping as ProcessMapping
from nidmap.rankmap.launch import CRAY, INTEL, MPICH, OPENMPI, Launch, Launcher
from nidmap.rankmap.launch.launchers import CrayOrder
from nidmap.rankmap.launch.options import OptionTable
from nidmap.rankmap.launch.queries import run_query

if TYPE_CHECKING:
    from nidmap.placement.placement import Placement
    from nidmap.placement.support.array_types import Ints
    from nidmap.rankmap.launch.allocation import Allocation
    from nidmap.rankmap.pattern import Pattern

__all__ = ["Hydra", "IntelHydra", "OpenMpi", "Pals"]

#: The first MPICH whose mpiexec obeys ``-rankmap``.
MAPS = 5

#: Open MPI's mappings that fill node after node, as we do; ``PE=`` says the cores of a rank.
_MAPPING = re.compile(
    r"(?:(?:slot|core|hwthread)?|ppr:([0-9]{1,6}):node)(?::PE=([0-9]{1,4}))?",
    re.IGNORECASE | re.ASCII,
)


#: Options of a host in Hydra's host file besides its slots.
_HOST_OPTION = re.compile(r"(?<!\S)(?:ifhn|user|username|binding)=\S+")


class _HydraFamily(Launcher):
    """What MPICH's and Intel's launchers share."""

    options = OptionTable(
        ranks="n= np=",
        per_node="ppn= perhost=",
        hosts="hosts= host=",
        files="f= hostfile= machinefile=",
        starter="launcher= bootstrap=",
        bind="bind-to= binding=",
        placing="rankmap order-nodes configfile skip-launch-node nolocal rr hosts-group",
        passed="launcher-exec= bootstrap-exec= wdir= l genvall genvnone genv== env==",
    )
    keeps_list = True
    #: Roles of options that an order file replaces.
    replaced: ClassVar[dict[str, None]] = dict.fromkeys(("hosts", "files", "per_node"))
    host_variables: ClassVar[tuple[str, ...]] = ("HYDRA_HOST_FILE",)
    starter_variables: ClassVar[tuple[str, ...]] = ("HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP")

    def find_allocation(self) -> Allocation | None:
        """Return the hosts, unless their file says more than an order file can."""
        path = self.parsed.values.get("files") or self.first_set(self.host_variables)[1]
        if path and "hosts" not in self.parsed.values:
            for number, line in enumerate(load(path).split("\n"), 1):
                lost = _HOST_OPTION.search(line.partition("#")[0])
                if lost:
                    what = f"{path}:{number}: '{lost[0]}' would be lost: an order names only hosts"
                    raise LaunchError(what, "name the interface with -iface")
        return super().find_allocation()

    def is_started_by_slurm(self) -> bool:
        """Tell whether Slurm starts Hydra's proxies: if requested, or inside its jobs."""
        starter = self.parsed.values.get("starter") or self.first_set(self.starter_variables)[1]
        return starter == "slurm" or bool(self.env.get("SLURM_JOB_ID") and not starter)


class Hydra(_HydraFamily):
    """MPICH's mpiexec with ``-rankmap``."""

    samples = (
        "mpiexec -genv A B -n 4 -l -bind-to core -prepend-rank ./app",
        "mpiexec.mpich -launcher ssh -launcher-exec ./app -n 4 ./app",
    )
    library = MPICH
    format = binder = "hydra"
    limit = HYDRA

    def check(self) -> None:
        """Refuse MPICH 4 if Slurm starts its proxies, which then lose the order."""
        super().check()
        if self.major < MAPS and self.is_started_by_slurm():
            raise LaunchError(
                "MPICH 4 and older lose the order of their host file inside Slurm", "use srun"
            )

    def own_nodes(self, ranks: int) -> Ints | None:
        """Return each rank's node by the host file's lines, which are repeated cyclically."""
        job, per_node = self.allocation, self.per_node()
        turns = None if job is None else job.turns
        if turns is None and job is not None and job.tasks is not None:
            turns = np.repeat(np.arange(len(job.nodes)), job.tasks)
        if turns is None:
            return None
        if per_node:  # of each line; lines of one host in a row are one
            turns = turns[np.flatnonzero(np.append(True, turns[1:] != turns[:-1]))].repeat(per_node)
        return np.resize(turns, ranks)

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return the number of ranks per node by the host file's lines."""
        own_nodes, job = self.own_nodes(ranks), self.allocation
        if own_nodes is None or job is None or len(job.nodes) != nodes:
            return super().counts(ranks, nodes)
        return np.bincount(own_nodes, minlength=nodes)

    def mapping(self) -> ProcessMapping:
        """Return the mapping of ``-rankmap``, which Hydra rewrites in its own syntax."""
        return self.limit if self.major >= MAPS else HYDRA_FILE

    def text(self, order: Placement) -> str:
        """Return nodes with their ranks in Slurm's order, or in rank order for MPICH 4."""
        by_node = order.sorted().with_order(None)
        return super().text(order if self.major < MAPS else by_node)

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command with ``-f`` and ``-rankmap``."""
        words = ["-f", path]
        if self.major >= MAPS:
            words += ["-rankmap", mapping_vector(order.sorted().node_of_rank)]
        elif np.count_nonzero(np.diff(order.node_of_rank)) >= len(order.counts):
            raise LaunchError(
                "under MPICH 4 and older only consecutive ranks of a node share memory",
                "use srun, or a strategy that keeps each node's ranks together",
            )
        return self.command(words, path, **self.replaced, ranks=order.ranks)


class IntelHydra(_HydraFamily):
    """Intel MPI's mpiexec with ``-machinefile``, overriding the batch system's placement."""

    samples = ("mpiexec.hydra -bootstrap ssh -np 4 -genvall -s all ./app",)
    library = format = INTEL
    limit = None
    host_variables = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE")
    starter_variables = ("I_MPI_HYDRA_BOOTSTRAP", "HYDRA_BOOTSTRAP")
    variables: ClassVar[dict[str, str]] = {"I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off"}

    def check(self) -> None:
        """Refuse Slurm's bootstrap, which loses any order."""
        super().check()
        if self.is_started_by_slurm():
            raise LaunchError(
                "Intel MPI loses the order of its machine file if Slurm starts its proxies",
                "use srun, or -bootstrap ssh",
            )

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command with ``-machinefile``."""
        return self.command(["-machinefile", path], path, **self.replaced, ranks=order.ranks)


class OpenMpi(Launcher):
    """mpirun with a sequential file or a rankfile."""

    samples = (
        "mpirun --mca btl self,tcp -x PATH -np 4 --tag-output ./app",
        "orterun --bind-to core --report-bindings -c 4 -wdir /tmp ./app",
    )
    library = binder = OPENMPI
    format = "seq"
    limit = None  # PMIx tells ranks their nodes
    keeps_list = True
    options = OptionTable(
        ranks="n= np= c=",
        per_node="N= npernode=",
        hosts="host= H=",
        files="hostfile= machinefile=",
        map="map-by=",
        bind="bind-to= bind-to-none",
        oversubscribe="oversubscribe",
        placing="rank-by rankfile rf nolocal bynode bycore npersocket ppr cpu-set cpu-list dvm"
        " add-host add-hostfile cpus-per-proc cpus-per-rank default-hostfile",
        passed="x= wdir= report-bindings tag-output"
        " mca== omca== gmca== prtemca== pmixmca== gpmixmca==",
    )
    placing_variables = ("OMPI_MCA_rmaps", "PRTE_MCA_rmaps")
    rank_variables = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")

    def check(self) -> None:
        """Refuse mappings other than node after node."""
        super().check()
        self.mapped()

    def mapped(self) -> tuple[int, int]:
        """Return ranks per node (0: not given) and cores per rank, from ``--map-by``."""
        match = _MAPPING.fullmatch(self.parsed.values.get("map", ""))
        if not match:
            raise LaunchError(f"mpirun {self.parsed.words('map')} places ranks itself")
        return int(match[1] or 0), max(1, int(match[2] or 1))

    def per_node(self) -> int | None:
        """Return the ranks per node from ``-N`` or ``--map-by ppr:N:node``."""
        return self.mapped()[0] or super().per_node()

    def cores(self) -> int:
        """Return the value of ``PE=`` in ``--map-by``."""
        return self.mapped()[1]

    def ranks(self, nodes: int) -> int:
        """Return the number of ranks, which without ``-n`` is the number of slots."""
        slots = self.allocation.tasks if self.allocation else None
        if slots is None or "ranks" in self.parsed.values or self.per_node():
            return super().ranks(nodes)
        return int(slots.sum())

    def text(self, order: Placement) -> str:
        """Return a rankfile if ranks are to be bound, else a sequential file."""
        return self.bound.text(OPENMPI) if self.bound else super().text(order)

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command with its order file instead of its own mapping."""
        job = self.allocation
        if job and job.tasks is not None and "oversubscribe" not in self.parsed.values:
            job.refuse_more(order, job.tasks, "ranks")  # mpirun would not start
        gone = ["map", "per_node"]
        if self.bound:
            rankfile = ["--map-by", f"rankfile:file={path}"]
            words = ["--rankfile", path] if self.major == 4 else rankfile
        elif self.major == 4:
            gone += ["hosts", "files"]
            words = ["--hostfile", path, "--mca", "rmaps", "seq"]
        else:
            cores = f":PE={self.cores()}" if self.cores() > 1 else ""
            crowded = "" if self._fits_cores(order) else ":OVERSUBSCRIBE"
            words = ["--map-by", f"seq{cores}{crowded}:file={path}"]
        if job is None and "--hostfile" not in words:
            # mpirun wants all of them allocated
            pairs = zip(order.names.tolist(), order.counts.tolist(), strict=True)
            words += ["--host", ",".join(f"{name}:{count}" for name, count in pairs)]
        return self.command(words, path, **dict.fromkeys(gone), ranks=order.ranks)

    def _fits_cores(self, order: Placement) -> bool:
        """Tell whether the nodes are known to have enough cores for their ranks."""
        if order.machine is None or order.rows is None:
            return False
        return bool((order.machine.cores[order.rows] >= order.counts * self.cores()).all())


class Pals(CrayOrder):
    """PALS's mpiexec with MPICH_RANK_ORDER."""

    samples = ("mpiexec -n 4 --ppn 2 -d 2 --cpu-bind depth --env A=B --label ./app",)
    library = CRAY
    binder = "pals"
    options = OptionTable(
        ranks="n= np=",
        per_node="ppn=",
        cores="depth= d=",
        hosts="hosts=",
        files="hostfile=",
        bind="cpu-bind=",
        bind_gpus="gpu-bind=",
        placing="configfile include-tasks exclude-tasks soft arch",
        passed="env= genv= wdir= label l envall envnone",
    )
    keeps_list = asks_order = True
    rank_variables = ("PALS_RANKID", "PMI_RANK")

    def bind(self, order: Placement, pattern: Pattern) -> Placement:
        """Arrange and bind as usual, without ``--gpu-bind`` if this PALS does not know it."""
        bound_order = super().bind(order, pattern)
        try:
            knows = "--gpu-bind" in run_query([self.parsed.argv[0], "--help"], self.env)
        except LaunchError:
            knows = False
        if self.bound and not knows:
            self.bound = self.bound._replace(options=self.bound.options[:1])
        return bound_order

    def launch(self, order: Placement, path: str) -> Launch:
        """Return the command with ``-n``, ``--ppn`` and the reordering variables."""
        job = self.allocation
        whole = job is not None and len(job.nodes) == len(order.counts)
        hosts = {} if whole else {"files": None, "hosts": ",".join(order.names.tolist())}
        return self.command([], path, ranks=order.ranks, per_node=self.even_ranks(order), **hosts)

"""What the launchers called mpiexec and mpirun have in common, and each of them.

They take their nodes from a host file or from the batch system, fill them in
order, and know nothing of srun's way of dealing ranks out.

*Hydra* (MPICH): its host file keeps an order of ranks only without a batch system's help:
under ``-launcher slurm`` its lines are matched to the nodes as Slurm sorts
them, and a host that stands twice is two nodes to MPICH. So the host file has
each node once, sorted, and ``-rankmap`` says which node each rank is on; that
holds under every launcher (checked on MPICH 5.0.2, and inside Slurm 22.05.8).
MPICH 4 takes ``-rankmap`` and does nothing with it (4.1.3, 4.3.2): there only
orders that keep each node's ranks together are launched, and not by Slurm's
proxies. *Intel MPI* descends from it and has no ``-rankmap``; its machine file
keeps the order, except when it is bootstrapped by Slurm.

*Open MPI*: ``--map-by seq:OVERSUBSCRIBE:file=F`` (5) and ``--hostfile F --mca rmaps seq`` (4)
keep the order of the lines and leave binding to mpirun; a plain host file does not
keep it: the node of mpirun comes first. (Without OVERSUBSCRIBE, 5 starts nothing
and exits with 0 where a node has fewer cores than ranks.) A rankfile says the core
too, and mpirun does not start where a node lacks one, so it is used only where the
machine's cores are known. Checked on Open MPI 5.0.11 and 4.1.8, and inside Slurm 22.05.8.

*PALS* of HPE (PBS on Aurora, Polaris and their like) takes the nodes as the job lists
them, unless told otherwise, and passes the environment on; Cray MPICH renumbers the ranks
from its order file. That list is asked from it, not assumed. What is known of its options
is from its published help; it could not be run here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from placement.errors import LaunchError, printable
from placement.support.array_types import Ints
from rankmap.emit.process_mapping import HYDRA, vector
from rankmap.emit.process_mapping import Mapping as ProcessMapping
from rankmap.launch import (
    CRAY,
    INTEL,
    MPICH,
    OPENMPI,
    ORDER_OF_CRAY,
    Launch,
    Launcher,
    even_ranks,
    launcher,
)
from rankmap.launch.allocation import (
    Allocation,
    allocation,
    fill_nodes,
    from_hosts,
    read_file,
    unclear_counts,
)
from rankmap.launch.options import OptionTable, Parsed
from rankmap.launch.queries import run_query
from rankmap.order import Order
from rankmap.slots import Slots

__all__ = ["Hydra", "IntelHydra", "Mpiexec", "OpenMpi", "Pals"]

#: One argument of a command may not be longer (Linux: 128 KiB).
_LONGEST = 120_000

#: The first MPICH whose mpiexec obeys ``-rankmap``.
MAPS = 5

#: Open MPI's mappings that fill node after node, as we do; ``PE=`` says the cores of a rank.
_MAPPING = re.compile(
    r"(?:(?:slot|core|hwthread)?|ppr:([0-9]{1,6}):node)(?::PE=([0-9]{1,4}))?",
    re.IGNORECASE | re.ASCII,
)


class Mpiexec(Launcher):
    """An mpiexec: nodes from ``-f``, ``-hosts`` or the batch system, filled in order.

    Attributes
    ----------
    host_options, file_options : tuple of str
        Options that list hosts, and that name a file of them.
    host_variables : tuple of str
        Variables that name a file of hosts.
    """

    host_options: ClassVar[tuple[str, ...]] = ()
    file_options: ClassVar[tuple[str, ...]] = ()
    host_variables: ClassVar[tuple[str, ...]] = ()
    keeps_list = True

    def find_allocation(self) -> Allocation | None:
        """Return the hosts that the command lists, else those of the batch system."""
        values, env = self.step.values, self.env
        for name in self.host_options:
            if name in values:
                return from_hosts(values[name].replace(",", "\n"), f"-{name}")
        paths = [values[name] for name in self.file_options if name in values]
        paths += [env[name] for name in self.host_variables if env.get(name)]
        return from_hosts(read_file(paths[0]), paths[0]) if paths else allocation(env)

    def counts(self, ranks: int, nodes: int) -> Ints:
        """Return the counts of nodes that are filled in order, each up to its slots."""
        per_node, job = self.per_node(), self.allocation
        if per_node:
            return fill_nodes(ranks, np.full(nodes, per_node))
        if job is None or job.tasks is None or len(job.tasks) != nodes:
            raise unclear_counts(ranks, nodes)
        return fill_nodes(ranks, job.tasks)

    def count(self, order: Order) -> list[str]:
        """Return the words that say how many ranks start, unless the command has them."""
        return [] if self.ranks_option in self.step.values else ["-n", str(len(order))]


class _HydraFamily(Mpiexec):
    """What MPICH's and Intel's have in common."""

    options = OptionTable(
        valued="n np=n f hosts host hostfile machinefile ppn perhost launcher launcher-exec"
        " bootstrap=launcher bootstrap-exec bind-to binding wdir",
        flags="l genvall genvnone",
        pairs="genv env",
        refused="rankmap order-nodes configfile skip-launch-node nolocal rr arch hosts-group",
    )
    ranks_option = "n"
    host_options = ("hosts", "host")
    file_options = ("f", "hostfile", "machinefile")
    per_node_options = ("ppn", "perhost")
    host_variables: ClassVar[tuple[str, ...]] = ("HYDRA_HOST_FILE",)
    starter_variables: ClassVar[tuple[str, ...]] = ("HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP")
    on_nodes = False

    def is_started_by_slurm(self) -> bool:
        """Tell whether Slurm starts Hydra's proxies: as told, else inside of its jobs."""
        known = (self.env.get(name) for name in self.starter_variables)
        way = self.step.values.get("launcher") or next(filter(None, known), "")
        return way == "slurm" or bool(self.env.get("SLURM_JOB_ID") and not way)

    def insert(self, step: Parsed, words: Sequence[str], path: str) -> Launch:
        """Return the launch without what the order file now says."""
        gone = self.host_options + self.file_options + self.per_node_options
        return super().insert(step.without(*gone), words, path)


@launcher(("mpiexec", MPICH))
class Hydra(_HydraFamily):
    """MPICH's mpiexec with ``-rankmap``."""

    form = "hydra"
    binder = "hydra"
    binding_options = ("bind-to", "binding")

    def check(self) -> None:
        """Refuse MPICH 4 where Slurm starts its proxies: it loses the order."""
        super().check()
        if self.major < MAPS and self.is_started_by_slurm():
            raise LaunchError(
                "MPICH before 5 loses the order of its host file inside Slurm", "use srun"
            )

    def unbound(self) -> str:
        """Return what leaves ranks unbound: nothing binds them by itself."""
        values = self.step.values
        asked = values.get("bind-to") or values.get("binding") or self.env.get("HYDRA_BINDING", "")
        if not asked:
            return "no -bind-to"
        return "-bind-to none" if asked == "none" else ""

    def mapping(self) -> ProcessMapping | None:
        """Return that of ``-rankmap``, which Hydra writes anew in words of its own."""
        return HYDRA if self.major >= MAPS else super().mapping()

    def text(self, order: Order) -> str:
        """Return each node once, with its ranks, as Slurm sorts them; in rank order for MPICH 4."""
        by_node = Order(np.arange(len(order)), order.on.sorted())
        return super().text(order if self.major < MAPS else by_node)

    def launch(self, order: Order, path: str) -> Launch:
        """Return the command with ``-f`` and ``-rankmap``."""
        words = ["-f", path]
        if self.major >= MAPS:
            words += ["-rankmap", rankmap(order.sorted())]
        elif np.count_nonzero(np.diff(order.node)) >= len(order.on.counts):
            raise LaunchError(
                "MPICH before 5 keeps the shared memory of consecutive ranks only",
                "use srun, or a strategy that keeps each node's ranks together",
            )
        return self.insert(self.step, [*words, *self.count(order)], path)


@launcher(("mpiexec", INTEL))
class IntelHydra(_HydraFamily):
    """Intel MPI's mpiexec with ``-machinefile``."""

    form = "intel"
    host_variables = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE")
    starter_variables = ("I_MPI_HYDRA_BOOTSTRAP", "HYDRA_BOOTSTRAP")
    variables: ClassVar[dict[str, str]] = {"I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off"}

    def check(self) -> None:
        """Refuse Slurm's bootstrap, which loses every order."""
        super().check()
        if self.is_started_by_slurm():
            raise LaunchError(
                "Intel MPI loses the order of its machine file where Slurm starts its proxies",
                "use srun, or -bootstrap ssh",
            )

    def unbound(self) -> str:
        """Return what leaves ranks unbound: ``I_MPI_PIN`` off."""
        asked = self.env.get("I_MPI_PIN", "").lower()
        return f"I_MPI_PIN={asked}" if asked in ("0", "no", "off", "disable") else ""

    def launch(self, order: Order, path: str) -> Launch:
        """Return the command with ``-machinefile``, the batch system's placement put aside."""
        return self.insert(self.step, ["-machinefile", path, *self.count(order)], path)


@launcher(("mpiexec", OPENMPI))
class OpenMpi(Mpiexec):
    """mpirun with a sequential file or a rankfile."""

    form = "seq"
    binder = "openmpi"
    binding_options = ("bind-to", "map-by", "bind-to-none")
    options = OptionTable(
        valued="n np=n c=n N npernode host H=host hostfile machinefile map-by bind-to x wdir",
        flags="oversubscribe bind-to-none report-bindings tag-output",
        pairs="mca omca gmca prtemca pmixmca gpmixmca",
        refused="rank-by rankfile rf nolocal bynode bycore npersocket ppr cpu-set cpu-list dvm"
        " add-host add-hostfile cpus-per-proc cpus-per-rank default-hostfile",
    )
    ranks_option = "n"
    host_options = ("host",)
    file_options = ("hostfile", "machinefile")
    per_node_options = ("N", "npernode")
    on_nodes = False
    rank_variables = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")

    def check(self) -> None:
        """Refuse a mapping that is not node after node."""
        super().check()
        self.cores()
        for name, value in self.env.items():
            if name.startswith(("OMPI_MCA_rmaps", "PRTE_MCA_rmaps")) and value:
                raise LaunchError(f"{printable(name, 60)} is set already")

    def per_node(self) -> int | None:
        """Return ``-N`` or that of ``--map-by ppr:N:node``."""
        mapping = _MAPPING.fullmatch(self.step.values.get("map-by", ""))
        return int(mapping[1]) if mapping and mapping[1] else super().per_node()

    def ranks(self, nodes: int) -> int:
        """Return the number of ranks; without ``-n`` it is that of the slots."""
        known, job = "n" in self.step.values or self.per_node(), self.allocation
        if not known and job is not None and job.tasks is not None:
            return int(job.tasks.sum())
        return super().ranks(nodes)

    def cores(self) -> int:
        """Return ``PE=`` of ``--map-by``; refuse a mapping that is not node after node."""
        asked = self.step.values.get("map-by", "")
        mapping = _MAPPING.fullmatch(asked)
        if not mapping:
            raise LaunchError(f"ranks are to be mapped by '{printable(asked, 30)}' already")
        return max(1, int(mapping[2] or 1))

    def unbound(self) -> str:
        """Return what leaves ranks unbound: ``--bind-to none``; mpirun binds by itself."""
        names = ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy")
        values, env = self.step.values, self.env
        asked = values.get("bind-to") or next((env[n] for n in names if env.get(n)), "")
        loose = asked.partition(":")[0] == "none" or "bind-to-none" in values
        return "--bind-to none" if loose else ""

    def text(self, order: Order) -> str:
        """Return a rankfile where the nodes' cores are known to do, else a sequential file."""
        from rankmap.emit import openmpi, slurm

        if self.bound:
            return openmpi.write(order, places=self.bound.cores())
        if self._binds(order):
            return openmpi.write(order, self.cores())
        return slurm.write(order)

    def launch(self, order: Order, path: str) -> Launch:
        """Return the command with its order file in place of its own mapping."""
        if "oversubscribe" not in self.step.values:
            _refuse_too_many(order.on, self.allocation)
        bare = self.step.without("map-by", *self.per_node_options)
        if self.bound or self._binds(order):
            words = (
                ["--rankfile", path] if self.major == 4 else ["--map-by", f"rankfile:file={path}"]
            )
        elif self.major == 4:
            bare = bare.without(*self.host_options, *self.file_options)
            words = ["--hostfile", path, "--mca", "rmaps", "seq"]
        else:
            cores = f":PE={self.cores()}" if self.cores() > 1 else ""
            words = ["--map-by", f"seq{cores}:OVERSUBSCRIBE:file={path}"]
        if self.allocation is None and "--hostfile" not in words:
            words += ["--host", _host_option(order)]
        return self.insert(bare, [*words, *self.count(order)], path)

    def _binds(self, order: Order) -> bool:
        """Tell whether the machine's cores are known and enough, and binding is left to us."""
        on = order.on
        if on.machine is None or on.rows is None or {"bind-to", "map-by"} & set(self.step.values):
            return False
        return bool((on.machine.cores[on.rows] >= on.counts * self.cores()).all())


@launcher(("mpiexec", CRAY))
class Pals(Mpiexec):
    """PALS's mpiexec with MPICH_RANK_ORDER."""

    form = "mpich"
    binder = "pals"
    binding_options = ("cpu-bind", "gpu-bind")
    options = OptionTable(
        valued="np n=np ppn hosts hostfile depth d=depth cpu-bind gpu-bind env genv wdir",
        flags="label l=label envall envnone",
        refused="configfile include-tasks exclude-tasks soft arch",
    )
    ranks_option, cores_option = "np", "depth"
    asks_order = True
    host_options = ("hosts",)
    file_options = ("hostfile",)
    per_node_options = ("ppn",)
    rank_variables = ("PALS_RANKID", "PMI_RANK")
    variables = ORDER_OF_CRAY
    loose = ("cpu-bind", "none", "--cpu-bind none")

    def known_options(self, options: tuple[str, ...]) -> tuple[str, ...]:
        """Leave ``--gpu-bind`` out where this PALS does not know it."""
        try:
            knows = "--gpu-bind" in run_query([self.step.argv[0], "--help"], self.env)
        except LaunchError:
            knows = False
        return options if knows else options[:1]

    def launch(self, order: Order, path: str) -> Launch:
        """Return the command with ``-n``, ``--ppn`` and the reordering variables."""
        per_node, step, job = even_ranks(order), self.step, self.allocation
        words = self.count(order)
        if self.per_node() != per_node:
            step = step.without("ppn")
            words += ["--ppn", str(per_node)]
        if job is None or len(job.nodes) != len(order.on.counts):
            step = step.without("hosts", "hostfile")
            words += ["--hosts", ",".join(order.on.names.tolist())]
        return self.insert(step, words, path)


def rankmap(order: Order) -> str:
    """Return Hydra's ``-rankmap``: the vector of blocks, the node being its line.

    Raises
    ------
    LaunchError
        Longer than one argument of a command can be.

    Examples
    --------
    >>> from rankmap.slots import Slots
    >>> on = Slots(np.array(["nid1", "nid2"]), np.array([2, 2]))
    >>> from rankmap.order import Order
    >>> rankmap(Order(np.array([0, 2, 3, 1]), on))
    '(vector,(0,1,1),(1,1,2),(0,1,1))'
    """
    text = vector(order.node)
    if len(text) > _LONGEST:
        raise LaunchError(
            f"-rankmap of {printable(str(len(order)))} ranks is longer than a command can be",
            "launch with srun or Open MPI, which read the order from a file",
        )
    return text


def _host_option(order: Order) -> str:
    """Return the nodes as ``--host`` takes them: mpirun wants all of them allocated."""
    pairs = zip(order.on.names.tolist(), order.on.counts.tolist(), strict=True)
    text = ",".join(f"{name}:{count}" for name, count in pairs)
    if len(text) > 120_000:
        raise LaunchError("too many nodes for --host", "give mpirun a --hostfile of them")
    return text


def _refuse_too_many(slots: Slots, allocation: Allocation | None) -> None:
    """Refuse more ranks on a node than its slots in the allocation: mpirun would not start."""
    if allocation is None or allocation.tasks is None:
        return
    room = dict(zip(allocation.nodes, allocation.tasks.tolist(), strict=True))
    for name, count in zip(slots.names.tolist(), slots.counts.tolist(), strict=True):
        if count > room.get(name, 0):
            raise LaunchError(f"{count} ranks on {name}, which has {room.get(name, 0)} slots")

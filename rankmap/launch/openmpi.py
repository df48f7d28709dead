"""mpirun of Open MPI: a sequential file, or a rankfile where the cores are known.

``--map-by seq:OVERSUBSCRIBE:file=F`` (5) and ``--hostfile F --mca rmaps seq`` (4)
keep the order of the lines and leave binding to mpirun; a plain host file does not
keep it: the node of mpirun comes first. (Without OVERSUBSCRIBE, 5 starts nothing
and exits with 0 where a node has fewer cores than ranks.) A rankfile says the core
too, and mpirun does not start where a node lacks one, so it is used only where the
machine's cores are known. Checked on Open MPI 5.0.11 and 4.1.8, and inside Slurm 22.05.8.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placement.errors import LaunchError, printable
from rankmap.launch import OPENMPI, Launch, launcher
from rankmap.launch.mpiexec import Mpiexec, room_for
from rankmap.launch.options import OptionTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import Parsed
    from rankmap.order import Order

__all__ = ["OpenMpi"]

#: Mappings that fill node after node, as we do; ``PE=`` says the cores of a rank.
_PLAIN = re.compile(r"(?:slot|core|hwthread)?(?::PE=([0-9]{1,4}))?", re.IGNORECASE | re.ASCII)
_PER_NODE = re.compile(r"ppr:([0-9]{1,6}):node(?::PE=([0-9]{1,4}))?", re.IGNORECASE | re.ASCII)


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

    def read(self, argv: Sequence[str], env: Mapping[str, str]) -> Parsed:
        """Return what the command says; see `Launcher.read`."""
        step = super().read(argv, env)
        _mapping(step)
        for name, value in env.items():
            if name.startswith(("OMPI_MCA_rmaps", "PRTE_MCA_rmaps")) and value:
                raise LaunchError(f"{printable(name, 60)} is set already")
        return step

    def per_node(self, step: Parsed) -> int | None:
        """Return ``-N`` or that of ``--map-by ppr:N:node``."""
        per_node = _PER_NODE.fullmatch(step.values.get("map-by", ""))
        return int(per_node[1]) if per_node else super().per_node(step)

    def ranks(self, step: Parsed, nodes: int, allocation: Allocation | None) -> int:
        """Return the number of ranks; without ``-n`` it is that of the slots."""
        known = "n" in step.values or self.per_node(step)
        if not known and allocation is not None and allocation.tasks is not None:
            return int(allocation.tasks.sum())
        return super().ranks(step, nodes, allocation)

    def cores(self, step: Parsed) -> int:
        """Return ``PE=`` of ``--map-by``."""
        return _mapping(step)

    def unbound(self, step: Parsed, env: Mapping[str, str]) -> str:
        """Return what leaves ranks unbound: ``--bind-to none``; mpirun binds by itself."""
        names = ("OMPI_MCA_hwloc_base_binding_policy", "PRTE_MCA_hwloc_default_binding_policy")
        asked = step.values.get("bind-to") or next((env[n] for n in names if env.get(n)), "")
        loose = asked.partition(":")[0] == "none" or "bind-to-none" in step.values
        return "--bind-to none" if loose else ""

    def text(self, order: Order, launcher_order: str, step: Parsed) -> str:
        """Return a rankfile where the nodes' cores are known to do, else a sequential file."""
        from rankmap.emit import openmpi, slurm

        if self.bound:
            return openmpi.write(order, places=self.bound.cores())
        if self._binds(order, step):
            return openmpi.write(order, self.cores(step))
        return slurm.write(order)

    def launch(
        self, step: Parsed, order: Order, path: str, allocation: Allocation | None = None
    ) -> Launch:
        """Return the command with its order file in place of its own mapping."""
        if "oversubscribe" not in step.values:
            room_for(order.on, allocation)
        bare = step.without("map-by", *self.per_node_options)
        if self.bound or self._binds(order, step):
            old = self.version.startswith("4.")
            words = ["--rankfile", path] if old else ["--map-by", f"rankfile:file={path}"]
        elif self.version.startswith("4."):
            bare = bare.without(*self.host_options, *self.file_options)
            words = ["--hostfile", path, "--mca", "rmaps", "seq"]
        else:
            cores = f":PE={self.cores(step)}" if self.cores(step) > 1 else ""
            words = ["--map-by", f"seq{cores}:OVERSUBSCRIBE:file={path}"]
        if allocation is None and "--hostfile" not in words:
            words += ["--host", _listed(order)]
        if "n" not in step.values:
            words += ["-n", str(len(order))]
        return self.insert(bare, words)

    def _binds(self, order: Order, step: Parsed) -> bool:
        """Tell whether the machine's cores are known and enough, and binding is left to us."""
        on = order.on
        if on.machine is None or on.rows is None or {"bind-to", "map-by"} & set(step.values):
            return False
        return bool((on.machine.cores[on.rows] >= on.counts * self.cores(step)).all())


def _mapping(step: Parsed) -> int:
    """Return the cores of a rank; refuse a mapping that is not node after node."""
    asked = step.values.get("map-by", "")
    match = _PLAIN.fullmatch(asked)
    cores = match[1] if match else None
    if not match:
        match = _PER_NODE.fullmatch(asked)
        cores = match[2] if match else None
    if not match:
        raise LaunchError(f"ranks are to be mapped by '{printable(asked, 30)}' already")
    return max(1, int(cores or 1))


def _listed(order: Order) -> str:
    """Return the nodes as ``--host`` takes them: mpirun wants all of them allocated."""
    pairs = zip(order.on.names.tolist(), order.on.counts.tolist(), strict=True)
    text = ",".join(f"{name}:{count}" for name, count in pairs)
    if len(text) > 120_000:
        raise LaunchError("too many nodes for --host", "give mpirun a --hostfile of them")
    return text

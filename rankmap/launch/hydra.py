"""mpiexec of MPICH (Hydra) and of Intel MPI, which descends from it.

Hydra's host file keeps an order of ranks only without a batch system's help:
under ``-launcher slurm`` its lines are matched to the nodes as Slurm sorts
them, and a host that stands twice is two nodes to MPICH. So the host file has
each node once, sorted, and ``-rankmap`` says which node each rank is on; that
holds under every launcher (checked on MPICH 5.0.2, and inside Slurm 22.05.8).
MPICH 4 takes ``-rankmap`` and does nothing with it (4.1.3, 4.3.2): there only
orders that keep each node's ranks together are launched, and not by Slurm's
proxies. Intel MPI has no ``-rankmap``; its machine file keeps the order,
except when it is bootstrapped by Slurm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from placement.errors import LaunchError, printable
from rankmap.emit.process_mapping import HYDRA, vector
from rankmap.launch import INTEL, MPICH, Launch, launcher
from rankmap.launch.mpiexec import Mpiexec
from rankmap.launch.options import OptionTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rankmap.emit.process_mapping import Mapping as ProcessMapping
    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import Parsed
    from rankmap.order import Order

__all__ = ["Hydra", "IntelHydra"]

#: One argument of a command may not be longer (Linux: 128 KiB).
_LONGEST = 120_000


class _Hydra(Mpiexec):
    """What MPICH's and Intel's have in common."""

    options = OptionTable(
        valued="n np=n f hosts host hostfile machinefile ppn perhost launcher launcher-exec"
        " bootstrap bootstrap-exec bind-to binding wdir",
        flags="l genvall genvnone",
        pairs="genv env",
        refused="rankmap order-nodes configfile skip-launch-node nolocal rr arch hosts-group",
    )
    ranks_option = "n"
    host_options = ("hosts", "host")
    file_options = ("f", "hostfile", "machinefile")
    per_node_options = ("ppn", "perhost")
    host_variables: ClassVar[tuple[str, ...]] = ("HYDRA_HOST_FILE",)
    on_nodes = False

    def _bare(self, step: Parsed) -> Parsed:
        """Return the command without what the order file now says."""
        return step.without(*self.host_options, *self.file_options, *self.per_node_options)


@launcher(("mpiexec", MPICH))
class Hydra(_Hydra):
    """MPICH's mpiexec with ``-rankmap``."""

    form = "hydra"
    binder = "hydra"
    binding_options = ("bind-to", "binding")

    def read(self, argv: Sequence[str], env: Mapping[str, str]) -> Parsed:
        """Return what the command says; MPICH 4 loses the order where Slurm starts its proxies."""
        step = super().read(argv, env)
        way = step.values.get("launcher") or step.values.get("bootstrap")
        way = way or env.get("HYDRA_LAUNCHER") or env.get("HYDRA_BOOTSTRAP") or ""
        if not self._maps() and (way == "slurm" or (env.get("SLURM_JOB_ID") and not way)):
            raise LaunchError(
                "MPICH before 5 loses the order of its host file inside Slurm", "use srun"
            )
        return step

    def _maps(self) -> bool:
        """Tell whether this mpiexec obeys ``-rankmap``: MPICH 5 does."""
        major = self.version.partition(".")[0]
        return major.isdecimal() and int(major) >= 5

    def unbound(self, step: Parsed, env: Mapping[str, str]) -> str:
        """Return what leaves ranks unbound: nothing binds them by itself."""
        asked = step.values.get("bind-to") or step.values.get("binding")
        asked = asked or env.get("HYDRA_BINDING", "")
        if not asked:
            return "no -bind-to"
        return "-bind-to none" if asked == "none" else ""

    def mapping(self, step: Parsed, env: Mapping[str, str]) -> ProcessMapping | None:
        """Return that of ``-rankmap``, which Hydra writes anew in words of its own."""
        return HYDRA if self._maps() else super().mapping(step, env)

    def text(self, order: Order, launcher_order: str, step: Parsed) -> str:
        """Return each node once, with its ranks, as Slurm sorts them; in rank order for MPICH 4."""
        if not self._maps():
            return super().text(order, launcher_order, step)
        on = order.on.sorted()
        pairs = zip(on.names.tolist(), on.counts.tolist(), strict=True)
        return "".join(f"{name}:{count}\n" for name, count in pairs)

    def launch(
        self, step: Parsed, order: Order, path: str, allocation: Allocation | None = None
    ) -> Launch:
        """Return the command with ``-f`` and ``-rankmap``."""
        bare = self._bare(step)
        words = ["-f", path]
        if self._maps():
            words += ["-rankmap", rankmap(order.sorted())]
        elif np.count_nonzero(np.diff(order.node)) >= len(order.on.counts):
            raise LaunchError(
                "MPICH before 5 keeps the shared memory of consecutive ranks only",
                "use srun, or a strategy that keeps each node's ranks together",
            )
        if "n" not in step.values:
            words += ["-n", str(len(order))]
        return self.insert(bare, words)


@launcher(("mpiexec", INTEL))
class IntelHydra(_Hydra):
    """Intel MPI's mpiexec with ``-machinefile``."""

    form = "intel"
    host_variables = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE")

    def read(self, argv: Sequence[str], env: Mapping[str, str]) -> Parsed:
        """Return what the command says; Slurm's bootstrap loses every order."""
        step = super().read(argv, env)
        way = step.values.get("bootstrap") or step.values.get("launcher")
        way = way or env.get("I_MPI_HYDRA_BOOTSTRAP") or env.get("HYDRA_BOOTSTRAP") or ""
        if way == "slurm" or (env.get("SLURM_JOB_ID") and not way):
            raise LaunchError(
                "Intel MPI loses the order of its machine file where Slurm starts its proxies",
                "use srun, or -bootstrap ssh",
            )
        return step

    def unbound(self, step: Parsed, env: Mapping[str, str]) -> str:
        """Return what leaves ranks unbound: ``I_MPI_PIN`` off."""
        asked = env.get("I_MPI_PIN", "").lower()
        return f"I_MPI_PIN={asked}" if asked in ("0", "no", "off", "disable") else ""

    def launch(
        self, step: Parsed, order: Order, path: str, allocation: Allocation | None = None
    ) -> Launch:
        """Return the command with ``-machinefile``, the batch system's placement put aside."""
        bare = self._bare(step)
        words = ["-machinefile", path]
        if "n" not in step.values:
            words += ["-n", str(len(order))]
        return self.insert(bare, words, {"I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off"})


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

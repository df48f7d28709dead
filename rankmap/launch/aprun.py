"""aprun of ALPS (Cray XC and XE under Torque, Moab or Cobalt)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placement.errors import LaunchError
from rankmap.launch import CRAY, OTHER, Launch, Launcher, launcher
from rankmap.launch.cray import refuse_own_order, reordering
from rankmap.launch.options import OptionTable, refuse_options, refuse_several_programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import Parsed
    from rankmap.order import Order
    from rankmap.slots import Slots

__all__ = ["Aprun"]

OPTIONS = OptionTable(
    valued="cc cp sl sn mpmd_env",
    flags="ss strict",
    letters={
        "n": "pes", "N": "pes-per-node", "d": "depth", "L": "node-list", "l": "node-list-file",
        "R": "relaunch", "S": "pes-per-numa-node", "B": "batch-args",
    },
    valued_letters="adDeEFjLlmnNpPrRStz",
)  # fmt: skip

#: Options under which the ranks' places are not ours to say.
_UNCLEAR = ("batch-args", "node-list-file", "relaunch", "pes-per-numa-node", "sl", "sn")


@launcher(("aprun", CRAY), ("aprun", OTHER))
class Aprun(Launcher):
    """aprun with MPICH_RANK_ORDER.

    ``-L`` gives candidates: ALPS lays the ranks out over them in a node order
    of its own, which only asking it tells.
    """

    form = "mpich"
    ranks_option = "pes"
    asks_order = True
    rank_variables = ("ALPS_APP_PE", "PMI_RANK")

    def read(self, argv: Sequence[str], env: Mapping[str, str]) -> Parsed:
        """Return what the aprun command says; see `Launcher.read`."""
        refuse_own_order(env)
        step = OPTIONS.parse(argv)
        refuse_several_programs(argv)
        refuse_options(step, _UNCLEAR)
        return step

    def nodes(self, step: Parsed) -> str:
        """Return the NIDs of ``-L``."""
        return step.values.get("node-list", "")

    def counts(
        self, step: Parsed, ranks: int, nodes: int, allocation: Allocation | None
    ) -> NDArray[np.int64]:
        """Return aprun's own counts: ``-N`` ranks on each node, the last one taking the rest."""
        per_node = step.number("pes-per-node")
        if per_node is None or -(-ranks // per_node) > nodes:
            raise LaunchError(
                f"how many of {ranks} ranks each of {nodes} nodes gets is not clear",
                "say it with --ppn",
            )
        return _filled(ranks, nodes, per_node)

    def cores(self, step: Parsed) -> int:
        """Return ``-d``."""
        return step.number("depth") or 1

    def unbound(self, step: Parsed, env: Mapping[str, str]) -> str:
        """Return ``-cc none`` where it is given; aprun binds by itself."""
        return "-cc none" if step.values.get("cc") == "none" else ""

    def launch(
        self, step: Parsed, order: Order, path: str, allocation: Allocation | None = None
    ) -> Launch:
        """Return the command with ``-n``, ``-N``, ``-L`` and the reordering variables.

        `order` is on the nodes as ALPS takes them.
        """
        counts = order.on.counts
        per_node = int(counts[0])
        if not np.array_equal(counts, _filled(len(order), len(counts), per_node)):
            raise LaunchError(f"aprun -N does not give {order.on.words()}")
        nids = _nids(order.on)
        if step.values.get("node-list") not in (None, nids):
            step = step.without("node-list")
        wanted = {
            "-n": ("pes", str(len(order))),
            "-N": ("pes-per-node", str(per_node)),
            "-L": ("node-list", nids),
        }
        words = [
            w for flag, (name, v) in wanted.items() if name not in step.values for w in (flag, v)
        ]
        return Launch((step.argv[0], *words, *step.argv[1:]), reordering(path))


def _filled(ranks: int, nodes: int, per_node: int) -> NDArray[np.int64]:
    """Return `per_node` ranks on each node, the rest on the last."""
    return np.clip(ranks - per_node * np.arange(nodes), 0, per_node)


def _nids(on: Slots) -> str:
    """Return the nodes as ``aprun -L`` takes them: ``12-15,40``."""
    from placement.emit.lists import nid_ranges
    from placement.names.numbered import name_numbers

    if on.machine is not None and on.rows is not None:
        nids = on.machine.nid[on.rows]
    else:
        nids = name_numbers(on.names)[1]
    if (nids < 0).any():
        raise LaunchError(f"node {on.names[int(np.argmin(nids))]} has no NID that aprun could take")
    return nid_ranges(tuple(np.sort(nids).tolist()))

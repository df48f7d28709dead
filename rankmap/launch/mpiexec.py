"""What the launchers called mpiexec and mpirun have in common.

They take their nodes from a host file or from the batch system, fill them in
order, and know nothing of srun's way of dealing ranks out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from placement.errors import LaunchError
from rankmap.launch import Launcher, unclear_counts
from rankmap.launch.allocation import allocation, filled, from_hosts, read_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import Parsed
    from rankmap.slots import Slots

__all__ = ["Mpiexec", "room_for"]


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

    def allocation(self, step: Parsed, env: Mapping[str, str]) -> Allocation | None:
        """Return the hosts that the command lists, else those of the batch system."""
        for name in self.host_options:
            if name in step.values:
                return from_hosts(step.values[name].replace(",", "\n"), f"-{name}")
        paths = [step.values[name] for name in self.file_options if name in step.values]
        paths += [env[name] for name in self.host_variables if env.get(name)]
        if paths:
            return from_hosts(read_file(paths[0]), paths[0])
        return allocation(env)

    def counts(
        self, step: Parsed, ranks: int, nodes: int, allocation: Allocation | None
    ) -> NDArray[np.int64]:
        """Return the counts of nodes that are filled in order, each up to its slots."""
        per_node = self.per_node(step)
        if per_node:
            return filled(ranks, np.full(nodes, per_node))
        if allocation is None or allocation.tasks is None or len(allocation.tasks) != nodes:
            raise unclear_counts(ranks, nodes)
        return filled(ranks, allocation.tasks)


def room_for(slots: Slots, allocation: Allocation | None) -> None:
    """Refuse more ranks on a node than its slots in the allocation: mpirun would not start."""
    if allocation is None or allocation.tasks is None:
        return
    room = dict(zip(allocation.nodes, allocation.tasks.tolist(), strict=True))
    for name, count in zip(slots.names.tolist(), slots.counts.tolist(), strict=True):
        if count > room.get(name, 0):
            raise LaunchError(f"{count} ranks on {name}, which has {room.get(name, 0)} slots")

"""What the launchers called mpiexec and mpirun have in common.

They take their nodes from a host file or from the batch system, fill them in
order, and know nothing of srun's way of dealing ranks out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from placement.errors import LaunchError
from rankmap.launch import Launcher
from rankmap.launch.allocation import allocation, filled, from_hosts, read_file
from rankmap.launch.options import refuse_options, refuse_several_programs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from rankmap.launch.allocation import Allocation
    from rankmap.launch.options import OptionTable, Parsed
    from rankmap.slots import Slots

__all__ = ["Mpiexec", "room_for"]


class Mpiexec(Launcher):
    """An mpiexec: nodes from ``-f``, ``-hosts`` or the batch system, filled in order.

    Attributes
    ----------
    options : OptionTable
    host_options, file_options : tuple of str
        Options that list hosts, and that name a file of them.
    per_node_options : tuple of str
        Options that say how many ranks a node gets.
    unclear : tuple of str
        Options under which the ranks' places are not ours to say.
    host_variables : tuple of str
        Variables that name a file of hosts.
    """

    options: ClassVar[OptionTable]
    host_options: ClassVar[tuple[str, ...]] = ()
    file_options: ClassVar[tuple[str, ...]] = ()
    per_node_options: ClassVar[tuple[str, ...]] = ()
    unclear: ClassVar[tuple[str, ...]] = ()
    host_variables: ClassVar[tuple[str, ...]] = ()
    keeps_list = True

    def read(self, argv: Sequence[str], env: Mapping[str, str]) -> Parsed:
        """Return what the command says; see `Launcher.read`."""
        step = self.options.parse(argv)
        refuse_several_programs(argv)
        refuse_options(step, self.unclear)
        return step

    def nodes(self, step: Parsed) -> str:
        """Return '': hosts of the command are its allocation, see `allocation`."""
        return ""

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

    def ranks(self, step: Parsed, nodes: int, allocation: Allocation | None) -> int:
        """Return the number of ranks: ``-n``, or so many on each node."""
        per_node = self.per_node(step)
        if per_node and self.ranks_option not in step.values:
            return per_node * nodes
        return super().ranks(step, nodes, allocation)

    def per_node(self, step: Parsed) -> int | None:
        """Return how many ranks the command wants on each node, None where it does not say."""
        given = [step.number(name) for name in self.per_node_options if name in step.values]
        return given[0] if given else None

    def counts(
        self, step: Parsed, ranks: int, nodes: int, allocation: Allocation | None
    ) -> NDArray[np.int64]:
        """Return the counts of nodes that are filled in order, each up to its slots."""
        per_node = self.per_node(step)
        if per_node:
            return filled(ranks, np.full(nodes, per_node))
        if allocation is None or allocation.tasks is None or len(allocation.tasks) != nodes:
            raise LaunchError(
                f"how many of {ranks} ranks each of {nodes} nodes gets is not clear",
                "say it with --ppn",
            )
        return filled(ranks, allocation.tasks)


def room_for(slots: Slots, allocation: Allocation | None) -> None:
    """Refuse more ranks on a node than its slots in the allocation: mpirun would not start."""
    if allocation is None or allocation.tasks is None:
        return
    room = dict(zip(allocation.nodes, allocation.tasks.tolist(), strict=True))
    for name, count in zip(slots.names.tolist(), slots.counts.tolist(), strict=True):
        if count > room.get(name, 0):
            raise LaunchError(f"{count} ranks on {name}, which has {room.get(name, 0)} slots")

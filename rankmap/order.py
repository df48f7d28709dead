"""Orders: which slot each rank of a job gets.

An `Order` is always valid: every rank has one slot of its own and no slot is
left over, or there is an error instead of an order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.errors import PlanError
from placement.support.array_types import Ints, Strs
from rankmap.permutation import broken, inverse
from rankmap.placement import Placement
from rankmap.slots import Slots

__all__ = ["Order"]


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The slot of every rank of a job (n ranks on n slots).

    Attributes
    ----------
    slots : int64 (n,)
        Entry r is the slot of rank r; read-only.
    on : Slots
        The nodes and slots it stands on.
    strategy : str
        What made it; '' for one read from a file.
    pattern : str
        The pattern it was made for; '' where none is known.
    remark : str
        What its maker has to say of it, in one line; ''.
    optimised : dict or None
        What it was chosen by, with its figures and the default's, as JSON
        takes it; None where nothing was compared.

    Examples
    --------
    >>> from rankmap.slots import Slots
    >>> on = Slots(np.array(["nid00003", "nid00009"]), np.array([2, 1]))
    >>> one = Order(np.array([2, 0, 1]), on)
    >>> one.ranks.tolist(), one.hosts.tolist()
    ([1, 2, 0], ['nid00009', 'nid00003', 'nid00003'])
    """

    slots: Ints
    on: Slots
    strategy: str = ""
    pattern: str = ""
    remark: str = ""
    optimised: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Keep a private copy, and refuse what is not an order.

        Raises
        ------
        PlanError
            Two ranks on one slot, a slot without a rank, a slot that is not there.
        """
        slots = np.array(self.slots, dtype=np.int64)
        slots.flags.writeable = False
        object.__setattr__(self, "slots", slots)
        if len(slots) != len(self.on):
            raise PlanError(f"{len(slots)} ranks for {len(self.on)} slots")
        fault = broken(slots, len(slots))
        if fault and fault.kind == "outside":
            raise PlanError(f"rank {fault.at} has slot {fault.value} of 0 to {len(slots) - 1}")
        if fault:
            raise PlanError(f"slot {fault.value} is given to ranks {fault.first} and {fault.at}")

    @classmethod
    def of_nodes(cls, node: Ints, on: Slots) -> Order:
        """Return the order with rank r on node ``node[r]``, ascending within each node.

        Examples
        --------
        >>> from rankmap.slots import Slots
        >>> on = Slots(np.array(["nid00003", "nid00009"]), np.array([2, 2]))
        >>> Order.of_nodes(np.array([1, 0, 1, 0]), on).slots.tolist()
        [2, 0, 3, 1]
        """
        return cls(inverse(np.argsort(node, kind="stable")), on)

    def __len__(self) -> int:
        return len(self.slots)

    def __eq__(self, other: object) -> bool:
        """Two orders are equal when each rank has the same slot of the same nodes."""
        if not isinstance(other, Order):
            return NotImplemented
        return np.array_equal(self.slots, other.slots) and self.on == other.on

    __hash__ = None  # type: ignore[assignment]  # columns are arrays: equal orders must not be keys

    @property
    def ranks(self) -> Ints:
        """Entry s is the rank at slot s: the inverse of `slots`, int64 (n,)."""
        return inverse(self.slots)

    @property
    def node(self) -> Ints:
        """Node of each rank as an index of ``on.names``, int64 (n,)."""
        return self.on.node[self.slots]

    @property
    def hosts(self) -> Strs:
        """Host name of each rank, str (n,)."""
        return self.on.names[self.node]

    @property
    def placement(self) -> Placement:
        """Where its ranks are on the machine that its slots belong to."""
        return Placement.on_slots(self.on, self.slots)

    def onto(self, positions: Ints) -> Order:
        """Return the same placement with its nodes, and so its slots, numbered anew.

        Parameters
        ----------
        positions : int64 (k,)
            A permutation of the nodes: the node at ``positions[0]`` comes first.
        """
        on = self.on.take(positions)
        node = self.node
        slots = on.first[inverse(positions)[node]] + self.slots - self.on.first[node]
        return Order(slots, on, self.strategy, self.pattern)

    def sorted(self) -> Order:
        """Return the same placement on the node list as native Slurm sorts it."""
        return self.onto(self.on.sorting())

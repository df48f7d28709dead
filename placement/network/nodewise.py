"""What a demand sends node by node, kept where a routing looks at the destination's index.

On fat trees d-mod-k chooses ports by the node that a message goes to, and so
does ``single`` among switches that make no tree: bytes between switches do not
tell enough. `Demand` keeps these parts on such
machines only; everywhere else router pairs are all that counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Everyone", "Messages", "Nodewise", "everyone", "messages"]

#: Kinds of network whose routing looks at the destination node.
KINDS = ("fattree", "tree")


@dataclass(frozen=True, slots=True, eq=False)
class Messages:
    """Bytes from nodes `a` to nodes `b`, a != b; rows of the machine (m,).

    Attributes
    ----------
    a, b : int64 (m,)
    amount : float64 (m,)
    """

    a: Ints
    b: Ints
    amount: Floats

    def times(self, factor: float) -> Messages:
        """Return the messages with `factor` times the bytes."""
        return replace(self, amount=self.amount * factor)

    def reversed(self) -> Messages:
        """Return the messages sent the other way."""
        return replace(self, a=self.b, b=self.a)


@dataclass(frozen=True, slots=True, eq=False)
class Everyone:
    """All-to-alls, one a line: every rank to every rank of the line on another node.

    Attributes
    ----------
    line, row : int64 (e,)
        Line and node of each entry, each pair once, sorted by line.
    ranks : float64 (e,)
        Ranks of the line on the node.
    amount : float
        Bytes from each rank to each other.
    """

    line: Ints
    row: Ints
    ranks: Floats
    amount: float

    def times(self, factor: float) -> Everyone:
        """Return the all-to-alls with `factor` times the bytes."""
        return replace(self, amount=self.amount * factor)

    def reversed(self) -> Everyone:
        """Return the same: an all-to-all is symmetric."""
        return self


Nodewise = Messages | Everyone


def messages(machine: Machine, a: Ints, b: Ints, amount: Floats) -> tuple[Nodewise, ...]:
    """Return what to keep of messages between nodes: nothing where routers tell enough.

    Examples
    --------
    >>> import numpy as np
    >>> from placement.specs import parse_spec
    >>> one = np.array([0]), np.array([1]), np.ones(1)
    >>> len(messages(parse_spec("torus:4"), *one))
    0
    >>> len(messages(parse_spec("fattree:leaf=2,leaves=2,spines=2"), *one))
    1
    """
    kept = machine.topology.kind in KINDS and len(a)
    return (Messages(a, b, amount),) if kept else ()


def everyone(
    machine: Machine, line: Ints, row: Ints, ranks: Floats, amount: float
) -> tuple[Nodewise, ...]:
    """Return what to keep of all-to-alls: nothing where routers tell enough."""
    kept = machine.topology.kind in KINDS and len(row)
    return (Everyone(line, row, ranks, amount),) if kept else ()

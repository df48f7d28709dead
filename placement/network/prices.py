"""What a byte between two nodes costs when every channel has a price: loads, transposed.

`loads` answers what a demand puts on each channel; here each channel has a
price a byte, and a message pays for the channels it takes, each by the share
of it that goes there. So for any prices u and any demand

    sum over channels of u x load  =  sum over messages of bytes x cost

(a property test holds it). With prices on the channels that bind, a node's
bill says how much it feeds them, and what another node in its place would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from placement.network.routes import FOLLOWED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from placement.machine import Machine

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Costs", "costs"]


class Costs(Protocol):
    """What bytes cost between the ends of messages, at prices that are set."""

    def __call__(self, a: Ints, b: Ints) -> Floats:
        """Return the cost of a byte from nodes `a` to nodes `b`.

        Rows of the machine, which broadcast; without meaning between a node and itself.
        """


def costs(machine: Machine, price: Floats, routing: str) -> Costs | None:
    """Return what a byte costs between nodes at a price of every channel.

    Parameters
    ----------
    machine : Machine
    price : float64 (c,)
        Of a byte on each channel of ``channels(machine, routing)``.
    routing : str
        A routing that `FOLLOWED` lists is followed exactly; for any other on
        the same kind of network the costs are those of the first listed.

    Returns
    -------
    callable or None
        None where the network is not regular: groups without a link of
        their own, a fat tree with cables missing.

    Examples
    --------
    >>> from placement.specs import parse_spec
    >>> m = parse_spec("torus:5")
    >>> found = costs(m, np.arange(10.0), "")
    >>> found(np.array([0, 0]), np.array([2, 4])).tolist()
    [1.0, 5.0]
    """
    from importlib import import_module

    kind = machine.topology.kind
    if kind not in FOLLOWED:
        return None
    module = import_module(f"placement.network.prices_{kind}")
    between = module.between(machine, price)
    if between is None or machine.router.shape[1] == 1 or kind == "fattree":
        found: Costs | None = between
        return found
    return _over_switches(machine, between)


def _over_switches(machine: Machine, between: Costs) -> Costs:
    """Return the mean over all pairs of the switches that two nodes are attached to.

    Parameters
    ----------
    machine : Machine
    between : callable
        Costs between routers.
    """
    table = machine.router.astype(np.int64)
    there = table >= 0
    share = there / np.maximum(1, there.sum(axis=1))[:, None]
    columns = range(table.shape[1])

    def cost(a: Ints, b: Ints) -> Floats:
        out = np.zeros(np.broadcast_shapes(np.shape(a), np.shape(b)))
        for i in columns:
            for j in columns:
                s, t = np.maximum(table[a, i], 0), np.maximum(table[b, j], 0)
                out += share[a, i] * share[b, j] * np.where(s == t, 0.0, between(s, t))
        return out

    return cost

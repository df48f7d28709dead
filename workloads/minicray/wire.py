"""From a message's bytes to what a kernel's counter shows: the headers of TCP's segments.

Nothing is fitted. A full segment carries the link's MTU less 52 bytes (20 of
IPv4, 20 of TCP, 12 of its time stamps) and is a frame of 14 bytes more, so
66 of every MTU + 14 bytes are headers. Each is answered by an acknowledgement
of 66 bytes that goes back by its own route: one for each segment, as links
are so slow that a rank has read one before the next arrives, and not one for
every other (RFC 1122, 4.2.3.2). What MPI adds to a message is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.network import Demand, Loads

__all__ = ["HEADER", "factor", "segment", "wire_loads"]

#: Bytes of Ethernet's, IPv4's and TCP's header with time stamps.
ETHERNET, INTERNET, TRANSPORT = 14, 20, 20 + 12
HEADER = ETHERNET + INTERNET + TRANSPORT


def segment(mtu: int) -> int:
    """Return the bytes of a message that a full segment carries.

    Examples
    --------
    >>> segment(9000), segment(1500)
    (8948, 1448)
    """
    return mtu - INTERNET - TRANSPORT


def factor(mtu: int) -> float:
    """Return bytes on the wire over bytes of messages, both directions alike.

    Examples
    --------
    >>> round(factor(9000), 4), round(factor(1500), 4)
    (1.0148, 1.0912)
    """
    return 1 + 2 * HEADER / segment(mtu)


def wire_loads(machine: Machine, demand: Demand, routing: str, mtu: int) -> Loads:
    """Return the bytes on every channel when messages and acknowledgements travel.

    Parameters
    ----------
    machine : Machine
    demand : Demand
        Bytes of messages.
    routing : str
    mtu : int
        Of the links.

    Examples
    --------
    >>> import nidmap, numpy as np
    >>> from placement.network import Demand
    >>> m = nidmap.load_machine("torus:3")
    >>> found = wire_loads(m, Demand.pairs(m, np.array([0]), np.array([1]), 8948.0), "single", 9000)
    >>> dict(zip(found.channels.names().tolist()[:4], found.load.tolist()))
    {'x0->x1 x': 9014.0, 'x1->x2 x': 0.0, 'x2->x0 x': 0.0, 'x0->x2 x': 0.0}
    >>> float(found.load.sum())
    9080.0
    """
    from placement.network import loads

    share = HEADER / segment(mtu)
    there = loads(machine, demand * (1 + share), routing)
    back = loads(machine, demand.reversed() * share, routing)
    return there + back

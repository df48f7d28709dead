"""What a mini-Cray cannot be: too large for this computer, or of names that are not host names."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from placement.machine import Machine
    from placement.support.array_types import Floats, Ints

__all__ = ["LOGIN", "host_names", "notes", "refuse_large", "refuse_rates", "rows"]

#: Name of the host from which jobs are started.
LOGIN = "login"

#: Nodes and routers; each is a namespace with devices, processes and route tables.
MOST_NODES = 512
MOST_ROUTERS = 512
MOST_CABLES = 4096

#: Bytes that a namespace, a cable and a node's daemons and ranks take: to refuse, not to plan.
_SPACE, _CABLE, _NODE = 1 << 20, 1 << 18, 24 << 20

#: Slowest and fastest link that a token bucket can hold apart from the rest, bytes a second.
_SLOWEST, _FASTEST = 1e3, 1e10

#: What helps where a machine is too large.
_SMALLER = "name a smaller machine, such as minicray:dragonfly"

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)


def rows(machine: Machine) -> Ints:
    """Return the nodes that get a namespace: compute nodes with a place in the network.

    Raises
    ------
    UsageError
        None, or too many.

    Examples
    --------
    >>> import nidmap
    >>> rows(nidmap.load_machine("torus:2x2")).tolist()
    [0, 1, 2, 3]
    """
    found = np.flatnonzero(machine.compute & (machine.router[:, 0] >= 0))
    if not len(found):
        raise UsageError(f"{machine.name} has no compute node with a place in its network")
    if len(found) > MOST_NODES:
        what = f"a mini-Cray of {len(found)} nodes is too large: {MOST_NODES} at most"
        raise UsageError(what, _SMALLER)
    return found


def notes(machine: Machine, chosen: Ints) -> Iterable[str]:
    """Yield what of the machine the mini-Cray leaves out."""
    service = int((~machine.compute).sum())
    lost = len(machine) - service - len(chosen)
    several = int(((machine.router[chosen] >= 0).sum(axis=1) > 1).sum())
    for count, which, what in (
        (service, "not for computing", "no namespace"),
        (lost, "without a place in the network", "no namespace"),
        (several, "with several NICs", "a link for the first one only"),
    ):
        if count:
            have = "has" if count == 1 else "have"
            yield f"{count} node{'s' * (count != 1)} {which} {have} {what}"


def host_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, once it is known that each can be a host's, and none another's.

    Raises
    ------
    UsageError
        A name that no host may have, two that differ in case only, or that of
        the host from which jobs are started.

    Examples
    --------
    >>> host_names(["nid00000", "x3000c0s1b0n0"])
    ('nid00000', 'x3000c0s1b0n0')
    """
    seen = {LOGIN: LOGIN, "localhost": "localhost"}
    for k, name in enumerate(names):
        if not _HOST.fullmatch(name) or ".." in name or _is_address(name):
            raise UsageError(f"{printable(repr(name))} cannot be the name of a host")
        other = seen.setdefault(name.lower(), name)
        if other in (LOGIN, "localhost"):
            raise UsageError(f"a node cannot be called {name}: a mini-Cray has a host {other}")
        if other != name:
            raise UsageError(f"{name} and {other} are one name to the network")
        if len(seen) < k + 3:  # with the two above
            raise UsageError(f"two nodes are called {name}")
    return tuple(names)


def _is_address(name: str) -> bool:
    """Tell whether a resolver takes a name for an address, as it does with 12 or 0x1f."""
    with suppress(OSError):
        socket.inet_aton(name)
        return True
    return False


def refuse_rates(own: float, gbs: Floats, factor: float) -> None:
    """Refuse a scale at which some link is slower or faster than can be emulated."""
    every = np.append(gbs, own) * 1e9 / factor
    if every.min() < _SLOWEST or every.max() > _FASTEST:
        slow, fast = every.min() * 8 / 1e6, every.max() * 8 / 1e6
        raise UsageError(
            f"links of {slow:.3g} to {fast:.3g} Mbit/s cannot be emulated (scale {factor:g})",
            f"between {_SLOWEST * 8 / 1e6:g} and {_FASTEST * 8 / 1e6:g} they can: --scale",
        )


def refuse_large(nodes: int, routers: int, cables: int) -> None:
    """Refuse what this computer cannot hold.

    Raises
    ------
    UsageError
        Too many routers or cables, or more memory than there is.
    """
    from workloads.memory import available

    if routers > MOST_ROUTERS or cables > MOST_CABLES:
        raise UsageError(
            f"{routers} routers and {cables} cables are too many: "
            f"{MOST_ROUTERS} and {MOST_CABLES} at most",
            _SMALLER,
        )
    need = (2 * nodes + routers) * _SPACE + cables * _CABLE + nodes * _NODE
    room = available()
    if need > room:
        raise UsageError(
            f"{nodes} nodes and {routers} routers need about {need >> 20} MiB, "
            f"{room >> 20} MiB are free here",
            _SMALLER,
        )

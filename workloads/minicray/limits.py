"""What a mini-Cray cannot be: too large for this computer, or of names that are no host names."""

from __future__ import annotations

import re
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from placement.machine import Machine

__all__ = ["LOGIN", "host_names", "notes", "refuse_large", "refuse_rates", "rows",
           "with_one_nic"]  # fmt: skip

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

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)


def rows(machine: Machine) -> NDArray[np.int64]:
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
        raise UsageError(
            f"a mini-Cray of {len(found)} nodes is too large: {MOST_NODES} at most",
            "name a smaller machine, such as minicray:dragonfly",
        )
    return found


def with_one_nic(machine: Machine) -> Machine:
    """Return a machine whose nodes have their first network interface only."""
    if machine.router.shape[1] == 1:
        return machine
    return replace(machine, router=machine.router[:, :1], _cache={})


def notes(machine: Machine, chosen: NDArray[np.int64]) -> Iterable[str]:
    """Yield what of the machine the mini-Cray leaves out."""
    service = int((~machine.compute).sum())
    if service:
        yield f"{_nodes(service)} not for computing {_have(service)} no namespace"
    lost = len(machine) - service - len(chosen)
    if lost:
        yield f"{_nodes(lost)} without a place in the network {_have(lost)} no namespace"
    many = int(((machine.router[chosen] >= 0).sum(axis=1) > 1).sum())
    if many:
        yield f"{_nodes(many)} with several NICs {_have(many)} a link for the first one only"


def _nodes(count: int) -> str:
    return f"{count} node{'s' * (count != 1)}"


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


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
    for name in names:
        if not _HOST.fullmatch(name) or ".." in name or _is_address(name):
            raise UsageError(f"{printable(repr(name))} cannot be the name of a host")
        other = seen.setdefault(name.lower(), name)
        if other in (LOGIN, "localhost"):
            raise UsageError(f"a node cannot be called {name}: a mini-Cray has a host {other}")
        if other != name:
            raise UsageError(f"{name} and {other} are one name to the network")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two nodes are called {printable(twice)}")
    return tuple(names)


def _is_address(name: str) -> bool:
    """Tell whether a resolver takes a name for an address, as it does with 12 or 0x1f."""
    try:
        socket.inet_aton(name)
    except OSError:
        return False
    return True


def refuse_rates(own: float, gbs: NDArray[np.float64], factor: float) -> None:
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
            "name a smaller machine, such as minicray:dragonfly",
        )
    need = (2 * nodes + routers) * _SPACE + cables * _CABLE + nodes * _NODE
    room = available()
    if need > room:
        raise UsageError(
            f"{nodes} nodes and {routers} routers need about {need >> 20} MiB, "
            f"{room >> 20} MiB are free here",
            "name a smaller machine, such as minicray:dragonfly",
        )

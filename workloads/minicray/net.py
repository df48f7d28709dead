# SPDX-License-Identifier: Apache-2.0
"""From a machine to namespaces, links, rates and routes: the plan as plain data.

Every node and every router is a network namespace. A node's one device on the
fabric is ``hsn0``; the router's side of it is ``p<node>``. The link that
carries the predictor's channel c leaves its router by the device ``c<c>``, so
that a kernel counter is a channel's load under its own name. All nodes also
have ``mgmt0`` on a bridge without limits: Slurm and launchers talk there, and
the fabric carries the ranks' messages alone, as on a real machine. Refused is
what is too large for this computer, or has names that are not host names.

From a message's bytes to what a kernel's counter shows: the headers of TCP's segments
(`segment_bytes`, `wire_factor`). A full segment carries the link's MTU less 52 bytes (20 of IPv4,
20 of TCP, 12 of its time stamps) and is a frame of 14 bytes more. Each is answered by an
acknowledgement of 66 bytes that goes back by its own route: one for each segment, as links are
so slow that a rank has read one before the next arrives, and not one for every other (RFC 1122,
4.2.3.2). What MPI adds to a message is left out.
"""

from __future__ import annotations

import re
import socket
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.errors import UsageError, printable
from nidmap.placement.links_down import WORD as LINKS_DOWN
from nidmap.placement.machine import Machine
from nidmap.placement.network import channels, next_channel
from nidmap.placement.network.channel_loads import Channels
from nidmap.placement.support.array_types import Floats, Ints
from nidmap.workloads.trials import available_bytes

#: GB/s that all nodes together may inject: what one core can forward comfortably.
BUDGET = 0.06

#: Bytes of a packet on the fabric's links: large, so that few are to be forwarded.
MTU = 9000

#: Bytes of Ethernet's, IPv4's and TCP's header with time stamps.
ETHERNET, INTERNET, TRANSPORT = 14, 20, 20 + 12
HEADER = ETHERNET + INTERNET + TRANSPORT

#: The predictor's name for the routers' routing: one path to each node.
ROUTING = "single"

#: Addresses: nodes and routers on the fabric, nodes on the management bridge.
_FABRIC, _ROUTERS, _MANAGEMENT = "10.64", "10.128", "10.200"

#: All of the management bridge.
MANAGEMENT = f"{_MANAGEMENT}.0.0/16"

#: Name of the host from which jobs are started.
LOGIN = "login"

#: Nodes and routers; each is a namespace with devices, processes and route tables.
MOST_NODES = 512
MOST_ROUTERS = 512
MOST_CABLES = 4096

#: Bytes that a namespace, a cable and a node's daemons and ranks take: to refuse, not to plan.
_SPACE, _CABLE, _NODE = 1 << 20, 1 << 18, 24 << 20

#: Slowest and fastest link that a token bucket can hold apart from the rest, bytes per second.
_SLOWEST, _FASTEST = 1e3, 1e10

#: Hint for machines that are too large.
_SMALLER = "name a smaller machine, such as minicray:dragonfly"

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)


def segment_bytes(mtu: int) -> int:
    """Return the bytes of a message that a full segment carries."""
    return mtu - INTERNET - TRANSPORT


def wire_factor(mtu: int) -> float:
    """Return the ratio of bytes on the wire to message bytes, equal in both directions."""
    return 1 + 2 * HEADER / segment_bytes(mtu)


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """A machine as namespaces."""

    machine: Machine
    rows: Ints  # (k,), the machine's nodes that have a namespace: its compute nodes
    names: tuple[str, ...]  # (k,)
    router: NDArray[np.int32]  # (k,), router that each is attached to
    channels: Channels  # directed links between routers, as the predictor counts them
    # (routers, k), the next channel of every router to every one of these nodes, -1 at its own
    hops: Ints
    scale: float  # how many times slower the links are than the machine's own
    node_rate: float  # bytes per second a node may inject and receive
    rates: Floats  # (c,), bytes per second of each channel
    notes: tuple[str, ...] = ()  # assumptions

    @property
    def routers(self) -> int:
        """Number of router namespaces."""
        return len(self.hops)

    def attached(self, router: int) -> list[int]:
        """Return the nodes attached to a router."""
        return list(map(int, np.flatnonzero(self.router == router)))

    def leaving(self, router: int) -> list[int]:
        """Return the channels that leave a router."""
        return list(map(int, np.flatnonzero(self.channels.source == router)))


def stated_words(specs: Sequence[str], **figures: str) -> tuple[str, ...]:
    """Append figures to the last of some ``-m`` words, except those that it states itself.

    The last is a machine, so that more can follow it.
    """
    *others, machine = sorted(specs, key=lambda spec: not spec.startswith(("prefer:", LINKS_DOWN)))
    more = [f"{key}={value}" for key, value in figures.items() if f",{key}=" not in machine]
    return (*others, ",".join([machine, *more]))


def design_network(machine: Machine, scale: float | None = None) -> Net:
    """Return the plan for a machine.

    `machine`: its compute nodes get namespaces; a node with several NICs has one here. `scale`:
    how many times slower than the machine's own all links are; None means such that all nodes
    together inject `BUDGET`.
    """
    if scale is not None and not 0 < scale < float("inf"):
        raise UsageError(f"--scale {scale:g}: it must be above 0")
    rows = compute_rows(machine)
    notes = tuple(left_out(machine, rows))
    if machine.router.shape[1] > 1:  # one NIC per node
        gbs = machine.attachment_gbs
        first = None if gbs is None else gbs[:, :1]
        machine = replace(machine, router=machine.router[:, :1], attachment_gbs=first, _cache={})
    links = channels(machine, "single")
    node_gbs, assumed = _node_bandwidth(machine, links)
    factor = node_gbs * len(rows) / BUDGET if scale is None else scale
    gbs = np.where(np.isfinite(links.bandwidth), links.bandwidth, node_gbs * 100)
    refuse_rates(node_gbs, gbs, factor)
    net = Net(
        machine=machine,
        rows=rows,
        names=host_names(machine.names[rows].tolist()),
        router=machine.router[rows, 0].astype(np.int32),
        channels=links,
        hops=next_channel(machine)[:, rows].astype(np.int64),
        scale=factor,
        node_rate=node_gbs * 1e9 / factor,
        rates=gbs * 1e9 / factor,
        notes=(*assumed, *notes),
    )
    refuse_large(len(rows), net.routers, len(links) // 2)
    return net


def _node_bandwidth(machine: Machine, found: Channels) -> tuple[float, tuple[str, ...]]:
    """Return GB/s of a node's own link, and what was assumed about it."""
    figures = machine.topology.bandwidth
    known = float(figures.get("injection", figures.get("up0", np.inf)))
    if np.isfinite(known):
        return known, ()
    per_port = found.bandwidth / found.count
    finite = per_port[np.isfinite(per_port)]
    if not len(finite):
        raise UsageError(
            f"{machine.name} states no bandwidths, so the ratios between its links are not known",
            "give one, such as torus:3x3,bw=5,injection=10",
        )
    fastest = float(finite.max())
    return fastest, (
        f"injection is not stated: assumed to be as fast as the fastest link, {fastest:g} GB/s",
    )


def compute_rows(machine: Machine) -> Ints:
    """Return the nodes that get a namespace: compute nodes with a position in the network."""
    rows = np.flatnonzero(machine.compute & (machine.router[:, 0] >= 0))
    if not len(rows):
        raise UsageError(f"{machine.name} has no compute node that is attached to its network")
    if len(rows) > MOST_NODES:
        what = f"a mini-Cray of {len(rows)} nodes is too large: {MOST_NODES} at most"
        raise UsageError(what, _SMALLER)
    return rows


def left_out(machine: Machine, chosen: Ints) -> Iterable[str]:
    """Yield the parts of the machine that the mini-Cray leaves out."""
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
    """Return the names, after checking that they are valid and unique host names."""
    seen = {LOGIN: LOGIN, "localhost": "localhost"}
    for k, name in enumerate(names):
        if not _HOST.fullmatch(name) or ".." in name or _is_address(name):
            raise UsageError(f"{printable(repr(name))} cannot be the name of a host")
        other = seen.setdefault(name.lower(), name)
        if other in (LOGIN, "localhost"):
            raise UsageError(f"a node cannot be called {name}: a mini-Cray has a host {other}")
        if other != name:
            raise UsageError(f"{name} and {other} are the same name on the network")
        if len(seen) < k + 3:  # with the two above
            raise UsageError(f"two nodes are called {name}")
    return tuple(names)


def _is_address(name: str) -> bool:
    """Tell whether a resolver takes a name for an address, such as 12 or 0x1f."""
    with suppress(OSError):
        socket.inet_aton(name)
        return True
    return False


def refuse_rates(own: float, gbs: Floats, factor: float) -> None:
    """Refuse a scale at which a link would be too slow or too fast to emulate."""
    every = np.append(gbs, own) * 1e9 / factor
    if every.min() < _SLOWEST or every.max() > _FASTEST:
        slow, fast = every.min() * 8 / 1e6, every.max() * 8 / 1e6
        raise UsageError(
            f"links of {slow:.3g} to {fast:.3g} Mbit/s cannot be emulated (scale {factor:g})",
            f"between {_SLOWEST * 8 / 1e6:g} and {_FASTEST * 8 / 1e6:g} is possible: --scale",
        )


def refuse_large(nodes: int, routers: int, cables: int) -> None:
    """Refuse a machine that is too large for this computer."""
    if routers > MOST_ROUTERS or cables > MOST_CABLES:
        raise UsageError(
            f"{routers} routers and {cables} cables are too many: "
            f"{MOST_ROUTERS} and {MOST_CABLES} at most",
            _SMALLER,
        )
    need = (2 * nodes + routers) * _SPACE + cables * _CABLE + nodes * _NODE
    room = available_bytes()
    if need > room:
        raise UsageError(
            f"{nodes} nodes and {routers} routers need about {need >> 20} MiB, "
            f"{room >> 20} MiB are free here",
            _SMALLER,
        )


def _block_address(block: str, number: int) -> str:
    return f"{block}.{number // 250}.{number % 250 + 1}"


def node_address(node: int) -> str:
    """Return a node's address on the fabric."""
    return _block_address(_FABRIC, node)


def router_address(router: int) -> str:
    """Return a router's address."""
    return _block_address(_ROUTERS, router)


def management_address(node: int) -> str:
    """Return a node's address on the management bridge; -1: the login host."""
    return _block_address(_MANAGEMENT, node + 1)


def router_space(router: int) -> str:
    """Return the name of a router's namespace, which is no valid host name."""
    return f"router+{router}"


def namespaces(net: Net) -> list[str]:
    """Return the names of all namespaces."""
    return [*net.names, *(router_space(r) for r in range(net.routers))]


def login_setup() -> list[str]:
    """Return the login host's ``ip`` lines: a bridge, and a device for unlimited MPI traffic.

    MPI is told to use ``hsn0``; ranks that are started here by mistake, or for
    a test, find one.
    """
    return [
        "link set lo up",
        "link add mgmt type bridge",
        "link set mgmt up",
        f"addr add {management_address(-1)}/16 dev mgmt",
        "link add hsn0 type veth peer name hsn0-end",
        f"addr add {_FABRIC}.255.254/32 dev hsn0",
        "link set hsn0 up",
        "link set hsn0-end up",
    ]


def creation_lines(net: Net) -> Iterator[str]:
    """Yield the lines for one ``ip -batch`` that creates all namespaces and links."""
    for space in namespaces(net):
        yield f"netns add {space}"
    for node, name in enumerate(net.names):
        yield _cable_command("hsn0", name, f"p{node}", router_space(int(net.router[node])))
        yield f"link add name mgmt0 netns {name} type veth peer name m{node}"
        yield f"link set m{node} master mgmt up"
    space_of = [router_space(router) for router in net.channels.source.tolist()]
    for c, d in channel_pairs(net.channels):
        yield _cable_command(f"c{c}", space_of[c], f"c{d}", space_of[d])


def channel_pairs(channels: Channels) -> Iterator[tuple[int, int]]:
    """Yield channels in pairs of opposite directions: one cable each."""
    waiting: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    # On trees the way down is a class of its own, and belongs to the way up.
    cable = [channels.kinds.index(kind.replace("down", "up")) for kind in channels.kinds]
    ends = (channels.source.tolist(), channels.target.tolist(), channels.kind.tolist())
    for c, (a, b, kind) in enumerate(zip(*ends, strict=True)):
        if back := waiting[b, a, cable[kind]]:
            yield back.pop(0), c
        else:
            waiting[a, b, cable[kind]].append(c)
    if any(waiting.values()):
        raise UsageError("a link of this machine goes one way only; a cable goes both ways")


def _cable_command(one: str, here: str, other: str, there: str) -> str:
    ends = f"name {one} mtu {MTU} netns {here}", f"name {other} mtu {MTU} netns {there}"
    return f"link add {ends[0]} type veth peer {ends[1]}"


def node_setup(net: Net, node: int) -> list[str]:
    """Return the ``ip`` lines for a node's namespace."""
    router, address = router_address(int(net.router[node])), node_address(node)
    return [
        "link set lo up",
        f"addr add {address}/32 dev hsn0",
        "link set hsn0 up",
        f"addr add {management_address(node)}/16 dev mgmt0",
        "link set mgmt0 up",
        f"route add {router}/32 dev hsn0",
        # A queue that never drops makes a slow link look like a lost packet: wait long for it.
        f"route add default via {router} dev hsn0 src {address} rto_min 3s",
    ]


def router_setup(net: Net, router: int) -> Iterator[str]:
    """Yield the ``ip`` lines for a router's namespace: devices, then one route per node."""
    yield "link set lo up"
    yield f"addr add {router_address(router)}/32 dev lo"
    for node in net.attached(router):
        yield f"link set p{node} up"
        yield f"route add {node_address(node)}/32 dev p{node}"
    for c in net.leaving(router):
        yield f"link set c{c} up"
    target = net.channels.target.tolist()
    for node in range(len(net.names)):
        c = int(net.hops[router, node])
        if c >= 0:
            way = f"via {router_address(target[c])} dev c{c} onlink"
            yield f"route add {node_address(node)}/32 {way}"


def limit_line(device: str, rate: float) -> str:
    """Return the ``tc`` line that limits a device to `rate` bytes per second.

    The queue is long, as a network with credits loses nothing: senders wait.
    """
    burst = max(MTU + 14, round(rate * 0.002))
    return f"qdisc add dev {device} root tbf rate {round(rate * 8)}bit burst {burst} limit 16m"


def hosts_file(net: Net) -> str:
    """Return /etc/hosts, in which a node's name is its address on the management bridge."""
    lines = ["127.0.0.1 localhost", f"{management_address(-1)} {LOGIN}"]
    lines += [f"{management_address(k)} {name}" for k, name in enumerate(net.names)]
    return "\n".join(lines) + "\n"

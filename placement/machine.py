# SPDX-License-Identifier: Apache-2.0
"""The canonical model of a machine: nodes in rows, a topology, links.

Readers differ by site; this is what they are all turned into (`assemble`),
what planners and orders are pure functions of, and what a user gets as
pandas table or networkx graph. Columns are numpy arrays of equal length, one
row per node, in NID order where NIDs are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nidmap.placement.hooks import SERVICES, load
from nidmap.placement.records import FREE_STATES
from nidmap.placement.support.array_types import Floats, Ints, Ints32, Mask, Strs

if TYPE_CHECKING:
    import networkx
    import pandas

T = TypeVar("T")


#: Prefix of the wiring of a machine with links from a dump.
LISTED = "links of "


@dataclass(frozen=True, slots=True)
class Topology:
    """The shape of a network, without its nodes.

    Attributes
    ----------
    kind : str
        ``dragonfly``, ``dragonfly+``, ``torus``, ``fattree``, ``tree``.
    levels : tuple of str
        Names of the coordinate columns, the last being ``node``:
        ``(group, chassis, blade, node)`` on Aries, ``(group, switch, node)``
        on Slingshot, ``(group, leaf router, node)`` on a DragonFly+,
        ``(x, y, z, node)`` on a torus, ``(leaf, node)`` on a two-level fat
        tree, ``(level3, level2, …, node)`` on a tree, outermost first.
    extents : tuple of int
        How many values each coordinate takes (absent ones counted).
    fabric : str
        ``aries``, ``gemini``, ``slingshot``, ``infiniband`` or '' (synthetic).
    wiring : str
        How routers are joined: a rule's name (``consecutive``, ``aligned``,
        ``same-chassis``), ``links of FILE`` where a dump lists them, or ''
        where the kind leaves no choice.
    bandwidth : mapping of str to float
        GB/s per direction by link class (``injection``, ``green``, ``x`` …);
        a black bundle is one entry for the bundle. A class left out is
        unlimited (injection) or unknown.
    parameters : mapping
        What else the kind needs: ``global`` (links per group pair), ``spines``,
        ``dist`` (distances by level), ``cabinets`` (positions in a row) …
    """

    kind: str
    levels: tuple[str, ...]
    extents: tuple[int, ...]
    fabric: str = ""
    wiring: str = ""
    bandwidth: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def router_levels(self) -> int:
        """The number of coordinates that name a node's router: all but the last."""
        return len(self.levels) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """Router-to-router links, one row per bundle of parallel links; undirected.

    Attributes
    ----------
    a, b : int32 (m,)
        Router indices, ``a < b``.
    kind : int8 (m,)
        Index into `kinds`.
    kinds : tuple of str
        Class names: ``green``, ``black``, ``blue``; ``x``, ``y``, ``z``;
        ``local``, ``global``; ``up`` …
    count : int32 (m,)
        Parallel links in the bundle.
    bandwidth : float64 (m,)
        GB/s per direction of the whole bundle; NaN where unknown.
    cable : float64 (sum of count,) or None
        GB/s per direction of each link, bundle by bundle; None where those of a
        bundle are alike.
    """

    a: Ints32
    b: Ints32
    kind: NDArray[np.int8]
    kinds: tuple[str, ...]
    count: Ints32
    bandwidth: Floats
    cable: Floats | None = None

    def __len__(self) -> int:
        return len(self.a)

    def rates(self) -> Floats:
        """Return GB/s per direction of each link, bundle by bundle; NaN if unknown."""
        if self.cable is not None:
            return self.cable
        return np.repeat(self.bandwidth / np.maximum(self.count, 1), self.count)


@dataclass(frozen=True, slots=True, eq=False)
class Switches:
    """Slurm's view of the network: a forest of switches over the nodes."""

    names: tuple[str, ...]
    parent: Ints32  # (s,), index of the switch above, -1 at a root
    level: Ints32  # (s,), 0 at a leaf
    leaf_of: Ints32  # (n,), leaf switch of each node of the machine, -1 for none
    kind: str = "tree"  # ``tree``, ``block``, ``ring`` or ``flat``
    block_sizes: tuple[int, ...] = ()
    # (s,), cables from each switch to the one above; None means one each
    uplinks: Ints32 | None = None


# --- hardware of a node: cores by cache, NUMA domain and socket; GPUs and NICs next to them

#: Where two cores of a node meet, the nearest first.
CORE_LEVELS = ("l3", "numa", "socket", "node")

#: GB/s of copies between two cores that meet at each of `CORE_LEVELS`, if not stated.
COPY_GBS = (24.0, 16.0, 12.0, 8.0)


class Core(NamedTuple):
    """A core of a node."""

    # Its hardware threads by the operating system's numbers, the first one first
    pus: tuple[int, ...]
    # l3, numa, socket: units that it shares with others; a core without an L3 has its NUMA domain's
    # number
    l3: int
    numa: int
    socket: int

    @property
    def nested(self) -> tuple[int, int, int, int]:
        """The units that contain the core, in the order of `CORE_LEVELS`; the node last."""
        return self.l3, self.numa, self.socket, 0


class Device(NamedTuple):
    """A GPU or a NIC."""

    name: str
    # The cores next to it, as indices of `NodeHardware.cores`; all if unknown
    near: tuple[int, ...]


class NodeHardware(NamedTuple):
    """The hardware inside the nodes of one type."""

    cores: tuple[Core, ...]  # in the order of sockets, NUMA domains and caches
    # gpus, nics: by number, as the driver counts them
    gpus: tuple[Device, ...] = ()
    nics: tuple[Device, ...] = ()
    # GB/s per direction of links between two GPUs; () where none are known
    gpu_links: tuple[tuple[int, int, float], ...] = ()
    reserved: tuple[int, ...] = ()  # cores that the system keeps for itself, as indices of `cores`
    # GB/s of copies between two cores by where they meet (`CORE_LEVELS`)
    bandwidth: tuple[float, float, float, float] = COPY_GBS
    # How the bandwidths are known: ``measured``, ``published`` or ``assumed``
    mark: str = "assumed"
    source: str = ""  # where all this is stated

    def sentence(self) -> str:
        """Summarise the node's hardware in words."""
        caches = len({core.l3 for core in self.cores})
        counts = [
            (len(self.cores), "core", "cores"),
            (caches, "L3", "L3s"),
            (len({core.numa for core in self.cores}), "NUMA domain", "NUMA domains"),
            (len({core.socket for core in self.cores}), "socket", "sockets"),
            (len(self.gpus), "GPU", "GPUs"),
            (len(self.nics), "NIC", "NICs"),
        ]
        return ", ".join(f"{n} {word if n == 1 else more}" for n, word, more in counts if n)


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """A machine: topology and one row per node (n rows).

    Attributes
    ----------
    name : str
    topology : Topology
    nid : int64 (n,)
        Node identifiers, ascending; on machines without them the number in
        the node's name, else the index. Where only some nodes have none (a
        login node in SLS) theirs is -1, and they come first.
    names : str (n,)
        Host names as Slurm knows them.
    cname : str (n,)
        cnames or xnames, '' where the machine has none.
    coords : int32 (n, len(topology.levels))
    role : str (n,)
        ``compute`` or ``service``.
    state : str (n,)
        Lower-case word of the dump or of Slurm; ``up`` where it is not known.
    mode : str (n,)
        ``interactive``, ``batch``, ``other`` or ''.
    sockets, cores, memory_mb, nics, gpus : int64 (n,)
        Of a node; 0 where unknown.
    features : str (n,)
        Slurm features, comma-separated; ''.
    planned : bool (n,)
        True where backfill has promised the node to another job.
    router : int32 (n, k)
        Router index of each of a node's k attachments, the first being the
        one that `coords` names; -1 where it has fewer.
    router_names : str (r,)
        Empty where the topology alone names them.
    links : Links or None
        Router links as a dump lists them; None where a rule makes them
        (`nidmap.placement.topologies.links`).
    switches : Switches or None
        Slurm's switches where a topology.conf was given.
    site : str
        Name of the site config that filled gaps, '' for none.
    scheduler : str
        ``slurm``, ``pbs``, ``alps`` (Torque or Cobalt with aprun) or '' where unknown.
    batch : str
        What takes job scripts: the scheduler, or ``torque`` or ``cobalt`` where ALPS starts
        the jobs.
    sources : tuple of str
        What it was made from, for the reader of an output.
    router_coords : int32 (r, topology.router_levels) or None
        Coordinates of the routers, -1 in the levels that a switch above the
        leaves has none in; None where the nodes and the topology alone name
        them (`nidmap.placement.topologies.router_coords` answers for both).
    weight : int64 (n,) or None
        Slurm's node weights; None where nothing states them.
    notes : tuple of str
        What was assumed or left out on the way, one sentence each: every
        output that rests on it says so.
    hardware : tuple of NodeHardware
        What is inside the nodes, by type (`nidmap.placement.machine`).
    attachment_gbs : float64 (n, k) or None
        GB/s per direction of each attachment in `router`, NaN where the list of cables
        does not say; None where every one has what the topology states of its class.
    """

    name: str
    topology: Topology
    nid: Ints
    names: Strs
    cname: Strs
    coords: Ints32
    role: Strs
    state: Strs
    mode: Strs
    sockets: Ints
    cores: Ints
    memory_mb: Ints
    nics: Ints
    gpus: Ints
    features: Strs
    planned: Mask
    router: Ints32
    router_names: Strs
    links: Links | None = None
    switches: Switches | None = None
    site: str = ""
    scheduler: str = ""
    batch: str = ""
    sources: tuple[str, ...] = ()
    router_coords: Ints32 | None = None
    weight: Ints | None = None
    notes: tuple[str, ...] = ()
    hardware: tuple[NodeHardware, ...] = ()
    attachment_gbs: Floats | None = None
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.nid)

    @property
    def compute(self) -> Mask:
        """Mask of the compute nodes."""
        return np.asarray(self.role == "compute")

    @property
    def free(self) -> Mask:
        """Mask of the nodes that may be planned on: compute, up or idle, not promised."""
        usable = np.isin(self.state, FREE_STATES)
        return np.asarray(self.compute & usable & ~self.planned)

    def to_pandas(self) -> pandas.DataFrame:
        """Return one row per node as a pandas table (see `nidmap.placement.views.to_pandas`)."""
        table: pandas.DataFrame = load(SERVICES["machine as table"])(self)
        return table

    def to_networkx(self) -> networkx.Graph[str]:
        """Return nodes and routers as a networkx graph: `nidmap.placement.views.to_networkx`."""
        graph: networkx.Graph[str] = load(SERVICES["machine as graph"])(self)
        return graph


def once(make: Callable[[Machine], T]) -> Callable[[Machine], T]:
    """Decorate a function of a machine alone so that its result is cached with the machine.

    A machine never changes. What is made of one with other links or nodes begins anew
    (``replace(machine, links=…, _cache={})``).
    """
    key = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def make_once(machine: Machine) -> T:
        if key not in machine._cache:
            machine._cache[key] = make(machine)
        value: T = machine._cache[key]
        return value

    return make_once

"""What is inside a node: cores by cache, NUMA domain and socket; GPUs and NICs beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from placement.errors import ParseError, UsageError

if TYPE_CHECKING:
    from placement.machine import Machine
    from placement.support.array_types import Ints, Mask

__all__ = ["LEVELS", "Core", "Device", "NodeHardware", "hardware_of", "refuse_other_node"]


#: Where two cores of a node meet, the nearest first.
LEVELS = ("l3", "numa", "socket", "node")

#: GB/s of copies between two cores that meet at each of `LEVELS`, where nothing states them.
ASSUMED = (24.0, 16.0, 12.0, 8.0)


class Core(NamedTuple):
    """A core of a node.

    Attributes
    ----------
    pus : tuple of int
        Its hardware threads by the operating system's numbers, the first one first.
    l3, numa, socket : int
        What it shares with others; a core without an L3 has its NUMA domain's number.
    """

    pus: tuple[int, ...]
    l3: int
    numa: int
    socket: int

    @property
    def nested(self) -> tuple[int, int, int, int]:
        """What it is in, in the order of `LEVELS`; the node last."""
        return self.l3, self.numa, self.socket, 0


class Device(NamedTuple):
    """A GPU or a NIC.

    Attributes
    ----------
    name : str
    near : tuple of int
        The cores beside it, as indices of `NodeHardware.cores`; all where nothing is known.
    """

    name: str
    near: tuple[int, ...]


class NodeHardware(NamedTuple):
    """What is inside the nodes of one type.

    Attributes
    ----------
    cores : tuple of Core
        In the order in which they stand in sockets, NUMA domains and caches.
    gpus, nics : tuple of Device
        By number, as the driver counts them.
    gpu_links : tuple of (int, int, float)
        GB/s a direction of links between two GPUs; () where none are known.
    reserved : tuple of int
        Cores that the system keeps for itself, as indices of `cores`.
    bandwidth : tuple of float
        GB/s of copies between two cores by where they meet (`LEVELS`).
    mark : str
        How the bandwidths are known: ``measured``, ``published`` or ``assumed``.
    source : str
        What states all this.
    """

    cores: tuple[Core, ...]
    gpus: tuple[Device, ...] = ()
    nics: tuple[Device, ...] = ()
    gpu_links: tuple[tuple[int, int, float], ...] = ()
    reserved: tuple[int, ...] = ()
    bandwidth: tuple[float, float, float, float] = ASSUMED
    mark: str = "assumed"
    source: str = ""

    def sentence(self) -> str:
        """Say what is in the node.

        Examples
        --------
        >>> two = NodeHardware((Core((0,), 0, 0, 0), Core((1,), 0, 0, 0)))
        >>> two.sentence()
        '2 cores, 1 L3, 1 NUMA domain, 1 socket'
        """
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


def hardware_of(machine: Machine, rows: Ints) -> NodeHardware:
    """Return what is inside some nodes of a machine.

    The type counts that has as many cores (or hardware threads) and GPUs as the machine says
    of these nodes, the last one that was given first; what the machine does not say fits.

    Parameters
    ----------
    machine : Machine
    rows : int64 (n,)

    Raises
    ------
    UsageError
        Nothing is known of the inside of these nodes, they are of two types, or a file
        describes others.
    """
    if not machine.hardware:
        hint = "-m node.xml adds it (lstopo --of xml node.xml, on such a node)"
        raise UsageError(f"the hardware of {machine.name}'s nodes is not known", hint)
    kinds = _kinds(machine, rows)
    texts = [f"{cores} cores and {gpus} GPUs" for cores, gpus in kinds]
    if len(kinds) > 1:
        what = f"the job's nodes are of {len(kinds)} types: {', '.join(texts)}"
        raise UsageError(what, "use nodes of one type")
    for hardware in reversed(machine.hardware):
        if _fits(hardware, machine, *kinds[0]):
            return hardware
    what = f"no known hardware for a node of {machine.name} with {texts[0]}"
    raise UsageError(what, "-m node.xml adds it (lstopo --of xml node.xml, on such a node)")


def refuse_other_node(machine: Machine, one: NodeHardware) -> None:
    """Refuse a file that describes a node unlike all compute nodes of the machine.

    Raises
    ------
    ParseError
    """
    kinds = _kinds(machine, machine.compute)
    if any(_fits(one, machine, *kind) for kind in kinds) or not kinds:
        return
    texts = " or ".join(f"{cores} cores and {gpus} GPUs" for cores, gpus in kinds[:3])
    what = f"a node of {len(one.cores)} cores and {len(one.gpus)} GPUs, where {machine.name} has"
    hint = "lstopo --of xml node.xml, on one of its compute nodes"
    raise ParseError(one.source, 0, f"{what} {texts}", hint)


def _kinds(machine: Machine, rows: Ints | Mask) -> list[tuple[int, int]]:
    """Return the numbers of cores and GPUs that there are among some nodes."""
    cores, gpus = machine.cores[rows].tolist(), machine.gpus[rows].tolist()
    return sorted(set(zip(cores, gpus, strict=True)))


def _fits(hardware: NodeHardware, machine: Machine, cores: int, gpus: int) -> bool:
    """Return True where a node with so many cores and GPUs (0: unknown) may be this one.

    A Slurm that was told CPUs alone calls each hardware thread a socket with one core.
    """
    alike = machine.cores == cores
    sizes = {0, len(hardware.cores)}
    if bool((machine.sockets[alike] == cores).any()):
        sizes.add(sum(len(core.pus) for core in hardware.cores))
    blind = not hardware.gpus and not hardware.nics  # lstopo saw no devices
    untold = not gpus and not machine.gpus.any()
    return cores in sizes and (blind or untold or gpus == len(hardware.gpus))

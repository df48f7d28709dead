"""What is inside a node: cores by cache, NUMA domain and socket; GPUs and NICs beside them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["LEVELS", "Core", "Device", "NodeHardware"]


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

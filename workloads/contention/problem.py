"""Sizes and memory of the experiment: Tables 3.1, 4.1 and 4.3, and what does not fit.

A global array of n vectors, m numbers each, lies on p processes: l_n = n/p
vectors on each, blocks of l_n/p = n/p^2 in the all-to-all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from placement.errors import UsageError, printable
from workloads.words import check_word

__all__ = ["COUNTS", "KINDS", "PRINTED_N", "WARN", "CaseSizes", "Length", "length", "sizes"]

#: n = 2^v (8 * 18 * 3 * 2)^2 with v = 1, as section 3.2 prints it.
PRINTED_N = 2 * (8 * 18 * 3 * 2) ** 2

#: Row A of Table 4.5: one int to every process, which says how many vectors it will get.
COUNTS = "alltoall-int"

#: The three calls of Table 4.5.
KINDS = (COUNTS, "alltoallv-int", "alltoallv-double")

#: Part of a node's memory from which on MPI's own buffers may not fit (Table 4.4).
WARN = 0.75


@dataclass(frozen=True, slots=True)
class Length:
    """A vector's length: so many numbers, or so many for each node (``512N``).

    Attributes
    ----------
    factor : int
    by_node : bool
        False: constant global memory; True: constant local memory (4.1, 4.2).
    """

    factor: int
    by_node: bool

    def at(self, nodes: int) -> int:
        """Return m on so many nodes.

        Examples
        --------
        >>> length("512N").at(36), length("512").at(36)
        (18432, 512)
        """
        return self.factor * nodes if self.by_node else self.factor

    def __str__(self) -> str:
        return f"{self.factor}N" if self.by_node else str(self.factor)


def length(text: str) -> Length:
    """Return a length from ``512`` or ``512N``.

    Raises
    ------
    UsageError
    """
    match = re.fullmatch(r"(\d{1,9})(N?)", text, re.ASCII)
    if match is None or not int(match[1]):
        raise UsageError(
            f"{printable(text)!r} is not a length of vectors", "512, or 512N for N nodes"
        )
    return Length(int(match[1]), bool(match[2]))


@dataclass(frozen=True, slots=True)
class CaseSizes:
    """One case's sizes.

    Attributes
    ----------
    n, m, ranks, nodes : int
    kind : str
    local : int
        l_n = n/p: vectors on a process; of `COUNTS` p numbers.
    block : int
        n/p^2: vectors in a block of the all-to-all; of `COUNTS` one number.
    """

    n: int
    m: int
    ranks: int
    nodes: int
    kind: str
    local: int
    block: int

    @property
    def item(self) -> int:
        """Bytes of what stands for one vector: an int, or m doubles."""
        return 8 * self.m if self.kind.endswith("double") else 4

    @property
    def global_bytes(self) -> int:
        """Bytes of one array over all processes."""
        return self.ranks * self.local_bytes

    @property
    def local_bytes(self) -> int:
        """Bytes of one array on a process."""
        return self.local * self.item

    @property
    def block_bytes(self) -> int:
        """Bytes of a block."""
        return self.block * self.item

    @property
    def rank_need(self) -> int:
        """Bytes a process needs: the unsorted and the sorted array."""
        return 2 * self.local_bytes

    @property
    def node_need(self) -> int:
        """Bytes a node needs, MPI's own buffers not counted."""
        return self.rank_need * (self.ranks // self.nodes)


def sizes(n: int, m: int, ranks: int, nodes: int, kind: str = "alltoallv-double") -> CaseSizes:
    """Return the sizes of a case.

    Parameters
    ----------
    n : int
        Vectors over all processes; p^2 must divide it.
    m : int
        Numbers in a vector.
    ranks, nodes : int
        p and N.
    kind : str
        One of `KINDS`.

    Raises
    ------
    UsageError
        Where p^2 does not divide n: the nearest n that it divides is named.

    Examples
    --------
    Table 4.1 on 36 nodes: 5,184 vectors, 20 MB; blocks of 18 vectors, 72 kB.

    >>> case = sizes(PRINTED_N, 512, 288, 36)
    >>> case.local, case.block, case.local_bytes >> 20, case.block_bytes >> 10
    (5184, 18, 20, 72)
    """
    check_word("all-to-all", kind, KINDS)
    if n < 1 or m < 1 or ranks < 1:
        raise UsageError("n, m and the number of ranks are at least 1")
    square = ranks * ranks
    if n % square:
        nearest = max(round(n / square), 1) * square
        raise UsageError(
            f"{ranks}^2 does not divide n = {n}: blocks would differ", f"the nearest is {nearest}"
        )
    local, block = (ranks, 1) if kind == COUNTS else (n // ranks, n // square)
    return CaseSizes(n, m, ranks, nodes, kind, local, block)

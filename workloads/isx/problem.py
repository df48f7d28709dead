"""What is sorted: how many keys, how large, how wide the buckets; and what a node sends for it.

Generator: numpy's PCG64DXSM seeded by (seed, rank), so that a seed and a
number of ranks give the same keys on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.errors import UsageError
from placement.support.array_types import Array
from workloads.words import check_word

__all__ = ["GENERATOR", "NodeBytes", "Problem", "model_traffic", "problem"]

GENERATOR = "numpy PCG64DXSM, SeedSequence((seed, rank))"


@dataclass(frozen=True, slots=True)
class Problem:
    """One bucket sort over so many ranks, a bucket a rank.

    Attributes
    ----------
    mode : str
    ranks : int
    keys : int
        Over all ranks.
    dtype : str
        ``i4`` or ``u8``.
    max_key : int
        Keys are below it.
    width : int
        Keys that one bucket is for.
    shift : int or None
        Its logarithm where buckets are found by a shift, None by division.
    """

    mode: str
    ranks: int
    keys: int
    dtype: str
    max_key: int
    width: int
    shift: int | None

    @property
    def itemsize(self) -> int:
        """Bytes of a key."""
        return np.dtype(self.dtype).itemsize

    def count(self, rank: int) -> int:
        """Return the keys that a rank generates; they add up to `keys` exactly."""
        return self.keys * (rank + 1) // self.ranks - self.keys * rank // self.ranks

    def generate(self, rank: int, seed: int) -> Array:
        """Return a rank's keys, uniform in [0, max_key).

        Examples
        --------
        >>> one = problem("weak", 4, 1000)
        >>> bool((one.generate(2, 7) == one.generate(2, 7)).all())
        True
        """
        rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence((seed, rank))))
        kind: Any = np.dtype(self.dtype).type
        return rng.integers(0, self.max_key - 1, self.count(rank), kind, endpoint=True)

    def extent(self, rank: int) -> tuple[int, int]:
        """Return the least and largest key of a rank's bucket."""
        return rank * self.width, (rank + 1) * self.width - 1


def problem(
    mode: str,
    ranks: int,
    keys: int,
    *,
    dtype: str = "i4",
    max_key: int = 1 << 28,
    width: int = 8192,
) -> Problem:
    """Return a problem, checked.

    Parameters
    ----------
    mode : {"strong", "weak", "weak_iso"}
        All keys given; keys a rank given; the same with buckets of one width.
    ranks : int
    keys : int
        strong: over all ranks; else a rank.
    dtype : {"i4", "u8"}
    max_key : int
        strong and weak: keys are below it.
    width : int
        weak_iso: the width of a bucket; keys are below ``ranks * width``.

    Raises
    ------
    UsageError

    Examples
    --------
    >>> problem("weak", 4, 1000).shift, problem("weak", 3, 1000).shift
    (26, None)
    >>> problem("weak_iso", 3, 1000).max_key
    24576
    """
    check_word("mode", mode, ("strong", "weak", "weak_iso"))
    check_word("type of keys", dtype, ("i4", "u8"))
    if mode == "weak_iso":
        max_key = ranks * width
    else:
        width = -(-max_key // ranks)
    most = 2**31 if dtype == "i4" else 2**63
    if keys < 0 or width < 1 or not ranks <= max_key <= most:
        raise UsageError(
            f"keys below {max_key} do not suit {ranks} ranks and {dtype} keys",
            f"between {ranks} and {most}",
        )
    power = width & (width - 1) == 0
    shift = width.bit_length() - 1 if power else None
    total = keys if mode == "strong" else keys * ranks
    return Problem(mode, ranks, total, dtype, max_key, width, shift)


@dataclass(frozen=True, slots=True)
class NodeBytes:
    """Bytes that one node sends in one exchange.

    Attributes
    ----------
    ranks : float
        To other ranks, those on the node among them.
    off_node : float
        To other nodes.
    """

    ranks: float
    off_node: float


def model_traffic(problem: Problem, ppn: int) -> NodeBytes:
    """Return what uniform keys make a node of so many ranks send.

    Each of its keys stays on its rank with probability 1/P and on its node
    with ppn/P.

    Examples
    --------
    >>> model_traffic(problem("weak", 48, 1000), 24)
    NodeBytes(ranks=94000.0, off_node=48000.0)
    """
    node = ppn * problem.keys / problem.ranks * problem.itemsize
    return NodeBytes(
        ranks=node * (1 - 1 / problem.ranks), off_node=node * (1 - ppn / problem.ranks)
    )

"""What is sorted: how many keys, how large, how wide the buckets, and the keys themselves.

Generator: numpy's PCG64DXSM seeded by (seed, rank), so that a seed and a
number of ranks give the same keys on any machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BUCKETINGS", "GENERATOR", "MODES", "Problem", "problem"]

#: strong: all keys given; weak: keys a rank given; weak_iso: weak with buckets of one width.
MODES = ("strong", "weak", "weak_iso")

#: shift where the width is a power of two, else division (auto).
BUCKETINGS = ("auto", "shift", "division")

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

    def count(self, rank: int) -> int:
        """Return the keys that a rank generates; they add up to `keys` exactly."""
        return self.keys * (rank + 1) // self.ranks - self.keys * rank // self.ranks

    def generate(self, rank: int, seed: int) -> NDArray[Any]:
        """Return a rank's keys, uniform in [0, max_key).

        Examples
        --------
        >>> one = problem("weak", 4, 1000)
        >>> bool((one.generate(2, 7) == one.generate(2, 7)).all())
        True
        """
        rng = np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence((seed, rank))))
        high = self.max_key - 1
        made: NDArray[Any] = rng.integers(
            0, high, self.count(rank), np.dtype(self.dtype).type, endpoint=True
        )
        return made

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
    bucketing: str = "auto",
) -> Problem:
    """Return a problem, checked.

    Parameters
    ----------
    mode : {"strong", "weak", "weak_iso"}
    ranks : int
    keys : int
        strong: over all ranks; else a rank.
    dtype : {"i4", "u8"}
    max_key : int
        strong and weak: keys are below it.
    width : int
        weak_iso: the width of a bucket; keys are below ``ranks * width``.
    bucketing : {"auto", "shift", "division"}

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
    if mode not in MODES or bucketing not in BUCKETINGS or dtype not in ("i4", "u8"):
        raise UsageError(f"no mode {mode!r}, bucketing {bucketing!r} or keys {dtype!r}")
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
    if bucketing == "shift" and not power:
        raise UsageError(
            f"a shift needs buckets whose width is a power of two, not {width}",
            "use division, or such a --max-key and number of ranks",
        )
    shift = width.bit_length() - 1 if power and bucketing != "division" else None
    total = keys if mode == "strong" else keys * ranks
    return Problem(mode, ranks, total, dtype, max_key, width, shift)

"""Message sizes and balance of the exchange, predicted and counted.

Section 3.2 of Feng et al. (2015): items drawn at random and dealt to P ranks
make messages whose sizes follow a Poisson distribution with mean N/P^2 (N
items over all ranks), so that many are empty where that mean is small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from placement.support.array_types import Ints
    from workloads.sort.ranks import Ranks

__all__ = ["Messages", "count_messages", "expect_messages"]


@dataclass(frozen=True, slots=True)
class Messages:
    """The P x P messages of one exchange, those to oneself among them.

    Attributes
    ----------
    mean, deviation : float
        Items a message, and their standard deviation.
    empty : float
        Share of messages without any item, 0 to 1.
    largest : float
        Items of the largest message.
    imbalance : float
        Deviation by mean: 0.1 is the paper's "10 percent message imbalance".
    ranks_imbalance : float
        Items of the busiest rank (received) by the mean over ranks, minus 1.
    """

    mean: float
    deviation: float
    empty: float
    largest: float
    imbalance: float
    ranks_imbalance: float


def expect_messages(items: int, ranks: int) -> Messages:
    """Return what random keys make of `items` over all ranks.

    Every rank has and gets N/P items whatever the data, the layout being
    exact: only messages differ, and less than Poisson numbers would, by
    (1 - 1/P), their sums over each row and column being given. With the
    paper's thousands of ranks that factor is 1.

    Examples
    --------
    >>> run = expect_messages(10_000_000 * 160_000, 160_000)
    >>> run.mean, round(run.imbalance, 3)       # the paper's 62.5 items (it says 100)
    (62.5, 0.126)
    >>> round(expect_messages(100_000 * 160_000, 160_000).empty, 3)
    0.535
    """
    mean = items / ranks**2
    deviation = math.sqrt(mean) * (1 - 1 / ranks)
    return Messages(
        mean=mean,
        deviation=deviation,
        empty=math.exp(-mean),
        largest=_largest(mean, ranks**2),
        imbalance=deviation / mean if mean else 0.0,
        ranks_imbalance=(-(-items // ranks) * ranks / items - 1) if items else 0.0,
    )


def _largest(mean: float, draws: int) -> float:
    """Return the median of the largest of so many Poisson numbers.

    The smallest k of which more lie above with less than an even chance:
    draws * P(X > k) <= log 2.
    """
    if not mean:
        return 0.0
    reach = 12 * math.sqrt(mean) + 60
    first = max(math.floor(mean - reach), 0)
    k = np.arange(first, math.ceil(mean + reach) + 1)
    logs = k * math.log(mean) - mean - np.array([math.lgamma(n + 1) for n in k.tolist()])
    tail = np.cumsum(np.exp(logs)[::-1])[::-1]
    above = np.append(tail[1:], 0.0)
    return float(k[np.argmax(above <= math.log(2) / draws)])


def count_messages(ranks: Ranks, sent: Ints) -> Messages:
    """Return what one exchange was. Collective; no rank holds the P x P matrix.

    Parameters
    ----------
    ranks : Ranks
    sent : int64 (P,)
        Items that this rank sent to each.
    """
    total, empty = ranks.total(np.array([sent.sum(), np.count_nonzero(sent == 0)])).tolist()
    size = ranks.size
    mean = total / size**2
    deviation = math.sqrt(float(ranks.total(np.array(((sent - mean) ** 2).sum()))) / size**2)
    busiest = float(ranks.total(np.ascontiguousarray(sent)).max())
    return Messages(
        mean=mean,
        deviation=deviation,
        empty=empty / size**2,
        largest=float(-ranks.least(np.array(-sent.max()))),
        imbalance=deviation / mean if mean else 0.0,
        ranks_imbalance=busiest * size / total - 1 if total else 0.0,
    )

"""Messages between ranks, added up by the pair of nodes they go between."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from placement.support.array_types import Floats, Ints
from placement.support.arrays import sum_by_key

__all__ = ["Summed", "by_size", "join_sums", "sum_messages"]

#: Pairs of nodes up to which a table of all of them is filled, where it is not too empty.
_TABLE = 1 << 21


class Summed(NamedTuple):
    """What goes from node to node; each ordered pair of different nodes at most once a part.

    Attributes
    ----------
    source, target : int64 (m,)
        Indices of the job's nodes.
    messages : float64 (m,)
        How many messages.
    weight : float64 (m,)
        What they weigh together.
    inside : float64 (n,)
        Weight of the messages that stay inside each node.
    """

    source: Ints
    target: Ints
    messages: Floats
    weight: Floats
    inside: Floats

    def reversed(self) -> Summed:
        """Return the same messages sent the other way."""
        return Summed(self.target, self.source, self.messages, self.weight, self.inside)

    def message(self, ranks: int) -> float:
        """Return the weight of one message where each of `ranks` ranks sends one, all alike."""
        if len(self.messages):
            return float((self.weight / self.messages).max())
        return float(self.inside.sum()) / ranks

    def a_pair(self) -> float:
        """Return the most that one node sends to a single other one."""
        nodes = len(self.inside)
        _, _, total = _weigh_keys(self.source * nodes + self.target, self.weight, nodes * nodes)
        return float(total.max(initial=0.0))


def sum_messages(source: Ints, target: Ints, weight: Any, nodes: int) -> Summed:
    """Add messages up by their pair of nodes.

    Parameters
    ----------
    source, target : int64 (m,)
        Node of the sender and of the receiver of each message.
    weight : float or float64 (m,)
        One weight for all, or one each.
    nodes : int

    Examples
    --------
    >>> found = sum_messages(np.array([0, 0, 1]), np.array([1, 1, 1]), 2.0, 2)
    >>> found.source.tolist(), found.messages.tolist(), found.weight.tolist(), found.inside.tolist()
    ([0], [2.0], [4.0], [0.0, 2.0])
    """
    stays = source == target
    each = None if np.ndim(weight) == 0 else np.asarray(weight, dtype=np.float64)
    kept = np.bincount(source[stays], None if each is None else each[stays], minlength=nodes)
    inside = kept.astype(np.float64) * (float(weight) if each is None else 1.0)
    gone = ~stays
    key = source[gone] * nodes + target[gone]
    if each is None:
        found, many = np.unique(key, return_counts=True)
        count = many.astype(np.float64)
        total = count * float(weight)
    else:
        found, count, total = _weigh_keys(key, each[gone], nodes * nodes)
    one, other = np.divmod(found, nodes)
    return Summed(one, other, count, total, inside)


def by_size(source: Ints, target: Ints, weight: Floats, nodes: int) -> Summed:
    """Return the same with messages of different weights apart.

    Examples
    --------
    >>> a = np.array
    >>> found = by_size(a([0, 0, 0]), a([1, 1, 1]), a([2.0, 5.0, 2.0]), 2)
    >>> found.source.tolist(), found.messages.tolist(), found.weight.tolist()
    ([0, 0], [2.0, 1.0], [4.0, 5.0])
    """
    each, kind = np.unique(weight, return_inverse=True)
    gone = source != target
    key = (source[gone] * nodes + target[gone]) * len(each) + kind[gone]
    found, many = np.unique(key, return_counts=True)
    count = many.astype(np.float64)
    pair, size = np.divmod(found, max(1, len(each)))
    inside = np.bincount(source[~gone], weight[~gone], minlength=nodes).astype(np.float64)
    return Summed(*np.divmod(pair, nodes), count, count * each[size], inside)


def join_sums(parts: list[Summed], nodes: int) -> Summed:
    """Return several parts as one; a pair may stand in it once a part.

    Examples
    --------
    >>> a = sum_messages(np.array([0]), np.array([1]), 1.0, 2)
    >>> join_sums([a, a.reversed()], 2).source.tolist()
    [0, 1]
    """
    if not parts:
        none: Ints = np.empty(0, dtype=np.int64)
        return Summed(none, none, none.astype(float), none.astype(float), np.zeros(nodes))
    if len(parts) == 1:
        return parts[0]
    one, other, count, total = (np.concatenate([part[k] for part in parts]) for k in range(4))
    return Summed(one, other, count, total, np.sum([part.inside for part in parts], axis=0))


def _weigh_keys(key: Ints, weight: Floats, size: int) -> tuple[Ints, Floats, Floats]:
    """Return each key once, ascending, how often it stood and the sum of its weights."""
    if size <= min(_TABLE, 16 * len(key)):
        count = np.bincount(key, minlength=size)
        found = np.flatnonzero(count)
        total = np.bincount(key, weight, minlength=size)[found].astype(np.float64)
        return found.astype(np.int64), count[found].astype(np.float64), total
    found, total, many = sum_by_key(key, weight, np.ones(len(key)))
    return found, many, total

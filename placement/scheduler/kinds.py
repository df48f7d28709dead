# SPDX-License-Identifier: Apache-2.0
"""Kinds of nodes: a job gets nodes of one kind, as in a partition of a scheduler.

GPUs, cores and Slurm features tell kinds apart. Features of which a machine has many
sets say where a node is or who owns it, not what it is, and make no kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.machine import Machine, once
from nidmap.placement.support.array_types import Array, Ints, Mask

#: Requests nodes of several kinds in one job.
ANY = "any"

#: Maximum number of distinct feature sets that are regarded as kinds of nodes.
_MOST_SETS = 8


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """The kinds of a machine's n nodes, starting with the most common among compute nodes."""

    names: tuple[str, ...]  # ``gpus=8``, ``gpus=0,cores=64`` …: what tells each from the others
    of: Ints  # (n,), the kind of each node; -1 of one that computes nothing


@once
def kinds_of(machine: Machine) -> Kinds:
    """Return the kinds of a machine's nodes."""
    rows = np.flatnonzero(machine.compute)
    kind, names = np.zeros(len(rows), dtype=np.int64), [""]
    for column in ("gpus", "features", "cores"):
        values = getattr(machine, column)[rows]
        if not len(rows) or (values == values[0]).all():
            continue  # fast path for the usual case
        words, code = np.unique(values, return_inverse=True)
        if column == "features":
            plain = np.array([_plain_features(text) for text in words.tolist()])
            words, joined = np.unique(plain, return_inverse=True)
            code = joined.reshape(-1)[code]
        pairs, finer = np.unique(kind * len(words) + code, return_inverse=True)
        if len(pairs) > len(names) and (column != "features" or len(words) <= _MOST_SETS):
            names = [_name_kind(names, column, words, *divmod(pair, len(words))) for pair in pairs]
            kind = finer.reshape(-1)
    order = np.argsort(-np.bincount(kind, minlength=len(names)), kind="stable")
    of = np.full(len(machine), -1, dtype=np.int64)
    of[rows] = np.argsort(order)[kind]
    return Kinds(tuple(names[k] or "all" for k in order.tolist()), of)


def _plain_features(text: str) -> str:
    """Return features without PBS's NAME=VALUE resources, which tell where a node is."""
    return ",".join(word for word in text.split(",") if "=" not in word)


def _name_kind(names: list[str], column: str, words: Array, outer: int, word: int) -> str:
    """Name a kind by its features and the values that distinguish it from others."""
    value = words[word] if words[word] != "" else "none"
    return ",".join(part for part in (names[outer], f"{column}={value}") if part)


def of_same_kinds(machine: Machine, rows: Ints) -> Mask:
    """Return the mask of the nodes that are of the same kinds as some nodes."""
    known = kinds_of(machine).of
    return np.asarray(np.isin(known, known[rows]) & (known >= 0))


def offered(machine: Machine, free: Mask, rows: Ints, kind: str = "") -> Mask:
    """Return the nodes that a job could have got: of its kinds, free or already its own.

    `kind`: of this kind instead, as `of_one_kind` takes it.
    """
    usable = free.copy()
    usable[rows] = True
    alike = np.ones(len(machine), dtype=bool)
    if kind:
        alike, _ = of_one_kind(machine, usable, 0, rows[:0], kind)
    elif len(rows):
        alike = of_same_kinds(machine, rows)
    return np.asarray(usable & machine.compute & alike)


def of_one_kind(
    machine: Machine, free: Mask, count: int, include: Ints, kind: str = ""
) -> tuple[Mask, str]:
    """Return the nodes of the kinds that a request may use, and a remark on that.

    `free` (n,). `include` (k,): nodes that must be in the answer: theirs are the kinds that may
    be taken. `kind`: one of `kinds_of`; ``any``: nodes of all kinds. '': of the kinds with so
    many free nodes the one that the machine has most of.
    """
    known = kinds_of(machine)
    if kind not in ("", ANY, *known.names):
        there = f"choose from {', '.join(known.names)}, or any for nodes of all kinds"
        raise UsageError(f"unknown kind of nodes {kind!r}", there)
    if len(known.names) < 2 or kind == ANY:
        return np.ones(len(machine), dtype=bool), ""
    if kind:
        return np.asarray(known.of == known.names.index(kind)), ""
    if len(include):
        return of_same_kinds(machine, include), ""
    have = np.bincount(known.of[free & (known.of >= 0)], minlength=len(known.names))
    enough = np.flatnonzero(have >= count)
    if not len(enough):
        counts = zip(have.tolist(), known.names, strict=True)
        text = ", ".join(f"{number} of {name}" for number, name in counts)
        raise PlanError(
            f"{count} nodes of one kind wanted, but only {text} are free", "--kind any mixes them"
        )
    first = known.names[enough[0]]
    remark = f"only nodes of kind {first} are used; --kind takes {', '.join(known.names)}, any"
    return np.asarray(known.of == enough[0]), remark if int((have > 0).sum()) > 1 else ""

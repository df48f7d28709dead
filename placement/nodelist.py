# SPDX-License-Identifier: Apache-2.0
"""Ordered node lists, folded and expanded without losing their order."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import SupportsIndex, overload

from nidmap.placement.errors import ParseError
from nidmap.placement.names import split_number
from nidmap.placement.names.hostlist import MAX_LENGTH, MAX_NAMES, NAME, count, expand
from nidmap.placement.names.pasted import pieces


class NodeList(tuple[str, ...]):
    """An ordered tuple of node names, in the order of the job's slots.

    It is a tuple: it can be indexed, sliced, added, compared and hashed, and
    equals a plain tuple of the same names. A name may be in it more than
    once, as in a host file that lists a node once per rank.

    Parameters
    ----------
    names : iterable of str
        Letters, digits, ``.``, ``-`` and ``_``; a leading ``#`` marks an index
        of a machine's table (`nidmap.placement.lookup`).

    Raises
    ------
    ParseError
        Where one is not a node name.

    Examples
    --------
    >>> nodes = NodeList(["nid00045", "nid00012"])
    >>> nodes.fold()
    'nid[00045,00012]'
    >>> nodes + NodeList.parse("nid00013")
    NodeList.parse('nid[00045,00012-00013]')
    >>> NodeList.parse("nid[00045,00012]") == nodes
    True
    """

    __slots__ = ()

    def __new__(cls, names: Iterable[str] = ()) -> NodeList:
        """Check the names and keep their order."""
        if isinstance(names, NodeList):
            return names
        if isinstance(names, str):
            raise TypeError("NodeList takes an iterable of names; use NodeList.parse for text")
        return super().__new__(cls, _check_names([str(name) for name in names]))

    @classmethod
    def parse(cls, text: str, source: str = "", most: int | None = None) -> NodeList:
        """Read a node list as people paste it.

        Folded lists (``nid[00045,00012]``, ``r[1-2]n[01-03]``) with commas or
        white space between them; one name per line with ``#`` comments; host files of Slurm
        (``nid00045*3``), Open MPI (``node slots=4``) and Hydra (``node:4``); PBS's
        ``exec_host`` (``n1/0*24+n2/0*24``); LSF's LSB_MCPU_HOSTS (``n1 24 n2 24``)
        and exec_host (``24*n1:24*n2``), Grid Engine's PE_HOSTFILE; what ``squeue``,
        ``sinfo``, ``scontrol show job|node|hostnames`` and ``sacct`` print. Repeats are kept
        (except those of ``sinfo``, which repeats a node once per partition).

        NIDs (``45-47``) and indices (``#0-63``) stay words of the list: what
        they mean depends on a machine (`nidmap.placement.lookup.rows_of`).

        Parameters
        ----------
        text : str
            The list, in any of these forms.
        source : str
            Name of the file it comes from, for errors; '' for text given directly.
        most : int or None
            Nodes that there are: a word such as ``n[0-3999999]`` that makes more
            names is refused before it is expanded. None: not known.

        Returns
        -------
        NodeList
            Empty where the text names no node.

        Raises
        ------
        ParseError
            Naming the line and the word that is not a node list, and what is
            wrong with it; also where it would hold more than
            `nidmap.placement.names.hostlist.MAX_NAMES` names.

        Examples
        --------
        >>> NodeList.parse("r[1-2]n[01-02], login1")
        NodeList.parse('r1n[01-02],r2n[01-02],login1')
        >>> tuple(NodeList.parse("node1 slots=2  # fast\\nnode2:1"))
        ('node1', 'node1', 'node2')
        """
        listed, once = pieces(text, source)
        names = expand(listed, source, MAX_NAMES if most is None else most)
        return tuple.__new__(cls, dict.fromkeys(names) if once else names)

    @staticmethod
    def length_of(text: str, source: str = "") -> int:
        """Return how many names a text holds, duplicates included, without expanding it.

        Parameters
        ----------
        text, source : str
            As for `parse`.

        Raises
        ------
        ParseError
            As `parse`.

        Examples
        --------
        >>> NodeList.length_of("nid[00000-99999],login*3")
        100003
        """
        return count(pieces(text, source)[0], source)

    def fold(self, sort: bool = False) -> str:
        """Fold the list as Slurm does, with runs of consecutive numbers in brackets.

        Parameters
        ----------
        sort : bool
            Sort the names first, numbers by value; by default the order is kept.

        Returns
        -------
        str
            The same text as ``scontrol show hostlist`` gives: only the number at
            the end of a name is folded, as Slurm takes no bracket before a suffix.

        Examples
        --------
        >>> NodeList(["n9", "n10", "n8", "n8", "m1-ib", "m2-ib"]).fold()
        'n[9-10,8,8],m1-ib,m2-ib'
        >>> NodeList(["n10", "n9", "login"]).fold(sort=True)
        'login,n[9-10]'
        """
        return fold(self.sorted() if sort else self)

    def sorted(self) -> NodeList:
        """Return the list sorted by text and by numbers anywhere in a name, keeping duplicates.

        Examples
        --------
        >>> NodeList(["r10n1", "r9n2", "r9n1"]).sorted()
        NodeList.parse('r9n[1-2],r10n1')
        """
        names = tuple(self)  # a plain tuple is faster to iterate
        return tuple.__new__(NodeList, [names[k] for k in numeric_order(names)])

    @property
    def unique(self) -> NodeList:
        """The list without duplicates, in order of first occurrence.

        Examples
        --------
        >>> NodeList.parse("n2*3,n1,n2").unique
        NodeList.parse('n[2,1]')
        """
        return tuple.__new__(NodeList, dict.fromkeys(self))

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> str: ...
    @overload
    def __getitem__(self, key: slice, /) -> NodeList: ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> str | NodeList:
        """Return one name, or a slice of the list."""
        if isinstance(key, slice):
            return tuple.__new__(NodeList, tuple.__getitem__(self, key))
        return tuple.__getitem__(self, key)

    def __add__(self, other: Iterable[str], /) -> NodeList:  # type: ignore[override]  # any names
        """Return this list followed by the names of `other`."""
        return tuple.__new__(NodeList, tuple.__add__(self, tuple(NodeList(other))))

    def __mul__(self, times: SupportsIndex, /) -> NodeList:
        """Return the list repeated `times` times."""
        return tuple.__new__(NodeList, tuple.__mul__(self, times))

    def __str__(self) -> str:
        return self.fold()

    def __repr__(self) -> str:
        return f"NodeList.parse({self.fold()!r})"


def _check_names(names: list[str]) -> list[str]:
    """Return the names, or raise for the first invalid one."""
    for name in names:
        if not NAME.fullmatch(name) or len(name) > MAX_LENGTH:
            raise ParseError(
                "node list",
                0,
                f"'{name}' is not a node name",
                f"names hold letters, digits, '.', '-' and '_', at most {MAX_LENGTH}",
            )
    return names


_NUMBER = re.compile(r"(\d+)", re.ASCII)

#: Names from which on numpy, which takes a while to load, sorts their numbers faster.
_MANY = 100_000


def fold(names: Sequence[str]) -> str:
    """Fold names as Slurm does, keeping their order.

    A range is as wide as its first number, as Slurm expands it: ``n9,n10`` is
    ``n[9-10]`` and ``n09,n10`` is ``n[09-10]``, but ``n9,n010`` is two numbers.
    """
    groups: list[tuple[str, list[list[str]]]] = []
    for name in names:
        prefix, digits = split_number(name)
        if not groups or not digits or prefix != groups[-1][0] or not groups[-1][1][-1][-1]:
            groups.append((prefix, [[digits, digits]]))
        elif _follows(groups[-1][1][-1][-1], digits):
            groups[-1][1][-1][-1] = digits
        else:
            groups[-1][1].append([digits, digits])
    return ",".join(itertools.starmap(_fold_group, groups))


def _follows(digits: str, after: str) -> bool:
    """Tell whether a number continues a range: one more than the last, padded alike."""
    grown = len(after) == len(digits) + 1 and after[0] == "1"
    return int(after) == int(digits) + 1 and (len(after) == len(digits) or grown)


def _fold_group(prefix: str, runs: list[list[str]]) -> str:
    """Fold names that differ only in their number, given the ends of each run."""
    texts = [first if first == last else f"{first}-{last}" for first, last in runs]
    alone = len(runs) == 1 and texts[0] == runs[0][0]
    return f"{prefix}{texts[0]}" if alone else f"{prefix}[{','.join(texts)}]"


def nid_ranges(values: Iterable[int]) -> str:
    """Fold ascending runs of NIDs, keeping the order."""
    return fold([str(value) for value in values]).strip("[]")


def numeric_order(names: Sequence[str]) -> list[int]:
    """Return the order that sorts names, comparing the numbers in them by value.

    Equal numbers of different width are sorted narrow first; names that are the
    same keep their order.
    """
    parts = [split_number(name) for name in names]
    prefixes = sorted({prefix for prefix, _ in parts}, key=_sorting_key)
    rank = dict(zip(prefixes, range(len(prefixes)), strict=True))
    widest = max((len(digits) for _, digits in parts), default=0)
    # one whole number each: the place of the prefix, then the number, then how wide it is written
    span, widths = 10**widest + 1, widest + 1
    keys = [(rank[a] * span + int(b or -1) + 1) * widths + len(b) for a, b in parts]
    if len(keys) > _MANY and len(prefixes) * span * widths < 1 << 63:
        import numpy as np

        order: list[int] = np.argsort(np.array(keys, dtype=np.int64), kind="stable").tolist()
        return order
    return sorted(range(len(keys)), key=keys.__getitem__)


def _sorting_key(text: str) -> list[tuple[str, int, int]]:
    """Return a sort key that compares text as text and embedded numbers as numbers."""
    words = _NUMBER.split(text)
    numbers = [*words[1::2], ""]
    return [
        (word, int(number or -1), len(number))
        for word, number in zip(words[::2], numbers, strict=True)
    ]

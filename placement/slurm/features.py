"""Slurm's feature expressions (``--constraint``), as far as they mean single nodes.

Features joined by ``&`` or ``,`` (and) and ``|`` (or), with parentheses, one deep. As
in Slurm both operators have the same precedence and are taken from the left:
``a|b&c`` is ``(a|b)&c`` (checked on slurmctld 22.05.8). What depends on the
whole set of nodes, counts (``a*4``) and brackets (``[a|b]``), is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from placement.errors import ParseError, UsageError, printable
from placement.support.array_types import Mask, Strs

__all__ = ["with_features"]

_TOKEN = re.compile(r"[&|,()]|[^&|,()\s]+")
_ODD = re.compile(r"[\[\]*!\s]")


def with_features(expression: str, features: Strs) -> Mask:
    """Return which nodes have the features that an expression asks for.

    Parameters
    ----------
    expression : str
        As for ``sbatch --constraint``.
    features : str (n,)
        Each node's features, comma-separated.

    Returns
    -------
    bool (n,)

    Raises
    ------
    UsageError
        An expression that is none, or a count.
    ParseError
        A feature that no node has.

    Examples
    --------
    >>> import numpy as np
    >>> some = np.array(["gpu,a100", "mc", "gpu,h100"])
    >>> with_features("gpu&(a100|h100)", some).tolist()
    [True, False, True]
    >>> with_features("mc|gpu&a100", some).tolist()
    [True, False, False]
    """
    return _Expression(expression, features).value()


class _Expression:
    """One expression on one table of features."""

    def __init__(self, text: str, features: Strs) -> None:
        self.text = text
        if not text.strip() or _ODD.search(text):
            hint = "features joined by & and |, parentheses around"
            raise self._wrong("has what is not supported", hint)
        words, at = np.unique(features, return_inverse=True)
        self.at = at
        self.sets = [frozenset(str(w).split(",")) - {""} for w in words]
        self.tokens: Iterator[str] = iter(_TOKEN.findall(text))
        self.token = next(self.tokens, "")

    def value(self) -> Mask:
        """Return the whole expression's value for each node."""
        values = self._chain(inside=False)
        if self.token:
            raise self._wrong(f"has {self.token!r} in the wrong place")
        return np.asarray(values[self.at])

    def _wrong(self, what: str, hint: str = "") -> UsageError:
        return UsageError(f"--constraint {self.text!r} {what}", hint)

    def _take(self) -> str:
        token, self.token = self.token, next(self.tokens, "")
        return token

    def _chain(self, inside: bool) -> Mask:
        """Read features and operators up to the end or a closing parenthesis."""
        value = self._term(inside)
        while self.token in ("&", ",", "|"):
            operator = self._take()
            other = self._term(inside)
            value = value | other if operator == "|" else value & other
        return value

    def _term(self, inside: bool) -> Mask:
        word = self._take()
        if word == "(":
            if inside:
                raise self._wrong("nests parentheses, which Slurm does not take")
            inner = self._chain(inside=True)
            if self._take() != ")":
                raise self._wrong("has an open parenthesis")
            return inner
        if word in ("", "&", "|", ",", ")"):
            raise self._wrong("has an operator without a feature")
        value = np.array([word in some for some in self.sets], dtype=np.bool_)
        if not value.any():
            known = sorted({w for some in self.sets for w in some})
            there = f"there are {printable(', '.join(known), 200)}" if known else "there are none"
            what = f"asks for {word!r}, which no node has"
            raise ParseError("--constraint", 0, f"{self.text!r} {what}", there)
        return value

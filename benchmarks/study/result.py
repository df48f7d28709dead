# SPDX-License-Identifier: Apache-2.0
"""The results of a part of the study: tables, checks, remarks, series for plots."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from benchmarks.study.verdict import Claim


@dataclass(frozen=True, slots=True)
class Table:
    """A table of words.

    Attributes
    ----------
    title : str
    header : tuple of str
    rows : tuple of tuples of str
    note : str
        What stands below it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self) -> str:
        """Return the table as Markdown.

        Examples
        --------
        >>> print(Table("T", ("a", "b"), (("1", "2"),)).markdown())
        **T**
        <BLANKLINE>
        | a | b |
        |---|---|
        | 1 | 2 |
        """
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        text = "\n".join(
            "|" + "|".join(cells) + "|" for cells in (_pad_cells(row) for row in lines)
        )
        text = text.replace("| --- ", "|---")
        return f"**{self.title}**\n\n{text}" + (f"\n\n{self.note}" if self.note else "")


def _pad_cells(cells: tuple[str, ...]) -> list[str]:
    return [f" {cell} " for cell in cells]


@dataclass(frozen=True, slots=True)
class Term:
    """A term that the common setting leaves out, and the model's result with it.

    Attributes
    ----------
    name : str
        What it is, and where it is published.
    model : tuple of float
        The figures that the same rule decides on.
    words : str
        The figures as a reader takes them.
    cost : str
        What other statements are known to lose by it.
    claim : Claim or None
        Another rule that decides, with its own figures; None: the statement's.
    """

    name: str
    model: tuple[float, ...]
    words: str
    cost: str = ""
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One published claim against the model.

    Attributes
    ----------
    what : str
        The statement and where it stands.
    published, model : str
    claim : Claim
        The figures of both, and the rule that decides.
    why : str
        Where they part: a term switched off or a constant varied, with the number.
    term : Term or None
        The one that may bring them together.
    needs : str
        Where none does: what is missing, and what measured figure would decide it.
    """

    what: str
    published: str
    model: str
    claim: Claim
    why: str = ""
    term: Term | None = None
    needs: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the model's figures satisfy the rule."""
        return self.claim.holds

    @property
    def verdict(self) -> str:
        """``agrees`` or ``disagrees``."""
        return "agrees" if self.agrees else "disagrees"

    @property
    def term_agrees(self) -> bool:
        """Whether one named term makes the model satisfy the same rule, at no known cost."""
        return self.term is not None and not self.term.cost and self._with(self.term)

    def _with(self, term: Term) -> bool:
        """Return whether the figures with a term satisfy the rule."""
        return (term.claim or replace(self.claim, model=term.model)).holds

    @property
    def varied(self) -> str:
        """What was varied, the named term last; or what is missing."""
        said = [self.why]
        if self.term is not None:
            right = "agrees" if self._with(self.term) else "disagrees"
            words = f"{self.term.words}, {right}{self.term.cost}"
            said.append(f"with one term, {self.term.name}: {words}")
        if self.needs and not self.agrees:
            said.append(f"missing: {self.needs}")
        return "; ".join(filter(None, said))


@dataclass(frozen=True, slots=True)
class Part:
    """The results of one paper's experiments.

    Attributes
    ----------
    paper : str
        A key of `benchmarks.study.published.PAPERS`.
    title : str
    text : tuple of str
        Paragraphs that stand before the tables.
    tables : tuple of Table
    checks : tuple of Check
    series : dict
        Figures for plots and JSON.
    """

    paper: str
    title: str
    text: tuple[str, ...]
    tables: tuple[Table, ...]
    checks: tuple[Check, ...]
    series: dict[str, Any] = field(default_factory=dict)

    def document(self) -> Mapping[str, Any]:
        """Return the part as JSON."""
        return {
            "paper": self.paper,
            "title": self.title,
            "tables": [
                {"title": t.title, "header": list(t.header), "rows": [list(r) for r in t.rows]}
                for t in self.tables
            ],
            "checks": [
                {
                    "what": c.what,
                    "published": c.published,
                    "model": c.model,
                    "verdict": c.verdict,
                    "rule": c.claim.words,
                    "figures": {
                        "published": list(c.claim.published),
                        "model": list(c.claim.model),
                    },
                    "why": c.varied,
                }
                for c in self.checks
            ],
            "series": self.series,
        }


def three(value: float) -> str:
    """Return three digits without an exponent.

    Examples
    --------
    >>> three(1234.5), three(0.01234), three(2.0), three(0.0)
    ('1,234', '0.0123', '2.00', '0')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    for digits, least in ((1, 10), (2, 1), (3, 0.1), (4, 0.01)):
        if size >= least:
            return f"{value:.{digits}f}"
    return f"{value:.2g}"


def percent(value: float) -> str:
    """Format a share as a signed percentage.

    Examples
    --------
    >>> percent(0.1666), percent(-0.154), percent(0.0)
    ('+16.7 %', '-15.4 %', '0.0 %')
    """
    text = f"{100 * value:+.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def ratio_words(value: float) -> str:
    """Describe the model's error: model over published.

    Examples
    --------
    >>> ratio_words(0.73), ratio_words(0.002)
    ('x 0.73', 'x 0.002')
    """
    return f"x {value:.2f}" if value >= 0.1 else f"x {value:.2g}"


def join_words(words: Iterable[str]) -> str:
    """Join words as in a sentence.

    Examples
    --------
    >>> join_words(["a", "b", "c"]), join_words(["a"])
    ('a, b and c', 'a')
    """
    found = list(words)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"

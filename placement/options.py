"""Words of ``-m`` that have options: ``torus:8x8x8,nodes=2``, ``xname:group=rack``, ``known:…``.

``known:routing=single,mpi=mpich`` says what is known of a machine beside its links: how
packets are really routed, which MPI library programs have and what one rank can send, so
that nothing that plans or predicts has to take it for unknown. The mini-Cray says all of
itself: its links are so slow that no rank is slower.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from placement.errors import UsageError, printable

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["MPIS", "WORD", "Known", "Options", "parse_known"]

#: How the word begins that says what is known.
WORD = "known:"

#: The MPI libraries that may be named.
MPIS = ("cray-mpich", "mpich", "intel", "mvapich", "openmpi")


class Options:
    """The options of one word, each given at most once; what is wrong names the word.

    Parameters
    ----------
    text : str
        The whole word: what it is of, a colon, and ``key=value`` between commas.
    sizes : bool
        True where the first of them may be sizes alone.

    Attributes
    ----------
    kind : str
        What stands before the colon.
    sizes : str
        '' for none.
    given : dict of str to str

    Raises
    ------
    UsageError
        Something else than ``key=value``, or a key twice.

    Examples
    --------
    >>> found = Options("torus:4x4,nodes=2", sizes=True)
    >>> found.kind, found.dims(found.sizes, "extents", 4), found.whole("nodes", 1)
    ('torus', (4, 4), 2)
    """

    def __init__(self, text: str, sizes: bool = False) -> None:
        self.text, self.sizes, self.given = text.strip(), "", dict[str, str]()
        self.kind, _, rest = self.text.partition(":")
        for place, word in enumerate(rest.split(",")):
            key, equals, value = (part.strip() for part in word.partition("="))
            if sizes and not equals and place == 0:
                self.sizes = key
            elif not key or not value:
                raise self.wrong(f"{_quote_text(word)} is not key=value", "commas separate options")
            elif key in self.given:
                raise self.wrong(f"{_quote_text(key)} is given twice")
            else:
                self.given[key] = value

    def wrong(self, text: str, hint: str = "") -> UsageError:
        """Return the error that says what is wrong with the word."""
        return UsageError(f"{printable(self.text)}: {text}", hint)

    def only(self, *known: str) -> None:
        """Refuse a key that is none of `known`."""
        for key in self.given:
            if key not in known:
                from difflib import get_close_matches  # slow to import, wanted in errors only

                near = get_close_matches(key, known, 1)
                meant = f", is {near[0]} meant?" if near else ""
                there = f"there are {', '.join(known)}"
                raise self.wrong(f"no option {_quote_text(key)}{meant}", there)

    def choice(self, key: str, choices: Collection[str], default: str = "") -> str:
        """Return a value that is one of `choices`."""
        value = self.given.get(key, default)
        if value != default and value not in choices:
            there = f"there are {', '.join(choices)}"
            raise self.wrong(f"no {key} {_quote_text(value)}", there)
        return value

    def whole(self, key: str, default: int | None = None, most: int = 10**18) -> int:
        """Return a whole number above 0."""
        if key not in self.given:
            if default is None:
                raise self.wrong(f"{key}= is missing")
            return default
        return self.number(self.given[key], key, most)

    def number(self, text: str, what: str, most: int = 10**18) -> int:
        """Return a part of a value that is a whole number above 0."""
        digits = text.isascii() and text.isdigit() and len(text) <= 18
        if not digits or not int(text):
            shown = "0" if digits else _quote_text(text)
            raise self.wrong(f"{what}: {shown} is not a whole number above 0")
        if int(text) > most:
            raise self.wrong(f"{what}: {int(text)} is too many", f"at most {most} are possible")
        return int(text)

    def dims(self, text: str, what: str, most: int) -> tuple[int, ...]:
        """Return whole numbers above 0 that stand between ``x``."""
        if not text:
            raise self.wrong(f"{what} is missing", "as in 8x8x8")
        found = tuple(self.number(part, what) for part in text.lower().split("x"))
        if len(found) > most:
            raise self.wrong(f"{what} has {len(found)} numbers", f"at most {most} are possible")
        return found

    def figures(self, key: str, what: str, least: float) -> list[float]:
        """Return the finite numbers between ``:``, all at least `least`; none where not given."""
        texts = self.given[key].split(":") if key in self.given else []
        return [self._figure(text, key, what, least) for text in texts]

    def _figure(self, text: str, key: str, what: str, least: float) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value < math.inf:
            raise self.wrong(f"{key}: {_quote_text(text)} is not a {what}")
        return value

    def speed(self, key: str, default: float) -> float:
        """Return a bandwidth in GB/s."""
        return self.speeds(key).get(key, default)

    def speeds(self, *keys: str) -> dict[str, float]:
        """Return those of the bandwidths in GB/s that are given; inf where asked for."""
        what, above = "bandwidth in GB/s above 0", math.ulp(0.0)
        given = {key: self.given[key] for key in keys if key in self.given}
        return {
            key: math.inf if text == "inf" else self._figure(text, key, what, above)
            for key, text in given.items()
        }


def _quote_text(text: str) -> str:
    return repr(printable(text.strip(), 40))


class Known(NamedTuple):
    """What is known.

    Attributes
    ----------
    routing : str
        As `placement.network.routings` calls it; '' where it is not known.
    mpi : str
        One of `MPIS`; '' where it is not known.
    process : float
        GB/s that one rank can send, inf where the links alone bind; 0 where it is not known.
    """

    routing: str = ""
    mpi: str = ""
    process: float = 0.0

    def of(self, machine: Machine) -> Machine:
        """Return the machine that knows it too.

        Raises
        ------
        UsageError
            A routing that does not apply to this network.

        Examples
        --------
        >>> from placement.network import routings
        >>> from placement.specs import parse_spec
        >>> routings(Known(routing="single").of(parse_spec("torus:4x4")))
        ('single', 'dimension-order')
        """
        if self.routing:
            from placement.network import routings

            possible = routings(machine)
            if self.routing not in possible:
                word, kind = printable(self.routing, 40), machine.topology.kind
                text = f"{WORD}routing={word}: no such routing on a {kind}"
                raise UsageError(text, f"there are {', '.join(possible)}")
        stated = {name: word for name, word in self._asdict().items() if word}
        stated |= {"process_mark": "known"} if self.process else {}
        parameters = {**machine.topology.parameters, **stated}
        topology = replace(machine.topology, parameters=parameters)
        return replace(machine, topology=topology, _cache={})


def parse_known(spec: str) -> Known:
    """Return what a word of ``-m`` says is known.

    Raises
    ------
    UsageError
        No field of `Known`, one of them twice, no such MPI, or no bandwidth.

    Examples
    --------
    >>> parse_known("known:routing=single,mpi=mpich")
    Known(routing='single', mpi='mpich', process=0.0)
    """
    options = Options(spec)
    options.only(*Known._fields)
    routing, mpi = options.given.get("routing", ""), options.choice("mpi", MPIS)
    every = options.given.get("process") == "inf"
    return Known(routing, mpi, math.inf if every else options.speed("process", 0.0))

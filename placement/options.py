# SPDX-License-Identifier: Apache-2.0
"""Options within an ``-m`` word: ``torus:8x8x8,nodes=2``, ``shaheen2,process=2``.

Every machine takes figures after its name, a site, a file or a synthetic one:

``routing``          how packets are really routed (`nidmap.placement.network.routings`)
``mpi``              the MPI library that programs have (`MPIS`)
``process``          GB/s that one rank can send; ``inf``: no limit
``memory``           GB/s inside a node; ``inf``: that costs nothing
``payload``          share of the bandwidth between routers that carries a program's bytes
``latency``          us of a short message; 0 switches off all that does not grow with the bytes
``loss``             how much longer links take where routers divert all bytes, as a share
``background-load``  GB/s that each node of another job sends
``slowed``           how many times slower than stated its links are built: a mini-Cray's clock

They take the place of what the site states or what is assumed.
"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nidmap.placement.errors import UsageError
from nidmap.placement.support.registry import close_names

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine

#: Figures that may follow the name of any machine.
FIGURES = (
    "routing", "mpi", "process", "memory", "payload", "latency", "loss", "background-load",
    "slowed",
)  # fmt: skip

#: Figures as parameters of a topology.
Figures = dict[str, Any]

#: No latency in us and no bandwidth in GB/s is above this.
MOST = 1e9

#: A comma between options, and not in a folded list: ``rails=mlx5_[0,2]``.
_COMMA = re.compile(r",(?![^\[\]]*\])")

#: Options that select parts of a file (`nidmap.placement.dumps.chosen`).
CHOICES = ("rails", "topology")

#: The MPI libraries that may be named.
MPIS = ("cray-mpich", "mpich", "intel", "mvapich", "openmpi")


class Options:
    """The options in a word, each given at most once; errors name the word.

    `text`: the whole word: what it is of, a colon, and ``key=value`` between commas. `sizes`:
    True where the first of them may be sizes alone. `rest`: the part of the word that holds
    options; None means what is after the colon. `kind`: what is before the colon. `sizes`:
    '' for none.
    """

    def __init__(self, text: str, sizes: bool = False, rest: str | None = None) -> None:
        self.text, self.sizes, self.given = text.strip(), "", dict[str, str]()
        self.kind, _, behind = self.text.partition(":")
        rest = behind if rest is None else rest
        for place, word in enumerate(_COMMA.split(rest)):
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
        """Return the error for an invalid word."""
        return UsageError(f"{self.text}: {text}", hint)

    def only(self, *known: str) -> None:
        """Refuse keys that are not among `known`."""
        for key in self.given:
            if key not in known:
                raise self.wrong(f"unknown option {_quote_text(key)}", close_names(key, known))

    def choice(self, key: str, choices: Collection[str], default: str = "") -> str:
        """Return a value that must be one of `choices`."""
        value = self.given.get(key, default)
        if value != default and value not in choices:
            there = f"choose from {', '.join(choices)}"
            raise self.wrong(f"unknown {key} {_quote_text(value)}", there)
        return value

    def whole(self, key: str, default: int | None = None, most: int = 10**18) -> int:
        """Return a positive integer."""
        if key not in self.given:
            if default is None:
                raise self.wrong(f"{key}= is missing")
            return default
        return self.number(self.given[key], key, most)

    def number(self, text: str, what: str, most: int = 10**18) -> int:
        """Parse part of a value as a positive integer."""
        digits = text.isascii() and text.isdigit() and len(text) <= 18
        if not digits or not int(text):
            shown = "0" if digits else _quote_text(text)
            raise self.wrong(f"{what}: {shown} is not a whole number above 0")
        if int(text) > most:
            raise self.wrong(f"{what}: {int(text)} is too many", f"at most {most} are possible")
        return int(text)

    def dims(self, text: str, what: str, most: int) -> tuple[int, ...]:
        """Return positive integers separated by ``x``."""
        if not text:
            raise self.wrong(f"{what} is missing", "as in 8x8x8")
        numbers = tuple(self.number(part, what) for part in text.lower().split("x"))
        if len(numbers) > most:
            raise self.wrong(f"{what} has {len(numbers)} numbers", f"at most {most} are possible")
        return numbers

    def figures(self, key: str, what: str, least: float) -> list[float]:
        """Return finite numbers separated by ``:``, all at least `least`; () if not given."""
        texts = self.given[key].split(":") if key in self.given else []
        return [self.figure(text, key, what, least) for text in texts]

    def figure(self, text: str, key: str, what: str, least: float, most: float = MOST) -> float:
        """Return a number between `least` and `most`."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise self.wrong(f"{key}: {_quote_text(text)} is not a {what}")
        return value

    def speed(self, key: str, default: float) -> float:
        """Return a bandwidth in GB/s."""
        return self.speeds(key).get(key, default)

    def speeds(self, *keys: str) -> dict[str, float]:
        """Return the given bandwidths in GB/s; inf where requested."""
        what, above = "bandwidth in GB/s above 0", math.ulp(0.0)
        texts = {key: self.given[key] for key in keys if key in self.given}
        return {
            key: math.inf if text == "inf" else self.figure(text, key, what, above)
            for key, text in texts.items()
        }


def _quote_text(text: str) -> str:
    return repr(text.strip())


def split_figures(word: str, mixed: bool = False) -> tuple[str, Figures]:
    """Separate an ``-m`` word from the figures in it; values of `CHOICES` stay words.

    `word`: a machine and, after commas, ``key=value``; a file's own commas are its name's.
    `mixed`: True for a synthetic machine, whose own options are among the figures.
    """
    if "," not in word or (not mixed and os.path.exists(word)):
        return word, {}
    if mixed:
        parts = word.split(",")
        ours = [part.partition("=")[0].strip() in FIGURES for part in parts]
        ours[0] = False
        name = ",".join(itertools.compress(parts, (not our for our in ours)))
        text = ",".join(itertools.compress(parts, ours))
    else:
        heads = [word[: comma.start()] for comma in re.finditer(",", word)]
        name = next(filter(os.path.exists, reversed(heads)), heads[0])
        text = word[len(name) + 1 :]
    if mixed and not text:
        return name, {}
    options = Options(word, rest=text)
    choices = {key: options.given.pop(key) for key in CHOICES if key in options.given}
    return name, choices | _read_figures(options)


def with_figures(machine: Machine, **figures: str | float | None) -> Machine:
    """Return a machine with figures replaced, in the syntax of ``-m``.

    `figures`: those of `FIGURES`, ``_`` for ``-``; None and '' leave the machine's own.
    """
    words = [f"{key.replace('_', '-')}={value}" for key, value in figures.items()
             if value not in (None, "")]  # fmt: skip
    if not words:
        return machine
    text = ",".join(words)
    return lay_figures(machine, _read_figures(Options(f"{machine.name},{text}", rest=text)))


def lay_figures(machine: Machine, figures: Figures) -> Machine:
    """Return a machine with figures replaced by those that `split_figures` read."""
    if not figures:
        return machine
    stated = dict(machine.topology.parameters)
    if "routing" in figures:
        from nidmap.placement import network

        network.check_routing(machine, figures["routing"])
        stated.pop("routings", None)
    topology = replace(machine.topology, parameters={**stated, **figures})
    return replace(machine, topology=topology)  # what is cached for its links remains valid


def _read_figures(options: Options) -> Figures:
    """Return figures as parameters of a topology, each checked individually."""
    if not options.given:
        return {}
    options.only(*FIGURES)
    read: Figures = {}
    if "routing" in options.given:
        read["routing"] = options.given["routing"]
    if "mpi" in options.given:
        read["mpi"] = options.choice("mpi", MPIS)
    for key, value in options.speeds("memory", "process").items():
        read |= {key: value, f"{key}_mark": "given"}
    above = math.ulp(0.0)
    for key, what, least, most in (
        ("latency", "latency in us of 0 or more", 0.0, MOST),
        ("payload", "share of the wire above 0, at most 1", above, 1.0),
        ("loss", "share of 0 or more", 0.0, MOST),
        ("background-load", "bandwidth in GB/s of 0 or more", 0.0, MOST),
        ("slowed", "ratio above 0", above, MOST),
    ):
        if key in options.given:
            figure = options.figure(options.given[key], key, what, least, most)
            read[key.replace("-", "_")] = figure
    return read

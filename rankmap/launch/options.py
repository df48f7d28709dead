"""Read a launcher's own options the way getopt_long does, and find where the program begins.

Nothing is changed here: a wrapper that misreads one option would start the
wrong thing, so what it does not know is an error, and its caller then leaves
the command as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placement.errors import LaunchError, printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["NONE", "OPTIONAL", "PAIR", "REQUIRED", "Grammar", "Parsed"]

#: Whether an option takes a value: never, behind ``=`` (or attached) only, always, two of them.
NONE, OPTIONAL, REQUIRED, PAIR = 0, 1, 2, 3


@dataclass(frozen=True, slots=True)
class Parsed:
    """A launcher's command line.

    Attributes
    ----------
    argv : tuple of str
    values : dict of str to str
        Value of each option that was given, by its name in the grammar, the
        last one winning; '' for an option without a value.
    program : int
        Where in `argv` the user's program begins; ``len(argv)`` where there is none.
    spans : dict of str to list of (int, int)
        Words of `argv` that each option takes, first and behind the last.
    """

    argv: tuple[str, ...]
    values: dict[str, str]
    program: int
    spans: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def without(self, *names: str) -> Parsed:
        """Return the command line without these options.

        Raises
        ------
        LaunchError
            Where one of them shares a word with others (``-ln64``).

        Examples
        --------
        >>> grammar = Grammar({"ntasks": REQUIRED}, {"n": ("ntasks", REQUIRED)})
        >>> grammar.parse(["srun", "-n", "64", "./app"]).without("ntasks").argv
        ('srun', './app')
        """
        gone: set[int] = set()
        for name in names:
            for low, high in self.spans.get(name, []):
                if any(low < b and a < high for k, s in self.spans.items() if k != name
                       for a, b in s):  # fmt: skip
                    raise LaunchError(f"{printable(self.argv[low], 30)} holds several options")
                gone.update(range(low, high))
        kept = tuple(word for k, word in enumerate(self.argv) if k not in gone)
        values = {k: v for k, v in self.values.items() if k not in names}
        spans = {
            k: [(a - sum(g < a for g in gone), b - sum(g < b for g in gone)) for a, b in s]
            for k, s in self.spans.items()
            if k not in names
        }
        return Parsed(kept, values, self.program - len(gone), spans)

    def number(self, name: str) -> int | None:
        """Return the value of a numeric option, None where it was not given.

        Raises
        ------
        LaunchError
            Where the value is no positive number.
        """
        if name not in self.values:
            return None
        text = self.values[name]
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0):
            raise LaunchError(f"--{name} {printable(text, 30)} of {self.argv[0]} is not understood")
        return int(text)


@dataclass(frozen=True, slots=True)
class Grammar:
    """The options of one launcher.

    Attributes
    ----------
    long : mapping of str to int
        Options behind ``--`` and whether they take a value.
    short : mapping of str to (str, int)
        Letters: the option's name and whether it takes a value.
    single : mapping of str to int
        Words behind one dash (``-cc`` of aprun), which win over letters.
    """

    long: Mapping[str, int]
    short: Mapping[str, tuple[str, int]]
    single: Mapping[str, int] = field(default_factory=dict)

    def parse(self, argv: Iterable[str], first: int = 1) -> Parsed:
        """Return what a command line says.

        Parameters
        ----------
        argv : iterable of str
            The launcher and all that follows.
        first : int
            Where the options begin: behind the launcher's name, or its subcommand.

        Raises
        ------
        LaunchError
            An option that is not known, or one without its value.

        Examples
        --------
        >>> grammar = Grammar({"ntasks": REQUIRED}, {"n": ("ntasks", REQUIRED)})
        >>> got = grammar.parse(["srun", "-n64", "./app", "-n", "3"])
        >>> got.values, got.program
        ({'ntasks': '64'}, 2)
        """
        words = tuple(argv)
        values: dict[str, str] = {}
        spans: dict[str, list[tuple[int, int]]] = {}
        at = first
        while at < len(words) and len(words[at]) > 1 and words[at].startswith("-"):
            if words[at] == "--":
                at += 1
                break
            found: dict[str, str] = {}
            behind = self._option(words, at, found)
            for name in found:
                spans.setdefault(name, []).append((at, behind))
            values.update(found)
            at = behind
        return Parsed(words, values, min(at, len(words)), spans)

    def _option(self, words: tuple[str, ...], at: int, values: dict[str, str]) -> int:
        word = words[at]
        if word.startswith("--"):
            return self._long(words, at, values)
        if word[1:] in self.single:
            return _store(words, at, values, word[1:], self.single[word[1:]], None)
        return self._short(words, at, values)

    def _long(self, words: tuple[str, ...], at: int, values: dict[str, str]) -> int:
        name, equals, value = words[at][2:].partition("=")
        matches = [name] if name in self.long else [k for k in self.long if k.startswith(name)]
        if len(matches) != 1:
            raise _unknown(words[0], words[at])
        return _store(
            words, at, values, matches[0], self.long[matches[0]], value if equals else None
        )

    def _short(self, words: tuple[str, ...], at: int, values: dict[str, str]) -> int:
        """Read letters behind one dash; the first that takes a value takes the rest."""
        letters = words[at][1:]
        for k, letter in enumerate(letters):
            if letter not in self.short:
                raise _unknown(words[0], words[at])
            name, takes = self.short[letter]
            if takes != NONE:
                return _store(words, at, values, name, takes, letters[k + 1 :] or None)
            values[name] = ""
        return at + 1


def _store(
    words: tuple[str, ...],
    at: int,
    values: dict[str, str],
    name: str,
    takes: int,
    value: str | None,
) -> int:
    """Note an option's value and return the place behind it."""
    if takes in (REQUIRED, PAIR) and value is None:
        behind = at + takes
        if behind > len(words):
            raise LaunchError(f"{printable(words[at], 30)} of {words[0]} has no value")
        values[name] = " ".join(words[at + 1 : behind])
        return behind
    if takes in (NONE, PAIR) and value is not None:
        raise _unknown(words[0], words[at])
    values[name] = value or ""
    return at + 1


def _unknown(launcher: str, word: str) -> LaunchError:
    return LaunchError(f"option {printable(word, 40)} of {printable(launcher, 30)} is not known")

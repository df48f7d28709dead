# SPDX-License-Identifier: Apache-2.0
"""Parse what a launcher's command line says about ranks and nodes, and pass on the rest.

A launcher has a hundred options, and each version others. A table here names
those that say how many ranks start and where; what ``nidmap run`` adds goes
right after the launcher's own name. Of an option that is in no table it is
not known whether the next word is its value or the program: it is the program
if it can be run here. What stays in doubt is an error, and whoever called
leaves the command as it is.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from nidmap.placement.errors import LaunchError

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

#: Role of options that are only passed on.
PASSED = "passed"

#: Roles under which no order of ours can hold, and why.
_REFUSED = {
    "placing": "places ranks itself",
    "several": "starts several programs or job components, which cannot share one order",
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A launcher's command line, parsed."""

    argv: tuple[str, ...]
    program: int  # index in `argv` of the user's program; ``len(argv)`` if there is none
    # Value of each role of the table that was given, the last option winning; an option without a
    # value gives its name
    values: dict[str, str]
    roles: tuple[frozenset[str], ...]  # roles that each word of `argv` belongs to

    def without(self, *gone: str) -> tuple[str, ...]:
        """Return the words of the command line without the options of these roles."""
        kept = []
        for word, roles in zip(self.argv, self.roles, strict=True):
            if not roles.intersection(gone):
                kept.append(word)
            elif roles.difference(gone):
                raise LaunchError(f"{word} combines several options", "write them separately")
        return tuple(kept)

    def words(self, role: str) -> str:
        """Return the options of a role as the user wrote them; '' for none."""
        written = zip(self.argv, self.roles, strict=True)
        return " ".join(word for word, roles in written if role in roles)

    def number(self, role: str) -> int | None:
        """Return the value of a numeric option; None if it was not given."""
        text = self.values.get(role)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0):
            raise LaunchError(f"{self.words(role)} is not a plain number")
        return int(text)


class OptionTable:
    """A launcher's options that matter for an order, by role.

    Parameters
    ----------
    letters : str
        All one-letter options that take a value, also those that are not read, where
        letters may share a word as getopt has it; '' where they may not.
    assignments : bool
        True where NAME=VALUE words may be before the program, as for mpirun_rsh.
    **roles : str
        Options of a role as getopt names them, after one dash or two: ``n= ntasks=`` take a
        value, ``genv==`` two, ``l`` none. The first is the one to write. Under ``placing``
        ranks are placed otherwise, under ``several`` there are several layouts: both are
        refused. Those ``passed`` are named only so that their values are not read as options.
    """

    def __init__(self, letters: str = "", assignments: bool = False, **roles: str) -> None:
        self._letters, self._assignments = letters, assignments
        self._options = {
            option.rstrip("="): (role, option.count("="))
            for role, options in roles.items()
            for option in options.split()
        }
        self._first = {role: options.split()[0].rstrip("=") for role, options in roles.items()}

    def written(self, role: str, value: str | int) -> list[str]:
        """Return the words that set a role to a value.

        Examples
        --------
        >>> OptionTable(ranks="ntasks= n=", letters="n").written("ranks", 64)
        ['--ntasks=64']
        """
        name = self._first[role]
        if len(name) > 1 and self._letters:
            return [f"--{name}={value}"]
        return [f"-{name}" if len(name) == 1 else f"--{name}", str(value)]

    def parse(self, argv: Iterable[str], first: int = 1) -> Parsed:
        """Parse a command line.

        Parameters
        ----------
        argv : iterable of str
            The launcher and all that follows.
        first : int
            Where the options begin: after the launcher's name, or its subcommand.

        Raises
        ------
        LaunchError
            Several programs (``:``), an option that is refused, one without its value,
            or one that leaves it unclear where the program begins.

        Examples
        --------
        >>> table = OptionTable(ranks="n= ntasks=", letters="np")
        >>> parsed = table.parse(["srun", "-n64", "-p", "debug", "./app", "-n", "3"])
        >>> parsed.values, parsed.program
        ({'ranks': '64'}, 4)
        >>> table = OptionTable(assignments=True, ranks="np=")
        >>> table.parse(["mpirun_rsh", "-np", "4", "OMP_NUM_THREADS=2", "./app"]).program
        4
        """
        words = tuple(argv)
        if ":" in words:
            raise LaunchError("several programs in one launch (':') cannot share one order")
        values: dict[str, str] = {}
        roles = [frozenset[str]()] * len(words)
        at, doubtful = first, ""
        while at < len(words) and self._is_before_program(words[at]):
            if words[at] == "--":
                at, doubtful = at + 1, ""
                break
            options, behind = self._read(words, at)
            for role in _REFUSED.keys() & options:
                option = f"{os.path.basename(words[0])} {words[at].partition('=')[0]}"
                raise LaunchError(f"{option} {_REFUSED[role]}")
            values.update(options)
            roles[at:behind] = [frozenset(options)] * (behind - at)
            if not options and behind < len(words) and not _is_option(words[behind]):
                if self._is_program(words, behind):
                    at, doubtful = behind, ""
                    break
                doubtful, behind = words[at], behind + 1
            at = behind
        if doubtful and not (words[at:] and shutil.which(words[at])):
            raise _doubtful_option(doubtful)
        values.pop(PASSED, None)
        return Parsed(words, at, values, tuple(roles))

    def _is_before_program(self, word: str) -> bool:
        return _is_option(word) or (self._assignments and _ASSIGNMENT.match(word) is not None)

    def _is_program(self, words: tuple[str, ...], at: int) -> bool:
        """Tell whether a word that follows an unknown option is the program."""
        if shutil.which(words[at]) is None:
            return False
        rest = (word.lstrip("-").partition("=")[0] for word in words[at:] if _is_option(word))
        shared = self._options if self._letters else ()
        if "/" not in words[at] and any(n in self._options or n[:1] in shared for n in rest):
            raise _doubtful_option(words[at - 1])
        return True

    def _read(self, words: tuple[str, ...], at: int) -> tuple[dict[str, str], int]:
        """Return the value of each role that a word sets, and the position after it.

        There is no role where it is not known whether the next word belongs to it.
        """
        word = words[at]
        if not _is_option(word):
            return {PASSED: ""}, at + 1
        long = word.startswith("--")
        name, equals, value = word.lstrip("-").partition("=")
        known = name in self._options and not (long and self._letters and len(name) == 1)
        if self._letters and not long and not known:
            return self._read_letters(words, at)
        if not known:
            full = next((n for n in self._options if len(n) > 1 and n.startswith(name)), "")
            if full and long:
                raise LaunchError(f"option {word} is abbreviated", f"write --{full}")
            return ({PASSED: ""} if equals else {}), at + 1
        role, count = self._options[name]
        behind = at + 1 if equals else at + 1 + count
        if behind > len(words):
            raise _no_value(word, words[0])
        return {role: value if equals else " ".join(words[at + 1 : behind]) or name}, behind

    def _read_letters(self, words: tuple[str, ...], at: int) -> tuple[dict[str, str], int]:
        """Read letters after a single dash; the first that takes a value takes the rest."""
        letters = words[at][1:]
        options: dict[str, str] = {}
        for place, letter in enumerate(letters, 1):
            role, _ = self._options.get(letter, (PASSED, 0))
            options[role] = letter
            if letter in self._letters:
                options[role] = letters[place:] or "".join(words[at + 1 : at + 2])
                if not options[role]:
                    raise _no_value(f"-{letter}", words[0])
                return options, at + 1 + (not letters[place:])
        return options, at + 1


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")


def _no_value(option: str, launcher: str) -> LaunchError:
    return LaunchError(f"{option} of {launcher} has no value")


def _doubtful_option(option: str) -> LaunchError:
    return LaunchError(
        f"cannot tell whether the word after {option} is its value or the program",
        f"write {option}=VALUE, or -- before the program",
    )

"""Read what a launcher's command line says of ranks and nodes, and pass over the rest.

A launcher has a hundred options, and each version others. A table here has
those that say how many ranks start and where; what ``nidmap run`` adds goes
right behind the launcher's own name. Of an option that is in no table it is
not known whether the next word is its value or the program: it is the program
if it can be run here. What stays in doubt is an error, and whoever called
leaves the command as it is.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field

from placement.errors import LaunchError, printable

__all__ = ["OptionTable", "Parsed"]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A launcher's command line.

    Attributes
    ----------
    argv : tuple of str
    values : dict of str to str
        Value of each option of the table that was given, the last one winning;
        '' for an option without a value.
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
        >>> table = OptionTable("n=ntasks ntasks", letters="n")
        >>> table.parse(["srun", "-n", "64", "./app"]).without("ntasks").argv
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
            Where the value is not a positive number.
        """
        if name not in self.values:
            return None
        text = self.values[name]
        if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) > 0):
            raise LaunchError(f"--{name} {printable(text, 30)} of {self.argv[0]} is not understood")
        return int(text)


class OptionTable:
    """The options of a launcher that are read, and those that must not be there.

    Lists have names as users write them, behind one dash or two; ``np=n`` is
    another name of n.

    Parameters
    ----------
    valued, flags, pairs : str
        Options with one value, without a value, and with two (``-genv NAME VALUE``).
    refused : str
        Options under which the ranks' places are not ours to say.
    letters : str
        All one-letter options that take a value, also those that are not read, where
        letters may share a word as getopt has it; '' where they may not.
    """

    def __init__(
        self, valued: str, flags: str = "", pairs: str = "", refused: str = "", letters: str = ""
    ) -> None:
        self._takes: dict[str, int] = {}
        self._names: dict[str, str] = {}
        for names, count in ((valued, 1), (flags, 0), (pairs, 2), (refused, 0)):
            for name, _, meant in (text.partition("=") for text in names.split()):
                self._takes[name], self._names[name] = count, meant or name
        self._refused = {text.partition("=")[2] or text for text in refused.split()}
        self._letters = letters

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
            Several programs (``:``), an option that is refused, one without its value,
            or one that leaves it unclear where the program begins.

        Examples
        --------
        >>> table = OptionTable("n=ntasks ntasks", letters="np")
        >>> got = table.parse(["srun", "-n64", "-p", "debug", "./app", "-n", "3"])
        >>> got.values, got.program
        ({'ntasks': '64'}, 4)
        """
        step = Parsed(tuple(argv), {}, 0)
        words, at, doubtful = step.argv, first, ""
        if ":" in words:
            raise LaunchError("several programs in one launch (':') have several layouts")
        while at < len(words) and _is_option(words[at]):
            if words[at] == "--":
                return Parsed(words, step.values, at + 1, step.spans)
            behind, known = self._read(step, at)
            if not known and behind < len(words) and not _is_option(words[behind]):
                if self._is_program(words, behind):
                    return Parsed(words, step.values, behind, step.spans)
                doubtful = words[at]
                behind += 1
            at = behind
        program = min(at, len(words))
        if doubtful and not (words[program:] and shutil.which(words[program])):
            raise _doubt(doubtful, words[0])
        return Parsed(words, step.values, program, step.spans)

    def _is_program(self, words: tuple[str, ...], at: int) -> bool:
        """Tell whether a word behind an option that is not known is the program.

        Raises
        ------
        LaunchError
            Where a program and a value may have that name, and it matters which it is.
        """
        if shutil.which(words[at]) is None:
            return False
        rest = (word.lstrip("-").partition("=")[0] for word in words[at:] if _is_option(word))
        shared = self._takes if self._letters else ()
        if "/" not in words[at] and any(n in self._takes or n[:1] in shared for n in rest):
            raise _doubt(words[at - 1], words[0])
        return True

    def _read(self, step: Parsed, at: int) -> tuple[int, bool]:
        """Note the option at a place; return the place behind it, and whether it is known."""
        word = step.argv[at]
        long = word.startswith("--")
        name, equals, value = word.lstrip("-").partition("=")
        known = name in self._takes and not (long and self._letters and len(name) == 1)
        if self._letters and not long and not known:
            return self._read_letters(step, at), True
        if not known:
            full = next((n for n in self._takes if len(n) > 1 and n.startswith(name)), "")
            if full and long:
                raise LaunchError(f"option {printable(word, 40)} is abbreviated", f"write --{full}")
            return at + 1, bool(equals)
        behind = at + 1 if equals else at + 1 + self._takes[name]
        if behind > len(step.argv):
            raise LaunchError(f"{printable(word, 30)} of {step.argv[0]} has no value")
        given = value if equals else " ".join(step.argv[at + 1 : behind])
        return self._note(step, self._names[name], at, behind, given), True

    def _read_letters(self, step: Parsed, at: int) -> int:
        """Read letters behind one dash; the first that takes a value takes the rest."""
        letters = step.argv[at][1:]
        for k, letter in enumerate(letters):
            name = self._names.get(letter, f"-{letter}")
            if letter not in self._letters:
                self._note(step, name, at, at + 1, "")
            elif letters[k + 1 :]:
                return self._note(step, name, at, at + 1, letters[k + 1 :])
            elif at + 1 < len(step.argv):
                return self._note(step, name, at, at + 2, step.argv[at + 1])
            else:
                raise LaunchError(f"-{letter} of {step.argv[0]} has no value")
        return at + 1

    def _note(self, step: Parsed, name: str, at: int, behind: int, value: str) -> int:
        if name in self._refused:
            raise LaunchError(f"option {name} of {step.argv[0]} places ranks in its own way")
        step.spans.setdefault(name, []).append((at, behind))
        if not name.startswith("-"):
            step.values[name] = value
        return behind


def _is_option(word: str) -> bool:
    return len(word) > 1 and word.startswith("-")


def _doubt(option: str, launcher: str) -> LaunchError:
    return LaunchError(
        f"where {printable(launcher, 30)}'s options end is not clear at {printable(option, 30)}",
        f"write {printable(option, 30)}=VALUE, or -- before the program",
    )

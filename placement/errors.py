# SPDX-License-Identifier: Apache-2.0
"""The errors that users see: one line each, with an exit code.

Every error that nidmap raises on purpose derives from `NidmapError`. The
command line prints ``nidmap: <message>`` on stderr and leaves with
``exit_code``; a Python caller catches the class.
"""

from __future__ import annotations

import re

#: Parts of a message that are cut to 80 characters: quotations and words, but not paths.
_LONG = re.compile(r"(?<!\w)(')[^']{81,}'(?!\w)|[^\s/'\"]{81,}")


def printable(text: str, limit: int = 80) -> str:
    """Return `text` on one line, control characters escaped, cut to `limit` characters.

    What is quoted in a message comes from files and job names that others
    wrote: a raw newline would forge a second line, a raw ESC would reach the
    terminal.

    Examples
    --------
    >>> printable("a\\x1b[31mb")
    'a\\\\x1b[31mb'
    """
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)


def printable_message(text: str) -> str:
    """Return a message for display: one line, printable, long quotations cut.

    Who raises an error or reports a `Finding` need not call it: these do.

    Examples
    --------
    >>> printable_message("no node 'a\\x1b[31m" + 99 * "b" + "'")  # doctest: +ELLIPSIS
    "no node 'a\\\\x1b[31mbbb...bbb…'"
    """
    cut = _LONG.sub(lambda long: f"{long[0][:79]}…{long[1] or ''}", text)
    return printable(cut, limit=8192)


def at_line(source: str, line: int = 0) -> str:
    """Return ``file:line`` for a message, with the full path; line 0 is left out.

    Examples
    --------
    >>> at_line("daint.txt", 17)
    'daint.txt:17'
    """
    name = printable(source, limit=4096)
    return f"{name}:{line}" if line else name


class NidmapError(Exception):
    """Base class of all errors that nidmap raises deliberately.

    Parameters
    ----------
    message : str
        What is wrong, in one line.
    hint : str
        What the user can do about it; empty where there is nothing to say.

    Attributes
    ----------
    exit_code : int
        The exit code of the command line for this error.
    page : str
        The page of the guide that explains it, which the command line names; '' where none does.
    """

    exit_code = 3
    page = ""

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = printable_message(message)
        self.hint = printable_message(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[type[NidmapError], tuple[object, ...]]:
        """Support pickling, so that a worker process can pass the error on."""
        return type(self), (self.message, self.hint)


def error_text(error: BaseException, limit: int = 200) -> str:
    """Return an error as one line: our own message, else the class name and its text.

    Examples
    --------
    >>> error_text(NidmapError("no node", "-m")), error_text(KeyError("a"))
    ('no node; -m', "KeyError: 'a'")
    """
    if isinstance(error, NidmapError):
        return str(error)
    return f"{type(error).__name__}: {printable(str(error), limit)}"


def os_reason(error: OSError | ValueError) -> str:
    """Return the system's reason for a failure, in its own words where it gives some.

    Examples
    --------
    >>> os_reason(FileNotFoundError(2, "No such file or directory")), os_reason(ValueError("a"))
    ('No such file or directory', 'a')
    """
    return getattr(error, "strerror", None) or str(error)


class UsageError(NidmapError):
    """The request is invalid or inconsistent (exit code 2)."""

    exit_code = 2


class PlanError(NidmapError):
    """The machine cannot provide what was asked for (exit code 1)."""

    exit_code = 1


class SiteError(NidmapError):
    """A site configuration is invalid or unknown (exit code 3)."""

    page = "docs/reference/site-file.md"


class LaunchError(NidmapError):
    """Slurm or a launcher is missing, failed or did not answer (exit code 4)."""

    exit_code = 4


class OutputError(NidmapError):
    """The output cannot be written (exit code 5)."""

    exit_code = 5


class ParseError(NidmapError):
    """An input cannot be read (exit code 3).

    Parameters
    ----------
    source : str
        The file's name as the user gave it, ``-`` for standard input.
    line : int
        The line, counted from 1; 0 where the whole input is meant.
    text : str
        What was wrong.
    hint : str
        What the user can do about it.

    Examples
    --------
    >>> print(ParseError("daint.txt", 17, "'x' is not a NID"))
    daint.txt:17: 'x' is not a NID
    """

    def __init__(self, source: str, line: int, text: str, hint: str = "") -> None:
        self.source = source
        self.line = line
        self.text = printable_message(text)
        super().__init__(f"{at_line(source, line)}: {self.text}", hint)

    def __reduce__(self) -> tuple[type[NidmapError], tuple[object, ...]]:
        return type(self), (self.source, self.line, self.text, self.hint)


# --- msgspec's messages on values that do not fit, rephrased for users ----------------------

_WORDS = (
    (" | null`", "`"),
    ("`object`", "an object"),
    ("`array`", "a list"),
    ("`str`", "text"),
    ("`int`", "a whole number"),
    ("`float`", "a number"),
    ("`bool`", "true or false"),
    ("matching regex", "of the form"),
)


def schema_fault(error: Exception) -> tuple[str, str]:
    """Return the path of a wrong value, as msgspec writes it, and what is wrong with it.

    Parameters
    ----------
    error : msgspec.ValidationError or msgspec.DecodeError
        What msgspec raised.

    Examples
    --------
    >>> schema_fault(ValueError("Expected `int | null`, got `str` - at `$.nodes[0].nid`"))
    ('nodes[0].nid', 'expected a whole number, got text')
    """
    words, _, path = str(error).partition(" - at `")
    for before, after in _WORDS:
        words = words.replace(before, after)
    return path.removesuffix("`").removeprefix("$").removeprefix("."), words[:1].lower() + words[1:]


def schema_sentence(error: Exception) -> str:
    """Return the path and the fault as one sentence.

    Examples
    --------
    >>> schema_sentence(ValueError("Expected `int`, got `str` - at `$.ppn`"))
    'ppn: expected a whole number, got text'
    """
    path, words = schema_fault(error)
    return f"{path}: {words}" if path else words

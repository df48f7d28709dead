# SPDX-License-Identifier: Apache-2.0
"""Readers: from the text of a dump to its records, one file per format.

The format is recognised by content, not by name. Each reader is a module whose
``read(text, source) -> Dump`` the decorator `dump_format` registers, with all that
the house knows of the format (`Format`); the module is imported when its turn comes.
The first line of its docstring says what prints such dumps and what they tell: the guide has it.
Recognition goes by the first line that says anything, and reading goes on to the last:
a line of another format is an error that names both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import wraps
from typing import NamedTuple

from nidmap.placement.errors import ParseError
from nidmap.placement.records import Dump, Finding, LineCounts
from nidmap.placement.support.prompts import without_messages, without_prompts
from nidmap.placement.support.quantities import counted
from nidmap.placement.support.reading import load
from nidmap.placement.support.registry import Registry, modules_in

#: The formats that are tried first, the most common ones at the beginning.
_FIRST = (
    *("xtprocadmin", "rtr-aries", "rtr-gemini", "xtdb2proc", "meshcoords"),
    *("torus-coordinates", "system-map", "topology-conf"),
    *("ibnetdiscover-ports", "ibnetdiscover", "sls", "hsm-components", "scontrol-nodes"),
    *("slurm-json", "topology-yaml", "pbsnodes", "flux-resources", "lldp"),
    *("job-list", "sinfo"),
)
#: Modules here that readers share.
_SHARED = (
    *("cables", "cray_formats", "lldp_shapes", "node_states", "parallel_switches", "rows", "rtr"),
    *("slurm_rules", "slurm_switches", "yaml_json"),
)
_MODULES = modules_in(__path__[0], *_SHARED)

#: All our formats in the order in which they are tried: each is a module here, with ``_`` for
#: ``-``.
BUNDLED = (*_FIRST, *sorted(_MODULES.keys() - {*_FIRST}))

#: Unsupported outputs with the same contents, and what to print instead.
_OTHER_FORMS = {
    "lldpcli": (r"^LLDP neighbors:|^lldp\.\S+\.via=", "lldpcli show neighbors -f json is"),
    "iblinkinfo": (r"==\( *\d+X .*\)==>", "ibnetdiscover --ports lists the same cables"),
}

#: Number of characters from which a format is recognised.
HEAD = 64 * 1024


class Format(NamedTuple):
    """A registered dump format."""

    name: str
    # What such dumps are to a machine that several make together: ``site`` (what a site states),
    # ``places`` (where nodes are), ``links`` (of routers, without nodes), ``cables`` (hosts,
    # switches and what joins them), ``inventory`` (which nodes there are, their roles and states),
    # ``topology`` (a scheduler's switches over nodes), ``states`` (of nodes that another dump has
    # brought)
    kind: str
    # Tells whether the beginning of a text, or one line, is of this format
    sniff: Callable[[str], bool]
    # Makes records of a text and the name of its source, or raises ParseError
    read: Callable[[str, str], Dump]
    scheduler: str = ""  # whose output it is: ``slurm``, ``pbs``; '' no scheduler's


#: All formats by name; other distributions add theirs under the entry point group.
FORMATS: Registry[Format] = Registry(
    "format", "nidmap.formats", __name__, {name: _MODULES[name] for name in BUNDLED}
)


def dump_format(
    name: str, kind: str, sniff: Callable[[str], bool], scheduler: str = ""
) -> Callable[[Callable[[str, str], Dump]], Callable[[str, str], Dump]]:
    """Register the decorated function as a format's reader; for parameters see `Format`."""

    def decorate(reader: Callable[[str, str], Dump]) -> Callable[[str, str], Dump]:
        @wraps(reader)
        def read(text: str, source: str) -> Dump:
            dump = reader(text, source)
            return replace(dump, source=source, format=name, kind=kind, scheduler=scheduler)

        FORMATS.register(name)(Format(name, kind, sniff, read, scheduler))
        return read

    return decorate


def find(name: str) -> Format:
    """Return the registered format with that name."""
    return FORMATS.find(name)


def read(source: str) -> Dump:
    """Read a dump of any format that nidmap knows."""
    return read_text(load(source), source)


def read_text(text: str, source: str = "text") -> Dump:
    r"""Read a dump that is already in memory."""
    plain = text.replace("\r\n", "\n") if "\r" in text else text
    plain, messages = without_messages(without_prompts(plain))
    dump = find(recognise(plain, source)).read(plain, source)
    if not messages:
        return dump
    said = f"{counted(len(messages), 'message')} above the dump, such as: {messages[0]}"
    remark = Finding(0, "message", said, "is it complete?", fault=False)
    return replace(dump, findings=(*dump.findings, remark))


def recognise(text: str, source: str) -> str:
    r"""Return the name of a text's format."""
    head = without_messages(without_prompts(text[:HEAD]))[0]
    numbered = enumerate(head.split("\n"), 1)
    records = ((k, x) for k, x in numbered if x.strip() and not x.lstrip().startswith("#"))
    line, words = next(records, (0, ""))
    if not words:
        raise ParseError(source, 0, "has only blank lines and comments")
    for part in (words, head):
        name = resembling(part)
        if name:
            return name
    for tool, (pattern, hint) in _OTHER_FORMS.items():
        if re.search(pattern, head, re.M):
            raise ParseError(source, line, f"the output of {tool} is not supported", hint)
    what = f"'{words}' is not in a format that nidmap reads"
    raise ParseError(
        source, line, what, f"it reads {', '.join(FORMATS.names())}; tables with their header"
    )


def resembling(part: str, but: str = "") -> str:
    """Return the format that a line, or the beginning of a text, looks like.

    `but`: a format that is out of question. '' where it looks like none.
    """
    for name in FORMATS.in_order():
        if name != but and find(name).sniff(part):
            return name
    return ""


# --- the lines of a text dump, and how they divide -----------------------------------------

#: Maximum number of nodes that a dump may name, and of lines: ten times those of the largest
#: machines (160,000 nodes); longer lists would fill the memory.
MOST_NODES = MAX_LINES = 1 << 21


def sniffing(pattern: str, flags: int = re.I | re.M | re.A) -> Callable[[str], bool]:
    """Return a ``sniff`` function that searches the first lines for a pattern.

    Examples
    --------
    >>> sniff = sniffing("^NodeName=", re.M)
    >>> sniff("# nodes\\nNodeName=n1"), sniff("n1")
    (True, False)
    """
    compiled = re.compile(pattern, flags)
    return lambda head: compiled.search(head) is not None


def split_lines(text: str, source: str = "", most: int = MAX_LINES) -> list[str]:
    r"""Return the lines of `text` as an editor numbers them, without line endings.

    Only ``\n`` ends a line (and ``\r\n``): `str.splitlines` also cuts at form
    feeds and Unicode separators, and every later line number would be wrong.

    Parameters
    ----------
    text : str
        The whole file.
    source : str
        File name, for errors.
    most : int
        Lines that are allowed: a dump has at most `MAX_LINES`.

    Raises
    ------
    ParseError
        Where there are more.

    Examples
    --------
    >>> split_lines("a\r\n\nb")
    ['a', '', 'b']
    """
    if text.count("\n") > most:
        raise ParseError(source, 0, f"more than {most:,} lines", "no machine has that many")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.rstrip("\r") for line in lines] if "\r" in text else lines


def count_lines(lines: Iterable[str], headers: int = 0) -> LineCounts:
    """Count the rows, ``#`` comments and blank lines among `lines`.

    Parameters
    ----------
    lines : iterable of str
        Without their ends.
    headers : int
        How many of those that are neither comment nor blank are headers.

    Examples
    --------
    >>> count_lines(["# made by hand", "", "SwitchName=s0"])
    LineCounts(rows=1, comments=1, headers=0, blank=1)
    """
    rows = comments = blank = 0
    for line in lines:
        first = line.lstrip()[:1]
        if not first:
            blank += 1
        elif first == "#":
            comments += 1
        else:
            rows += 1
    return LineCounts(rows=rows - headers, comments=comments, headers=headers, blank=blank)


def refuse_empty(counts: LineCounts, source: str, what: str) -> None:
    """Raise `ParseError` where a dump has no row at all."""
    if not counts.rows:
        raise ParseError(source, 0, f"has no {what}, only blanks or comments")


def strange_line(
    name: str, source: str, number: int, line: str, what: str, hint: str = "is the line cut off?"
) -> ParseError:
    """Return the error for a line that does not fit its format.

    Parameters
    ----------
    name : str
        The format that is being read.
    source : str
        File name.
    number : int
        The line's number, from 1.
    line : str
        Its text.
    what : str
        What the line is not, such as ``a port of ibnetdiscover``.
    hint : str
        What a user may look for.

    Examples
    --------
    >>> print(strange_line("sinfo", "x.txt", 7, "SwitchName=s0 Nodes=a", "a row of sinfo", ""))
    x.txt:7: two formats in one file: this line looks like topology-conf, the others are sinfo; ...
    >>> print(strange_line("sinfo", "x.txt", 7, "hm", "a row of sinfo", "cut off?"))
    x.txt:7: 'hm' is not a row of sinfo; cut off?
    """
    return refused_line(name, source, number, line, f"{line.strip()!r} is not {what}", hint)


def refused_line(
    name: str, source: str, number: int, line: str, text: str, hint: str
) -> ParseError:
    """Return the error for a line, or for mixed formats if it belongs to another one."""
    other = resembling(line, but=name)
    if not other:
        return ParseError(source, number, text, hint)
    text = f"two formats in one file: this line looks like {other}, the others are {name}"
    return ParseError(source, number, text, "split it and name both files with -m")

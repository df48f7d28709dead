# SPDX-License-Identifier: Apache-2.0
"""``topology.conf``, ``scontrol show topology``: Slurm's switches, blocks or rings.

The file is read as Slurm reads it (its parse_config.c): keywords in any case,
blanks around ``=`` and quoted values allowed, ``#`` comments unless escaped, a
line that ends in a backslash goes on in the next. Checked on the files of
Slurm's own test suite: trees of two to four levels, unbalanced and without a
common root, and blocks.

scontrol prints the same, with figures that the file has not: a tree with all nodes below
every switch, and after the base blocks, from Slurm 24.11 on, the aggregated ones that
BlockSizes makes. A torus it prints in the order of the node table, which does not say
where a node is: topology.yaml does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import (
    count_lines,
    dump_format,
    refuse_empty,
    sniffing,
    split_lines,
    strange_line,
)
from nidmap.placement.readers import slurm_switches as w
from nidmap.placement.readers.slurm_rules import refuse_switch, refuse_units
from nidmap.placement.records import Dump, LineCounts

#: The keyword that opens a statement, its kind, and the keywords that may follow.
KINDS = {
    "switchname": ("tree", ("nodes", "switches", "linkspeed", "level")),
    "blockname": ("block", ("nodes", "blockindex", "blocksize")),
    "aggregatedblock": ("block", ("nodes", "blockindex", "blocksize")),
    "ringname": ("ring", ("nodes", "ringsize")),
    "blocksizes": ("block", ()),
}
#: As many switches as Slurm can count, aggregated blocks and sizes next to them.
MAX_STATEMENTS = 2 * w.MAX_SWITCHES
#: No statement has more than four keywords; repeats are harmless, thousands are not.
MAX_PAIRS = 64

_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*=\s*(?:"([^"]*)"|(\S+))(?=\s|$)')


class Statement(NamedTuple):
    """One statement of a file in Slurm's ``Key=value`` syntax."""

    source: str
    line: int  # the line it begins on
    # key, value: its first pair, the key in lower case
    key: str
    value: str
    rest: dict[str, str]  # the pairs after it, keys in lower case

    def error(self, text: str, hint: str = "") -> ParseError:
        """Return the error for a fault in this statement."""
        return ParseError(self.source, self.line, text, hint)


sniff = sniffing(
    r"^[ \t]*(?:SwitchName|BlockName|AggregatedBlock|RingName|BlockSizes|TorusName)\s*="
)


@dump_format("topology-conf", "topology", sniff, scheduler="slurm")
def read(text: str, source: str) -> Dump:
    r"""Read a ``topology.conf``, or the output of ``scontrol show topology``.

    `fabric` is ``tree``, ``block`` or ``ring``; `switches` in the file's order, without
    aggregated blocks; `nodes` leaf by leaf; ``parameters["block_sizes"]`` where given.
    """
    lines = split_lines(text, source)
    counts = count_lines(lines)
    records = list(statements(lines, source))
    refuse_empty(counts if records else LineCounts(0), source, "SwitchName, BlockName or RingName")
    kind = _tell_plugin(records)
    base = [s for s in records if _is_base(s)]
    if not base:
        raise records[0].error(f"no {kind} of its own", "add the lines that define each")
    switches, remarks = w.resolve_members([_declare_switch(s) for s in base], source)
    sizes = _block_sizes(records)
    parameters = {"block_sizes": sizes} if sizes else {}
    refused = [
        refusal
        for statement in (base if kind == "tree" else ())
        for refusal in refuse_switch(statement.line, statement.value, statement.rest)
    ]
    at = next((s.line for s in records if s.key == "blocksizes"), 0)
    refused += refuse_units(kind, switches, sizes if at else (), at)
    return w.switch_dump(counts, kind, switches, [*remarks, *refused], parameters)


def statements(lines: Sequence[str], source: str) -> Iterator[Statement]:
    r"""Yield the statements of a file in Slurm's ``Key=value`` syntax."""
    numbered = ((number, text) for number, text in _logical_lines(lines) if text.strip())
    for count, (number, text) in enumerate(numbered):
        if count == MAX_STATEMENTS:
            raise ParseError(source, number, f"more than {MAX_STATEMENTS:,} switches")
        yield _make_statement(text, number, source)


def _logical_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield each statement's first line and text, without comments, continuations joined."""
    held = ""
    start = 0
    for number, line in enumerate(lines, start=1):
        places = (match.start() for match in re.finditer("#", line))
        bare = line[: next((at for at in places if not _is_escaped(line, at)), None)]
        start = start or number
        stripped = bare.rstrip()
        if _is_escaped(stripped + " ", len(stripped)):
            held += stripped[:-1]
        else:
            yield start, held + bare
            held, start = "", 0
    if held:
        yield start, held


def _is_escaped(text: str, at: int) -> bool:
    """Tell whether a position follows an odd number of backslashes."""
    return (at - len(text[:at].rstrip("\\"))) % 2 == 1


def _make_statement(text: str, line: int, source: str) -> Statement:
    if "\\" in text:
        text = re.sub(r"\\(.)", r"\1", text)  # as Slurm: a backslash gives the next as it is
    pairs: list[tuple[str, str]] = []
    end = 0
    while match := _PAIR.match(text, end):
        end = match.end()
        if len(pairs) == MAX_PAIRS:
            raise ParseError(source, line, f"more than {MAX_PAIRS} keywords in one statement")
        pairs.append((match[1].lower(), match[3] if match[2] is None else match[2]))
    if text[end:].strip() or not pairs:
        raise _not_a_statement(text, text[end:].strip(), line, source)
    (key, value), *rest = pairs
    return Statement(source, line, key, value, dict(rest))  # Slurm, too, takes the last of a key


def _not_a_statement(text: str, rest: str, line: int, source: str) -> ParseError:
    if rest.lower().startswith(("include ", "include\t")) or rest.lower() == "include":
        hint = "put the included lines in their place"
        return ParseError(source, line, "Include is not supported", hint)
    if rest == text.strip():
        hint = "a line is SwitchName=... Nodes=... or similar"
        return strange_line("topology-conf", source, line, text, "Key=value", hint)
    return ParseError(source, line, f"{rest!r} is not Key=value", "is the line cut off?")


def _tell_plugin(records: Sequence[Statement]) -> str:
    """Return the plugin that the switches belong to; refuse several, and unknown keywords."""
    kind = KINDS.get(records[0].key, ("",))[0]
    for statement in records:
        plugin, following = KINDS.get(statement.key, ("", ()))
        odd = [key for key in statement.rest if key not in following]
        if statement.key == "torusname":
            text = "scontrol does not say where in a torus a node is"
            raise statement.error(text, "read topology.yaml instead")
        if odd or not plugin:
            expected = ", ".join(following) or "SwitchName, BlockName, RingName or BlockSizes"
            unknown = odd[0] if plugin else statement.key
            raise statement.error(f"unknown keyword {unknown!r}", f"expected {expected}")
        if plugin != kind:
            text = f"a {plugin} topology here and a {kind} topology on line {records[0].line}"
            raise statement.error(text, "one file describes one plugin's topology")
    return kind


def _is_base(statement: Statement) -> bool:
    """Tell whether this is a switch, ring or base block, not a block of blocks."""
    if statement.key == "blockname":
        return "blockindex" not in statement.rest or not set(statement.value) & set("[,")
    return statement.key not in ("aggregatedblock", "blocksizes")


def _declare_switch(statement: Statement) -> w.Declared:
    nodes, children, level = (statement.rest.get(k, "") for k in ("nodes", "switches", "level"))
    if level.strip("0"):  # scontrol's: the nodes of an upper switch are those of its leaves
        nodes = ""
    if nodes.upper() == "ALL":
        what = f"{statement.value} has Nodes={nodes}, which names no node here"
        hint = "topology.conf lists node names; ALL is for partitions"
        raise statement.error(what, hint)
    return w.Declared(statement.value, nodes, children, statement.line)


def _block_sizes(records: Sequence[Statement]) -> tuple[int, ...]:
    """Return the sizes of blocks from BlockSizes, else as scontrol prints them."""
    stated = [s for s in records if s.key == "blocksizes"][-1:]
    words = [(s, word) for s in stated for word in s.value.split(",")]
    if not stated:
        words = [(s, s.rest["blocksize"]) for s in records if s.rest.get("blocksize", "0") != "0"]
    for statement, word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 10 and int(word)):
            raise statement.error(f"{word!r} is not a block size")
    sizes = dict.fromkeys(int(word) for _, word in words)
    return tuple(sizes if stated else sorted(sizes))

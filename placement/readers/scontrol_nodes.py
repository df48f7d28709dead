"""The output of ``scontrol show node``, a paragraph or (``--oneliner``) a line a node.

Checked on the outputs of a real slurmctld 22.05. A node's paragraph begins
with ``NodeName=`` and says its state as words joined by ``+``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from placement.errors import ParseError, printable
from placement.readers.node_states import StatedNode, slurm_state, states_dump
from placement.readers.plain import count_lines, split_lines
from placement.readers.sinfo import gpus_of
from placement.readers.slurm_switches import expand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from placement.records import Dump

__all__ = ["read", "sniff"]

#: A whole record, or some words of one with its state; UNKNOWN is what slurm.conf says.
_SEEN = re.compile(
    r"^[ \t]*NodeName=\S+ (?:Arch=|CoresPerSocket=|(?:.*\s)?State=(?!UNKNOWN\b))", re.MULTILINE
)
_BEGIN = re.compile(r"^[ \t]*NodeName=(\S+)", re.MULTILINE)
#: State comes before the fields that may hold anything (Comment, Extra, Reason): the first counts.
_STATE = re.compile(r"\sState=(\S+)")
_NUMBERS = {
    "sockets": re.compile(r"\sSockets=(\d{1,9})\b"),
    "cores": re.compile(r"\sCoresPerSocket=(\d{1,9})\b"),
    "memory_mb": re.compile(r"\sRealMemory=(\d{1,9})\b"),
    "weight": re.compile(r"\sWeight=(\d{1,9})\b"),
}
_FEATURES = re.compile(r"\sActiveFeatures=(\S+)")
_GRES = re.compile(r"\sGres=(\S+)")
_PARTITIONS = re.compile(r"\sPartitions=\S")


def sniff(head: str) -> bool:
    """Say whether the first lines look like ``scontrol show node``.

    Examples
    --------
    >>> sniff("NodeName=nid00012 Arch=x86_64 CoresPerSocket=16")
    True
    >>> sniff("NodeName=nid00012 State=IDLE")  # some words of each record
    True
    >>> sniff("NodeName=nid[00012-00015] CPUs=32 State=UNKNOWN")  # a line of slurm.conf
    False
    """
    return _SEEN.search(head) is not None


def read(text: str, source: str) -> Dump:
    r"""Read the output of ``scontrol show node``.

    Parameters
    ----------
    text : str
    source : str
        File name, for errors.

    Returns
    -------
    Dump
        One row a node: name, state, planned, and what is in it. An idle node
        of no partition is ``inactive``.

    Raises
    ------
    ParseError
        Where a node has no state, or one that Slurm does not have.

    Examples
    --------
    >>> text = "NodeName=n1 Arch=x86_64 CoresPerSocket=8\n   State=IDLE+DRAIN Sockets=2\n"
    >>> dump = read(text + "   Partitions=a\n", "-")
    >>> dump.nodes.state.tolist(), dump.nodes.cores.tolist()
    (['drained'], [16])
    """
    lines = split_lines(text, source)
    return states_dump("scontrol-nodes", source, count_lines(lines), _nodes(text, source))


def _nodes(text: str, source: str) -> Iterator[StatedNode]:
    begins = list(_BEGIN.finditer(text))
    if begins and text[: begins[0].start()].strip():
        word = printable(text.split(None, 1)[0])
        raise ParseError(source, 1, f"'{word}' is before the first NodeName=", "is it whole?")
    ends = [match.start() for match in begins[1:]] + [len(text)]
    line = done = 0
    for begin, end in zip(begins, ends, strict=True):
        line += text.count("\n", done, begin.start())
        done = begin.start()
        record = text[done:end]
        state = _STATE.search(record)
        if state is None:
            what = f"node {printable(begin.group(1))} has no State="
            raise ParseError(
                source, line + 1, what, "is it the whole output of scontrol show node?"
            )
        word, planned = slurm_state(state.group(1), source, line + 1)
        whole = "CoresPerSocket=" in record  # else partitions may have been left out of it
        if word in ("idle", "planned") and whole and not _PARTITIONS.search(record):
            word = "inactive"
        for name in expand(begin.group(1), source, line + 1, "NodeName"):
            yield StatedNode(name, word, planned, line + 1, _figures(record))


def _figures(record: str) -> dict[str, int | str]:
    """Return what a record says of the inside of its node."""
    found: dict[str, int | str] = {}
    for key, form in _NUMBERS.items():
        match = form.search(record)
        if match:
            found[key] = int(match.group(1))
    found["cores"] = int(found.get("cores", 0)) * int(found.get("sockets", 0))
    features, gres = _FEATURES.search(record), _GRES.search(record)
    if features and features.group(1) != "(null)":
        found["features"] = features.group(1)
    if gres:
        found["gpus"] = gpus_of(gres.group(1))
    return found

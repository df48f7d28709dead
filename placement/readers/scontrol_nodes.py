# SPDX-License-Identifier: Apache-2.0
"""``scontrol show node`` (also ``--oneliner``): states, features, cores, memory, weights.

Checked on the outputs of a real slurmctld 22.05. A node's paragraph begins
with ``NodeName=`` and says its state as words joined by ``+``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nidmap.placement.errors import ParseError
from nidmap.placement.names.pasted import split_records
from nidmap.placement.readers import count_lines, dump_format, sniffing, split_lines
from nidmap.placement.readers.node_states import StatedNode, slurm_state, states_dump
from nidmap.placement.readers.sinfo import gpus_of
from nidmap.placement.readers.slurm_switches import expand
from nidmap.placement.records import Dump

#: A whole record, or some words of one with its state; UNKNOWN is what slurm.conf says.
sniff = sniffing(
    r"^[ \t]*NodeName=\S+ (?:Arch=|CoresPerSocket=|(?:.*\s)?State=(?!UNKNOWN\b))", re.M
)
_BEGIN = re.compile(r"^[ \t]*NodeName=(\S+)", re.MULTILINE)
#: State comes before the fields that may hold anything (Comment, Extra, Reason): the first counts.
_STATE = re.compile(r"\sState=(\S+)")
_NUMBERS = {
    key: re.compile(rf"\s{word}=(\d{{1,9}})\b")
    for key, word in (
        *(("sockets", "Sockets"), ("cores", "CoresPerSocket")),
        *(("memory_mb", "RealMemory"), ("weight", "Weight")),
    )
}
_FEATURES = re.compile(r"\sActiveFeatures=(\S+)")
_GRES = re.compile(r"\sGres=(\S+)")
_PARTITIONS = re.compile(r"\sPartitions=\S")


@dump_format("scontrol-nodes", "states", sniff, scheduler="slurm")
def read(text: str, source: str) -> Dump:
    r"""Read the output of ``scontrol show node``.

    One row per node: name, state, planned, and what is in it. An idle node of no partition is
    ``inactive``.
    """
    lines = split_lines(text, source)
    return states_dump(source, count_lines(lines), _read_nodes(text, source))


def _read_nodes(text: str, source: str) -> Iterator[StatedNode]:
    first = _BEGIN.search(text)
    if first and text[: first.start()].strip():
        word = text.split(None, 1)[0]
        raise ParseError(source, 1, f"'{word}' is before the first NodeName=", "is it complete?")
    for begin, line, record in split_records(text, _BEGIN):
        state = _STATE.search(record)
        if state is None:
            what = f"node {begin[1]} has no State="
            hint = "is it the whole output of scontrol show node?"
            raise ParseError(source, line, what, hint)
        word, planned = slurm_state(state[1], source, line)
        complete = "CoresPerSocket=" in record  # else partitions may have been left out of it
        up, figures = not complete or bool(_PARTITIONS.search(record)), _node_figures(record)
        for name in expand(begin[1], source, line, "NodeName"):
            yield StatedNode(name, word, planned, line, figures, up)


def _node_figures(record: str) -> dict[str, int | str]:
    """Return a node's hardware as stated in its record."""
    numbers = {k: int(match[1]) for k, form in _NUMBERS.items() if (match := form.search(record))}
    numbers["cores"] = numbers.get("cores", 0) * numbers.get("sockets", 0)
    figures: dict[str, int | str] = {**numbers}
    features, gres = _FEATURES.search(record), _GRES.search(record)
    if features and features[1] != "(null)":
        figures["features"] = features[1]
    if gres:
        figures["gpus"] = gpus_of(gres[1])
    return figures

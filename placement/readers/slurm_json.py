# SPDX-License-Identifier: Apache-2.0
"""``sinfo --json``, ``scontrol show nodes --json``, ``squeue --json``: states, or nodes of jobs.

Slurm 22.05 and ``scontrol`` list ``nodes``, later versions of ``sinfo`` rows
of nodes alike under ``sinfo``; a state is a word with flags next to it
(22.05) or a list of words. Checked on a real slurmctld 22.05 and on the form
that 24.11 documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import count_lines, dump_format, split_lines
from nidmap.placement.readers.job_list import BUSY
from nidmap.placement.readers.node_states import StatedNode, slurm_state, states_dump
from nidmap.placement.readers.sinfo import gpus_of
from nidmap.placement.readers.slurm_switches import expand
from nidmap.placement.readers.yaml_json import load_json
from nidmap.placement.records import Dump

_LISTS = ("sinfo", "nodes", "jobs")
#: Keys of PBS's nodes, each with a list of its jobs, and of Flux's R with a graph of nodes.
_OTHERS = ("pbs_version", "pbs_server", "R_lite")
_SIZES = ("sockets", "cores", "memory", "weight")


def sniff(head: str) -> bool:
    """Tell whether the first characters look like Slurm's JSON."""
    start = head.lstrip()[:1] == "{" and not any(f'"{key}"' in head for key in _OTHERS)
    return start and bool(re.search(rf'"(?:{"|".join(_LISTS)})"\s*:\s*\[', head))


@dump_format("slurm-json", "states", sniff, scheduler="slurm")
def read(text: str, source: str) -> Dump:
    """Read the JSON output of sinfo, scontrol or squeue.

    One row per node. Of jobs, those nodes that one of them holds, as ``allocated``;
    ``parameters["jobs"]`` is True then.
    """
    root = load_json(text, source)
    document = root if isinstance(root, dict) else {}
    kind = next((key for key in _LISTS if isinstance(document.get(key), list)), "")
    if not kind:
        raise ParseError(source, 0, f"JSON without a list of {' or '.join(_LISTS)}")
    rows = {"sinfo": _sinfo_rows, "nodes": _node_rows, "jobs": _job_rows}[kind]
    try:
        nodes = list(rows(document[kind], source))
    except (KeyError, TypeError, AttributeError) as error:
        what = f"an entry of {kind} does not look like Slurm's: {error}"
        raise ParseError(source, 0, what, "was it edited?") from None
    counts = count_lines(split_lines(text, source))
    jobs = kind == "jobs"
    empty = "no job has nodes" if jobs else "lists no nodes"
    return states_dump(source, counts, nodes, jobs=jobs, empty=empty)


def _node_rows(entries: list[Any], source: str) -> Iterator[StatedNode]:
    for entry in entries:
        words = [*_list_words(entry["state"]), *entry.get("state_flags", ())]
        state, planned = slurm_state("+".join(words), source)
        features, gres = ",".join(_list_words(entry.get("active_features", ""))), entry.get("gres")
        sizes = [
            _plain_number(entry.get(key)) for key in ("sockets", "cores", "real_memory", "weight")
        ]
        figures = _node_figures(sizes, features, gres)
        up = bool(entry.get("partitions", True))
        yield StatedNode(_checked_name(entry["name"]), state, planned, 0, figures, up)


def _sinfo_rows(entries: list[Any], source: str) -> Iterator[StatedNode]:
    for entry in entries:
        if not entry["nodes"]["nodes"]:
            continue  # a partition without nodes
        state, planned = slurm_state("+".join(_list_words(entry["node"]["state"])), source)
        least = ((entry.get(key) or {}).get("minimum") for key in _SIZES)
        features = (entry.get("features") or {}).get("active", "")
        figures = _node_figures(
            [*map(_plain_number, least)], features, (entry.get("gres") or {}).get("total")
        )
        for name in entry["nodes"]["nodes"]:
            yield StatedNode(_checked_name(name), state, planned, 0, figures)


def _node_figures(sizes: list[int], features: str, gres: str | None) -> dict[str, int | str]:
    """Return a node's sockets, cores per socket, memory and weight."""
    sockets, cores, memory, weight = sizes
    numbers = {"sockets": sockets, "cores": sockets * cores, "memory_mb": memory, "weight": weight}
    return {**numbers, "features": features, "gpus": gpus_of(gres or "")}


def _job_rows(entries: list[Any], source: str) -> Iterator[StatedNode]:
    for entry in entries:
        if entry["nodes"] and BUSY & set(_list_words(entry["job_state"])):
            for name in expand(entry["nodes"], source, 0, "nodes"):
                yield StatedNode(name, "allocated")


def _list_words(value: Any) -> list[str]:
    """Return words given as a list or joined by commas."""
    words = value.split(",") if isinstance(value, str) else list(value)
    return [_checked_name(word) for word in words if word]


def _checked_name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a word")
    return value


def _plain_number(value: Any) -> int:
    """Return a number, plain or wrapped as ``{"set": true, "number": 1}``; 0 for none."""
    inner = value.get("number") if isinstance(value, dict) else value
    return inner if isinstance(inner, int) and 0 <= inner < 2**31 else 0

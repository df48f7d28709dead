# SPDX-License-Identifier: Apache-2.0
"""``flux resource R`` (RFC 20): an instance's nodes, their cores, GPUs and properties.

``R_lite`` has entries of ranks with the cores and GPUs of each, in any order; the k-th host of
``nodelist`` is that of the k-th rank in ascending order. R says what the instance has, not who
uses it: every node counts as idle.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from nidmap.placement.errors import ParseError
from nidmap.placement.names.hostlist import TextPiece, count, expand
from nidmap.placement.readers import count_lines, dump_format, split_lines
from nidmap.placement.readers.node_states import StatedNode, states_dump
from nidmap.placement.readers.yaml_json import load_json
from nidmap.placement.records import Dump

_KEY = re.compile(r'"R_lite"\s*:')
#: Kinds of resources below a rank, and our names for their counts.
_CHILDREN = {"core": "cores", "gpu": "gpus"}


def sniff(head: str) -> bool:
    """Tell whether the first characters look like an R."""
    return head.lstrip()[:1] == "{" and bool(_KEY.search(head))


@dump_format("flux-resource-set", "states", sniff)
def read(text: str, source: str) -> Dump:
    """Read an R document.

    One row per node in the order of the ranks.
    """
    root = load_json(text, source)
    execution = root.get("execution") if isinstance(root, dict) else None
    version = root.get("version", 1) if isinstance(root, dict) else 1
    if version != 1:
        what = f"an R of version {str(version)[:20]}"
        raise ParseError(source, 0, what, "only version 1 (RFC 20) is supported")
    try:
        nodes = _read_execution(execution, source)
    except (KeyError, TypeError, AttributeError) as error:
        what = f"an R whose execution does not follow RFC 20: {error}"
        raise ParseError(source, 0, what, "is it complete?") from None
    return states_dump(source, count_lines(split_lines(text, source)), nodes)


def _read_execution(execution: Any, source: str) -> list[StatedNode]:
    figures: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_CHILDREN.values(), 0))
    for entry in execution["R_lite"]:
        numbers = {
            name: _count_ids(entry["children"][kind], source)
            for kind, name in _CHILDREN.items()
            if kind in entry["children"]
        }
        for rank in _ids(entry["rank"], source):
            have = figures[rank]
            have |= {name: have[name] + number for name, number in numbers.items()}
    if "nodelist" not in execution:
        raise ParseError(source, 0, "this R has no nodelist: only ranks, no host names")
    listed = execution["nodelist"]
    names = [listed] if isinstance(listed, str) else listed
    hosts = expand([TextPiece(",".join(names))], source)
    if len(hosts) != len(figures):
        what = f"{len(hosts)} hosts for {len(figures)} ranks"
        raise ParseError(source, 0, what, "is it complete?")
    words: dict[int, list[str]] = defaultdict(list)
    for word, ranks in (execution.get("properties") or {}).items():
        for rank in _ids(ranks, source):
            words[rank].append(word)
    return [
        StatedNode(host, "idle", figures={**figures[rank], "features": ",".join(words[rank])})
        for rank, host in zip(sorted(figures), hosts, strict=True)
    ]


def _ids(text: str | int, source: str) -> list[int]:
    """Return the numbers in an idset such as ``0-3,7``, also in brackets, or a single number."""
    return [int(number) for number in expand([_piece(text)], source)]


def _count_ids(text: str | int, source: str) -> int:
    return count([_piece(text)], source)


def _piece(text: str | int) -> TextPiece:
    if not isinstance(text, (str, int)) or isinstance(text, bool):
        raise TypeError(f"{str(text)[:40]!r} is not a set of numbers")
    return TextPiece(f"[{str(text).strip('[]')}]")

# SPDX-License-Identifier: Apache-2.0
"""Folding and expanding node lists against the peers (which both sort)."""

from __future__ import annotations

import random
from functools import partial

from benchmarks.timing import interleave, ms, ratio, table


def main() -> None:
    """Print the time to fold and expand 100,000 names, sorted and shuffled."""
    from ClusterShell.NodeSet import NodeSet

    from nidmap.placement.nodelist import NodeList

    def clustershell_fold(given: list[str]) -> str:
        return str(NodeSet.fromlist(given))

    def clustershell_expand(text: str) -> list[str]:
        return list(NodeSet(text))

    names = [f"nid{i:06d}" for i in range(100_000)]
    mixed = names.copy()
    random.Random(1).shuffle(mixed)
    rows = []
    for label, given in (("in order", names), ("shuffled", mixed)):
        ours = NodeList(given)
        text = ours.fold()
        times = interleave(
            {
                "nidmap fold": ours.fold,
                "ClusterShell fold": partial(clustershell_fold, given),
                "nidmap expand": partial(NodeList.parse, text),
                "ClusterShell expand": partial(clustershell_expand, text),
            },
            rounds=3,
        )
        for verb in ("fold", "expand"):
            one, other = times[f"nidmap {verb}"], times[f"ClusterShell {verb}"]
            rows.append([f"{verb}, {label}", ms(one), ms(other), f"{ratio(one, other):.3f}"])
    header = ["100,000 names", "nidmap (order kept)", "ClusterShell (sorted)", "ratio"]
    table("Node lists", header, rows)

# SPDX-License-Identifier: Apache-2.0
"""Switches of a Slurm topology with the same children: parallel cores, merged into one.

A fabric whose leaves have cables to several cores is written so, and slurmctld takes it. Slurm's
tree has one switch above each here: cores that share a switch below them become one, the first,
and the number of cables to it is kept. A switch that is listed below another one and also below
what is above that counts below the lower one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nidmap.placement.records import Finding, SwitchRecord


def join_parallel(
    switches: Sequence[SwitchRecord], below: Sequence[Sequence[int]]
) -> tuple[list[SwitchRecord], list[Finding]]:
    """Return the switches, each with one parent at most, and remarks on merged ones.

    `below`: the numbers of the children of each, without a loop.
    """
    above: list[list[int]] = [[] for _ in switches]
    for number, children in enumerate(below):
        for child in children:
            above[child].append(number)
    if all(len(parents) < 2 for parents in above):
        return list(switches), []
    cores = _Cores(above)
    while sum(map(cores.join_above, range(len(above)))):
        pass  # a merged switch may have several parents in turn
    return _one_parent_each(switches, above, cores)


class _Cores:
    """Which switches count as one; each maps to the lowest number of its class."""

    def __init__(self, above: Sequence[Sequence[int]]) -> None:
        self.above = above
        self.first = list(range(len(above)))
        self.members = [[number] for number in range(len(above))]

    def parents(self, number: int) -> list[int]:
        """Return the switches above all those that count as one with a switch."""
        members = self.members[self.first[number]]
        return [parent for member in members for parent in self.above[member]]

    def join_above(self, number: int) -> bool:
        """Merge the lowest switches above a switch into one; tell whether any were merged."""
        joined = False
        while len(left := self.lowest(self.parents(number))) > 1:
            low, high = sorted(left)[:2]
            for member in self.members[high]:
                self.first[member] = low
            self.members[low] += self.members[high]
            joined = True
        return joined

    def lowest(self, parents: Sequence[int]) -> set[int]:
        """Return those classes of some switches that are not above any other of them."""
        classes = {self.first[parent] for parent in parents}
        if len(classes) < 2:
            return classes
        return classes - {high for low in classes for high in self.all_above(low)}

    def all_above(self, low: int) -> set[int]:
        """Return all classes above one."""
        above, waiting = set[int](), [low]
        while waiting:
            for number in self.members[waiting.pop()]:
                new = {self.first[parent] for parent in self.above[number]} - above
                above |= new
                waiting += new
        return above - {low}


def _one_parent_each(
    switches: Sequence[SwitchRecord], above: Sequence[Sequence[int]], cores: _Cores
) -> tuple[list[SwitchRecord], list[Finding]]:
    children: dict[int, dict[str, None]] = {}
    uplinks = {}
    for number, parents in enumerate(above):
        if cores.first[number] == number:
            lowest = cores.lowest(cores.parents(number))
            for parent in lowest:
                children.setdefault(parent, {})[switches[number].name] = None
            cables = sum(cores.first[parent] in lowest for parent in parents)
            uplinks[number] = max(1, cables)
    kept, remarks = [], []
    for number, switch in enumerate(switches):
        first = cores.first[number]
        if first == number:
            names = tuple(children.get(number, ()))
            kept.append(replace(switch, children=names, uplinks=uplinks[number]))
        else:
            name = switches[first].name
            text = f"{switch.name} and {name} are above the same switches: parallel, treated as one"
            remarks.append(Finding(switch.line, "parallel-switches", text, fault=False))
    return kept, remarks

# SPDX-License-Identifier: Apache-2.0
"""Random clusters and jobs for Slurm's choices: trees, forests, holes, weights, required nodes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np

from nidmap.placement.machine import Machine, Switches
from nidmap.placement.planners import Request
from nidmap.placement.specs import parse_spec
from tests.placement.planners import slurm_reference as reference

#: Regular trees, uneven leaves and depths, and forests in any order with nodes on no switch.
KINDS = ("regular", "uneven", "wild")


@dataclass
class Case:
    """One job on one occupancy; nodes are numbers in Slurm's order."""

    n: int
    free: list[int]
    count: int
    must: list[int]
    weight: list[int]
    cpus: list[int]

    def request(self, rows, **changes):
        """Return it as a request to a machine whose row `rows[i]` is Slurm's node i."""
        free = np.zeros(self.n, dtype=bool)
        free[rows[self.free]] = True
        weights = np.zeros(self.n, dtype=np.int64)
        weights[rows] = self.weight
        request = Request(
            count=self.count,
            free=free,
            include=rows[np.array(self.must, dtype=np.int64)],
            weights=weights,
        )
        return replace(request, **changes)


def random_case(rng: random.Random, n: int, *, equal_cpus: bool = True, must: bool = True) -> Case:
    """Return a job with any mixture of holes, weights and required nodes."""
    share = rng.choice([0.3, 0.5, 0.7, 0.9, 1.0])
    free = [i for i in range(n) if rng.random() < share] or [rng.randrange(n)]
    count = rng.randint(1, len(free))
    if rng.random() < 0.5:
        count = rng.randint(1, min(12, len(free)))
    required = []
    if must and rng.random() < 0.4:
        required = sorted(rng.sample(free, rng.randint(1, min(rng.choice([1, 3, 20]), count))))
    cpus = [1] * n if equal_cpus else [rng.choice([2, 4, 8]) for _ in range(n)]
    return Case(n, free, count, required, random_weights(rng, n), cpus)


def random_weights(rng: random.Random, n: int) -> list[int]:
    """Return equal weights, weights at random, or stretches of equal ones."""
    kind = rng.random()
    if kind < 0.4:
        return [1] * n
    if kind < 0.7:
        return [rng.choice([1, 1, 1, 2, 5]) for _ in range(n)]
    weights: list[int] = []
    while len(weights) < n:
        weights += [rng.choice([1, 2, 3])] * rng.randint(1, 12)
    return weights[:n]


def random_forest(rng: random.Random, n: int, kind: str) -> tuple[list[int], list[int]]:
    """Return each switch's parent, in the order of topology.conf, and each node's leaf."""
    parent, leaves = _leaves(rng, n, kind)
    tops = list(range(len(parent)))
    if kind == "wild":
        rng.shuffle(tops)
    for _ in range(rng.randint(1, 4)):
        tops = _joined(rng, parent, tops, kind) if len(tops) > 1 else tops
    if len(tops) > 1 and (kind == "regular" or rng.random() < 0.7):
        parent.append(-1)
        for top in tops:
            parent[top] = len(parent) - 1
    return _reordered(rng, parent, leaves, kind)


def _leaves(rng, n, kind):
    size, left = rng.choice([2, 3, 4, 6]), n
    if kind != "regular" and rng.random() < 0.3:
        left -= rng.randint(0, min(5, n - 1))
    nodes = list(range(n))
    if kind == "wild":
        rng.shuffle(nodes)
    leaf_of, parent = [-1] * n, []
    while left > 0:
        some = min(left, size if kind == "regular" else rng.randint(1, 8))
        for node in nodes[left - some : left]:
            leaf_of[node] = len(parent)
        parent.append(-1)
        left -= some
    return parent, leaf_of


def _joined(rng, parent, tops, kind):
    """Put switches above some of those on top, and return the new top ones."""
    found, fan = [], rng.randint(2, 5)
    while tops:
        some = fan if kind == "regular" else rng.randint(1, 6)
        group, tops = tops[:some], tops[some:]
        alone = len(group) == 1 and rng.random() < 0.7
        if kind != "regular" and (alone or (kind == "wild" and rng.random() < 0.1)):
            found += group
            continue
        parent.append(-1)
        for switch in group:
            parent[switch] = len(parent) - 1
        found.append(len(parent) - 1)
    return found


def _reordered(rng, parent, leaf_of, kind):
    order = list(range(len(parent)))
    if kind == "wild":
        rng.shuffle(order)
    new = {old: place for place, old in enumerate(order)} | {-1: -1}
    return [new[parent[old]] for old in order], [new[leaf] for leaf in leaf_of]


def switches_of(parent: list[int], leaf_of: list[int]) -> Switches:
    """Return the forest as a machine carries it."""
    level = reference.Tree.of(parent, leaf_of).level
    return Switches(
        tuple(f"s{i}" for i in range(len(parent))),
        np.array(parent, dtype=np.int32),
        np.array(level, dtype=np.int32),
        np.array(leaf_of, dtype=np.int32),
    )


def topology_conf(parent: list[int], leaf_of: list[int], names: list[str]) -> str:
    """Return the forest as Slurm's file."""
    lines = []
    for switch in range(len(parent)):
        below = [f"s{kid}" for kid, above in enumerate(parent) if above == switch]
        listed = [name for name, leaf in zip(names, leaf_of, strict=True) if leaf == switch]
        what = f"Switches={','.join(below)}" if below else f"Nodes={','.join(listed)}"
        lines.append(f"SwitchName=s{switch} {what}")
    return "\n".join(lines) + "\n"


def machine_of(
    names: list[str], rows: np.ndarray, switches: Switches | None = None, cpus: list[int] = ()
) -> Machine:
    """Return a machine whose row `rows[i]` is the node `names[i]`: its order has to be found."""
    plain = parse_spec(f"tree:{len(names)}")
    at = np.empty(len(names), dtype=np.asarray(names).dtype)
    at[rows] = names
    cores = np.zeros(len(names), dtype=np.int64)
    if cpus:
        cores[rows] = cpus
    if switches is not None:
        leaf_of = np.empty(len(names), dtype=np.int32)
        leaf_of[rows] = switches.leaf_of
        switches = replace(switches, leaf_of=leaf_of)
    return replace(plain, names=at, cores=cores, switches=switches)

# SPDX-License-Identifier: Apache-2.0
"""Slurm's choice under topology/block: a walk with sets and loops, and a real slurmctld.

The real one needs Slurm 23.11 or newer; the walk was held against 24.11.5 with
this very test.
"""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nidmap.placement.errors import PlanError, UsageError
from nidmap.placement.machine import Switches
from nidmap.placement.nodelist import NodeList
from nidmap.placement.planners import find
from nidmap.placement.specs import parse_spec
from nidmap.workloads.minicray.slurm import version_of
from tests.placement.planners import slurm_cases as cases
from tests.placement.planners.test_slurm_real import Cluster
from tests.real_slurm import find_program, needs_slurm, real_slurm

CASES = 60


def blocks_of(rng, n, *, full=False):
    """Return the base block of each node (-1: none), and BlockSizes.

    Slurm 24.11 has no blocks with fewer nodes than the size: with `full` there are none.
    """
    base = rng.choice([2, 3, 4, 6])
    leaf_of, left, block = [-1] * n, n, 0
    while left >= (base if full else 1):
        some = base if rng.random() < 0.8 else rng.randint(base if full else 1, base + 2)
        some = min(left, some)
        for node in range(n - left, n - left + some):
            leaf_of[node] = block
        left, block = left - some, block + 1
    sizes = [base, *(base << k for k in range(1, 5) if rng.random() < 0.5)]
    return leaf_of, sizes if leaf_of.count(0) != base or rng.random() < 0.8 else []


def switches_of(leaf_of, sizes):
    many = max(leaf_of) + 1
    names = tuple(f"b{i}" for i in range(many))
    none, low = np.full(many, -1, dtype=np.int32), np.zeros(many, dtype=np.int32)
    return Switches(names, none, low, np.array(leaf_of, dtype=np.int32), "block", tuple(sizes))


def walk(case, leaf_of, sizes, segment):
    """Return the nodes that Slurm takes, None where the job waits."""
    if not sizes:
        sizes = [leaf_of.count(0) << k for k in range(5)]
    size = segment if segment and segment < case.count else case.count
    if case.count % size:
        return None
    free, must = set(case.free), set(case.must)
    if size < case.count and must:
        if len(must) < case.count:
            return None
        free, must = must, set()
    found = []
    for _ in range(case.count // size):
        taken = walk_one(size, free, must, case.weight, leaf_of, sizes)
        if taken is None:
            return None
        found += taken
        free = free - set(taken)
    return sorted(found)


def walk_one(size, free, must, weight, leaf_of, sizes):
    many_blocks, base = max(leaf_of) + 1, sizes[0]
    exponents = {round(math.log2(s / base)) for s in sizes}
    need = math.ceil(math.log2(-(-size // base)))
    lower = max((e for e in exponents if e < need), default=0) if need > 0 else 0
    upper = min((e for e in exponents if e >= need), default=None)
    per_block = many_blocks if upper is None else 1 << upper
    per_lower = 1 << lower
    most = -(-size // (per_lower * base))
    limited = per_block != per_lower * most
    block = chosen_block(size, free, must, weight, leaf_of, per_block, per_lower, most, limited)
    if block is None:
        return None
    inside = {i for i in free if leaf_of[i] >= 0 and leaf_of[i] // per_block == block}
    if not must <= inside:
        return None
    taken = sorted(must)
    if len(taken) >= size:
        begun = {leaf_of[i] >> lower for i in must}
        return None if limited and len(begun) > most else taken
    weighed = by_weight(inside, must, weight, size)
    if weighed is None:
        return None
    best, light = weighed
    needed, most = in_use(leaf_of, must if limited else set(), light, lower, most)
    if most < 0:
        return None
    taken = sorted(must | light)
    for b in sorted(needed):
        taken += sorted(i for i in best - light if leaf_of[i] == b)
    taken = taken[:size]
    on = {b: [i for i in sorted(best) if leaf_of[i] == b] for b in range(many_blocks)}
    on = {b: n for b, n in on.items() if b // per_block == block and b not in needed}
    on_lower = {}
    for b, nodes in on.items():
        on_lower[b >> lower] = on_lower.get(b >> lower, 0) + len(nodes)
    while len(taken) < size:
        one, same = better(on, on_lower, needed, lower, size - len(taken), limited)
        if one is None or (most <= 0 and not same) or not on[one]:
            return None
        taken += on.pop(one)[: size - len(taken)]
        needed.add(one)
        most -= not same
    return taken


def by_weight(inside, must, weight, size):
    """Return the nodes that may be taken, and those of them that are; None: too few."""
    best, light = set(), set()
    for w in sorted({weight[i] for i in inside - must}):
        light |= best
        best |= {i for i in inside - must if weight[i] == w}
        if len(best) >= size - len(must):
            return best, light
    return None


def in_use(leaf_of, must, light, lower, most):
    """Return the base blocks in use, and how many lower blocks may still be begun."""
    needed, last = set(), -1
    for b in sorted({leaf_of[i] for i in must}):
        needed.add(b)
        if last < 0 or last >> lower != b >> lower:
            most, last = most - 1, b
    last = -1
    for b in sorted({leaf_of[i] for i in must | light}):
        if b in needed:
            last = b
            continue
        needed.add(b)
        if last < 0 or last >> lower != b >> lower:
            most, last = most - 1, b
    return needed, most


def chosen_block(size, free, must, weight, leaf_of, per_block, per_lower, most, limited):
    best = None
    for block in range(-(-(max(leaf_of) + 1) // per_block)):
        inside = [i for i in free if leaf_of[i] >= 0 and leaf_of[i] // per_block == block]
        if must:
            if must & set(inside):
                return block
            continue
        room = len(inside)
        if limited:
            first = block * per_block // per_lower
            parts = [
                sum(leaf_of[i] // per_lower == part for i in inside)
                for part in range(first, first + per_block // per_lower)
            ]
            room = sum(sorted(parts)[::-1][:most])
        if room < size:
            continue
        key = (min(weight[i] for i in inside), len(inside))
        if best is None or key <= best[0]:
            best = key, block
    return best and best[1]


def better(on, on_lower, needed, lower, left, limited):
    """Walk over the base blocks; a later one replaces the best where it fits no worse."""
    best, best_same = None, True
    for one in sorted(on):
        if limited and (best is None or best >> lower != one >> lower):
            same = any(b >> lower == one >> lower for b in needed)
            if best is None or (same and not best_same):
                best, best_same = one, same
                continue
            if best_same and not same:
                continue
            here, there = on_lower[one >> lower], on_lower[best >> lower]
            if (here >= left) != (there >= left) or here != there:
                wins = here >= left if (here >= left) != (there >= left) else here > there
                if here >= left and there >= left:
                    wins = here < there
                if wins:
                    best, best_same = one, same
                continue
        here, there = len(on[one]), len(on[best]) if best is not None else 0
        fit, best_fit = here >= left, best is not None and there >= left
        larger = not fit and not best_fit and here >= there
        if best is None or (fit and not best_fit) or larger or (fit and here <= there):
            best = one
    return best, best_same


def chosen(machine, case, rows, segment):
    try:
        return find("slurm-block")(machine, case.request(rows, segment=segment))
    except PlanError:
        return None


def random_job(rng, n):
    case = cases.random_case(rng, n)
    segment = rng.choice([None, None, 1, 2, 3, 4, 6])
    if segment and case.count > segment and rng.random() < 0.9:
        case.count -= case.count % segment
    if segment and case.count > segment and rng.random() < 0.9:
        case.must = []
    case.must = case.must[: case.count]
    return case, segment


@given(st.integers(0, 2**32), st.integers(2, 60))
@settings(deadline=None, max_examples=20)
def test_choice_equals_the_walk(seed, n):
    rng = random.Random(seed)
    leaf_of, sizes = blocks_of(rng, n)
    rows = np.array(rng.sample(range(n), n))
    machine = cases.machine_of([f"n{i}" for i in range(n)], rows, switches_of(leaf_of, sizes))
    for _ in range(6):
        case, segment = random_job(rng, n)
        want = walk(case, leaf_of, sizes, segment)
        found = chosen(machine, case, rows, segment)
        assert (None if found is None else found.tolist()) == (
            None if want is None else rows[want].tolist()
        ), (case, leaf_of, sizes, segment)


def test_a_list_of_more_base_blocks_than_the_job_fills_waits():
    """As slurmctld 24.11.5 and 26.05.5 answer: 4 blocks of 2 nodes hold 8, in pairs."""
    leaf_of = [i // 2 for i in range(16)]
    names = [f"n{i}" for i in range(16)]
    machine = cases.machine_of(names, np.arange(16), switches_of(leaf_of, [2, 16]))
    for must, waits in (([1, 3, 5], True), ([0, 1, 3], False), ([0, 1, 2, 3, 12, 11], True),
                        ([0, 1, 2, 3, 12, 13], False)):  # fmt: skip
        case = cases.Case(16, list(range(16)), len(must), must, [1] * 16, [1] * 16)
        found = chosen(machine, case, np.arange(16), None)
        assert (found is None) == waits, must


def test_other_topologies_have_no_blocks():
    machine = parse_spec("tree:4x4")
    with pytest.raises(UsageError, match=r"needs Slurm.s topology/block, and .* has topology/tree"):
        find("slurm-block")(machine, cases.random_case(random.Random(1), 16).request(np.arange(16)))


def has_block():
    program = find_program("slurmctld")
    return program is not None and version_of(program) >= (23, 11)


@needs_slurm
@pytest.mark.skipif(not has_block(), reason="this Slurm has no topology/block (23.11 brought it)")
@pytest.mark.parametrize("cluster", range(4))
def test_choice_equals_what_slurmctld_allocates(cluster):
    rng = random.Random(cluster)
    n = rng.choice([30, 40, 48])
    names = [f"n{i}" for i in range(n)]
    leaf_of, sizes = blocks_of(rng, n, full=True)
    lines = [
        f"BlockName=b{b} Nodes={','.join(x for x, a in zip(names, leaf_of, strict=True) if a == b)}"
        for b in range(max(leaf_of) + 1)
    ]
    lines += [f"BlockSizes={','.join(map(str, sizes))}"] if sizes else []
    rows = np.array(rng.sample(range(n), n))
    machine = cases.machine_of(names, rows, switches_of(leaf_of, sizes))
    wrong = []
    conf = "\n".join(lines) + "\n"
    with real_slurm(names, real=0, plugin="block", topology_conf=conf, cores=4) as slurm:
        real_cluster = Cluster(slurm, names, leaf_of)
        year = int(slurm.run(["sinfo", "--version"]).stdout.split()[1].split(".")[0])
        for _ in range(CASES):
            case, segment = random_job(rng, n)
            if segment and segment < case.count:
                case.must = []  # 24.11 refuses both together, later ones do not
            if segment and segment > sizes_base(leaf_of, sizes):
                segment = None  # likewise
            real_cluster.occupy(case, rng)
            options = [f"--segment={segment}"] if segment and segment <= case.count else []
            real = real_cluster.allocate(case, options)
            found = chosen(machine, case, rows, segment)
            ours = None if found is None else machine.names[found].tolist()
            if year > 24 and (case.count == 1 or ours is None):
                continue  # 26.05 takes the first node of least weight, and more small blocks
            if ours != real:
                wrong.append((case, segment, real, ours))
    assert not wrong, f"{len(wrong)} of {CASES} differ, first {wrong[0]}; {leaf_of} {sizes}"


def sizes_base(leaf_of, sizes):
    return sizes[0] if sizes else leaf_of.count(0)


def test_a_job_of_36_goes_as_12_and_12_and_12():
    leaf_of = [i // 18 for i in range(72)]
    busy = {0, 18, 36, 37, 38, 39, 40, 54, 55}
    case = cases.Case(72, sorted(set(range(72)) - busy), 36, [], [1] * 72, [1] * 72)
    machine = cases.machine_of(
        [f"n{i:02d}" for i in range(72)], np.arange(72), switches_of(leaf_of, [18, 72])
    )
    assert chosen(machine, case, np.arange(72), None) is None  # 17 + 17 + 2 it does not take
    found = chosen(machine, case, np.arange(72), 12)
    assert np.bincount(found // 18).tolist() == [0, 12, 12, 12]
    assert NodeList(machine.names[found].tolist()).fold() == "n[19-30,41-52,56-67]"

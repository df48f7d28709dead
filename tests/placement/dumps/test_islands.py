# SPDX-License-Identifier: Apache-2.0
"""Groups and roles found in a dump of ibnetdiscover, whatever names, GUIDs and order it has."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.check import check
from nidmap.placement.commands import run
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.readers import read_text
from nidmap.placement.specs import parse_spec
from nidmap.placement.topologies import links, router_coords, router_names
from tests.effort import examples
from tests.writers import write

FORMATS = ("ibnetdiscover", "ibnetdiscover-ports")


def dump_of(machine, rng, form="ibnetdiscover-ports", gone=(), off=()):
    """Return what ibnetdiscover prints, names and GUIDs shuffled; cables gone, nodes off."""
    found = links(machine)
    kept = np.array([k for k in range(len(found)) if k not in gone], dtype=np.int64)
    columns = {key: getattr(found, key)[kept] for key in ("a", "b", "kind", "count", "bandwidth")}
    count = len(router_coords(machine))
    names = [f"sw{k:04d}" for k in rng.sample(range(10000), count)]
    named = replace(
        machine,
        router_names=np.array(names),
        links=replace(found, **columns),
        topology=replace(machine.topology, fabric="infiniband"),
        _cache={},
    )
    text = write(named, form)
    guids = sorted(set(re.findall(r"0002c90[23]0{3,}\w+", text)))
    other = dict(zip(guids, rng.sample(guids, len(guids)), strict=True))
    text = re.sub(r"0002c90[23]0{3,}\w+", lambda m: "f" + other[m[0]][1:], text)
    lines = text.splitlines(keepends=True)
    if form == "ibnetdiscover-ports":
        rng.shuffle(lines)
        gone_hosts = {f"'{name} HCA-1'" for name in machine.names[list(off)].tolist()}
        lines = [line for line in lines if not any(name in line for name in gone_hosts)]
    return "".join(lines), dict(zip(names, router_coords(machine).tolist(), strict=True))


def again(text):
    return assemble([read_text(text, "today")])


def partition(machine, places=None):
    """Return the sets of router names that are a group, and the names of the leaves."""
    names, coords = router_names(machine).tolist(), router_coords(machine).tolist()
    here = dict(zip(names, coords, strict=True)) if places is None else places
    groups = {}
    for name in names:
        groups.setdefault(here[name][0], set()).add(name)
    leaves = {name for name in names if here[name][1] >= 0}
    return sorted(map(sorted, groups.values())), sorted(leaves)


@given(st.integers(0, 10**6), st.sampled_from(FORMATS))
@examples(8)
def test_groups_of_a_dragonfly_plus_with_cables_missing(seed, form):
    rng = random.Random(seed)
    groups, leaves, spines = rng.randint(2, 5), rng.randint(3, 5), rng.randint(3, 5)
    machine = parse_spec(
        f"dragonfly+:groups={groups},leaves={leaves},spines={spines},nodes=2,"
        f"links={rng.randint(1, 2)},global={rng.randint(1, 8)}"
    )
    local = groups * leaves * spines
    gone = rng.sample(range(local), rng.randint(0, groups))
    text, places = dump_of(machine, rng, form, split_by_none(machine, gone))
    found = again(text)
    assert found.topology.kind == "dragonfly+"
    assert found.topology.levels == ("group", "leaf router", "node")
    assert partition(found) == partition(found, places)
    by_name = dict(zip(found.names.tolist(), found.coords[:, 0].tolist(), strict=True))
    own = dict(zip(machine.names.tolist(), machine.coords[:, 0].tolist(), strict=True))
    assert len(set(by_name.values())) == groups
    assert all((by_name[a] == by_name["nid00000"]) == (own[a] == 0) for a in own)


def split_by_none(machine, gone):
    """Return those of the cables whose loss leaves every router two of its group."""
    found = links(machine)
    left = np.bincount(np.concatenate([found.a, found.b])[: 2 * len(found)])
    kept = []
    for k in gone:
        ends = [found.a[k], found.b[k]]
        if min(left[ends]) > 3:
            left[ends] -= 1
            kept.append(k)
    return kept


@given(st.integers(0, 10**6))
@examples(6)
def test_groups_of_a_dragonfly_with_cables_missing(seed):
    rng = random.Random(seed)
    machine = parse_spec(
        f"slingshot:groups={rng.randint(3, 6)},switches={rng.randint(5, 8)},nodes=2,"
        f"global={rng.randint(1, 3)}"
    )
    inside = np.flatnonzero(links(machine).kind == 0).tolist()
    text, places = dump_of(machine, rng, gone=rng.sample(inside, rng.randint(0, 3)))
    found = again(text)
    assert (found.topology.kind, found.topology.levels[1]) == ("dragonfly", "switch")
    assert partition(found) == partition(found, places)
    assert not [finding for finding in check(found) if finding.fault]


@pytest.mark.parametrize(
    "spec", ["fattree:leaf=4,leaves=6,spines=3", "fattree:down=4x4x3,up=1x2x2"]
)
def test_a_fat_tree_stays_one_though_the_hosts_of_a_leaf_are_off(spec):
    machine = parse_spec(spec)
    for off in ((), range(4), range(8, 12)):
        text, places = dump_of(machine, random.Random(1), off=off)
        found = again(text)
        assert found.topology.kind == "fattree"
        assert len(found.topology.levels) == len(machine.topology.levels)
        leaves = {n for n, at in places.items() if at[-1] >= 0}
        coords = router_coords(found)
        bottom = set(router_names(found)[(coords >= 0).all(axis=1)].tolist())
        assert bottom == leaves


def test_a_leaf_whose_hosts_are_off_and_a_spine_with_a_host_are_told_apart():
    machine = parse_spec("dragonfly+:groups=4,leaves=4,spines=4,nodes=4,global=6")
    spine = int(np.flatnonzero(router_coords(machine)[:, 1] < 0)[2])
    router = machine.router.copy()
    router[5] = spine
    odd = replace(machine, router=router, _cache={})
    text, places = dump_of(odd, random.Random(3), off=range(16, 20))
    found = again(text)
    assert found.topology.kind == "dragonfly+"
    groups, leaves = partition(found)
    assert groups == partition(found, places)[0]
    extra = router_names(found)[found.router[found.names.tolist().index("nid00005"), 0]]
    assert set(leaves) == {*partition(found, places)[1], str(extra)}


@pytest.mark.parametrize("spec", ["torus:4x4x4", "torus:6x6"])
def test_other_cables_make_no_groups(spec):
    text, _ = dump_of(parse_spec(spec), random.Random(5))
    found = again(text)
    assert (found.topology.kind, found.topology.levels) == ("tree", ("level1", "node"))


def test_commands_see_the_groups(tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def nidmap(*argv):
        assert run(list(map(str, argv))) == 0
        return capfd.readouterr()

    machine = parse_spec("dragonfly+:groups=4,leaves=3,spines=3,nodes=4,injection=25")
    path = tmp_path / "today.ibnet"
    path.write_text(dump_of(machine, random.Random(8))[0])
    shown = nidmap("machine", "show", "-m", path).out
    assert re.search(r"network +dragonfly\+ \(infiniband\)", shown)
    assert re.search(r"groups +4 of 4\nleaf routers +12, up to 3 per group", shown)
    assert "4 groups of 12 leaf and 12 spine routers in all were inferred from the cables" in shown
    plan = nidmap("plan", "-m", path, "-N", 12, "--strategy", "compact")
    assert "12 nodes in 1 group, 3 leaf routers" in plan.err
    info = nidmap("nodes", "info", "-m", path, plan.out.strip())
    assert "they touch 1 group, 3 leaf routers" in info.out + info.err
    found = nidmap("plan", "-m", f"{path},routing=adaptive", "-N", 30, "--pattern", "alltoall")
    assert "30 nodes in 3 groups" in found.err  # what spreads further gains nothing that is told

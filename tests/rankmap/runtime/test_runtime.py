# SPDX-License-Identifier: Apache-2.0
"""Reordering inside a running program: real ranks, on nodes that are made up."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import UsageError
from nidmap.placement.load import load_machine
from nidmap.rankmap.predict import Job
from nidmap.rankmap.runtime.rerank import rerank
from nidmap.rankmap.score import cost
from tests.effort import examples
from tests.rankmap.helpers import named, slots
from tests.rankmap.mpis import once, place, ranks

__all__ = ["once", "place"]

#: Prints from rank 0 what each process has become, by its old rank.
PROGRAM = """
    import json, sys
    from mpi4py import MPI
    from nidmap.rankmap.runtime import cart_create, reorder
    world = MPI.COMM_WORLD
    def tell(new):
        names = {{MPI.SIMILAR: "similar", MPI.CONGRUENT: "congruent"}}
        how = names.get(MPI.Comm.Compare(world, new))
        new_ranks = world.gather(new.rank)
        heavy = [m for m in ("numpy", "click", "nidmap.placement.machine") if m in sys.modules]
        loaded = world.gather(heavy)
        # Talk in the new order, so that a broken communicator shows.
        around = new.sendrecv(new.rank, (new.rank + 1) % new.size, source=(new.rank - 1) % new.size)
        assert around == (new.rank - 1) % new.size
        if world.rank == 0:
            print(json.dumps([how, new_ranks, loaded]))
    {body}
"""


def told(body, count, place, nodes="", **env):
    done = ranks(
        PROGRAM.format(body=body), count, place, env={"NIDMAP_PROCESSOR_NAMES": nodes, **env}
    )
    return (*json.loads(done.stdout), done.stderr)


def cyclic(count, nodes):
    return [f"nid{k % nodes:05d}" for k in range(count)]


def by_node(old, pattern, hosts):
    """Return the weight between nodes of a numbering: entry p is the rank of process p."""
    names = list(dict.fromkeys(hosts))
    on = slots(names, [hosts.count(name) for name in names])
    process = np.argsort([names.index(host) for host in hosts], kind="stable")
    at = np.empty(len(hosts), dtype=int)
    at[np.array(old)[process]] = np.arange(len(hosts))
    return cost(on.with_order(at), pattern)


@pytest.mark.mpi
@pytest.mark.parametrize(("count", "dims", "nodes"), [(3, (3,), 2), (6, (2, 3), 3)])
def test_ranks_are_reordered_and_only_rank_0_imports(place, count, dims, nodes):
    hosts = cyclic(count, nodes)
    body = f"tell(reorder(world, {dims}, machine='torus:4x4x4'))"
    how, new, loaded, said = told(body, count, place, ",".join(hosts))
    assert sorted(new) == list(range(count))
    assert how == ("congruent" if new == list(range(count)) else "similar")
    assert said == ""
    assert all(not heavy for heavy in loaded[1:])
    assert "numpy" in loaded[0]
    pattern = f"stencil:{'x'.join(map(str, dims))}"
    assert by_node(new, pattern, hosts) <= by_node(list(range(count)), pattern, hosts)


@pytest.mark.mpi
@pytest.mark.usefixtures("once")
def test_a_grid_torn_over_nodes_comes_together(place):
    hosts = cyclic(8, 2)
    how, new, _, said = told("tell(reorder(world, (2, 4)))", 8, place, ",".join(hosts))
    assert how == "similar"
    assert by_node(list(range(8)), "stencil:2x4", hosts) == 6
    assert by_node(new, "stencil:2x4", hosts) == 2
    assert said.count("RuntimeWarning: no machine is named") == 1


@pytest.mark.mpi
@pytest.mark.usefixtures("once")
def test_an_unknown_machine_or_node_is_warned_about_once_by_rank_0(place):
    for machine, says in (("atlantis", "atlantis: no such"), ("torus:2x2", "nid00099")):
        body = f"tell(reorder(world, (4,), machine={machine!r}))"
        how, new, _, said = told(body, 4, place, "nid00000,nid00099")
        assert how == "similar"
        assert by_node(new, "stencil:4", ["nid00000", "nid00099"] * 2) == 1
        assert said.count("RuntimeWarning") == 1
        assert "only nodes are distinguished" in said
        assert says in said


@pytest.mark.mpi
@pytest.mark.usefixtures("once")
def test_the_machine_may_come_from_the_environment(place):
    body = "tell(reorder(world, pattern='fft:2x2'))"
    _, new, _, said = told(body, 4, place, "nid00001,nid00000", NIDMAP_MACHINE="torus:4x4")
    assert (sorted(new), said) == ([0, 1, 2, 3], "")


@pytest.mark.mpi
def test_a_cartesian_communicator_is_reordered(place):
    body = """
    cart = cart_create(world, (2, 3), (True, False), machine="torus:4x4")
    if world.rank < 6:
        assert cart.Get_topo()[:2] == ([2, 3], [1, 0]), cart.Get_topo()
        assert cart.Get_coords(cart.rank) == [cart.rank // 3, cart.rank % 3]
        assert cart.size == 6
    else:
        assert cart == MPI.COMM_NULL
    mine = world.gather(cart.rank if world.rank < 6 else -1)
    if world.rank == 0:
        print(json.dumps([None, mine, None]))
    """
    _, new, _, said = told(body.strip(), 8, place, ",".join(cyclic(8, 3)))
    assert sorted(new[:6]) == list(range(6))
    assert new[6:] == [-1, -1]
    assert by_node(new[:6], "stencil:2x3", cyclic(6, 3)) <= 4
    assert said == ""


WRONG = {
    "reorder(world, (world.size, 2))": "UsageError: pattern stencil:3x2 has 6 ranks",
    "reorder(world)": "UsageError: reorder needs either dims or a pattern",
    "reorder(world, (world.size,), strategy='magic')": "UsageError: unknown strategy 'magic'",
    "reorder(world, (0,) if world.rank == 1 else (world.size,))": "is not a process grid",
    "reorder(world, (world.size,), periodic=world.rank == 1)": "UsageError: all ranks must",
    "cart_create(world, (world.size,), (True, True))": "UsageError: 2 periods for 1 dim",
}


@pytest.mark.mpi
@pytest.mark.parametrize("count", [3, 8])
def test_what_is_wrong_on_one_rank_is_said_by_all_and_none_hangs(place, count):
    """What is wrong on all of them is the same on any number of ranks."""
    bodies = [body for body in WRONG if count == 3 or "world.rank == 1" in body]
    caught = f"""
    said = []
    for body in {bodies}:
        try:
            eval(body)
        except Exception as error:
            said.append(f"{{type(error).__name__}}: {{error}}")
        else:
            said.append("")
    all_said = world.gather(said)
    if world.rank == 0:
        print(json.dumps([None, all_said, None]))
    """
    _, said, _, _ = told(caught.strip(), count, place)
    assert all(one == said[0] for one in said)
    for body, text in zip(bodies, said[0], strict=True):
        assert WRONG[body] in text


@pytest.mark.mpi
@pytest.mark.parametrize(("count", "failing"), [(2, 1), (5, 0)])
def test_a_rank_that_fails_ends_all(place, count, failing):
    program = PROGRAM.format(
        body=f"1 / (world.rank - {failing})\n    reorder(world, (world.size,))"
    )
    done = ranks(program, count, place, check=False)
    assert done.returncode != 0
    assert done.stderr.count("ZeroDivisionError") >= 1


@examples(60)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.booleans())
def test_any_layout_gives_a_permutation_that_is_no_worse(nodes, periodic):
    hosts = [(f"nid{k:05d}", "") for k in nodes]
    pattern = f"stencil:{len(nodes)}{',periodic' if periodic else ''}"
    new, talk, _ = rerank(hosts, Job(pattern), "torus:2x2x2")
    assert sorted(new.tolist()) == list(range(len(nodes)))
    assert talk == ""
    back = np.argsort(new)
    names = [host for host, _ in hosts]
    flat = rerank(hosts, Job(pattern))[0]
    assert by_node(np.argsort(flat), pattern, names) <= by_node(range(len(nodes)), pattern, names)
    assert sorted(back.tolist()) == list(range(len(nodes)))


def test_the_best_order_of_a_small_grid_is_found():
    hosts = [(name, "") for name in cyclic(6, 3)]
    new = np.argsort(rerank(hosts, Job("stencil:2x3"))[0])
    names = [host for host, _ in hosts]
    best = min(by_node(p, "stencil:2x3", names) for p in itertools.permutations(range(6)))
    assert by_node(new, "stencil:2x3", names) == best


def test_an_order_that_cannot_be_bettered_is_kept():
    hosts = [(name, "") for name in ("b", "b", "a", "a")]
    assert rerank(hosts, Job("stencil:4"))[0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ("dragonfly:groups=2,chassis=2,blades=2,nodes=2", "chosen by predicted time: "),
        ("tree:2x2x2,dist=1:2:3", "states no bandwidths"),
    ],
)
def test_the_best_order_is_chosen_by_time_where_that_can_be_told(machine, says):
    hosts = [(name, "") for name in named(0, 6, 6, 0, 6, 0)]
    found = rerank(hosts, Job("stencil:3x2"), machine)
    assert says in found.remark
    assert found.ranks.tolist() != list(range(6))


def test_ranks_keep_an_order_that_is_as_fast_as_the_best():
    machine = "dragonfly:groups=2,chassis=2,blades=2,nodes=2"
    hosts = [(name, "") for name in named(5, 0, 5, 0, 10, 10)]
    first = rerank(hosts, Job("stencil:6"), machine)
    assert first.ranks.tolist() != list(range(6))
    again = rerank([hosts[rank] for rank in first.ranks], Job("stencil:6"), machine)
    assert again.ranks.tolist() == list(range(6))


def test_slurms_names_count_where_they_tell_as_much():
    machine = load_machine("torus:4x4")
    hosts = [("c0-0.cluster", name) for name in named(1, 1)]
    hosts += [("c0-1.cluster", name) for name in named(2, 2)]
    assert rerank(hosts, Job("ring"), machine)[1] == ""
    same = [(host, "nid00001") for host, _ in hosts]
    assert "only nodes are distinguished" in rerank(same, Job("ring"), machine)[1]
    long = [(f"{name}.cluster.example", "") for name in named(1, 2)]
    assert rerank(long, Job("ring"), machine)[1] == ""


def test_a_request_that_makes_no_sense_is_a_usage_error():
    hosts = [("a", "")] * 4
    with pytest.raises(UsageError):
        rerank(hosts, Job("stencil:5"))
    with pytest.raises(UsageError, match="unknown strategy 'magic'"):
        rerank(hosts, Job("stencil:4"), strategy="magic")


def test_a_fault_of_ours_leaves_the_ranks_where_they_are(monkeypatch):
    def break_down(*_):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("nidmap.rankmap.runtime.rerank.order_by_strategy", break_down)
    ranks, warning, remark = rerank([("a", ""), ("b", ""), ("a", "")], Job("stencil:3"))
    assert ranks.tolist() == [0, 1, 2]
    assert warning == "strategy auto failed (ZeroDivisionError: division by zero)"
    assert remark == "the ranks keep their order"


def test_the_module_is_light_and_needs_no_mpi4py():
    code = (
        "import sys, nidmap.rankmap.runtime;"
        " print([m for m in ('numpy', 'mpi4py') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"

"""An order that was thought out once is taken again, for exactly what it was made for."""

import json
import math
import os

import numpy as np
import pytest

from placement.errors import UsageError
from placement.load import load_machine
from rankmap import order_store
from rankmap.order_store import Wish, arrange_and_store, stored_order
from rankmap.search import budget, by_strategy
from rankmap.slots import slots_of

GRAPH = "8 8 001\n" + "".join(f"{(r - 1) % 8 + 1} 9 {(r + 1) % 8 + 1} 9\n" for r in range(8))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Keep every order, here."""
    monkeypatch.setenv(order_store.FOLDER, str(tmp_path / "orders"))
    monkeypatch.setattr(order_store, "WORTH", 0.0)
    return tmp_path / "orders"


@pytest.fixture
def thinking(monkeypatch):
    """Count how often an order is thought out."""
    calls = []

    def made(slots, pattern, strategy, *more):
        calls.append(strategy)
        return real(slots, pattern, strategy, *more)

    real = by_strategy.order_by_strategy
    monkeypatch.setattr(by_strategy, "order_by_strategy", made)
    return calls


def slots(nodes="0-3", ppn="4"):
    return slots_of(load_machine("torus:4x4"), nodes, ppn)


def take(on, pattern, strategy, specs=(), **more):
    """Return the order that is kept, else a new one."""
    wish = Wish(pattern, strategy, machine_specs=tuple(specs), **more)
    return stored_order(on, wish) or arrange_and_store(on, wish)


def test_what_is_kept_is_taken_without_thinking_and_is_the_same(folder, thinking):
    first = take(slots(), "stencil:4x4", "auto", ["torus:4x4"])
    again = take(slots(), "stencil:4x4", "auto", ["torus:4x4"])
    assert thinking == ["auto"]
    assert again == first
    assert (again.strategy, again.pattern, again.remark, again.optimised) == (
        first.strategy, first.pattern, first.remark, first.optimised
    )  # fmt: skip
    assert [p.stat().st_mode & 0o77 for p in (folder, *folder.iterdir())] == [0, 0]


@pytest.mark.parametrize("spec", ["torus:4x4", "tree:4x4,dist=1:2"])
def test_an_order_found_in_haste_is_not_good_enough_for_those_who_have_time(
    folder, thinking, spec, monkeypatch
):
    for name in ("DEADLINE", "LONGEST"):  # no clock ends a search here
        monkeypatch.setattr(budget, name, 1e6)

    def ask(seconds):
        on = slots_of(load_machine(spec), "0-8", "4")
        return take(on, "stencil:6x6", "auto", [spec], seconds=seconds)

    for seconds in (0.3, 0.3, 0.2):
        assert not ask(seconds).optimised["finished"]
    assert len(thinking) == 1
    assert not ask(0.4).optimised["finished"]
    assert ask(math.inf).optimised["finished"]
    assert len(thinking) == 3
    ask(0.3)
    ask(math.inf)
    assert len(thinking) == 3


def test_an_order_made_beforehand_is_new_and_then_taken(folder, thinking):
    for _ in range(2):
        arrange_and_store(slots(), Wish("ring", "boxes", machine_specs=("torus:4x4",)))
    take(slots(), "ring", "boxes", ["torus:4x4"])
    assert len(thinking) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"nodes": "0-2,4"}, {"nodes": "3,2,1,0"}, {"ppn": "3,5,4,4"}, {"pattern": "stencil:2x8"},
        {"strategy": "hilbert"}, {"strategy": "boxes"}, {"specs": ["torus:4x4,bw=2"]},
        {"specs": []}, {"job": {"bytes": 1e3}}, {"job": {"routing": "single"}},
        {"machine": "torus:4x4,bw=2"}, {"machine": ("torus:4x4", "known:routing=single")},
        {"machine": ("torus:4x4", "known:mpi=openmpi")},
    ],
)  # fmt: skip
def test_anything_else_is_thought_out_anew(folder, thinking, other):
    def ask(nodes="0-3", ppn="4", pattern="stencil:4x4", strategy="row-major",
            specs=("torus:4x4",), machine="torus:4x4", job=None):  # fmt: skip
        named = (machine,) if isinstance(machine, str) else machine
        return take(
            slots_of(load_machine(*named), nodes, ppn), pattern, strategy, specs, job=job or {}
        )

    ask()
    ask(**other)
    assert len(thinking) == 2
    ask(**other)
    ask()
    assert len(thinking) == 2


def test_a_file_that_has_changed_is_read_anew(folder, thinking, tmp_path):
    graph = tmp_path / "a.graph"
    graph.write_text(GRAPH)
    for _ in range(2):
        take(slots("0-1"), f"graph:{graph}", "row-major")
    graph.write_text(GRAPH.replace(" 9", " 99"))
    take(slots("0-1"), f"graph:{graph}", "row-major")
    assert len(thinking) == 2


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"slots": [0, 0, 1]}', '{"slots": [[1]]}', '{"slots": ["x"]}']
)
def test_a_damaged_file_is_no_order(folder, thinking, damage):
    for _ in range(2):
        made = take(slots(), "ring", "row-major")
        assert np.array_equal(np.sort(made.slots), np.arange(16))
        (only,) = folder.iterdir()
        json.loads(only.read_text())
        only.write_text(damage)
    assert len(thinking) == 2


def test_nothing_is_kept_where_it_cannot_or_may_not_be(folder, thinking, monkeypatch, tmp_path):
    monkeypatch.setattr(order_store, "WORTH", 1e9)
    take(slots(), "ring", "row-major")
    monkeypatch.setattr(order_store, "WORTH", 0.0)
    take(slots(), "ring", "row-major", ["-"])
    assert not folder.exists()
    for name in ("", "/proc/nowhere", str(tmp_path / "file" / "x")):
        (tmp_path / "file").write_text("")
        monkeypatch.setenv(order_store.FOLDER, name)
        assert len(take(slots(), "ring", "row-major")) == 16
    with pytest.raises(UsageError, match="no strategy"):
        take(slots(), "ring", "nonsense")


def test_the_oldest_are_let_go(folder, monkeypatch):
    monkeypatch.setattr(order_store, "MOST", 3)
    for ppn in range(1, 6):
        take(slots(ppn=str(ppn)), "ring", "row-major")
        for k, path in enumerate(sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime_ns)):
            os.utime(path, (1000 + k, 1000 + k))
    assert len(list(folder.iterdir())) == 3

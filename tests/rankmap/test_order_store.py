"""An order that was thought out once is taken again, for exactly what it was made for."""

import json
import os

import numpy as np
import pytest

from placement.errors import UsageError
from placement.load import load_machine
from rankmap import order_store
from rankmap.order_store import arrange_and_store, stored_or_arranged
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

    def arrange(slots, pattern, strategy):
        calls.append(strategy)
        return real(slots, pattern, strategy)

    real = order_store.arrange
    monkeypatch.setattr(order_store, "arrange", arrange)
    return calls


def slots(nodes="0-3", ppn="4"):
    return slots_of(load_machine("torus:4x4"), nodes, ppn)


def test_what_is_kept_is_taken_without_thinking_and_is_the_same(folder, thinking):
    first = stored_or_arranged(slots(), "stencil:4x4", "auto:seconds=0.3", ["torus:4x4"])
    again = stored_or_arranged(slots(), "stencil:4x4", "auto", ["torus:4x4"])
    assert thinking == ["auto:seconds=0.3"]
    assert again == first
    assert (again.strategy, again.pattern, again.remark) == (
        first.strategy, first.pattern, first.remark
    )  # fmt: skip
    assert [p.stat().st_mode & 0o77 for p in (folder, *folder.iterdir())] == [0, 0]


def test_an_order_made_beforehand_is_new_and_then_taken(folder, thinking):
    for _ in range(2):
        arrange_and_store(slots(), "ring", "boxes", ["torus:4x4"])
    stored_or_arranged(slots(), "ring", "boxes", ["torus:4x4"])
    assert len(thinking) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"nodes": "0-2,4"}, {"nodes": "3,2,1,0"}, {"ppn": "3,5,4,4"}, {"pattern": "stencil:2x8"},
        {"strategy": "hilbert"}, {"strategy": "boxes"}, {"specs": ["torus:4x4,bw=2"]},
        {"specs": []},
    ],
)  # fmt: skip
def test_anything_else_is_thought_out_anew(folder, thinking, other):
    def take(nodes="0-3", ppn="4", pattern="stencil:4x4", strategy="row-major",
             specs=("torus:4x4",)):  # fmt: skip
        return stored_or_arranged(slots(nodes, ppn), pattern, strategy, specs)

    take()
    take(**other)
    assert len(thinking) == 2
    take(**other)
    take()
    assert len(thinking) == 2


def test_a_file_that_has_changed_is_read_anew(folder, thinking, tmp_path):
    graph = tmp_path / "a.graph"
    graph.write_text(GRAPH)
    for _ in range(2):
        stored_or_arranged(slots("0-1"), f"graph:{graph}", "row-major")
    graph.write_text(GRAPH.replace(" 9", " 99"))
    stored_or_arranged(slots("0-1"), f"graph:{graph}", "row-major")
    assert len(thinking) == 2


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"slots": [0, 0, 1]}', '{"slots": [[1]]}', '{"slots": ["x"]}']
)
def test_a_damaged_file_is_no_order(folder, thinking, damage):
    for _ in range(2):
        made = stored_or_arranged(slots(), "ring", "row-major")
        assert np.array_equal(np.sort(made.slots), np.arange(16))
        (only,) = folder.iterdir()
        json.loads(only.read_text())
        only.write_text(damage)
    assert len(thinking) == 2


def test_nothing_is_kept_where_it_cannot_or_may_not_be(folder, thinking, monkeypatch, tmp_path):
    monkeypatch.setattr(order_store, "WORTH", 1e9)
    stored_or_arranged(slots(), "ring", "row-major")
    monkeypatch.setattr(order_store, "WORTH", 0.0)
    stored_or_arranged(slots(), "ring", "row-major", ["-"])
    assert not folder.exists()
    for name in ("", "/proc/nowhere", str(tmp_path / "file" / "x")):
        (tmp_path / "file").write_text("")
        monkeypatch.setenv(order_store.FOLDER, name)
        assert len(stored_or_arranged(slots(), "ring", "row-major")) == 16
    with pytest.raises(UsageError, match="no strategy"):
        stored_or_arranged(slots(), "ring", "nonsense")


def test_the_oldest_are_let_go(folder, monkeypatch):
    monkeypatch.setattr(order_store, "MOST", 3)
    for ppn in range(1, 6):
        stored_or_arranged(slots(ppn=str(ppn)), "ring", "row-major")
        for k, path in enumerate(sorted(folder.iterdir(), key=lambda p: p.stat().st_mtime_ns)):
            os.utime(path, (1000 + k, 1000 + k))
    assert len(list(folder.iterdir())) == 3

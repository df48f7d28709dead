"""The last exchanges of nodes, judged by ranks that are followed."""

import numpy as np
import pytest

from nidmap import load_machine
from rankmap.joint.auto_order import auto_order
from rankmap.joint.budget import TUNING, Budget
from rankmap.joint.followed import exchange_nodes
from rankmap.joint.judge import State
from rankmap.predict import Predictor
from rankmap.predict.gain import Gain, Gains
from rankmap.slots import slots_of

KNOWN = "known:routing=single,process=inf,mpi=mpich"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Let there be few exchanges: each is judged by ranks that are followed."""
    monkeypatch.setattr(TUNING, "followed", 0.1)


def test_exchanges_make_a_plan_faster_and_keep_what_is_fixed():
    machine = load_machine("minicray:torus", KNOWN)
    asked = Predictor(machine, "fft:2x3", 1, 20_000, algorithm="pairwise", latency=0)
    assert asked.following
    far, spare, fixed = np.array([0, 17, 4, 13, 8, 9]), np.array([1, 2, 3, 5]), np.array([17])
    found = exchange_nodes(asked, State(far, None, "far"), spare, fixed, Budget())
    assert asked.time(found.rows) < asked.time(far)
    assert 17 in found.rows
    assert len(set(found.rows.tolist())) == 6
    assert set(found.rows.tolist()) <= {*far.tolist(), *spare.tolist()}
    again = exchange_nodes(asked, State(far, None, "far"), spare, fixed, Budget())
    assert np.array_equal(found.rows, again.rows)


@pytest.mark.parametrize("ppn", [1, 2])
def test_an_order_is_as_fast_as_its_ranks_are_followed(ppn, monkeypatch):
    monkeypatch.setattr(TUNING, "budget", 1e6)
    on = slots_of(load_machine("minicray:torus", KNOWN), "0,5,7,11,13,16,9,2", ppn)
    job = {"bytes": 10_000, "algorithm": "pairwise", "latency": 0}
    found = auto_order(on, f"fft:2x{4 * ppn}", job)
    asked = Predictor(on.machine, f"fft:2x{4 * ppn}", ppn, 10_000, algorithm="pairwise", latency=0)
    assert found.optimised["time_s"] == asked.time(on.rows, found.slots)
    assert sorted(found.slots.tolist()) == list(range(8 * ppn))


@pytest.mark.parametrize(("low", "taken"), [(0.7, False), (0.9, True)])
def test_an_order_that_may_lose_more_than_it_likely_gains_is_left(monkeypatch, low, taken):
    monkeypatch.setattr(Gains, "of", lambda *_: Gain(low, 1.2, 2.0))
    found = auto_order(slots_of(load_machine("torus:8,bw=1"), "0-5", 1), "stencil:2x3")
    assert (found.optimised["gain"]["likely"] == 1.2) is taken
    assert np.array_equal(found.slots, np.arange(6)) is not taken

# SPDX-License-Identifier: Apache-2.0
"""Without numba: exact counts, far below the default, in a few seconds, and Ctrl-C ends it."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern.graph import from_edges
from nidmap.rankmap.refine import mapping, plain
from nidmap.rankmap.refine.plain import order_by_matching
from nidmap.rankmap.score.distance import machine_distance
from nidmap.rankmap.score.traffic import cost_of
from tests.effort import examples

BLOCKED = "import sys; sys.modules['numba'] = None\n"

SMALL = """
import json
import numpy as np
import nidmap
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.score import cost
from nidmap.rankmap.place_ranks import place_ranks
on = place_ranks(nidmap.load_machine("tree:4x6x4,dist=1:2:3"), None, 30)
found = {}
for strategy in ("row-major", "graph", "auto"):
    made = arrange(on, sys.argv[1], strategy)
    counts = np.bincount(made.node_of_rank).tolist()
    found[strategy] = cost(made, sys.argv[1]), counts, made.origin.remark
print(json.dumps(found))
"""


def planar(n, seed):
    """Return points of a square, each joined to those next to it, in random order."""
    rng = np.random.default_rng(seed)
    side = int(np.sqrt(n))
    place = rng.permutation(n)
    cells = np.arange(side * side).reshape(side, side)
    a = np.concatenate([cells[:, :-1].ravel(), cells[:-1].ravel()])
    b = np.concatenate([cells[:, 1:].ravel(), cells[1:].ravel()])
    return from_edges(n, place[a], place[b], rng.integers(1, 101, len(a)).astype(float))


@pytest.fixture
def graph_file(tmp_path):
    graph = planar(2880, 1)
    lines = [
        "source,target,bytes",
        *(f"{a},{b},{w}" for a, b, w in zip(*graph.upper(), strict=True)),
    ]
    (tmp_path / "a.csv").write_text("\n".join(["# ranks=2880", *lines]) + "\n")
    return f"graph:{tmp_path / 'a.csv'}"


def test_graph_and_auto_work_without_numba(graph_file):
    """A graph of some 2,900 ranks had not ended after 21 minutes once."""
    command = [sys.executable, "-W", "error", "-c", BLOCKED + SMALL, graph_file]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.stderr
    found = json.loads(done.stdout)
    for strategy in ("graph", "auto"):
        cost, counts, remark = found[strategy]
        assert counts == [30] * 96
        assert cost < 0.25 * found["row-major"][0]
        assert remark.count("numba is not installed") == 1
        assert "pip install 'nidmap[fast]'" in remark


def test_ctrl_c_ends_an_order_without_numba(tmp_path):
    graph = planar(40000, 2)
    np.savez(tmp_path / "a.npz", row=graph.row, col=graph.indices, data=graph.weights,
             shape=np.array([40000, 40000]))  # fmt: skip
    program = (
        BLOCKED + "from nidmap.rankmap.refine import plain\nold = plain.bisect_down\n"
        "def slow(*a):\n    print('begun', flush=True)\n    while True: old(*a)\n"
        "plain.bisect_down = slow\n"
        "import nidmap; sys.exit(nidmap.main())"
    )
    order = ["order", "-m", "tree:4x16x25,dist=1:2:3", "--ppn", "25", "--strategy", "graph"]
    command = [sys.executable, "-c", program, *order, "--pattern", f"graph:{tmp_path / 'a.npz'}"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        for _ in range(120):  # as a person does who sees it go on
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, talk = process.communicate(timeout=5)
                break
        else:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in talk


@examples(40)
@given(st.integers(0, 9999), st.sampled_from(["tree:2x2x2,dist=1:2:5", "torus:2x2x2", "torus:8"]))
def test_exact_counts_and_steps_that_never_cost(seed, spec):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 6, 8)
    n = int(counts.sum())
    a, b = rng.integers(0, n, (2, 3 * n))
    graph = from_edges(n, a, b, 10.0 ** rng.uniform(0, 6, 3 * n))
    distance = machine_distance(nidmap.load_machine(spec))
    edges = Traffic.of(graph.row, graph.indices, graph.weights)
    node = np.repeat(np.arange(8), counts)
    swapped = plain.swap_ranks(edges, node, distance.matrix(), np.zeros((0, 0)), 50)
    assert np.bincount(swapped, minlength=8).tolist() == counts.tolist()
    assert cost_of(graph, swapped, distance) <= cost_of(graph, node, distance) * (1 + 1e-9)
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(mapping, "numba_installed", lambda: False)
        made = mapping.map_ranks(graph, counts, distance)
    assert np.bincount(made, minlength=8).tolist() == counts.tolist()


def test_order_by_matching():
    row, col = np.array([0, 1, 2, 3]), np.array([2, 3, 0, 1])
    both = order_by_matching(Traffic.of(row, col, np.ones(4)), 4, np.random.default_rng(1))
    assert sorted(sorted(pair) for pair in both.reshape(2, 2).tolist()) == [[0, 2], [1, 3]]

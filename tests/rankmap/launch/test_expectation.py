# SPDX-License-Identifier: Apache-2.0
"""What a launch expects of its order, against the launcher's own."""

import numpy as np
import pytest

from nidmap.placement.load import load_machine
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.launch.expectation import default_order, expectation
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import Gains
from nidmap.rankmap.recording import RecordedPhase, Recording
from nidmap.rankmap.recording.file import save_recording

SPEC = "minicray:dragonfly"


def placed(nodes, ppn, strategy="hilbert", pattern="stencil:4x8"):
    on = place_ranks(load_machine(f"{SPEC},routing=single,process=8,memory=20"), nodes, ppn)
    return arrange(on, pattern, strategy)


def test_it_is_the_gain_over_the_default_order():
    made = placed("0-7", "4")
    found = expectation(made, Job("stencil:4x8", bytes=1e5))
    asked = Predictor(made.machine, Job("stencil:4x8", [4] * 8, 1e5, algorithm="library"))
    gain = Gains(asked, asked.place(made.rows)).of(made)
    assert found.gain == gain.document()
    assert found.words.startswith(
        f"{gain.untold}expected {gain.range_text} as fast as the default order"
    )
    assert all(one["name"] != "routing" for one in found.gain["unknowns"])


@pytest.mark.parametrize("ppn", ["2", "3,1,2,2"])
def test_the_default_is_what_the_launcher_does_with_these_nodes(ppn):
    made = placed("9,3,7,1", ppn, "row-major", "ring")
    assert default_order(made, keeps_list=True).node_of_rank.tolist() == made.node_of_rank.tolist()
    own = default_order(made, keeps_list=False)
    assert own.on_same_nodes(made)
    assert (
        own.host_of_rank.tolist() == np.repeat(made.sorted().names, made.sorted().counts).tolist()
    )
    assert expectation(own, Job("ring")).words == "which is the default order"
    assert expectation(made, Job("ring"), keeps_list=True).words == "which is the default order"
    assert expectation(made, Job("ring")).words.startswith("expected ")


@pytest.mark.parametrize(
    ("pattern", "job", "says"),
    [
        ("", {}, "no --pattern is given"),
        ("stencil:5x5", {}, "25 ranks, but there are 32 slots"),
    ],
)
def test_what_cannot_be_told_is_said(pattern, job, says):
    found = expectation(placed("0-7", "4"), Job(pattern, **job))
    assert found.gain is None
    assert found.words.startswith("its gain is not known: ")
    assert says in found.words


def test_nothing_is_expected_where_no_bandwidth_is_known():
    on = place_ranks(load_machine("tree:4x4,dist=1:2"), "0-3", "2")
    found = expectation(on.with_order(np.arange(8)), Job("ring"))
    assert found.words.endswith("tree:4x4,dist=1:2 states no bandwidths")


@pytest.mark.parametrize(
    ("seconds", "window", "says"),
    [
        (
            1.0,
            "",
            "; communication is at most 4.4% of the recorded run: no placement gains more",
        ),
        (0.2, "", "; communication is at most 22.0% of the recorded run: no placement gains more"),
        (0.06, "", ""),  # two thirds
        (1.0, "30%-70%", ""),  # the seconds are those of the whole run
        (0.0, "", ""),
    ],
)
def test_a_program_that_communicates_little_is_told_so(tmp_path, seconds, window, says):
    machine = load_machine("torus:4x4,bw=1,injection=inf,latency=0,routing=dimension-order")
    a = np.array([0, 5])
    sent = Traffic(a, a[::-1], np.full(2, 40_000_000), np.full(2, 10))
    path = str(tmp_path / "app.npz")
    phase = RecordedPhase("point-to-point", "app+0x1", 10, 20, sent)
    save_recording(Recording(16, seconds, (phase,), window=window), path)
    on = place_ranks(machine, "0-15", "1")
    slots = np.arange(16)
    slots[[1, 5]] = 5, 1  # the two side by side
    found = expectation(on.with_order(slots), Job(f"measured:{path}"))
    assert found.gain["likely"] == pytest.approx(1.0)
    assert says in found.words if says else "communication is" not in found.words

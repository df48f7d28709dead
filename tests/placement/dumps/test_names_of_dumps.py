# SPDX-License-Identifier: Apache-2.0
"""Dumps that call the same hosts in capitals, or with more or less of their domain."""

import numpy as np
import pytest

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.readers import read_text
from nidmap.placement.scheduler.availability import read_availability
from tests.same_machine import same_machine

HOSTS = [f"node{k}" for k in range(1, 7)]
CALLED = {
    "capitals": str.upper,
    "domain": lambda name: f"{name}.hpc.example",
    "both": lambda name: f"{name.upper()}.HPC.example",
}


def cables(names):
    """Print three hosts on each of two leaves below a spine, as ``ibnetdiscover --ports`` does."""
    line = "CA 9 1 0x{0:016x} 4x HDR - SW 1 {1} 0x00000000000000a{2} ( '{3} mlx5_0' - 'leaf{2}' )"
    rows = [line.format(0xC0 + k, k % 3 + 1, k // 3, name) for k, name in enumerate(names)]
    up = "SW 1 30 0x00000000000000a{0} 4x HDR - SW 5 {0} 0x00000000000000b0 ( 'leaf{0}' - 'spine' )"
    return "\n".join([*rows, up.format(0), up.format(1)]) + "\n"


def states(names):
    return "NODELIST STATE\n" + "".join(
        f"{name} {'idle' if k % 2 else 'alloc'}\n" for k, name in enumerate(names)
    )


@pytest.mark.parametrize("called", CALLED)
@pytest.mark.parametrize("states_first", [True, False])
@pytest.mark.parametrize("of_cables", [True, False])
def test_cables_and_states_are_of_the_same_hosts(called, states_first, of_cables):
    other = [CALLED[called](name) for name in HOSTS]
    texts = [cables(other if of_cables else HOSTS), states(HOSTS if of_cables else other)]
    plain = [cables(HOSTS), states(HOSTS)]
    if states_first:
        texts, plain = texts[::-1], plain[::-1]
    machine = assemble([read_text(text, f"t{k}") for k, text in enumerate(texts)])
    assert sorted(name.lower().partition(".")[0] for name in machine.names.tolist()) == HOSTS
    expected = assemble([read_text(text, f"t{k}") for k, text in enumerate(plain)])
    machine.names[:] = [name.lower().partition(".")[0] for name in machine.names.tolist()]
    machine.nid[:] = expected.nid  # the numbers that names end in, where they do
    assert same_machine(machine, expected)


@pytest.mark.parametrize("called", CALLED)
def test_the_nodes_of_jobs_are_found_by_any_of_their_names(called):
    machine = assemble([read_text(cables([CALLED[called](name) for name in HOSTS]), "t")])
    jobs = "JOBID NAME ST TIME NODES NODELIST(REASON)\n7 a R 0:01 2 {}[2-3]\n"
    answer = read_availability(machine, jobs.format("node"), "jobs")
    assert np.flatnonzero(~answer.machine.free).tolist() == [1, 2]
    assert answer.notes == ()
    answer = read_availability(machine, jobs.format("gpu"), "jobs")
    assert answer.machine.free.all()
    (said,) = answer.notes
    assert said.startswith("none of the 2 nodes with jobs is in t: they are called like gpu2")


def test_a_name_that_may_be_either_of_two_hosts_is_said_and_neither():
    text = cables(["node1.a.org", "node1.b.org", *HOSTS[2:]])
    machine = assemble([read_text(text, "t"), read_text(states(HOSTS), "s")])
    assert machine.state.tolist()[:3] == ["unlisted", "unlisted", "allocated"]
    assert "left out, location unknown: node1, node2 of s" in machine.notes

# SPDX-License-Identifier: Apache-2.0
"""Which nodes are free: planners, ``nodes free`` and the page give one answer and one refusal."""

import json

import pytest

from nidmap import load_machine
from nidmap.web.snapshot import ask_sources
from tests.web.serving import squeue

SPEC = "torus:12"
SOURCES = {
    "sinfo": (
        "NODELIST STATE\nnid[00000-00003] idle\nnid00004 alloc\nnid[00005-00006] idle-\n",
        {0, 1, 2, 3},
        "allocated",
    ),
    "pbsnodes": (
        "nid00004\n     state = down\n\nnid00007\n     state = free\n", {7}, "down",
    ),
    "squeue": (squeue((1, "nid[00004-00011]", "a", "u")), {0, 1, 2, 3}, "allocated"),
    "list": ("nid00002,nid00009\n", {2, 9}, "unlisted"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_three_ways_to_ask_give_one_answer(inside, name, tmp_path):
    text, free, why = SOURCES[name]
    path = tmp_path / name
    path.write_text(text)
    names = {f"nid{number:05d}" for number in free}
    asked = "-m", SPEC, "--from", str(path)

    listed = json.loads(inside("nodes", "free", *asked, "--json").out)
    assert set(listed["nodes"]) == names

    planned = json.loads(inside("plan", *asked, "-N", str(len(free)), "--json").out)
    assert set(planned["nodes"]) == names
    done = inside("plan", *asked, "-N", str(len(free) + 1))
    assert (done.code, f"{len(free)} free: 1 missing" in done.err) == (1, True), done.err
    done = inside("plan", *asked, "-N", "1", "--include", "nid00004")
    assert f"included node nid00004 is not free: {why}" in done.err

    machine = load_machine(SPEC)
    offer = ask_sources(machine, (str(path),)).offer(machine)
    assert set(machine.names[offer.candidates]) == names
    assert offer.states[4] == why

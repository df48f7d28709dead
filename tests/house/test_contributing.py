# SPDX-License-Identifier: Apache-2.0
"""The examples of CONTRIBUTING.md do what they say, registered as a module here would be."""

from pathlib import Path

import numpy as np
import pytest

import nidmap.rankmap.orders
from nidmap.placement import planners
from nidmap.placement.errors import ParseError
from nidmap.placement.planners import Request
from nidmap.placement.readers import FORMATS, read_text
from nidmap.placement.specs import parse_spec
from nidmap.rankmap.orders import arrange
from tests.rankmap.helpers import named, slots

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
EXAMPLES = [block.partition("```")[0] for block in TEXT.split("```python\n")[1:]]


@pytest.fixture
def names(request):
    """Run one example; give its names, and forget afterwards what it registered."""
    [example] = [text for text in EXAMPLES if request.param in text]
    scope = {"__name__": "example"}
    exec(compile(example, "CONTRIBUTING.md", "exec", dont_inherit=True), scope)
    yield scope
    for registry in (FORMATS, planners._planners, nidmap.rankmap.orders._orderings):
        for name in ("show-cables", "last-first", "reversed"):
            registry.known.pop(name, None)
    planners._needs.pop("last-first", None)


@pytest.mark.parametrize("names", ["@dump_format"], indirect=True)
def test_the_reader_reads_and_refuses_with_the_line(names, monkeypatch):
    monkeypatch.setattr(FORMATS, "bundled", {**FORMATS.bundled, "show-cables": ""})
    sound = "switch s1 port 1: host n1 port 1\n\nswitch s1 port 2: switch s2 port 2\n"
    dump = read_text(sound, "x")
    assert (dump.format, dump.kind, dump.counts.total) == ("show-cables", "cables", 3)
    assert dump.nodes.name.tolist() == ["n1"]
    assert dump.routers.tolist() == ["s1", "s2"]
    with pytest.raises(ParseError, match="x:4: 'switch s2' is not a cable of a switch"):
        read_text(sound + "switch s2\n", "x")


@pytest.mark.parametrize("names", ["@planner"], indirect=True)
def test_the_planner_takes_the_last_nodes_and_what_must_be_taken(names):
    machine = parse_spec("torus:4x4")
    request = Request(count=3, free=machine.free, include=np.array([2]))
    assert planners.find("last-first")(machine, request).tolist() == [2, 15, 14]


@pytest.mark.parametrize("names", ["@ordering"], indirect=True)
def test_the_order_turns_the_ranks_round(names):
    placement = slots(named(1, 2), 2)
    turned = nidmap.rankmap.orders.find("reversed")("ring", placement)
    assert turned.slot_of_rank.tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize("names", ["(Launcher)"], indirect=True)
def test_the_launcher_starts_its_sample_with_a_host_file(names):
    [kind] = [names[name] for name in names["__all__"]]
    launcher = kind(kind.samples[0].split(), {})
    order = arrange(slots(named(1, 2), 2), "ring", "row-major")
    assert launcher.ranks(2) == 4
    line = "mpirun_rsh --hostfile /x -np 4 -rsh OMP_NUM_THREADS=2 ./app"
    assert launcher.launch(order, "/x").line() == line
    assert launcher.text(order).split() == order.host_of_rank.tolist()

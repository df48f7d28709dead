# SPDX-License-Identifier: Apache-2.0
"""HSM's component states, alone and with SLS."""

import json

import pytest

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import ParseError
from nidmap.placement.readers import read_text


def component(number, **more):
    return {
        "ID": f"x1c0s{number}b0n0", "Type": "Node", "State": "Ready", "Flag": "OK",
        "Enabled": True, "Role": "Compute", "NID": number, "NetType": "Sling", **more,
    }  # fmt: skip


def dump_of(*components):
    return read_text(json.dumps({"Components": components}, indent=1), "hsm.json")


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "up"),
        ({"Flag": "Warning"}, "up"),
        ({"Flag": "Alert"}, "alert"),
        ({"Enabled": False}, "disabled"),
        *(({"State": word}, word.lower()) for word in ("On", "Off", "Standby", "Halt", "Empty")),
    ],
)
def test_only_nodes_that_are_ready_and_enabled_are_free(more, state):
    machine = assemble([dump_of(component(1, **more), component(2))])
    assert machine.state.tolist() == [state, "up"]
    assert machine.free.tolist() == [state == "up", True]
    assert machine.names.tolist() == ["nid00001", "nid00002"]


def test_states_are_added_to_the_nodes_of_sls():
    nodes = {
        f"x1c0s{k}b0n0": {
            "Type": "comptype_node", "Class": "Mountain",
            "ExtraProperties": {"NID": k, "Role": "Compute", "Aliases": [f"nid{k:06d}"]},
        }
        for k in (1, 2, 3)
    }  # fmt: skip
    sls = read_text(json.dumps({"Hardware": nodes}), "sls.json")
    hsm = dump_of(component(1), component(2, State="Off"), component(3))
    for dumps in ([sls, hsm], [hsm, sls]):
        machine = assemble(dumps)
        assert machine.names.tolist() == ["nid000001", "nid000002", "nid000003"]
        assert machine.state.tolist() == ["up", "off", "up"]


def test_other_components_are_no_nodes():
    others = [{"ID": "x1c0s1b0", "Type": "NodeBMC", "State": "Ready"},
              {"ID": "x1c0r3b0", "Type": "RouterBMC", "State": "Ready"}]  # fmt: skip
    dump = dump_of(component(1), component(9, Role="Management", NID=-1), *others)
    assert dump.nodes.role.tolist() == ["compute", "service"]
    assert dump.nodes.nid.tolist() == [1, -1]
    assert dump.routers.tolist() == ["x1c0r3"]


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ([component(1), component(1)], "NID 1 is listed twice"),
        ([component(1), component(2, NID=1)], "NID 1 is listed twice"),
        ([component(1, ID="x1c0s1b0")], "x1c0s1b0 is not the xname of a node"),
        ([{"ID": "x1", "Type": "Cabinet", "State": "On"}], "lists no components of type Node"),
    ],
)
def test_what_contradicts_itself_is_a_fault(components, said):
    assert said in [fault.text for fault in dump_of(*components).findings if fault.fault]


def test_another_form_is_refused():
    with pytest.raises(ParseError, match=r"hsm\.json: not a list from HSM"):
        read_text('{"Components": [{"ID": 7, "State": "Ready"}]}', "hsm.json")

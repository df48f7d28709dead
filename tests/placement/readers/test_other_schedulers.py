# SPDX-License-Identifier: Apache-2.0
"""Hosts of LSF and Grid Engine, PBS in its other forms, Flux with other columns: states by hand."""

import pytest

from nidmap.placement.errors import ParseError
from nidmap.placement.load import load_machine
from nidmap.placement.readers import read_text
from tests.samples import SAMPLES

STATES = {
    "bhosts": {
        "hosta": "idle", "hostb": "allocated", "hostc": "down", "hostd": "mixed",
        "hoste": "drained", "hostf.hpc.example": "idle", "hostg": "allocated",
        "hosth": "not_responding", "hosti": "reserved",
    },
    "bhosts.lshosts": {"hosta": "up", "hostb": "up", "hostc": "unknown", "hostd": "up"},
    "qhost": {"node1": "up", "node2": "down", "node3": "up"},
    "qhost.queues": {"node1": "idle", "node2": "allocated", "node3": "mixed", "node4": "drained",
                     "node5": "down"},
    "pbsnodes.xml": {"n01": "idle", "n02": "allocated", "n03": "down", "n04": "mixed"},
    "pbsnodes.summary": {"n01": "idle", "n02": "drained", "n03": "down"},
    "flux-resources.status": {"n1": "up", "n2": "up", "n3": "up", "n4": "up", "n5": "drained",
                              "n6": "draining", "n0": "inactive", "n7": "down"},
}  # fmt: skip

BHOSTS = "HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV\n"


def states(text):
    nodes = read_text(text, "x").nodes
    return dict(zip(nodes.name.tolist(), nodes.state.tolist(), strict=True))


@pytest.mark.parametrize("name", STATES)
def test_states_by_hand(name):
    assert states(SAMPLES[name]) == STATES[name]


@pytest.mark.parametrize("name", STATES)
def test_windows_ends_tabs_and_margins_change_nothing(name):
    text = SAMPLES[name]
    assert states(text.replace("\n", "\r\n")) == STATES[name]
    assert states("\n" + text + "\n\n") == STATES[name]
    if not name.startswith("pbsnodes"):  # whose margin says what belongs to a node
        assert states("".join(f"   {line}\n" for line in text.splitlines())) == STATES[name]


def test_cores_and_gpus_are_those_printed():
    hosts = read_text(SAMPLES["bhosts.lshosts"]).nodes
    assert hosts.cores.tolist() == [16, 16, 0, 32]
    hosts = read_text(SAMPLES["qhost"]).nodes
    assert (hosts.cores.tolist(), hosts.sockets.tolist()) == ([16] * 3, [2] * 3)
    hosts = read_text(SAMPLES["pbsnodes.summary"]).nodes
    assert (hosts.cores.tolist(), hosts.gpus.tolist()) == ([40] * 3, [4] * 3)


def test_xml_may_declare_itself_on_a_line_of_its_own(tmp_path):
    """As `-m` tells it from hwloc's, which is laid over a machine."""
    path = tmp_path / "nodes.xml"
    path.write_text('<?xml version="1.0" encoding="UTF-8"?>\n' + SAMPLES["pbsnodes.xml"])
    machine = load_machine(str(path))
    assert (
        dict(zip(machine.names.tolist(), machine.state.tolist(), strict=True))
        == (STATES["pbsnodes.xml"])
    )


def test_the_load_of_grid_engine_may_be_that_of_a_core():
    named = SAMPLES["qhost"].replace(" LOAD", "NLOAD")
    assert states(named) == STATES["qhost"]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (" STATE QUEUE NNODES NCORES NGPUS NODELIST\n free batch 2 16 0 n[1-2]\n down 1 8 0 n3\n",
         {"n1": "idle", "n2": "idle", "n3": "down"}),
        (" STATE NNODES NCORES NGPUS PROPERTIES NODELIST\n free 1 8 0 big n1\n free 1 8 0 n2\n",
         {"n1": "idle", "n2": "idle"}),
        (" STATE PROPERTIES NNODES NCORES NGPUS NODELIST\n all x 2 8 0 n[1-2]\n free x 1 8 0 n1\n"
         " allocated 1 8 0 n2\n down 0 0 0\n", {"n1": "idle", "n2": "allocated"}),
        (" STATE NNODES NODELIST\n free 1 n1\n", {"n1": "idle"}),
        # older versions of status; a star where the nodes are offline besides
        (" STATUS NNODES NODELIST\n avail 2 n[1-2]\n drained* 1 n3\n offline 1 n3\n",
         {"n1": "up", "n2": "up", "n3": "down"}),
    ],
)  # fmt: skip
def test_flux_columns_by_their_header(rows, expected):
    assert states(rows) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("STATE NNODES NODELIST\nidle 1 n1\n", "x:2: 'idle 1 n1' is not a row of flux"),
        ("STATE NNODES NCORES NGPUS NODELIST\nfree 2 8 0\n", "x:2: 'free 2 8 0' is not a row"),
        (SAMPLES["bhosts"][:-20], "x:10: 'hosti .* is not a row of bhosts"),
        (SAMPLES["bhosts"] + SAMPLES["bhosts.lshosts"], "x: bhosts and lshosts in one file"),
        (BHOSTS + "rack01-node01.clus ok - 16 0 0 0 0 0\n" * 2, "x:3: 'rack01-.*' is cut off"),
        (BHOSTS + "rack01-node01.cl.. ok - 16 0 0 0 0 0\n", "x:2: 'rack01-.*' is cut off"),
        (SAMPLES["qhost"] + "node4 lx-amd64\n", "x:7: 'node4 lx-amd64' is not a row of qhost"),
        ("<Data><Node><name>n1</name></Node></Data>\n", "x: node n1 has no state"),
        ("<Data><Node><name>n1</name>\n", "x:2: not XML: no element found"),
        ('<?xml version="1.0"?><Data><Node><!DOCTYPE x></Node></Data>', "has a declaration"),
        ('{"version": 2, "execution": {"R_lite": [], "nodelist": []}}', "x: an R of version 2"),
        ('{"execution": {"R_lite": [{"rank": null, "children": {}}], "nodelist": []}}',
         "'None' is not a set of numbers"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(text, said):
    with pytest.raises(ParseError, match=said):
        read_text(text, "x")


def test_a_rank_and_a_host_alone_are_read():
    lite = '{"version": 1, "execution": {"R_lite": [{"rank": 0, "children": {"core": "0-7"}}], %s}}'
    assert states(lite % '"nodelist": "n0"') == {"n0": "idle"}

# SPDX-License-Identifier: Apache-2.0
"""What scontrol show topology prints, against trees at random and cut-off output."""

import pytest
from hypothesis import given

from nidmap.placement.errors import ParseError
from nidmap.placement.readers import read_text
from nidmap.placement.readers.topology_conf import read, sniff
from tests.placement.readers.fabric_shapes import scontrol_topology, topology_conf, trees


@given(trees())
def test_it_says_what_the_file_says(tree):
    text = scontrol_topology(tree)
    dump, conf = read(text, "t"), read(topology_conf(tree), "t")
    assert dump.switches == conf.switches
    assert dump.findings == ()
    assert dump.nodes.name.tolist() == conf.nodes.name.tolist()
    assert dump.counts.rows == dump.counts.total == len(tree.switches)
    assert read_text(text).format == "topology-conf"


def test_trailing_blanks_of_old_versions():
    dump = read("SwitchName=a Level=0 LinkSpeed=1 Nodes=n1 \n", "t")
    assert dump.switches[0].nodes == ("n1",)


BLOCKS = """\
BlockName=b1 BlockIndex=0 Nodes=n[1-4] BlockSize=4
BlockName=b2 BlockIndex=1 Nodes=n[5-8] BlockSize=4
"""


@pytest.mark.parametrize(
    "more",
    [
        "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-8] BlockSize=8\n",
        "BlockName=b[1-2] BlockIndex=2 Nodes=n[1-8] BlockSize=8\n",
        "BlockName=b1,b2 BlockIndex=2 Nodes=n[1-8] BlockSize=8\n",
    ],
)
def test_aggregated_blocks_leave_their_sizes(more):
    dump = read(BLOCKS + more, "t")
    assert [s.name for s in dump.switches] == ["b1", "b2"]
    assert (dump.fabric, dump.parameters) == ("block", {"block_sizes": (4, 8)})
    assert dump.counts.rows == 3
    assert dump.findings == ()


def test_blocks_of_slurm_23_have_no_size():
    dump = read("BlockName=b1 BlockIndex=0 Nodes=n[1-4]\n", "t")
    assert (dump.switches[0].nodes, dump.parameters) == (("n1", "n2", "n3", "n4"), {})


def test_rings():
    dump = read("RingName=r1 Nodes=n[1-3] RingSize=3\n", "t")
    assert (dump.fabric, dump.switches[0].nodes) == ("ring", ("n1", "n2", "n3"))


def test_a_torus_does_not_say_where_its_nodes_are():
    text = "TorusName=p Dims=2x1x1 Nodes=n[1-2]\n  TorusName=p PlacementDims=1x1x1(1) Anchors=2\n"
    with pytest.raises(ParseError, match=r"t:1: .*read topology\.yaml instead"):
        read(text, "t")


LEAF = "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[1-2]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LEAF[:43] + "\n", "t:1: Nodes"),
        (LEAF + "SwitchName=t Level=1 LinkSpeed=1 Swit\n", "t:2: 'Swit' is not Key=value"),
        (LEAF + "SwitchName=t Lev=1\n", "t:2: unknown keyword 'lev'"),
        (
            LEAF + "SwitchName=t Level=1 LinkSpeed=1 Nodes=n[1-2] Switches=a,b\n",
            "t:2: switch t has a child b that is not defined",
        ),
        (LEAF + "BlockName=b BlockIndex=0 Nodes=n\n", "t:2: a block topology here and a tree"),
        (LEAF + "slurm_load_topo error\n", "t:2: 'slurm_load_topo error' is not Key=value"),
        (
            "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n[1-8] BlockSize=8\n",
            "t:1: no block of its own",
        ),
        ("", "t: has no"),
    ],
)
def test_what_cannot_be_read(text, message):
    with pytest.raises(ParseError) as raised:
        read(text, "t")
    assert str(raised.value).startswith(message)


def test_sniff():
    assert sniff(LEAF)
    assert sniff(BLOCKS)

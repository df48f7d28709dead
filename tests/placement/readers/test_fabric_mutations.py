"""Damaged dumps of Slurm, SLS and InfiniBand: a dump or one line that names the file."""

import json

import pytest
from hypothesis import given

from placement.errors import NidmapError
from placement.readers import find, read_text
from tests.placement.readers.fabric_shapes import CHANGES, damaged

TREE = "SwitchName=a Nodes=n[1-3],m7\nSwitchName=b Nodes=n[4-6]\nSwitchName=top Switches=a,b\n"
NODE = {"Type": "comptype_node", "Class": "Hill", "ExtraProperties": {"NID": 1, "Role": "Compute"}}
SEEDS = {
    "topology-conf": "# ours\n" + TREE,
    "blocks": "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\n",
    "scontrol-topology": (
        "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[1-3]\n"
        "SwitchName=top Level=1 LinkSpeed=1 Nodes=n[1-3] Switches=a\n"
    ),
    "topology-yaml": (
        "---\n- topology: t\n  cluster_default: true\n  tree:\n    switches:\n"
        "      - switch: a\n        nodes: n[1-3]\n      - switch: top\n        children: a\n"
    ),
    "torus": (
        "- topology: t\n  torus3d:\n    toruses:\n      - name: p\n"
        "        dims: {x: 2, y: 2, z: 1}\n        nodes: n[1-4]\n"
        "        placements:\n          - dims: {x: 1, y: 1, z: 1}\n"
    ),
    "sinfo": (
        "PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\n"
        "a* up infinite 2 alloc n[1-2]\nb up infinite 1 idle n3\n"
    ),
    "sinfo-bars": (
        "NODELIST|STATE|MEMORY|SOCKETS|CORES|GRES\nn1|idle-|1024|2|8|gpu:4\nn2|mix|1K|1|8|\n"
    ),
    "sinfo-two": "n1 idle\nn2 drng*\n",
    "sls": json.dumps(
        {"Hardware": {"x1c0s0b0n0": NODE, "x1c0r0b0": {"Type": "rtr_bmc"}}}, indent=1
    ),
    "ibnetdiscover-ports": (
        "CA 5 1 0x00000000000000b1 4x EDR - SW 1 1 0x00000000000000a1 ( 'n1 HCA-1' - 'leaf' )\n"
        "SW 1 1 0x00000000000000a1 4x EDR - CA 5 1 0x00000000000000b1 ( 'leaf' - 'n1 HCA-1' )\n"
        "SW 2 7 0x00000000000000a2 4x ???    'spine'\n"
    ),
    "ibnetdiscover": (
        'switchguid=0xa1(a1)\nSwitch\t36 "S-00000000000000a1"\t\t# "leaf" base port 0 lid 1 lmc 0\n'
        '[1]\t"H-00000000000000b1"[1](b1) \t\t# "n1 HCA-1" lid 5 4xEDR\n\ncaguid=0xb1\n'
        'Ca\t1 "H-00000000000000b1"\t\t# "n1 HCA-1"\n'
        '[1](b1) \t"S-00000000000000a1"[1]\t\t# lid 5 lmc 0 "leaf" lid 1 4xEDR\n'
    ),
}
FORMATS = {"blocks": "topology-conf", "torus": "topology-yaml", "sinfo-bars": "sinfo"}
FORMATS |= {"sinfo-two": "sinfo"}


def check(dump, text):
    """Assert what holds of every dump: all lines are counted, columns are of one length."""
    lines = text.split("\n")
    total = len(lines) - (not lines[-1])
    assert dump.counts.total == total
    assert all("\n" not in f.text and 0 <= f.line <= total for f in dump.faults)
    if dump.nodes is not None:
        columns = [getattr(dump.nodes, name) for name in dump.nodes.__slots__]
        assert {len(c) for c in columns if c is not None} == {len(dump.nodes)}
        assert all(1 <= line <= total for line in dump.nodes.line.tolist())


def read_or_refused(seed, text):
    """Assert that a text is read, or refused in one line with the right code."""
    refusal = None
    try:
        check(find(FORMATS.get(seed, seed)).read(text, "t"), text)
    except NidmapError as error:
        refusal = error
    if refusal is not None:
        assert refusal.exit_code == 3
        assert "\n" not in str(refusal)
        assert str(refusal).startswith("t:")


@pytest.mark.parametrize("seed", SEEDS)
@given(CHANGES)
def test_damaged_dumps(seed, changes):
    read_or_refused(seed, damaged(SEEDS[seed], changes).replace("\r", ""))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_seeds_are_sound(seed):
    dump = read_text(SEEDS[seed], "t")
    assert dump.format == FORMATS.get(seed, seed)
    check(dump, SEEDS[seed])
    assert not any(f.fatal for f in dump.faults)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_prefix(seed):
    """A dump that was cut short anywhere is read or refused, never more."""
    text = SEEDS[seed]
    for end in range(len(text)):
        read_or_refused(seed, text[:end])

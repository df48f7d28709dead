"""The registry: every format is known by its content, whatever the file is called."""

import gzip
import io
import subprocess
import sys
from importlib import import_module

import pytest

from placement.errors import ParseError, UsageError
from placement.readers import BUNDLED, find, read, read_text, recognise, resembling

XTPROCADMIN = "   NID    (HEX)    NODENAME     TYPE    STATUS        MODE\n" + "".join(
    f"{n:6d} 0x{n:x} c0-0c0s{n // 4}n{n % 4}  compute        up interactive\n" for n in range(4, 20)
)
EXAMPLES = {
    "xtprocadmin": XTPROCADMIN,
    "xtdb2proc": "#\ncpu=0,slot=2,cage=0,cabinet=null,cab_position=2,cab_row=3,x_coord=13,"
    "y_coord=0,z_coord=2,processor_status='up',processor_type='compute',processor_id=4904\n",
    "meshcoords": "  NID   NODENAME      TYPE   CORES   X  Y  Z\n"
    " 2305  c0-1c0s0n1    compute    68   6  0  0\n",
    "torus-coordinates": "2 c0-0c0s1n0 compute 0 0 1\n",
    "system-map": "NID HEX NODE GEMINI X Y Z\n=====\n2 0x2 c0-0c0s1n0 c0-0c0s1g0 0 0 1\n",
    "rtr-aries": "c0-0c0s0a0l00(0:0:0) green -> c0-0c0s6a0l10(0:0:6)\n",
    "rtr-gemini": "c0-0c0s0g0l00[(0,0,0)] Z+ -> c0-0c0s1g0l32[(0,0,1)] LinkType: backplane\n",
    "topology-conf": "# ours\nSwitchName=s0 Nodes=dev[0-5]\nSwitchName=s1 Switches=s0\n",
    "topology-yaml": "---\n- topology: topo1\n  cluster_default: true\n  flat: true\n",
    "scontrol-topology": "SwitchName=s0 Level=0 LinkSpeed=1 Nodes=dev[0-5]\n",
    "scontrol-nodes": "NodeName=n1 Arch=x86_64 CoresPerSocket=16\n   State=IDLE Sockets=2\n"
    "   Partitions=debug\n",
    "slurm-json": '{"nodes": [{"name": "n1", "state": ["IDLE"], "partitions": ["debug"]}]}\n',
    "pbsnodes": "n1\n     Mom = n1.local\n     state = free\n     pcpus = 8\n",
    "flux-resources": "     STATE NNODES   NCORES    NGPUS NODELIST\n"
    "      free      2        8        0 n[1-2]\n",
    "job-list": "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
    "    7     debug  a b   me  R 0:02     2 n[1-2]\n",
    "sinfo": "NODELIST   NODES PARTITION STATE\nnid00012       1    batch* idle\n",
    "ibnetdiscover": "#\n# Topology file: generated on a day\n#\nvendid=0x2c9\ndevid=0xbd36\n"
    'switchguid=0x1(1)\nSwitch\t2 "S-0000000000000001"\t\t# "leaf1" base port 0 lid 1 lmc 0\n'
    '[1]\t"H-0000000000000002"[1](3) \t\t# "node018 HCA-1" lid 67 4xEDR\n',
    "ibnetdiscover-ports": "CA    10  1 0x0000000000000002 4x EDR - SW     1  1 "
    "0x0000000000000001 ( 'node018 HCA-1' - 'leaf1' )\n",
    "sls": '{"Hardware": {"x1000c0s0b0n0": {"Parent": "x1000c0s0b0", "Xname": "x1000c0s0b0n0",'
    ' "Type": "comptype_node", "Class": "Mountain", "TypeString": "Node", "ExtraProperties":'
    ' {"NID": 1000, "Role": "Compute", "Aliases": ["nid001000"]}}}, "Networks": {}}\n',
}


def test_there_is_an_example_of_every_format():
    assert set(EXAMPLES) == set(BUNDLED)


@pytest.mark.parametrize("name", BUNDLED)
def test_a_format_is_recognised_by_its_content(name):
    text = EXAMPLES[name]
    assert recognise(text, "x") == name
    for same in (text, "\n" + text, text.replace("\n", "\r\n")):
        dump = read_text(same, "x")
        assert dump.format == name
        assert dump.source == "x"


@pytest.mark.parametrize("name", BUNDLED)
def test_modules_are_called_as_their_formats_and_sniff_their_own(name):
    module = import_module(f"placement.readers.{name.replace('-', '_')}")
    assert module.sniff(EXAMPLES[name])
    assert find(name) is module


@pytest.mark.parametrize("name", BUNDLED)
def test_files_gzip_and_standard_input_give_the_same(name, tmp_path, monkeypatch):
    data = EXAMPLES[name].encode()
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    for source in (str(tmp_path / "plain"), str(tmp_path / "packed"), "-"):
        dump = read(source)
        assert dump.format == name
        assert dump.source == source


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n\n  \n", "x: holds no record, only blanks and comments"),
        ("# nothing\n", "x: holds no record, only blanks and comments"),
        ("\n# a\nhello world\n", "x:3: 'hello world' is of no format"),
        ("<!DOCTYPE html>\n<html>\n", "x:1: '<!DOCTYPE html>' is of no format"),
        ("g,r,c,n,jobid\n0,1,2,3,4\n", "x:1: 'g,r,c,n,jobid' is of no format"),
        ("x" * 10_000, "x:1: 'xxxxxxxxx"),
    ],
)
def test_what_is_of_no_format_is_refused_with_the_formats_that_are_read(text, says):
    with pytest.raises(ParseError) as caught:
        read_text(text, "x")
    assert str(caught.value).startswith(says)
    if "no format" in says:
        assert all(name in str(caught.value) for name in BUNDLED)


def test_a_key_called_topology_makes_no_topology_yaml_of_slurms_json():
    node = '"name": "n1",\n  "topology": "",\n  "state": ["IDLE"], "partitions": []'
    assert recognise('{"nodes": [{\n  ' + node + "}]}\n", "-") == "slurm-json"


def test_junk_before_a_dump_is_refused_by_its_line_not_by_its_format():
    with pytest.raises(ParseError) as caught:
        read_text("user@login1:~> xtprocadmin\n" + XTPROCADMIN, "x")
    assert str(caught.value).startswith("x:1: xtprocadmin: 'user@login1:~>' is not a NID")


@pytest.mark.parametrize("first", ["xtprocadmin", "xtdb2proc", "meshcoords", "rtr-aries"])
@pytest.mark.parametrize("second", ["torus-coordinates", "rtr-gemini", "topology-conf"])
def test_two_formats_in_one_file_are_both_named(first, second):
    text = EXAMPLES[first] * 1 + EXAMPLES[second] + EXAMPLES[second]
    with pytest.raises(ParseError) as caught:
        read_text(text, "x")
    message = str(caught.value)
    line = EXAMPLES[first].count("\n") + 1 + (second == "topology-conf")
    assert message.startswith(f"x:{line}: two formats in one file: this line looks like {second}")
    assert first in message


def test_unknown_formats_are_refused():
    with pytest.raises(
        UsageError, match="no format 'csv'; there are flux-resources, ibnetdiscover"
    ):
        find("csv")


def test_a_line_resembles_its_format_and_not_the_one_ruled_out():
    assert resembling("2 c0-0c0s1n0 compute 0 0 1") == "torus-coordinates"
    assert resembling("2 c0-0c0s1n0 compute 0 0 1", but="torus-coordinates") == ""
    assert resembling("hello") == ""


def test_the_commonest_dump_loads_no_other_reader():
    code = (
        "import sys; from placement.readers import read_text\n"
        f"read_text({XTPROCADMIN!r})\n"
        "names = [m for m in sys.modules if m.startswith('placement.readers.')]\n"
        "assert not {'placement.readers.sls', 'placement.readers.rtr_aries'} & set(names), names\n"
        "heavy = {'pandas', 'networkx', 'yaml', 'msgspec', 'gzip', 'json'} & set(sys.modules)\n"
        "import numpy\n"
        "assert heavy <= {'json'}, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)

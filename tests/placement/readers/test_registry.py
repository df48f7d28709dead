# SPDX-License-Identifier: Apache-2.0
"""The registry: every format is known by its content, whatever the file is called."""

import subprocess
import sys

import pytest

from nidmap.placement.errors import ParseError, UsageError
from nidmap.placement.readers import BUNDLED, find, read_text, recognise, resembling
from tests.samples import SAMPLES

XTPROCADMIN = "   NID    (HEX)    NODENAME     TYPE    STATUS        MODE\n" + "".join(
    f"{n:6d} 0x{n:x} c0-0c0s{n // 4}n{n % 4}  compute        up interactive\n" for n in range(4, 20)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\n\n  \n", "x: has only blank lines and comments"),
        ("# nothing\n", "x: has only blank lines and comments"),
        ("\n# a\nhello world\n", "x:3: 'hello world' is not in a format"),
        ("<!DOCTYPE html>\n<html>\n", "x:1: '<!DOCTYPE html>' is not in a format"),
        ("g,r,c,n,jobid\n0,1,2,3,4\n", "x:1: 'g,r,c,n,jobid' is not in a format"),
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
        read_text("nodes of today\n" + XTPROCADMIN, "x")
    assert str(caught.value).startswith("x:1: xtprocadmin: 'nodes' is not a NID")


@pytest.mark.parametrize("first", ["xtprocadmin", "xtdb2proc", "meshcoords", "rtr-aries"])
@pytest.mark.parametrize("second", ["torus-coordinates", "rtr-gemini", "topology-conf"])
def test_two_formats_in_one_file_are_both_named(first, second):
    text = SAMPLES[first] * 1 + SAMPLES[second] + SAMPLES[second]
    with pytest.raises(ParseError) as caught:
        read_text(text, "x")
    message = str(caught.value)
    line = SAMPLES[first].count("\n") + 1 + (second == "topology-conf")
    assert message.startswith(f"x:{line}: two formats in one file: this line looks like {second}")
    assert first in message


def test_unknown_formats_are_refused():
    first = "bhosts, flux-resource-set, flux-resources, hsm-components"
    with pytest.raises(UsageError, match=f"unknown format 'csv'; choose from {first}"):
        find("csv")


def test_a_line_resembles_its_format_and_not_the_one_ruled_out():
    assert resembling("2 c0-0c0s1n0 compute 0 0 1") == "torus-coordinates"
    assert resembling("2 c0-0c0s1n0 compute 0 0 1", but="torus-coordinates") == ""
    assert resembling("hello") == ""


def test_the_commonest_dump_loads_no_other_reader():
    code = (
        "import sys; from nidmap.placement.readers import read_text\n"
        f"read_text({XTPROCADMIN!r})\n"
        "names = [m for m in sys.modules if m.startswith('nidmap.placement.readers.')]\n"
        "heavy = {f'nidmap.placement.readers.{name}' for name in ('sls', 'rtr_aries')}\n"
        "assert not heavy & set(names), names\n"
        "heavy = {'pandas', 'networkx', 'yaml', 'msgspec', 'gzip', 'json'} & set(sys.modules)\n"
        "import numpy\n"
        "assert heavy <= {'json'}, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)

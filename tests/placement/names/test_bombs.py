# SPDX-License-Identifier: Apache-2.0
"""Lists that say more than a machine has are refused at once, in little memory."""

import json
import subprocess
import sys

import pytest

from nidmap.placement.errors import ParseError
from nidmap.placement.names.hostlist import MAX_CHARACTERS, MAX_NAMES
from nidmap.placement.nodelist import NodeList

MEGABYTE = 1_000_000
BOMBS = {
    "one range": "nid[0-999999999]",
    "two brackets": "a[0-9999]b[0-9999]",
    "many brackets": "a" + "[0-99]b" * 20,
    "many lines": "nid[0-3999999]\n" * 1000,
    "many ranges": ",".join(["n[1-100000]"] * 50),
    "long names": "a" * 240 + "[0-999999]",
    "a repeat": "nid1*999999999",
    "repeats": "nid[1-2000]*2001",
    "slots": "n1 slots=999999999",
    "slots of a range": "n[1-1000000]:5",
    "exec_host": "n1/0*999999999",
    "indices": "#0-999999999",
    "one word": "x" * MEGABYTE,
    "one number": "1" * MEGABYTE,
    "a long number": f"n[{'1' * MEGABYTE}]",
    "open brackets": "a[" * (MEGABYTE // 2),
    "open brackets and blanks": "[ " * (MEGABYTE // 2),
    "closing brackets": "]" * MEGABYTE,
    "commas in brackets": f"n[{'1,' * (MEGABYTE // 2)}]",
    "dashes": f"n[{'1-' * (MEGABYTE // 2)}]",
    "asterisks": "a*" * (MEGABYTE // 2),
    "colons": "a:" * (MEGABYTE // 2),
    "slashes": "a/0+" * (MEGABYTE // 4),
    "a digit for a slot": "a/" + "1" * MEGABYTE,
    "no text": "\x00\xff" * (MEGABYTE // 2),
    "no table": "1" * (MEGABYTE // 2) + " x y z R 0:0 1 ?" * (MEGABYTE // 32),
    "a forged record": "JobId=1\n" + "NodeList=a " * (MEGABYTE // 11),
    "a late fault": "\n" * MEGABYTE + "?",
}

RUN = """
import json, sys, time
from nidmap.placement.errors import ParseError
from nidmap.placement.nodelist import NodeList
for name, text in json.load(sys.stdin).items():
    start = time.process_time()
    try:
        said = f"read {len(NodeList.parse(text, 'f'))} names"
    except ParseError as error:
        said = str(error)
    # not ru_maxrss, which starts from what the test process had before exec
    status = open("/proc/self/status").read()
    peak = int(status.split("VmHWM:")[1].split()[0])
    print(json.dumps([name, said, time.process_time() - start, peak]))
"""


@pytest.fixture(scope="module")
def outcomes():
    """Parse all bombs in a process of its own, which notes its peak memory in KiB."""
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(BOMBS),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return {row[0]: row[1:] for row in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused(outcomes, name):
    said, seconds, peak = outcomes[name]
    assert said.startswith("f:"), said
    assert said.isprintable()
    assert len(said) < 400
    assert peak < 256 * 1024
    assert seconds < 20  # a second on any machine; a hang is what this is about


@pytest.mark.parametrize(
    ("text", "line"),
    [("nid[0-999999999]", 1), ("a\nb\nn[0-9999]m[0-9999]", 3), ("n[0-3999999]\nn2", 2)],
)
def test_the_cap_and_the_line_are_named(text, line):
    with pytest.raises(ParseError, match=f"a list may hold {MAX_NAMES} names") as caught:
        NodeList.parse(text, "hosts")
    assert caught.value.line == line


def test_characters_have_a_cap_of_their_own():
    with pytest.raises(ParseError, match=f"a list may hold {MAX_CHARACTERS}"):
        NodeList.parse("a" * 240 + "[0-999999]")


def test_a_large_list_below_the_cap_is_read():
    nodes = NodeList.parse("nid[000000-299999]")
    assert len(nodes) == 300_000
    assert nodes.fold() == "nid[000000-299999]"

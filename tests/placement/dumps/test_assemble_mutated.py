# SPDX-License-Identifier: Apache-2.0
"""Golden dumps, mangled: a machine, or one of our own errors; never a traceback."""

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.check import check_sources
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import NidmapError
from nidmap.placement.load import Sources
from nidmap.placement.readers import read_text
from nidmap.placement.topologies import links, router_names
from nidmap.placement.views import summarise
from tests.same_machine import same_machine

HERE = Path(__file__).parents[2] / "machines"
FILES = sorted(HERE.glob("*/source*"))
NUMBERS = ["0", "1", "2", "3", "7", "15", "16", "63", "255", "4000", "65535", "99999", "2147483648"]


def text_of(path):
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.name.endswith(".gz") else raw).decode()


TEXTS = [text for text in map(text_of, FILES) if len(text) < 60_000]


def drop_line(lines, i, _):
    del lines[i]


def repeat_line(lines, i, j):
    lines.insert(j, lines[i])


def swap_lines(lines, i, j):
    lines[i], lines[j] = lines[j], lines[i]


def cut_line(lines, i, j):
    lines[i] = lines[i][: j % (len(lines[i]) + 1)]


def change_number(lines, i, j):
    found = list(re.finditer(r"\d+", lines[i]))
    if found:
        at = found[j % len(found)]
        lines[i] = lines[i][: at.start()] + NUMBERS[j % len(NUMBERS)] + lines[i][at.end() :]


def swap_numbers(lines, i, j):
    found = list(re.finditer(r"\d+", lines[i]))
    if len(found) > 1:
        a, b = found[j % (len(found) - 1)], found[j % (len(found) - 1) + 1]
        line = lines[i]
        lines[i] = line[: a.start()] + b[0] + line[a.end() : b.start()] + a[0] + line[b.end() :]


WAYS = [drop_line, repeat_line, swap_lines, cut_line, change_number, swap_numbers]
changes = st.lists(
    st.tuples(st.sampled_from(WAYS), st.integers(0, 10**6), st.integers(0, 10**6)), max_size=4
)


@st.composite
def mangled(draw):
    """Draw a golden text with some lines changed."""
    lines = draw(st.sampled_from(TEXTS)).splitlines(keepends=True)
    for way, i, j in draw(changes):
        if lines:
            way(lines, i % len(lines), j % len(lines) if way is not change_number else j)
    return "".join(lines)


@given(st.lists(mangled(), min_size=1, max_size=2))
def test_mangled_dumps_make_a_machine_or_an_error(texts):
    try:
        dumps = [read_text(text, f"dump{i}") for i, text in enumerate(texts)]
        machine = assemble(dumps)
        summarise(machine)
    except NidmapError as error:
        message = str(error)
    else:
        message = ""
        assert len(machine.names) == len(set(machine.names.tolist()))
        assert len(router_names(machine)) > int(machine.router.max())
        found = links(machine)
        assert int(found.b.max(initial=-1)) < len(router_names(machine))
        assert (machine.coords >= 0).all()
        assert (machine.coords < machine.topology.extents).all()
    assert "\n" not in message


@given(mangled())
def test_check_agrees_with_the_machine(text):
    try:
        dump = read_text(text, "dump")
    except NidmapError:
        return
    machine, findings = check_sources(Sources(dumps=[dump]))
    refused = [x for x in findings if x.fault]
    if machine is None:
        assert refused
        with pytest.raises(NidmapError):
            assemble([dump])
    else:
        assert same_machine(machine, assemble([dump]))

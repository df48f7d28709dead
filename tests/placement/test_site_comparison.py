# SPDX-License-Identifier: Apache-2.0
"""A site's file against what the fabric prints: nodes, switches, links, bandwidths."""

from pathlib import Path

import pytest

import nidmap
from nidmap.placement.check import check_sources
from nidmap.placement.load import open_sources
from tests.writers import ibnetdiscover

FILE = Path(__file__).parents[2] / "examples" / "site.toml"


def remarks(tmp_path, *changes):
    """Return what is said of the example's file, changed, and of the fabric that it was."""
    fabric, site = tmp_path / "fabric.ibnet", tmp_path / "site.toml"
    text = FILE.read_text()
    site.write_text(text)
    fabric.write_text(ibnetdiscover.write(nidmap.load_machine(str(site))))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    site.write_text(text)
    machine, findings = check_sources(open_sources(str(site), str(fabric)))
    assert machine is not None
    assert not any(finding.fault for finding in findings)
    return [f.text.replace(str(fabric), "FABRIC") for f in findings if f.kind == "site"]


def test_a_file_that_agrees_with_its_fabric_has_no_remark(tmp_path):
    assert remarks(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"node[33-48]"', '"node[33-47],mode48"',
         ["1 node not in FABRIC: mode48", "1 node of FABRIC not in the file: node48"]),
        ("uplinks = { value = 8,", "uplinks = { value = 4,",
         ["has 16 links up1, FABRIC has 32"]),
        ("up = { value = 25,", "up = { value = 12.5,",
         ["links up1 have 12.5 GB/s, in FABRIC 25"]),
        ("injection = { value = 25,", "injection = { value = 12.5,",
         ["links up0 have 12.5 GB/s, in FABRIC 25"]),
        ("spines = { value = 2,", "spines = { value = 4,",
         ["has 8 switches, FABRIC has 6"]),
    ],
)  # fmt: skip
def test_what_the_fabric_shows_otherwise_is_said(tmp_path, old, new, said):
    assert remarks(tmp_path, (old, new)) == said


def test_all_that_differs_is_said_at_once(tmp_path):
    changes = [("uplinks = { value = 8,", "uplinks = { value = 6,"), ("value = 25,", "value = 50,")]
    assert remarks(tmp_path, *changes) == [
        "has 24 links up1, FABRIC has 32",
        "links up1 have 50 GB/s, in FABRIC 25",
        "links up0 have 50 GB/s, in FABRIC 25",
    ]

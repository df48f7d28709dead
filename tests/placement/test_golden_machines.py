# SPDX-License-Identifier: Apache-2.0
"""Every machine in tests/machines: its dumps are read to what its expected.json says."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from nidmap.placement.check import check_sources
from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import NidmapError, ParseError, UsageError
from nidmap.placement.load import load_machine, open_sources
from nidmap.placement.readers import read_text
from nidmap.placement.topologies import links
from nidmap.placement.views import count_holes
from tests.same_machine import same_machine
from tests.writers import write

HERE = Path(__file__).parents[1] / "machines"
FOLDERS = sorted(path.parent for path in HERE.glob("*/expected.json"))
EXPECTED = {folder: json.loads((folder / "expected.json").read_text()) for folder in FOLDERS}
COHERENT = [folder for folder in FOLDERS if "refused" not in EXPECTED[folder]]
REFUSED = [folder for folder in FOLDERS if "refused" in EXPECTED[folder]]


def specs(folder):
    return [*map(str, sorted(folder.glob("source*"))), *EXPECTED[folder].get("specs", [])]


def named(folder):
    return folder.name


def test_there_are_enough():
    assert len(COHERENT) >= 25
    assert len(REFUSED) >= 15
    assert sum(path.stat().st_size for path in HERE.rglob("source*")) < 1_500_000


@pytest.mark.parametrize("folder", COHERENT, ids=named)
def test_a_coherent_machine(folder):
    expected = EXPECTED[folder]
    machine = load_machine(*specs(folder))
    assert machine.topology.kind == expected["kind"]
    assert list(machine.topology.extents) == expected["extents"]
    assert len(machine) == expected["nodes"]
    assert machine.names.tolist() == sorted(
        machine.names.tolist(), key=dict(zip(machine.names, machine.nid, strict=True)).get
    )
    rows = {name: row for row, name in enumerate(machine.names.tolist())}
    for name, node in expected["sample"].items():
        assert machine.nid[rows[name]] == node["nid"]
        assert machine.coords[rows[name]].tolist() == node["coords"]
    assert int(machine.free.sum()) == expected.get("free", machine.compute.sum())
    assert int((machine.role == "service").sum()) == expected.get("service", 0)
    if "holes" in expected:
        assert count_holes(machine) == expected["holes"]
    if "wiring" in expected:
        assert machine.topology.wiring.startswith(expected["wiring"])
    if "leaves" in expected:
        assert int((machine.switches.level == 0).sum()) == expected["leaves"]
    if "cores" in expected:
        assert set(machine.cores.tolist()) == {expected["cores"]}


@pytest.mark.parametrize("folder", COHERENT, ids=named)
def test_its_links(folder):
    expected = EXPECTED[folder].get("links")
    if expected is None:
        return
    found = links(load_machine(*specs(folder)))
    pairs, count = Counter(), Counter()
    for kind, n in zip(found.kind.tolist(), found.count.tolist(), strict=True):
        pairs[found.kinds[kind]] += 1
        count[found.kinds[kind]] += n
    assert {kind: [pairs[kind], count[kind]] for kind in pairs} == expected


@pytest.mark.parametrize("folder", COHERENT, ids=named)
def test_check_finds_no_fault_and_every_line_is_accounted_for(folder):
    sources = open_sources(*specs(folder))
    _, findings = check_sources(sources)
    assert [str(x) for x in findings if x.fault] == []
    for dump in sources.dumps:
        raw = Path(dump.source).read_bytes()
        text = gzip.decompress(raw) if dump.source.endswith(".gz") else raw
        assert dump.counts.total == len(text.decode().splitlines())


@pytest.mark.parametrize("folder", COHERENT, ids=named)
def test_it_is_written_back_in_its_own_format(folder):
    sources = open_sources(*specs(folder))
    if len(sources.dumps) > 1:
        return
    [dump] = sources.dumps
    machine = assemble([dump], groups=sources.groups)
    try:
        text = write(machine, dump.format)
    except UsageError:
        assert dump.format == "sinfo"
        raise
    assert same_machine(assemble([read_text(text, "again")], groups=sources.groups), machine)


@pytest.mark.parametrize("folder", REFUSED, ids=named)
def test_an_incoherent_machine_is_refused_in_one_line(folder):
    with pytest.raises(NidmapError) as error:
        load_machine(*specs(folder))
    assert str(error.value).replace(f"{folder}/", "") == EXPECTED[folder]["error"]
    assert error.value.exit_code == 3


@pytest.mark.parametrize("folder", REFUSED, ids=named)
def test_check_blames_the_right_line(folder):
    expected = EXPECTED[folder]["refused"]
    where = str(folder / expected["source"])
    loose = EXPECTED[folder].get("loose_line", False)
    if expected["kind"] == "syntax":
        with pytest.raises(ParseError) as error:
            open_sources(*specs(folder))
        assert error.value.source == where
        assert loose or error.value.line == expected["line"]
        return
    machine, findings = check_sources(open_sources(*specs(folder)))
    assert machine is None
    faults = [x for x in findings if x.fault]
    at = [(x.kind, x.source) if loose else (x.kind, x.source, x.line) for x in faults]
    wanted = (expected["kind"], where) if loose else (expected["kind"], where, expected["line"])
    assert wanted in at

# SPDX-License-Identifier: Apache-2.0
"""InfiniBand's port counters in its tools' own words, joined with ibnetdiscover's output."""

from collections import Counter
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import NidmapError, ParseError
from nidmap.placement.topologies import router_names
from nidmap.web.measured import measured
from tests.web.serving import running
from tests.writers import ibnetdiscover, ibnetdiscover_ports
from tests.writers.ibnetdiscover import cables_of

pytest_plugins = ("tests.web.browser",)

#: What the tools print around the counters that are meant.
BEFORE = "PortSelect:......................{port}\nCounterSelect:...................0x0000\n"
AFTER = (
    "PortXmitPkts:....................7\nPortRcvPkts:.....................8\n"
    "PortUnicastXmitPkts:.............7\nPortUnicastRcvPkts:..............8\n"
    "PortMulticastXmitPkts:...........0\nPortMulticastRcvPkts:............0\n"
)
SHAPE = "fattree:leaf=2,leaves=3,spines=2,links=2"


def field(name, value):
    return f"{name}:{'.' * (32 - len(name))}{value}\n"


def perfquery(lid, port, outgoing, incoming, extended=True, address=""):
    """A paragraph as ``perfquery -x`` prints it."""
    title = "Port extended counters" if extended else "Port counters"
    masks = "CapMask: 0x5A00 CapMask2: 0x0000002" if extended else "CapMask: 0x5A00"
    text = f"# {title}: Lid {lid}{address} port {port} ({masks})\n" + BEFORE.format(port=port)
    text += "" if extended else field("SymbolErrorCounter", 0) + field("LinkDownedCounter", 1)
    return text + field("PortXmitData", outgoing) + field("PortRcvData", incoming) + AFTER


def ibqueryerrors(plug, counters):
    """The lines of ``ibqueryerrors --counters`` for one switch."""
    yield f'Data Counters for 0x{plug.guid:x} "{plug.name}"\n'
    for port, (outgoing, incoming) in counters:
        yield (
            f"   GUID 0x{plug.guid:x} port {port}: [PortXmitData == {outgoing} (1.000KB)]"
            f" [PortRcvData == {incoming} (1.000KB)] [PortXmitPkts == 4 (4.000)]"
            " [PortRcvPkts == 4 (4.000)]\n"
        )


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    """A fat tree as ibnetdiscover prints it, and the machine that is made of it."""
    path = tmp_path_factory.mktemp("ib") / "fabric.txt"
    path.write_text(ibnetdiscover.write(nidmap.load_machine(SHAPE)))
    return path, nidmap.load_machine(str(path))


def switches(machine):
    return cables_of(machine, "ibnetdiscover")[1]


def words_of(machine, numbers):
    """Words in each direction of each cable between switches by (switch, port) of the sender."""
    return {
        (near.name, near.port): next(numbers)
        for _, own in switches(machine)
        for near, far, _ in own
        if not far.host
    }


def reports(machine, words, tell=lambda plug, port: True, **form):
    """What perfquery says of the ports that are asked."""
    text = ""
    for plug, own in switches(machine):
        for near, far, _ in own:
            if not far.host and tell(plug, near.port):
                outgoing, incoming = words[near.name, near.port], words[far.name, far.port]
                text += perfquery(plug.lid, near.port, outgoing, incoming, **form)
    return text


def carried(machine, found):
    """Bytes from switch to switch, sorted: parallel cables are alike."""
    names, links = router_names(machine), found.links
    told = {}
    for source, target, load in zip(links.source, links.target, links.load, strict=True):
        told.setdefault((str(names[source]), str(names[target])), []).append(load)
    return {ends: sorted(loads) for ends, loads in told.items()}


def expected(machine, words):
    told = {}
    for _, own in switches(machine):
        for near, far, _ in own:
            if not far.host and words[near.name, near.port]:
                size = 4.0 * words[near.name, near.port]
                told.setdefault((near.name, far.name), []).append(size)
    return {ends: sorted(loads) for ends, loads in told.items()}


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_each_port_is_joined_with_its_cable(fabric, tmp_path_factory, data):
    _, machine = fabric
    draw = st.integers(0, 2**40)
    words = words_of(machine, iter(lambda: data.draw(draw), None))
    words[next(iter(words))] = 1 + data.draw(draw)
    path = tmp_path_factory.mktemp("counters") / "perfquery.txt"
    chosen = data.draw(st.sampled_from(("both ends", "leaves", "spines", "errors", "gid")))
    if chosen == "errors":
        text = "ibwarn: [812] query_cap_mask: classportinfo query failed\n"
        for plug, own in switches(machine):
            ports = [
                (near.port, (words[near.name, near.port], words[far.name, far.port]))
                for near, far, _ in own
                if not far.host
            ]
            text += "".join(ibqueryerrors(plug, ports))
        text += "\n## Summary: 5 nodes checked, 0 bad nodes found\n##          24 ports checked\n"
    else:
        told = {"leaves": "leaf", "spines": "spine"}.get(chosen, "")
        address = " Gid fe80::2:c903:0:1" if chosen == "gid" else ""
        text = reports(machine, words, lambda plug, port: told in plug.name, address=address)
    path.write_text(text)
    found = measured(machine, (str(path),), 5000)
    assert carried(machine, found) == expected(machine, words)
    assert found.unknown == 0
    assert "since their reset" in found.sentence
    assert "without a counter" not in found.sentence


def test_two_readings_are_subtracted(fabric, tmp_path):
    _, machine = fabric
    first = words_of(machine, count(2**33, 1000))
    later = {port: words + 11 * k for k, (port, words) in enumerate(first.items())}
    more = {port: later[port] - words for port, words in first.items()}
    early, late, both = (tmp_path / name for name in ("early.txt", "late.txt", "both.txt"))
    early.write_text(reports(machine, first))
    late.write_text(reports(machine, later))
    found = measured(machine, (str(early), str(late)), 5000)
    assert carried(machine, found) == expected(machine, more)
    assert "late.txt, since early.txt" in found.sentence
    both.write_text(early.read_text() + late.read_text())
    again = measured(machine, (str(both),), 5000)
    assert again.links == found.links
    assert "both.txt, since its first reading" in again.sentence
    with pytest.raises(ParseError, match=r"counts less than .*late.txt:1;") as caught:
        measured(machine, (str(late), str(early)), 5000)
    assert (caught.value.source, caught.value.line > 0) == (str(early), True)


def test_a_port_that_is_read_once_is_no_difference(fabric, tmp_path):
    _, machine = fabric
    first = words_of(machine, count(2**33, 1000))
    early, late = tmp_path / "early.txt", tmp_path / "late.txt"
    early.write_text(reports(machine, first, lambda plug, port: plug.name != "spine1"))
    late.write_text(reports(machine, {port: words + 5 for port, words in first.items()}))
    found = measured(machine, (str(early), str(late)), 5000)
    assert set(found.links.load) == {20.0}
    assert len(found.links.load) == 24, "what spine1 said once, its leaves say twice"
    early.write_text(reports(machine, first, lambda plug, port: plug.name == "spine0"))
    found = measured(machine, (str(early), str(late)), 5000)
    assert len(found.links.load) == 12
    assert "12 links without a counter" in found.sentence


def test_wide_counters_go_before_those_of_32_bits(fabric, tmp_path):
    _, machine = fabric
    words = words_of(machine, count(2**40, 3))
    short = {port: number % 2**32 for port, number in words.items()}
    path = tmp_path / "perfquery.txt"
    path.write_text(reports(machine, words) + reports(machine, short, extended=False))
    assert carried(machine, measured(machine, (str(path),), 5000)) == expected(machine, words)
    path.write_text(reports(machine, short, extended=False))
    assert carried(machine, measured(machine, (str(path),), 5000)) == expected(machine, short)


@pytest.mark.parametrize("writer", [ibnetdiscover, ibnetdiscover_ports])
def test_the_fabric_may_stand_in_a_file_of_its_own(fabric, tmp_path, writer):
    _, machine = fabric
    shape = nidmap.load_machine(SHAPE)  # made of no dump
    words = words_of(machine, count(1000, 10))
    path, dump = tmp_path / "perfquery.txt", tmp_path / "fabric.txt"
    path.write_text(reports(machine, words))
    dump.write_text(writer.write(machine))
    with pytest.raises(ParseError, match=r"perfquery.txt:1: .*ibnetdiscover"):
        measured(shape, (str(path),), 5000)
    found = measured(shape, (str(dump), str(path)), 5000)
    assert carried(shape, found) == expected(machine, words)


def test_hosts_and_strangers(fabric, tmp_path):
    _, machine = fabric
    words = words_of(machine, count(1000, 10))
    hosts = [cable.near for cable in cables_of(machine, "ibnetdiscover")[0]]
    text = reports(machine, words) + "".join(perfquery(host.lid, 1, 5, 6) for host in hosts)
    text += perfquery(hosts[0].lid, 255, 5, 6) + perfquery(4000, 3, 7, 8)
    text += f"# PortXmitDataSL counters: Lid {hosts[0].lid} port 1\n" + field("XmtDataSL0", 4)
    path = tmp_path / "perfquery.txt"
    path.write_text(text)
    found = measured(machine, (str(path),), 5000)
    assert carried(machine, found) == expected(machine, words)
    assert found.unknown == 1


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        (perfquery(1, 3, 5, 6) + perfquery(1, 4, 2**32 - 1, 6, extended=False), 12, "limit"),
        (perfquery(1, 3, 5, 2**64 - 1), 1, "limit"),
        (perfquery(1, 3, 5, 2**65), 1, "limit"),
        (perfquery(1, 3, "many", 6), 1, "'many' is no number"),
        (perfquery(1, 3, 5, 6).partition("PortRcvData")[0], 1, "has no PortRcvData"),
        (perfquery(1, 3, 5, 6).replace("Lid 1", "DR path slid 0; dlid 0; 0,1"), 1, "DR path"),
        (perfquery(1, 255, 5, 6), 1, "all ports of a switch"),
        ("$ perfquery -x 1 3\n" + perfquery(1, 3, 5, 6), 1, "perfquery"),
        (perfquery(1, 3, 5, 6) + "Segmentation fault\n", 12, "Segmentation"),
        ('Data Counters for 0x0002c90200000001 "leaf0"\n   GUID 0x2c902', 2, "perfquery"),
        (perfquery(900, 3, 5, 6), 0, "no link of"),
    ],
)
def test_one_line_says_what_is_wrong(fabric, tmp_path, text, line, word):
    _, machine = fabric
    path = tmp_path / "perfquery.txt"
    path.write_text(text)
    with pytest.raises(ParseError, match=word) as caught:
        measured(machine, (str(path),), 10)
    assert (caught.value.source, caught.value.line) == (str(path), line)
    assert "\n" not in str(caught.value)


def test_kinds_of_counters_are_not_mixed(fabric, tmp_path):
    _, machine = fabric
    words = words_of(machine, count(1000, 10))
    ports, table = tmp_path / "perfquery.txt", tmp_path / "links.csv"
    ports.write_text(reports(machine, words))
    table.write_text("from,to,bytes\nleaf0,spine0,12\n")
    for paths in ((ports, table), (table, table, ports)):
        with pytest.raises(ParseError, match="more counters"):
            measured(machine, [str(path) for path in paths], 10)
    with pytest.raises(ParseError, match="has no counters"):
        measured(machine, [str(fabric[0])], 10)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_damaged_reports_are_read_or_refused_in_one_line(fabric, tmp_path_factory, data):
    _, machine = fabric
    lines = reports(machine, words_of(machine, count(1000, 10))).splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.integers(0, len(lines) - 1))
        lines[row] = data.draw(
            st.one_of(
                st.just(""),
                st.text(max_size=40),
                st.integers(0, len(lines[row])).map(lambda cut, row=row: lines[row][:cut]),
                st.sampled_from(lines),
            )
        )
    path = tmp_path_factory.mktemp("damaged") / "perfquery.txt"
    path.write_text("".join(lines), encoding="utf-8", errors="replace", newline="")
    refused = ""
    try:
        found = measured(machine, (str(path),), 5000)
    except NidmapError as error:
        refused = str(error)
    if refused:
        assert refused.startswith(str(path))
        assert "\n" not in refused
    else:
        assert found.bytes == pytest.approx(sum(found.links.load))


def test_lids_of_another_day_are_refused(tmp_path):
    path = "tests/machines/ib-fat-tree/source.ibnetdiscover"
    machine, report = nidmap.load_machine(path), tmp_path / "perfquery.txt"
    report.write_text(perfquery(4, 6, 10, 20))
    with pytest.raises(ParseError, match="LID 4 is of several switches"):
        measured(machine, (str(report),), 10)


def test_a_cable_that_says_more_than_its_neighbour_is_drawn_so(opened, fabric, tmp_path):
    _, machine = fabric
    words = words_of(machine, count(10**6, 10**6))
    path = tmp_path / "perfquery.txt"
    path.write_text(reports(machine, words))
    with running(machine, link_loads=(str(path),)) as site:
        answer = site.ask("/api/v1/measured").json
        assert Counter(answer["links"]["load"]) == Counter(4.0 * size for size in words.values())
        page = opened(site).go("#t=traffic&m=A:0:0-5")
        page.page.wait_for_selector("#traffic-picture svg")
        page.page.keyboard.press("u")
        page.until("() => document.querySelectorAll('#traffic-picture svg').length === 2")
        assert "since their reset" in page.text("#traffic-picture").replace("\n", " ")
        page.leave()

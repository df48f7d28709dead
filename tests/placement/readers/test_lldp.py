"""LLDP neighbours: the same fabric, listed by ibnetdiscover, is the reference."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.dumps.assemble import assemble
from nidmap.placement.errors import ParseError
from nidmap.placement.readers import read_text
from tests.placement.readers.fabric_shapes import fabrics, ports_text
from tests.same_machine import same_machine
from tests.samples import SAMPLES

MAU = "100GbaseCR4 - 100GBASE-R PCS/PMA over 4 lane shielded copper balanced cable"


def end_name(fabric, end, port):
    """Return what a device and its port are called."""
    kind, number = end
    if kind == "S":
        return fabric.switches[number], f"swp{port}"
    return fabric.hosts[
        number
    ] + ".hpc.example", f"eth{fabric.hosts[:number].count(fabric.hosts[number])}"


def seen(name, port, kind, values):
    """Return one neighbour in the form of -f json, or of -f json0 where `values` are listed."""
    caps = [{"type": word, "enabled": kind == "S"} for word in ("Bridge", "Router")]
    word = (lambda text: [{"value": text}]) if values else (lambda text: text)
    ident = {"type": "ifname", "value": port}
    body = {"id": [ident] if values else ident, "descr": word(port)}
    body["auto-negotiation"] = [{"current": word(MAU)}] if values else {"current": MAU}
    if not values:
        return {"via": "LLDP", "chassis": {name: {"id": ident, "capability": caps}}, "port": body}
    chassis = {"id": [ident], "name": word(name), "capability": caps}
    return {"via": "LLDP", "chassis": [chassis], "port": [body]}


def lldp_text(fabric, values, hosts_too):
    """Print what every switch sees, and every host where they were asked as well."""
    asked = {name: [] for name in fabric.switches}
    for a, pa, b, pb in fabric.cables:
        for (x, px), (y, py) in (((a, pa), (b, pb)), ((b, pb), (a, pa))):
            (mine, interface), (name, port) = end_name(fabric, x, px), end_name(fabric, y, py)
            if x[0] == "S" or hosts_too:
                body = seen(name, port, y[0], values)
                entry = {"name": interface, **body} if values else {interface: body}
                asked.setdefault(mine.partition(".")[0], []).append(entry)
    lists = {name: {"interface": found} for name, found in asked.items()}
    return json.dumps({name: {"lldp": [x] if values else x} for name, x in lists.items()}, indent=1)


@given(fabrics(), st.booleans(), st.booleans())
def test_a_fabric_is_the_same_by_lldp_and_by_ibnetdiscover(fabric, values, hosts_too):
    by_leaf = sorted(fabric.cables, key=lambda c: (c[0][0] == "S", c[2][1], c[3]))
    fabric = replace(fabric, cables=tuple(by_leaf))  # a host's place is that of its first cable
    mine = assemble([read_text(lldp_text(fabric, values, hosts_too), "x")])
    other = assemble([read_text(ports_text(fabric), "x")])
    assert mine.topology.fabric == "ethernet"
    assert (mine.topology.kind, mine.topology.extents) == (
        other.topology.kind,
        other.topology.extents,
    )
    assert dict(mine.topology.bandwidth) == dict(other.topology.bandwidth)
    assert mine.names.tolist() == other.names.tolist()
    assert mine.nics.tolist() == other.nics.tolist()
    assert np.array_equal(mine.coords, other.coords)
    names, others = mine.router_names.tolist(), other.router_names.tolist()
    pairs, wanted = (
        sorted(
            (called[a], called[b], n)
            for a, b, n in zip(m.links.a, m.links.b, m.links.count, strict=True)
        )
        for m, called in ((mine, names), (other, others))
    )
    assert pairs == wanted


def test_both_forms_of_the_sample_are_one_machine():
    one, other = (assemble([read_text(SAMPLES[name], "x")]) for name in ("lldp", "lldp.json0"))
    assert same_machine(one, other)
    assert one.names.tolist() == ["n1", "n2", "n3", "n4"]
    assert one.topology.kind == "fattree"


def test_what_one_device_prints_says_not_which_it_is():
    alone = json.dumps(json.loads(SAMPLES["lldp"])["leaf1"])
    with pytest.raises(
        ParseError, match="says what a device sees, but not which device it is; for each"
    ):
        read_text(alone, "x")


def test_a_switch_that_nobody_asked_is_a_remark_and_nameless_firmware_no_host():
    fabric = json.loads(SAMPLES["lldp"])
    del fabric["spine2"]
    card = {"chassis": {"id": {"type": "mac", "value": "b8:ce:f6:00:00:01"}}, "port": {"id": {}}}
    fabric["leaf1"]["lldp"]["interface"].append({"swp1": card})
    dump = read_text(json.dumps(fabric, indent=1), "x")
    assert [(f.kind, f.fault) for f in dump.findings] == [
        ("unnamed-host", False),
        ("unasked", False),
    ]
    assert "spine2" in dump.findings[1].text
    assert dump.nodes.name.tolist() == ["n1", "n2", "spine2", "n3", "n4"]


@pytest.mark.parametrize(
    ("words", "gbs"), [("1000BaseTFD - x", 0.125), ("10GigBaseCX4 - x", 1.25), ("fibre", np.nan)]
)
def test_the_rate_is_that_of_the_operational_mau_type(words, gbs):
    dump = read_text(SAMPLES["lldp"].replace(MAU, words), "x")
    assert np.array_equal(np.unique(dump.links.bandwidth), [gbs], equal_nan=True)


def test_a_switch_that_stands_twice_is_refused_with_its_line():
    one = '"leaf1": {"lldp": {"interface": {"swp1": {"chassis": {"%s": {"id": {}}},'
    one += ' "port": {"id": {"type": "ifname", "value": "eth0"}}}}}}'
    text = "{" + one % "n1" + ",\n" + one % "n2" + "}"
    with pytest.raises(ParseError, match="x:2: key 'leaf1' is listed twice in one object"):
        read_text(text, "x")
    assert len(read_text("{" + one % "n1" + ",\n" + one % "n1" + "}", "x").nodes) == 1

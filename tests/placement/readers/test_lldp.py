# SPDX-License-Identifier: Apache-2.0
"""LLDP neighbours: the same fabric, listed by ibnetdiscover, is the reference."""

import json

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
    assert dump.nodes.name.tolist() == ["n1", "n2", "n3", "n4"]
    assert dump.routers.tolist() == ["leaf1", "spine1", "spine2", "leaf2"]


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


def lldp(**devices):
    """Return what devices see: (interface, name, port, capabilities or None, MAU or '')."""
    printed = {}
    for device, neighbours in devices.items():
        interfaces = []
        for interface, name, port, caps, mau in neighbours:
            ident = {"type": "ifname", "value": port}
            chassis = {"id": {"type": "mac", "value": name}}
            if caps is not None:
                chassis["capability"] = [{"type": word, "enabled": True} for word in caps]
            body = {"id": ident, **({"auto-negotiation": {"current": mau}} if mau else {})}
            interfaces.append({interface: {"chassis": {name: chassis}, "port": body}})
        printed[device] = {"lldp": {"interface": interfaces}}
    return printed


SWITCH, HOST = ["Bridge", "Router"], ["Station"]
FAST, SLOW = "100GbaseCR4 - x", "1000BaseTFD - x"
#: Two leaves of two hosts, a spine, and each switch's own port on the network out of band.
LEAF1 = [
    ("swp1", "h1", "eth1", HOST, FAST),
    ("swp2", "h2", "eth1", HOST, FAST),
    ("swp9", "spine", "swp1", SWITCH, FAST),
    ("eth0", "oob", "swp1", SWITCH, SLOW),
]
LEAF2 = [
    ("swp1", "h3", "eth1", HOST, FAST),
    ("swp2", "h4", "eth1", HOST, FAST),
    ("swp9", "spine", "swp2", SWITCH, FAST),
    ("eth0", "oob", "swp2", SWITCH, SLOW),
]
SPINE = [
    ("swp1", "leaf1", "swp9", SWITCH, FAST),
    ("swp2", "leaf2", "swp9", SWITCH, FAST),
    ("eth0", "oob", "swp3", SWITCH, SLOW),
]
OOB = [
    ("swp1", "leaf1", "eth0", SWITCH, SLOW),
    ("swp2", "leaf2", "eth0", SWITCH, SLOW),
    ("swp3", "spine", "eth0", SWITCH, SLOW),
    *((f"swp{10 + k}", f"h{k}", "eno1", HOST, SLOW) for k in (1, 2, 3, 4)),
    ("swp20", "h1-bmc", "eth0", HOST, SLOW),
]


def without(devices, *words):
    """Return the same without capabilities (3) or rates (4)."""
    return {
        name: [tuple(None if k in words else x for k, x in enumerate(row)) for row in rows]
        for name, rows in devices.items()
    }


FABRIC = {"leaf1": LEAF1, "leaf2": LEAF2, "spine": SPINE}
ASKED_FIRST = {"oob": OOB, **FABRIC}


@pytest.mark.parametrize(
    "devices", [FABRIC, ASKED_FIRST, without(ASKED_FIRST, 4), without(FABRIC, 3, 4)]
)
def test_a_network_out_of_band_is_no_part_of_the_fabric(devices):
    dump = read_text(json.dumps(lldp(**devices)), "x")
    machine = assemble([dump])
    assert machine.names.tolist() == ["h1", "h2", "h3", "h4"]
    assert machine.router_names[machine.router].tolist() == [["leaf1"]] * 2 + [["leaf2"]] * 2
    assert sorted(machine.router_names) == ["leaf1", "leaf2", "spine"]
    assert machine.topology.kind == "fattree"
    assert "management left out" in next(f for f in dump.findings if f.kind == "management").text


def test_where_only_the_network_out_of_band_is_listed_it_is_the_fabric():
    machine = assemble([read_text(json.dumps(lldp(oob=OOB)), "x")])
    assert {"h1", "h2", "h3", "h4"} <= {*machine.names.tolist()}


@pytest.mark.parametrize(
    ("slow", "gbs"), [("1000BaseTFD - x", [12.5]), ("25GbaseCR - x", [3.125, 12.5])]
)
def test_a_slow_port_beside_a_fast_one_is_no_rail(slow, gbs):
    leaf1 = [*LEAF1, ("swp3", "h1", "eth2", HOST, slow)]
    machine = assemble([read_text(json.dumps(lldp(leaf1=leaf1, leaf2=LEAF2, spine=SPINE)), "x")])
    rates = machine.topology.bandwidth["up0"] * np.ones(machine.router.shape)
    rates = rates if machine.attachment_gbs is None else machine.attachment_gbs
    assert np.unique(rates[machine.router >= 0]).tolist() == gbs


def test_a_host_with_a_slow_port_alone_keeps_it():
    leaf1 = [("swp1", "h1", "eth1", HOST, SLOW), *LEAF1[1:]]
    machine = assemble([read_text(json.dumps(lldp(leaf1=leaf1, leaf2=LEAF2, spine=SPINE)), "x")])
    assert machine.attachment_gbs.ravel().tolist() == [0.125, 12.5, 12.5, 12.5]


@pytest.mark.parametrize(
    ("words", "port", "nodes"),
    [
        (["Telephone"], "port1", ["h1", "h2", "h3", "h4"]),
        (SWITCH, "Ethernet1/1", ["h1", "h2", "h3", "h4"]),
        (SWITCH, "eth1", ["h1", "h2", "x", "h3", "h4"]),  # a host that runs containers
        (None, "eth1", ["h1", "h2", "x", "h3", "h4"]),
    ],
)
def test_what_is_no_host_is_no_node_and_what_may_be_none_is_said(words, port, nodes):
    leaf1 = [*LEAF1[:3], ("swp5", "x", port, words, FAST)]
    dump = read_text(json.dumps(lldp(leaf1=leaf1, leaf2=LEAF2, spine=SPINE)), "x")
    assert dump.nodes.name.tolist() == nodes
    said = [f.text for f in dump.findings if f.kind in ("no-host", "unasked", "no-capability")]
    assert len(said) == 1
    assert "(x)" in said[0]


@pytest.mark.parametrize("shape", ["list", "values", "named"])
def test_lists_and_values_in_a_row_are_read_as_one_object(shape):
    printed = lldp(leaf1=LEAF1, leaf2=LEAF2, spine=SPINE)
    parts = [{name: body} for name, body in printed.items()]
    named = [{"hostname": name, **body} for name, body in printed.items()]
    text = {
        "list": json.dumps(parts),
        "values": "\n".join(json.dumps(part, indent=1) for part in parts) + "\n",
        "named": json.dumps(named, indent=1),
    }[shape]
    whole = assemble([read_text(json.dumps(printed), "x")])
    assert same_machine(assemble([read_text(text, "x")]), whole)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"leaf1": {"lldp": {}}}, 7]', "'7' is not what lldpcli prints"),
        ('{"leaf1": {"lldp": {}}, "leaf2": 7}', "leaf2 is not what lldpcli prints"),
        ('{"leaf1": {"lldp": {}}} {"leaf1": {"lldp": [1]}}', "leaf1 is listed twice"),
        ('{"leaf1": {"lldp": {}}}\n{"leaf2": ', "x:2: not JSON"),
    ],
)
def test_what_is_no_list_of_devices_is_refused(text, said):
    with pytest.raises(ParseError, match=said):
        read_text(text, "x")


def cables_of(dump):
    """Return the cables of a dump, both ends by name and port."""
    links = dump.links
    ends = zip(links.a, links.a_port, links.b, links.b_port, strict=True)
    return {frozenset([(a, p), (b, q)]) for a, p, b, q in ends}


def nvue(**neighbours):
    """Return what ``nv show interface lldp-detail -o json`` prints on a switch."""
    return {
        port: {
            "link": {"speed": speed},
            "type": "swp",
            "lldp": {
                "neighbor": {
                    name: {
                        "chassis": {"system-name": name, "capability": {"is-bridge": bridge}},
                        "port": {"name": there},
                    }
                }
            },
        }
        for port, (name, there, speed, bridge) in neighbours.items()
    }


FABRIC = {
    "leaf1": {"swp1": ("h1", "enp1s0", "100G", "off"), "swp2": ("h2", "enp1s0", "25G", "off"),
              "swp9": ("spine1", "swp1", "400G", "on"), "eth0": ("oob", "swp3", "1G", "on")},
    "leaf2": {"swp1": ("h3", "enp1s0", "100G", "off"), "swp9": ("spine1", "swp2", "400G", "on")},
}  # fmt: skip


def eos(sees):
    rows = [{"port": p, "neighborDevice": n, "neighborPort": q, "ttl": 120}
            for p, (n, q, _, _) in sees.items()]  # fmt: skip
    return {"tablesDrops": 0, "lldpNeighbors": rows}


def eos_detail(sees):
    return {"lldpNeighbors": {
        p: {"lldpNeighborInfo": [{
            "systemName": n,
            "systemCapabilities": {"bridge": on == "on", "stationOnly": on == "off"},
            "neighborInterfaceInfo": {"interfaceId": f'"{q}"', "interfaceIdType": "interfaceName"},
        }]} for p, (n, q, _, on) in sees.items()
    }}  # fmt: skip


def nxos(sees):
    rows = [
        {"l_port_id": p, "chassis_id": n, "port_id": q, "capability": "BR" if on == "on" else "S"}
        for p, (n, q, _, on) in sees.items()
    ]
    return {"TABLE_nbor": {"ROW_nbor": rows if len(rows) > 1 else rows[0]}, "neigh_count": "3"}


def junos(sees):
    rows = [{f"lldp-{key}": [{"data": value}] for key, value in (
        ("local-port-id", p), ("remote-system-name", n), ("remote-port-id", q))}
        for p, (n, q, _, _) in sees.items()]  # fmt: skip
    return {"lldp-neighbors-information": [{"lldp-neighbor-information": rows}]}


@pytest.mark.parametrize("shape", [lambda sees: nvue(**sees), eos, eos_detail, nxos, junos])
def test_switches_of_other_makers_say_the_same_cables(shape):
    """Five shapes of one fabric: the cables that it was drawn from, without management."""
    text = json.dumps({name: shape(sees) for name, sees in FABRIC.items()} | {
        "spine1": shape({"swp1": ("leaf1", "swp9", "400G", "on"),
                         "swp2": ("leaf2", "swp9", "400G", "on")})})  # fmt: skip
    dump = read_text(text, "fabric.json")
    assert dump.format == "lldp"
    assert dict(zip(dump.nodes.name.tolist(), dump.nodes.router.tolist(), strict=True)) == {
        "h1": "leaf1", "h2": "leaf1", "h3": "leaf2"}  # fmt: skip
    assert cables_of(dump) == {
        frozenset([(leaf, port), (name, there)])
        for leaf, sees in FABRIC.items()
        for port, (name, there, _, _) in sees.items()
        if name != "oob"
    }


def test_nvue_says_the_speed_of_each_port():
    dump = read_text(json.dumps({name: nvue(**sees) for name, sees in FABRIC.items()}), "f.json")
    speeds = dict(zip(dump.links.b, dump.links.bandwidth, strict=True))
    assert (speeds["h1"], speeds["h2"], speeds["spine1"]) == (12.5, 3.125, 50.0)


def test_nvue_of_no_device_asks_for_its_name():
    with pytest.raises(ParseError, match="not which device it is"):
        read_text(json.dumps(nvue(**FABRIC["leaf1"])), "f.json")


@pytest.mark.parametrize("name", ["idrac-h1", "h1-bmc", "ilo3", "BMC", "h1_ipmi", "h1.oob"])
def test_a_controller_beside_hosts_is_none(name):
    """1 GbE of a host's controller among 100 GbE; a fast host that is called so stays."""
    sees = {"swp1": ("h1", "eth2", "100G", "off"), "swp2": (name, "eth0x", "1G", "off"),
            "swp3": ("h2", "eth2", "100G", "off")}  # fmt: skip
    dump = read_text(json.dumps({"leaf1": nvue(**sees)}), "f.json")
    assert dump.nodes.name.tolist() == ["h1", "h2"]
    assert "management" in [finding.kind for finding in dump.findings]
    sees["swp2"] = (name, "eth0x", "100G", "off")
    assert len(read_text(json.dumps({"leaf1": nvue(**sees)}), "f.json").nodes) == 3


@pytest.mark.parametrize("full", [("leaf1",), ("leaf1", "leaf2", "spine")])
@pytest.mark.parametrize("short", [False, True])
def test_a_switch_may_be_asked_by_another_part_of_its_name_than_it_announces(full, short):
    """Who asks by ssh writes a domain that the switch does not announce, or the other way."""
    plain = lldp(leaf1=LEAF1, leaf2=LEAF2, spine=SPINE)
    domain = ".mgmt.hpc.example"
    if short:  # it announces the longer name
        seen = json.dumps(plain)
        for name in full:
            seen = seen.replace(f'{{"{name}": {{"id"', f'{{"{name}{domain}": {{"id"')
        printed = json.loads(seen)
        assert printed != plain
    else:
        printed = {name + domain * (name in full): body for name, body in plain.items()}
    dump = read_text(json.dumps(printed), "x")
    assert [f.text for f in dump.findings if f.fault] == []
    machine, expected = assemble([dump]), assemble([read_text(json.dumps(plain), "x")])
    machine.router_names[:] = [name.partition(".")[0] for name in machine.router_names]
    assert same_machine(machine, expected)

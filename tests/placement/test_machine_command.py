# SPDX-License-Identifier: Apache-2.0
"""``nidmap machine show | export | check`` as a user runs them."""

import json

import networkx
import pytest

from nidmap.placement.commands import run
from nidmap.placement.load import load_machine
from nidmap.placement.sites import site_names
from nidmap.placement.topologies import wiring_text
from tests.placement import machine_shapes as shapes

XC = shapes.xc_cells(4, 1)


@pytest.fixture
def nidmap(capfd, monkeypatch):
    """Run a command in this process: (code, stdout, stderr)."""
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)

    def call(*argv):
        code = run(list(argv))
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "my.xtprocadmin"
    path.write_text(shapes.xtprocadmin(XC, service={1, 2}, states={5: "down", 6: "admindown"}))
    return str(path)


# --- show ----------------------------------------------------------------------


def test_show_says_what_there_is(nidmap, dump):
    code, out, err = nidmap("machine", "show", "-m", dump)
    assert (code, err) == (0, "")
    facts = dict(line.split(None, 1) for line in out.splitlines() if line.strip())
    assert facts["network"] == "dragonfly (aries)"
    assert facts["wiring"] == "same-chassis, 24 links per group pair"
    assert facts["groups"] == "2 of 2"
    assert facts["compute"] == "766 nodes, 764 free: 1 admindown, 1 down, 764 up"
    assert facts["service"].startswith("2 nodes")
    assert facts["green"].split()[1] == str(12 * 120)
    assert facts["blue"].split()[1] == "24"
    assert "assumed" in facts["note"]


def test_one_of_a_kind_is_one(nidmap, tmp_path):
    dump = tmp_path / "one.xtprocadmin"
    dump.write_text(shapes.xtprocadmin(XC[:1]))
    assert "\ncompute  1 node, 1 free\n" in nidmap("machine", "show", "-m", str(dump))[1]
    assert "1 node of one.xtprocadmin; they touch 1 group, 1 chassis, 1 blade" in str(
        nidmap("nodes", "info", "-m", str(dump), "#0")
    )


def test_show_as_json(nidmap, dump):
    code, out, _ = nidmap("machine", "show", "-m", dump, "--json")
    found = json.loads(out)
    assert code == 0
    assert found["nodes"] == {
        "total": 768,
        "compute": 766,
        "service": 2,
        "free": 764,
        "states": {"compute": {"admindown": 1, "down": 1, "up": 764}, "service": {"up": 2}},
    }
    by_class = {row["class"]: row for row in found["links"]}
    assert by_class["black"] == {
        "class": "black",
        "router_pairs": 2 * 16 * 15,
        "links": 2 * 16 * 15 * 3,
        "gbs": [5.25, 5.25],
        "gbs_total": 2 * 16 * 15 * 15.75,
    }
    assert found["routers"] == 192
    assert found["attachments"] == {
        "class": "injection",
        "links": 768,
        "most": 1,
        "routers": 192,
        "gbs": 10.0,
        "gbs_range": [10.0, 10.0],
        "gbs_total": 7680.0,
    }


@pytest.mark.parametrize("site", site_names())
def test_show_every_site(nidmap, site):
    code, out, _ = nidmap("machine", "show", "-m", site)
    assert code == 0
    assert site in out
    code, out, _ = nidmap("machine", "show", "-m", site, "--json")
    found = json.loads(out)
    assert found["site"] == site
    assert found["wiring"]
    assert found["hardware"]


@pytest.mark.parametrize(
    "spec",
    ["torus:4x4x4,nodes=2", "fattree:leaf=4,leaves=4,spines=2", "tree:4x4,dist=1:3", "tree:3"],
)
def test_show_a_spec(nidmap, spec):
    code, out, _ = nidmap("machine", "show", "-m", spec)
    assert code == 0
    assert wiring_text(load_machine(spec)) in out


def test_the_machine_may_come_from_the_environment(nidmap, monkeypatch, dump):
    monkeypatch.setenv("NIDMAP_MACHINE", dump)
    assert nidmap("machine", "show")[0] == 0
    assert nidmap("machine", "check")[0] == 0
    monkeypatch.setenv("NIDMAP_MACHINE", "")
    assert nidmap("machine", "check")[0] == 2


def test_a_hostile_name_does_not_reach_the_terminal(nidmap, tmp_path):
    path = tmp_path / "a\x1b[31m"
    path.write_text(shapes.xtprocadmin(XC))
    for command in ("show", "check"):
        _, out, err = nidmap("machine", command, "-m", str(path))
        assert "\x1b" not in out + err
    _, out, _ = nidmap("machine", "export", "-m", str(path), "--format", "graphml")
    networkx.parse_graphml(out)


# --- export --------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["graphml", "gexf", "gml", "json", "edgelist", "csv"])
def test_export_by_suffix(nidmap, tmp_path, dump, suffix):
    path = tmp_path / f"out.{suffix}"
    code, out, err = nidmap("machine", "export", "-m", dump, "-o", str(path))
    assert (code, out) == (0, "")
    assert "wiring same-chassis" in err
    text = path.read_text()
    assert "nid00767" in text


def test_export_a_tree_for_slurm(nidmap, tmp_path):
    path = tmp_path / "topology.conf"
    assert nidmap("machine", "export", "-m", "tree:4x3x2", "-o", str(path))[0] == 0
    machine = load_machine(str(path))
    assert machine.coords.tolist() == load_machine("tree:4x3x2").coords.tolist()


def test_export_to_stdout(nidmap):
    code, out, _ = nidmap("machine", "export", "-m", "torus:2x2", "--format", "links-csv")
    assert code == 0
    assert out.splitlines()[0] == "a,b,class,links,gbs"
    assert len(out.splitlines()) == 1 + 4 + 4


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (("-m", "torus:2x2"), 2, "--format"),
        (("-m", "torus:2x2", "-o", "x.odd"), 2, ".odd is not supported"),
        (("-m", "torus:2x2", "--format", "odd"), 2, "graphml"),
        (("-m", "torus:2x2", "-o", "no/such/folder/x.gml"), 5, "no/such/folder"),
        (("-m", "torus:2x2", "--format", "csv", "-o", "/dev/full"), 5, "/dev/full"),
    ],
)
def test_export_refuses(nidmap, tmp_path, monkeypatch, argv, code, word):
    monkeypatch.chdir(tmp_path)
    got, out, err = nidmap("machine", "export", *argv)
    assert (got, out) == (code, "")
    assert word in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


# --- check ---------------------------------------------------------------------


def test_check_lists_and_fails(nidmap, tmp_path):
    path = tmp_path / "bad"
    path.write_text(shapes.xtprocadmin(XC).replace("0x7 ", "0x8 ").replace("0x9 ", "0x1 "))
    code, out, err = nidmap("machine", "check", "-m", str(path))
    assert (code, err) == (1, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"{path}:9: fault: HEX 0x8 is not NID 7")
    assert lines[1].startswith(f"{path}:11: fault: HEX 0x1 is not NID 9")
    assert lines[-1] == "no machine: 2 faults, 0 remarks"


def test_check_accounts_for_every_line(nidmap, tmp_path):
    path = tmp_path / "good"
    path.write_text("# ours\n\n" + shapes.xtprocadmin(XC))
    code, out, _ = nidmap("machine", "check", "-m", str(path), "--json")
    found = json.loads(out)
    assert code == 0
    assert found["faults"] == []
    assert [x["kind"] for x in found["remarks"]] == ["note"]
    [lines] = found["lines"]
    assert lines["lines"] == len(path.read_text().splitlines())
    assert lines["rows"] + lines["comments"] + lines["headers"] + lines["blank"] == lines["lines"]
    assert (lines["rows"], lines["comments"], lines["headers"], lines["blank"]) == (768, 1, 1, 1)


def test_check_a_file_that_is_no_dump(nidmap, tmp_path):
    path = tmp_path / "junk"
    path.write_text("no dump at all\n")
    code, out, err = nidmap("machine", "check", "-m", str(path))
    assert (code, out) == (3, "")
    assert str(path) in err


def test_check_a_site_and_a_dump_of_another(nidmap, tmp_path):
    path = tmp_path / "other"
    path.write_text(shapes.xtprocadmin(shapes.xc_cells(14, 2)))
    code, out, _ = nidmap("machine", "check", "-m", "edison", "-m", str(path))
    assert code == 1
    assert "edison" in out


@pytest.mark.parametrize("site", site_names())
def test_check_every_site(nidmap, site):
    code, out, _ = nidmap("machine", "check", "-m", site)
    assert code == 0, out


def test_examples_of_the_help_are_real_commands(nidmap):
    for command in ("show", "export", "check"):
        code, out, _ = nidmap("machine", command, "--help")
        assert code == 0
        assert "nidmap machine" in out


def test_show_rails_and_each_rate(nidmap, tmp_path):
    rails = tmp_path / "rails.txt"
    lines = []
    for rail, rate in enumerate(("4xEDR", "4xHDR")):
        for leaf in range(2):
            here = f"{rail}{leaf}"
            lines.append(f'Switch\t36 "S-00000000000000{here}"\t\t# "rail{here}" base port 0')
            lines += [
                f'[{k}]\t"H-0000000000001{rail}{leaf}{k}"[1](1) \t\t# "n{leaf}{k} mlx5_{rail}" '
                "lid 7 4xEDR"
                for k in range(1, 4)
            ]
            ports = f'[{9 + 2 * rail + leaf}]\t\t# "spine" lid 9 {rate}'
            lines.append(f'[9]\t"S-00000000000000ff"{ports}')
    rails.write_text("\n".join((*lines, "")))
    code, out, _ = nidmap("machine", "show", "-m", str(rails))
    assert code == 0
    assert "leaves     2 of 2\n" in out
    assert "rails      up to 2 per node, on 4 of the routers; a node's place is that of its" in out
    assert " 12.5-25 " in out

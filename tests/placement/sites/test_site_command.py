# SPDX-License-Identifier: Apache-2.0
"""``nidmap site``: list, show and check from the command line."""

import json
import os
import subprocess
import sys

import pytest

from nidmap.placement.commands import run
from tests.placement.site_texts import ARIES


@pytest.fixture
def nidmap(capfd):
    """Run the command line and return its code, output and talk."""

    def call(*argv):
        code = run(list(argv))
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(ARIES)
    return str(path)


def test_list_names_every_site(nidmap):
    code, out, err = nidmap("site", "list")
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert rows["name"].split() == ["name", "system", "kind", "nodes", "scheduler"]
    assert rows["shaheen2"].split()[-3:] == ["dragonfly", "6174", "slurm"]
    assert rows["titan"].split()[-3:] == ["torus", "18688", "alps"]
    assert len(rows) >= 16


def test_list_as_json(nidmap):
    code, out, _ = nidmap("site", "list", "--json")
    rows = {row["name"]: row for row in json.loads(out)}
    assert code == 0
    assert rows["aurora"]["nodes"] == 10624
    assert rows["aurora"]["scheduler"] == "pbs"
    assert rows["tara"]["fabric"] == "infiniband"


def test_a_broken_file_of_the_user_does_not_stop_the_list(nidmap, tmp_path, monkeypatch):
    (tmp_path / "broken.toml").write_text("name = \n")
    (tmp_path / "mine.toml").write_text(ARIES)
    monkeypatch.setenv("NIDMAP_SITES", str(tmp_path))
    code, out, err = nidmap("site", "list")
    assert code == 0
    assert "mine" in out
    assert "broken" not in out
    assert err.count("\n") == 1
    assert "broken.toml:1: not TOML" in err


def test_show_gives_every_figure_with_mark_and_source(nidmap):
    code, out, err = nidmap("site", "show", "shaheen2")
    assert (code, err) == (0, "")
    row = next(line for line in out.splitlines() if line.startswith("nodes.compute"))
    assert row.split() == [
        "nodes.compute",
        "6174",
        "published",
        "Aseeri",
        "et",
        "al.,",
        "sec.",
        "III-A",
    ]
    assert "18 group x 6 chassis x 16 blade x 4 node; wiring same-chassis" in out


def test_show_as_json_equals_the_file(nidmap, mine):
    code, out, _ = nidmap("site", "show", mine, "--json")
    shown = json.loads(out)
    assert code == 0
    assert shown["figures"]["partition.one.cores"] == {
        "value": 32,
        "mark": "published",
        "source": "the site",
    }
    assert shown["figures"]["stated.peak"]["unit"] == "PFlop/s"
    assert shown["extents"] == [2, 6, 16, 4]


def test_a_sound_file_is_checked_with_one_line(nidmap, mine):
    code, out, err = nidmap("site", "check", mine)
    assert (code, err) == (0, "")
    words = "764 compute nodes, 17 figures (5 measured, 7 published, 5 assumed)"
    assert out == f"{mine}: mine is valid: {words}\n"
    code, out, _ = nidmap("site", "check", mine, "--json")
    assert (code, json.loads(out)["holds"]) == (0, True)


def test_a_faulty_key_is_named(nidmap, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(ARIES.replace("groups = {", "gruops = {"))
    code, out, err = nidmap("site", "check", str(path))
    assert (code, out) == (3, "")
    assert err.startswith(f"nidmap: {path}:16: network.gruops: no such key")
    assert err.count("\n") == 1


def test_an_unknown_site_is_refused(nidmap):
    code, out, err = nidmap("site", "show", "shahen2")
    assert (code, out) == (3, "")
    assert err.startswith("nidmap: unknown site 'shahen2'; did you mean shaheen2")
    assert err.count("\n") == 1


def test_the_list_needs_no_dump_readers_and_no_slurm():
    probe = (
        "import sys; from nidmap.placement.sites import load_site; load_site('shaheen2').records();"
        "heavy = ('pandas', 'networkx', 'yaml', 'click', 'nidmap.placement.readers');"
        "print([m for m in sys.modules if m.startswith(heavy)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, cwd=os.getcwd()
    )
    assert done.stdout.strip() == "[]"

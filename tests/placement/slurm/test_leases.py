"""Leases: what a plan holds, for how long, and on which cluster."""

from placement.nodelist import NodeList
from placement.slurm.leases import lease, leased_nodes


def test_a_lease_holds_its_nodes_until_it_is_over(tmp_path, monkeypatch):
    monkeypatch.setenv("NIDMAP_LEASES", str(tmp_path))
    lease(NodeList.parse("n[1-3]"))
    lease(NodeList.parse("n9"), seconds=-1)
    assert leased_nodes() == {"n1", "n2", "n3"}
    assert len([*tmp_path.glob("*.json")]) == 1


def test_another_cluster_s_nodes_of_the_same_names_are_free(tmp_path, monkeypatch):
    monkeypatch.setenv("NIDMAP_LEASES", str(tmp_path))
    monkeypatch.setenv("SLURM_CONF", "one/slurm.conf")
    lease(NodeList.parse("n[1-3]"))
    monkeypatch.setenv("SLURM_CONF", "two/slurm.conf")
    assert leased_nodes() == set()
    monkeypatch.setenv("SLURM_CONF", "one/slurm.conf")
    assert leased_nodes() == {"n1", "n2", "n3"}


def test_a_damaged_lease_holds_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("NIDMAP_LEASES", str(tmp_path))
    for number, text in enumerate(
        ["", "[]", "{}", '{"until": "x"}', '{"until": 9e99, "nodes": "["}']
    ):
        (tmp_path / f"{number}.json").write_text(text)
    assert leased_nodes() == set()

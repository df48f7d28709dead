# SPDX-License-Identifier: Apache-2.0
"""``nidmap nodes sort``: where its nodes come from, what it writes."""

import json

import pytest

TREE = ("-m", "tree:2x2x2")


@pytest.fixture(autouse=True)
def _outside_of_a_job(monkeypatch):
    for name in ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "PBS_NODEFILE", "COBALT_PARTNAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("form", "out"),
    [
        ("names", "nid00006\nnid00004\nnid00000\nnid00001\n"),
        ("nodelist", "nid[00006,00004,00000-00001]\n"),
        ("slurm", "nid00006\nnid00004\nnid00004\nnid00000\nnid00001\n"),
        ("deepspeed", "nid00006 slots=1\nnid00004 slots=2\nnid00000 slots=1\nnid00001 slots=1\n"),
        ("hydra", "nid00006:1\nnid00004:2\nnid00000:1\nnid00001:1\n"),
    ],
)
def test_formats_keep_the_ranks_of_each_node(inside, form, out):
    done = inside("nodes", "sort", *TREE, "--format", form, "nid00006,nid00000,nid00004*2,nid00001")
    assert (done.code, done.out) == (0, out), done.err
    assert "2 of 3 consecutive pairs cross a leaf switch (3 in the original order)" in done.err


def test_a_rank_file_and_node_ranks(inside):
    done = inside("nodes", "sort", *TREE, "--format", "openmpi", "nid0000[6,0,4]*2")
    assert done.out.splitlines()[2:4] == ["rank 2=nid00004 slot=0", "rank 3=nid00004 slot=1"]
    done = inside("nodes", "sort", *TREE, "--format", "torchrun", "nid0000[6,0,4]*2")
    assert done.out.splitlines()[2:] == ["0 nid00006 2", "1 nid00004 2", "2 nid00000 2"]


@pytest.mark.parametrize(
    "text",
    [
        "nid00004 slots=2\nnid00000\nnid00005 slots=3\n",
        "nid00004:2\nnid00000\nnid00005:3\n",
        "nid00004\nnid00000\nnid00004\nnid00005\nnid00005\nnid00005\n",
    ],
)
def test_host_files_of_all_kinds(inside, tmp_path, text):
    out = "nid00004 slots=2\nnid00005 slots=3\nnid00000 slots=1\n"
    (tmp_path / "hosts").write_text(text)
    for lists, stdin in ((["-"], text.encode()), ([], text.encode()), ([tmp_path / "hosts"], b"")):
        words = [str(word) for word in lists]
        done = inside("nodes", "sort", *TREE, *words, "--format", "deepspeed", stdin=stdin)
        assert (done.code, done.out) == (0, out), done.err


def test_without_a_list_the_nodes_are_those_of_the_job(inside):
    job = {"SLURM_JOB_NODELIST": "nid0000[0,2,4,6]", "SLURM_TASKS_PER_NODE": "2(x3),1"}
    done = inside("nodes", "sort", "-m", "torus:8", "--ring", "--json", env=job)
    document = json.loads(done.out)
    assert document["schema"] == "nidmap.sorted/1"
    assert document["nodes"] == ["nid00000", "nid00002", "nid00004", "nid00006"]
    assert document["ranks"] == [2, 2, 2, 1]
    assert document["hops"] == {"listed": 8, "sorted": 8, "least": 8}
    assert "there is no shorter ring" in done.err
    done = inside("nodes", "sort", *TREE, "--ppn", "8", "--format", "deepspeed", env=job)
    assert done.out.count("slots=8") == 4


def test_what_is_refused(inside, refused, tmp_path):
    refused(inside("nodes", "sort", *TREE, "nid00009"), 3, "nid00009")
    refused(inside("nodes", "sort", *TREE, "nid00001,nid00001"), 3, "listed twice")
    refused(inside("nodes", "sort", *TREE, stdin=b""), 3, "names no nodes")
    refused(inside("nodes", "sort", *TREE, "nid00001", "--ppn", "0"), 2, "--ppn")

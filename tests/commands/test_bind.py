# SPDX-License-Identifier: Apache-2.0
"""``nidmap order --bind``: what it prints and writes, as launchers read it."""

import json

from nidmap import load_machine
from nidmap.rankmap.emit import read_order
from nidmap.rankmap.place_ranks import place_ranks

POLARIS = ["order", "-m", "polaris", "--nodes", "#0-1", "--ppn", "4", "--pattern", "stencil:2x4"]


def test_options_go_out_and_the_order_into_its_file(tmp_path, inside):
    path = tmp_path / "MPICH_RANK_ORDER"
    found = inside(*POLARIS, "--bind", "pals", "-o", str(path))
    assert found.code == 0
    options = "--cpu-bind=list:0-7:8-15:16-23:24-31 --gpu-bind=list:3:2:1:0"
    assert found.out.splitlines()[-1] == options
    assert "export MPICH_OFI_NIC_POLICY=NUMA" in found.out
    assert "(assumed)" in found.err
    on = place_ranks(load_machine("polaris"), "#0-1", 4)
    assert read_order(path.read_text(), "mpich", on).ranks == 8


def test_processes_counted_by_rank_have_their_own_masks_and_nics(tmp_path, inside):
    path = tmp_path / "job.hosts"
    found = inside(*POLARIS, "--bind", "srun", "-o", str(path))
    assert found.code == 0
    options = found.out.splitlines()[-1].split()
    masks = options[0].removeprefix("--cpu-bind=mask_cpu:").split(",")
    gpus = options[1].removeprefix("--gpu-bind=map:").split(",")
    # Wherever a process goes, its cores are beside its GPU.
    beside = {0xFF: "3", 0xFF00: "2", 0xFF0000: "1", 0xFF000000: "0"}
    assert [beside[int(mask, 16)] for mask in masks] == gpus
    assert sorted(gpus) == ["0", "1", "2", "3"]
    assert "MPICH_OFI_NIC_POLICY=USER" in found.out


def test_a_rankfile_binds_by_itself(tmp_path, inside):
    path = tmp_path / "job.rankfile"
    found = inside(*POLARIS, "--bind", "openmpi", "-o", str(path))
    assert (found.code, found.out) == (0, "")
    lines = path.read_text().splitlines()
    assert len(lines) == 8
    on = place_ranks(load_machine("polaris"), "#0-1", 4)
    again = read_order(path.read_text(), "openmpi", on)
    for rank, line in enumerate(lines):
        place = int(again.slot_of_rank[rank]) % 4
        cores = ",".join(str(core) for core in range(8 * place, 8 * place + 8))
        assert line == f"rank {rank}={again.host_of_rank[rank]} slot={cores}"


def test_json_says_the_places(inside):
    found = inside(*POLARIS, "--bind", "srun", "--json")
    assert found.code == 0
    said = json.loads(found.out)["binding"]
    assert [place["gpus"] for place in said["places"]] == [[3], [2], [1], [0]]
    assert said["options"][1] == "--gpu-bind=map:3,2,1,0"


def test_what_cannot_be_bound_is_said(inside):
    found = inside(*POLARIS, "--bind", "srun")
    assert (found.code, found.out) == (2, "")
    assert "the order needs a file; use -o FILE" in found.err
    torus = [
        "order",
        "-m",
        "torus:4x4",
        "--ppn",
        "2",
        "--pattern",
        "stencil:4x8",
        "--bind",
        "srun",
        "--json",
    ]
    found = inside(*torus)
    assert found.code == 2
    assert "lstopo --of xml" in found.err


def test_a_rankfile_has_the_cores_of_nodes_with_different_counts(tmp_path, inside):
    path = tmp_path / "job.rankfile"
    job = ["order", "-m", "polaris", "--nodes", "#0-1", "--ppn", "2,4", "--pattern", "stencil:2x3"]
    assert inside(*job, "--bind", "openmpi", "-o", str(path)).code == 0
    found = {}
    for line in path.read_text().splitlines():
        host, slot = line.split("=", 1)[1].split(" slot=")
        found.setdefault(host, []).append([int(core) for core in slot.split(",")])
    assert sorted(map(len, found.values())) == [2, 4]
    for cores in found.values():
        assert sorted(core for some in cores for core in some) == list(range(32))

"""Halos, messages and copies on real ranks, under both MPIs."""

import json

import pytest

YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}

HEAD = """
    from mpi4py import MPI
    from tests.workloads.stencil import halos
    world = MPI.COMM_WORLD
"""


def test_halos_and_copies_on_one_to_eight_ranks(launch, sizes):
    body = f"""
    halos.parts(world, {sizes}, halos.exchanges)
    halos.parts(world, (1, 3, 4), halos.copies)
    print("done")
"""
    assert launch(HEAD + body, sizes[-1], env=YIELD).stdout.count("done") == sizes[-1]


@pytest.mark.usefixtures("once")
def test_bad_input_is_the_same_error_on_every_rank(launch):
    program = HEAD + "    import json; said = halos.refusals(world)\n"
    program += "    print(json.dumps(said) if world.rank == 0 else '')"
    said = {name: (kind, text) for name, kind, text in json.loads(launch(program, 4).stdout)}
    assert said["grid"][1].startswith("a grid of 2x5x1 units does not fit 4 ranks")
    assert said["one rank wrong"][1].startswith("rank 1: ")
    assert said["memory"][0] == said["too large"][0] == "NidmapError"
    assert "rank 1" in said["unequal bytes"][1]


@pytest.mark.usefixtures("once")
def test_the_command_measures_all_three(bench, tmp_path):
    few = ["--bytes", "1,64KiB", "--iterations", "2", "--repeat", "1", "--json"]
    halo = json.loads(bench(["stencil", *few, "--method", "all", "--no-shm"], 4, env=YIELD).stdout)
    assert [(c["bytes"], c["method"]) for c in halo["cases"]] == [
        (size, way) for size in (1, 65536) for way in ("put", "neighbor")
    ]
    assert halo["options"]["no_shm"] is True
    names = ",".join(f"nid0000{k}" for k in (0, 0, 1, 2))
    words = ["stencil", *few, "--levels", "-m", "tree:2x2x2"]
    env = {**YIELD, "NIDMAP_PROCESSOR_NAMES": names}
    far = json.loads(bench(words, 4, env=env).stdout)
    assert [case["level"] for case in far["cases"][2:]] == ["level1", "level1", "level2", "level2"]
    assert far["cases"][0]["level"] in ("socket", "node")
    copies = json.loads(bench(["stencil", *few, "--copies"], 3, env=YIELD).stdout)
    found = {(case["where"], case["bytes"]): case["throughput"] for case in copies["cases"]}
    assert {where for where, _ in found} == {"plain", "local", "node", "get"}
    assert all(rate > 0 for rate in found.values())


@pytest.mark.usefixtures("once")
def test_bad_words_are_said_once(bench):
    for words, said in (
        (["--dims", "2x2"], "nidmap: a grid of 2x2 units does not fit 3 ranks"),
        (["--levels", "--copies"], "nidmap: --levels and --copies are two measurements"),
        (["--method", "shout"], "nidmap: Invalid value for '--method': 'shout'; there are put"),
    ):
        done = bench(["stencil", *words, "--bytes", "8"], 3, check=False)
        assert done.returncode == 2
        lines = [line for line in done.stderr.splitlines() if line.startswith("nidmap:")]
        assert len(lines) == 1
        assert lines[0].startswith(said)

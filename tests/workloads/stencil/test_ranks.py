# SPDX-License-Identifier: Apache-2.0
"""Halos on real ranks, under both MPIs."""

import json

import pytest

YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}

HEAD = """
    from mpi4py import MPI
    from tests.workloads.stencil import halos
    world = MPI.COMM_WORLD
"""


def test_halos_on_one_to_eight_ranks(launch, sizes):
    body = f"""
    halos.parts(world, {sizes}, halos.exchanges)
    print("done")
"""
    assert launch(HEAD + body, sizes[-1], env=YIELD).stdout.count("done") == sizes[-1]


@pytest.mark.usefixtures("once")
def test_bad_input_is_the_same_error_on_every_rank(launch):
    program = HEAD + "    import json; said = halos.refusals(world)\n"
    program += "    print(json.dumps(said) if world.rank == 0 else '')"
    said = {name: (kind, text) for name, kind, text in json.loads(launch(program, 4).stdout)}
    assert said["grid"][1].startswith("a grid of 2x5x1 units does not match 4 ranks")
    assert said["memory"][0] == "NidmapError"


@pytest.mark.usefixtures("once")
def test_the_command_measures_every_size(bench):
    few = ["--bytes", "1,64KiB", "--iterations", "2", "--repeat", "1", "--json"]
    halo = json.loads(bench(["stencil", *few], 4, env=YIELD).stdout)
    assert [c["bytes"] for c in halo["cases"]] == [1, 65536]


@pytest.mark.usefixtures("once")
def test_bad_words_are_said_once(bench):
    for words, said in (
        (["--dims", "2x2"], "nidmap: a grid of 2x2 units does not match 3 ranks"),
        (["--bytes", "many"], "nidmap: Invalid value for '--bytes'"),
    ):
        done = bench(["stencil", "--bytes", "8", *words], 3, check=False)
        assert done.returncode == 2
        lines = [line for line in done.stderr.splitlines() if line.startswith("nidmap:")]
        assert len(lines) == 1
        assert lines[0].startswith(said)

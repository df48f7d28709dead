# SPDX-License-Identifier: Apache-2.0
"""Transforms on real ranks: spectra against the sums that define them, under both MPIs."""

import json

import pytest

from tests.workloads.fft import cases

#: Ranks that wait for a turn give it away: eight of them share the cores of a test machine.
YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}

HEAD = """
    from mpi4py import MPI
    from tests.workloads.fft import cases
    world = MPI.COMM_WORLD
"""


def test_spectra_on_one_to_eight_ranks(launch, sizes):
    body = f"cases.on_parts(world, {sizes}, 9)\n"
    done = launch(HEAD + "    " + body + "    print('done')", sizes[-1], env=YIELD)
    assert done.stdout.count("done") == sizes[-1]


def test_every_case_on_four_ranks_with_each_library(launch, place):
    program = (
        HEAD
        + """
    from importlib.util import find_spec
    for library in ("ducc0", "scipy", "numpy"):
        if library == "numpy" or find_spec(library):
            cases.every(world, 24 if library == "ducc0" else 12, library)
    cases.lines(world)
    print("done")
"""
    )
    assert launch(program, 4, env=YIELD).stdout.count("done") == 4


@pytest.mark.usefixtures("once")
def test_bad_input_is_the_same_error_on_every_rank(launch):
    program = HEAD + "    import json; said = cases.refusals(world)\n"
    program += "    print(json.dumps(said) if world.rank == 0 else '')"
    said = {name: (kind, text) for name, kind, text in json.loads(launch(program, 4).stdout)}
    assert said["grid"] == (
        "UsageError",
        "a process grid of 3x2 does not match 4 ranks; "
        "rows times columns must be the number of ranks",
    )
    assert said["memory"][0] == "NidmapError"
    assert "16384x16384x16384" in said["memory"][1]
    assert {kind for kind, _ in said.values()} == {"UsageError", "NidmapError"}


@pytest.mark.usefixtures("once")
def test_memory_is_at_most_three_times_the_local_array(launch):
    program = (
        HEAD
        + """
    import itertools
    ways = (
        {}, {"method": "vector"}, {"real": True}, {"grid": "pencil"},
        {"grid": "pencil", "method": "vector"},
        {"real": True, "grid": "pencil", "method": "vector"},
    )
    for shape, options in itertools.product(((128, 96, 160), (128, 128, 144)), ways):
        used = cases.memory(world, shape, **options)
        assert used <= 3.0, (options, used)
    print("done")
"""
    )
    assert launch(program, 4, env=YIELD).stdout.count("done") == 4


def test_the_reference_agrees_with_scipy():
    import numpy as np

    pytest.importorskip("scipy")
    for kind in "dD":
        values = cases.field((4, 5, 6), kind)
        assert np.allclose(cases.spectrum(values), cases.by_scipy(values))

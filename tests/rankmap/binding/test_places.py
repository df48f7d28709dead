# SPDX-License-Identifier: Apache-2.0
"""Places on a node: the published maps of machines, and what holds on any."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nidmap
from nidmap.placement.errors import UsageError
from nidmap.placement.hwloc import hardware_of
from nidmap.placement.machine import Core, Device, NodeHardware
from nidmap.rankmap.binding.arrange import costs_between, costs_to_nics, places_on


def of_site(name):
    machine = nidmap.load_machine(name)
    return hardware_of(machine, (machine.gpus > 0).nonzero()[0][:1])


def test_frontier_s_gpus_stand_beside_the_published_cores():
    places = places_on(of_site("frontier"), 8)
    assert [place.gpus for place in places] == [(k,) for k in (4, 5, 2, 3, 6, 7, 0, 1)]
    assert [place.pus for place in places] == [tuple(range(8 * k + 1, 8 * k + 8)) for k in range(8)]


def test_lumi_s_gpus_have_the_cores_of_its_guide():
    place_of = {place.gpus[0]: place for place in places_on(of_site("lumi"), 8)}
    assert [place_of[gpu].pus[0] for gpu in range(8)] == [49, 57, 17, 25, 1, 9, 33, 41]


@pytest.mark.parametrize(("name", "cores"), [("perlmutter", 16), ("polaris", 8)])
def test_gpus_count_down_where_cores_count_up(name, cores):
    places = places_on(of_site(name), 4)
    assert [place.gpus for place in places] == [(3,), (2,), (1,), (0,)]
    assert [place.pus for place in places] == [
        tuple(range(cores * k, cores * (k + 1))) for k in range(4)
    ]


def test_polaris_s_nics_are_the_nearest():
    places = places_on(of_site("polaris"), 4)
    assert (places[0].nic, places[2].nic) == (0, 1)
    assert sorted(place.nic for place in places) == [0, 0, 1, 1]


def test_juwels_booster_uses_the_domains_that_have_a_gpu():
    cores = tuple(Core((k, k + 48), k // 3, k // 6, k // 24) for k in range(48))

    def beside(numa):
        return tuple(range(6 * numa, 6 * numa + 6))

    gpus = tuple(Device(f"gpu{k}", beside(numa)) for k, numa in enumerate((3, 1, 7, 5)))
    nics = tuple(Device(f"mlx5_{k}", beside(numa)) for k, numa in enumerate((1, 3, 5, 7)))
    places = places_on(NodeHardware(cores, gpus, nics), 4)
    assert [(place.pus, place.gpus, place.nic) for place in places] == [
        (beside(1), (1,), 0), (beside(3), (0,), 1), (beside(5), (3,), 2), (beside(7), (2,), 3),
    ]  # fmt: skip


nodes = st.builds(
    lambda sockets, domains, caches, cores, threads, kept: NodeHardware(
        tuple(
            Core(
                tuple(k + t * sockets * domains * caches * cores for t in range(threads)),
                k // cores, k // (cores * caches), k // (cores * caches * domains),
            )
            for k in range(sockets * domains * caches * cores)
        ),
        reserved=tuple({k for k in kept if k < sockets * domains * caches * cores - 1}),
    ),
    st.integers(1, 2), st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.integers(1, 2),
    st.lists(st.integers(0, 30), max_size=3),
)  # fmt: skip


@given(nodes, st.data())
def test_places_share_no_thread_and_leave_the_systems_cores(hardware, data):
    usable = [k for k in range(len(hardware.cores)) if k not in hardware.reserved]
    threads = sum(len(hardware.cores[k].pus) for k in usable)
    ranks = data.draw(st.integers(1, threads))
    places = places_on(hardware, ranks)
    assert len(places) == ranks
    assert all(place.pus and place.cores for place in places)
    taken = [pu for place in places for pu in place.pus]
    assert len(taken) == len(set(taken))
    assert set(taken) <= {pu for k in usable for pu in hardware.cores[k].pus}
    if ranks <= len(usable):
        sizes = [len(place.cores) for place in places]
        assert sum(sizes) == len(usable)
        assert max(sizes) - min(sizes) <= 1
    with pytest.raises(UsageError, match=f"{threads + 1} ranks for the {threads} hardware threads"):
        places_on(hardware, threads + 1)


@given(nodes, st.data())
def test_no_rank_lies_across_domains_where_it_need_not(hardware, data):
    hardware = hardware._replace(reserved=())
    domains = len({core.numa for core in hardware.cores})
    times = data.draw(st.integers(1, max(1, len(hardware.cores) // domains)))
    for place in places_on(hardware, domains * times):
        assert len({hardware.cores[core].numa for core in place.cores}) == 1


@given(st.lists(st.integers(1, 4), min_size=1, max_size=9), st.data())
def test_ranks_beyond_the_cores_share_single_cores(threads, data):
    first = np.cumsum([0, *threads])
    cores = tuple(Core(tuple(range(a, b)), 0, 0, 0) for a, b in itertools.pairwise(first.tolist()))
    ranks = data.draw(st.integers(len(cores), int(first[-1])))
    found = places_on(NodeHardware(cores), ranks)
    assert len(found) == ranks
    assert {len(place.cores) for place in found} == {1}
    used = [pu for place in found for pu in place.pus]
    assert len(used) == len(set(used))
    assert all(set(place.pus) <= set(cores[place.cores[0]].pus) for place in found)


@given(st.integers(1, 6), st.integers(1, 6))
def test_gpus_are_shared_evenly_or_left_alone(gpus, ranks):
    cores = tuple(Core((k,), k, k // 4, 0) for k in range(24))
    near = [tuple(range(4 * k, 4 * k + 4)) for k in range(gpus)]
    hardware = NodeHardware(cores, tuple(Device(f"g{k}", near[k]) for k in range(gpus)))
    places = places_on(hardware, ranks)
    given = sorted(gpu for place in places for gpu in place.gpus)
    if ranks % gpus == 0:
        assert given == sorted([*range(gpus)] * (ranks // gpus))
    elif gpus % ranks == 0:
        assert given == [*range(gpus)]
    else:
        assert given == []
    if given and ranks <= 4 * gpus:
        for place in places:
            assert set(place.cores) <= {core for gpu in place.gpus for core in near[gpu]}
    taken = [pu for place in places for pu in place.pus]
    assert len(taken) == len(set(taken))


def test_gpus_that_share_some_cores_are_dealt_over_all():
    cores = tuple(Core((k,), k, k // 4, 0) for k in range(8))
    near = [(0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 2, 3), (4, 5, 6, 7)]
    hardware = NodeHardware(cores, tuple(Device(f"g{k}", near[k]) for k in range(4)))
    places = places_on(hardware, 2)
    assert [(place.pus, place.gpus) for place in places] == [
        ((0, 1, 2, 3), (0, 1)), ((4, 5, 6, 7), (2, 3)),
    ]  # fmt: skip


def test_copies_cost_more_the_farther_apart():
    cores = tuple(Core((k,), k // 2, k // 4, k // 8) for k in range(16))
    hardware = NodeHardware(cores, nics=(Device("mlx5_0", (0, 1, 2, 3)),), bandwidth=(8, 4, 2, 1))
    places = places_on(hardware, 16)
    costs = costs_between(places, hardware)
    assert costs[0, [0, 1, 2, 4, 8]].tolist() == [0, 1 / 8, 1 / 4, 1 / 2, 1]
    assert np.array_equal(costs, costs.T)
    # Beside the NIC, in its socket, in the other one.
    assert costs_to_nics(places, hardware)[[0, 3, 4, 8]].tolist() == [1 / 8, 1 / 8, 1 / 2, 1]


def test_linked_gpus_copy_at_the_link_s_rate():
    hardware = of_site("frontier")
    places = places_on(hardware, 8)
    costs = costs_between(places, hardware)
    module = [place.gpus[0] // 2 for place in places]
    for a in range(8):
        for b in range(8):
            if a != b and module[a] == module[b]:
                assert costs[a, b] == 1 / 200

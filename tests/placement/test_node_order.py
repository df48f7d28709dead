# SPDX-License-Identifier: Apache-2.0
"""Slurm's order of node names: the real node table, and what any such order must satisfy."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.switch_tree import _slurm_key, slurm_order
from tests.real_slurm import needs_slurm, real_slurm

NAMES = st.lists(
    st.from_regex(r"(nid|n|r0n|n1-|x1000c[0-3]s0b)[0-9]{1,4}(-ib|b)?", fullmatch=True),
    min_size=1,
    max_size=30,
    unique=True,
)


def ordered(names):
    table = np.array(names)
    return table[slurm_order(table)].tolist()


@given(NAMES, st.integers(0, 2**32))
def test_the_order_does_not_depend_on_the_order_given(names, seed):
    shuffled = random.Random(seed).sample(names, len(names))
    assert ordered(shuffled) == ordered(names)


@given(NAMES)
def test_quick_ways_agree_with_the_key(names):
    assert ordered(names) == sorted(names, key=_slurm_key)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40, unique=True), st.booleans())
def test_numbered_names_go_by_number(numbers, padded):
    names = [f"nid{k:07d}" if padded else f"nid{k}" for k in numbers]
    assert ordered(names) == [f"nid{k:07d}" if padded else f"nid{k}" for k in sorted(numbers)]


def test_no_names():
    assert slurm_order(np.empty(0, dtype="U1")).tolist() == []


@needs_slurm
def test_the_order_is_that_of_slurmctld():
    rng = random.Random(7)
    stems = ["nid", "n", "n1-", "gpu-", "x1000c0s", "a1b", "N", "c0-0c0s0n", "node-a"]
    names = {f"{stem}{rng.randrange(200):0{rng.randint(1, 4)}d}" for stem in stems for _ in "12345"}
    names |= {"n009", "n01", "n1", "n1-ib", "n9", "n10", "zed", "login-a", "login-b"}
    given_order = rng.sample(sorted(names), len(names))
    with real_slurm(given_order, real=0) as slurm:
        shown = slurm.run(["scontrol", "-o", "show", "nodes"]).stdout
    table = [line.split()[0].removeprefix("NodeName=") for line in shown.splitlines()]
    assert ordered(given_order) == table

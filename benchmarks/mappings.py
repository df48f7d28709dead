# SPDX-License-Identifier: Apache-2.0
"""Orders and the length of their mapping: random ones on every site, and the limit's cost.

``python -m benchmarks.mappings --orders 100000`` shortens so many random orders, dealt
over all site configurations, for Cray MPICH and for MPICH's mpiexec, and counts those
above the limit; without ``--orders`` it prints ten cases with J lost.
"""

import time

import click
import numpy as np

from nidmap import load_machine
from nidmap.placement.sites import site_names
from nidmap.rankmap.emit.process_mapping import CRAY_MPICH, HYDRA
from nidmap.rankmap.orders import arrange
from nidmap.rankmap.pattern import parse_pattern
from nidmap.rankmap.place_ranks import place_ranks
from nidmap.rankmap.search.short_orders import shorten_order

LIMIT = 1023

#: Machine, nodes, ranks on each, pattern, strategy.
CASES = [
    ("perlmutter", 64, 4, "stencil:8x8x4", "hilbert"),
    ("perlmutter", 128, 4, "stencil:8x8x8", "boxes"),
    ("perlmutter", 288, 4, "stencil:8x12x12", "boxes"),
    ("perlmutter", 64, 32, "stencil:16x16x8", "boxes"),
    ("frontier", 128, 8, "stencil:16x8x8", "boxes"),
    ("lumi", 256, 8, "stencil:16x16x8,periodic", "boxes"),
    ("archer2", 64, 128, "stencil:32x16x16", "boxes"),
    ("polaris", 64, 4, "fft:16x16", "morton"),
    ("shaheen2", 192, 32, "fft:64x96", "boxes"),
    ("tara", 64, 16, "stencil:16x8x8", "boxes"),
]


@click.command()
@click.option("--orders", type=int, help="Random orders in all, instead of the ten cases.")
@click.option("--seed", type=int, default=0)
def main(orders, seed):
    """Print how long mappings get and what the limit costs."""
    if orders:
        shorten_random(orders, np.random.default_rng(seed))
    else:
        print_cases()


def shorten_random(orders, rng):
    """Shorten random orders on all sites and print how many stayed above the limit."""
    began, above, changed = time.process_time(), 0, 0
    machines = [load_machine(name) for name in site_names()]
    for k in range(orders):
        machine, mapping = machines[k % len(machines)], (CRAY_MPICH, HYDRA)[k % 2]
        nodes, ppn = int(rng.integers(2, 65)), int(rng.choice([1, 2, 4, 8, 16]))
        first = int(rng.integers(len(machine) - nodes))
        on = place_ranks(machine, np.arange(first, first + nodes), ppn)
        found = shorten_order(on.with_order(rng.permutation(on.ranks)), mapping, LIMIT)
        length = len(mapping.text(found.order.node_of_rank))
        above += not 0 < length <= LIMIT
        changed += found.length != found.free_length
    took = time.process_time() - began
    print(f"{orders} orders on {len(machines)} sites: {changed} changed, {above} above {LIMIT}")
    print(f"{took:.0f} s of processor time")


def print_cases():
    """Print the ten cases, for both kinds of mapping, and the median loss in J."""
    for mapping in (CRAY_MPICH, HYDRA):
        lost = []
        for name, nodes, ppn, pattern, strategy in CASES:
            machine = load_machine(name)
            on = place_ranks(machine, np.flatnonzero(machine.free)[:nodes], ppn)
            order = arrange(on, pattern, strategy).sorted()
            found = shorten_order(order, mapping, LIMIT, parse_pattern(pattern).on(order))
            lost.append(found.lost)
            print(
                f"{mapping.library:16} {name:10} {nodes:4} x {ppn:3} {pattern:24} {strategy:8}"
                f" {found.free_length:6} -> {found.length:4} bytes, J {found.lost:+.1%}"
            )
        print(f"median of J lost: {np.median(lost):.1%}")


if __name__ == "__main__":
    main()

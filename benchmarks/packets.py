# SPDX-License-Identifier: Apache-2.0
"""Throughput in a flit-level simulator, against nidmap's prediction.

``python -m benchmarks.packets PATH/TO/booksim`` runs BookSim 2 (github.com/booksim/booksim2) on
networks of which all links and nodes are alike and predicts the same bytes on the same network;
both as a share of what a node can send. Routers of flattened butterflies (the groups of an Aries,
where minimal ways take either order of the dimensions) and dragonflies choose by their own queues
(UGAL); tori go in dimension order; fat trees go up by any link. Patterns are BookSim's own.

``kept``, with which the prediction is compared, is the highest share that every node can send and
still has delivered, as a phase of equal bytes needs it. ``at full`` is the mean over nodes that all
send as fast as they can: there fast nodes make up for slow ones, and rings that are too full stand
still.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import nidmap
from benchmarks.timing import table
from nidmap.placement.support.array_types import Ints
from nidmap.placement.traffic import Traffic
from nidmap.rankmap.pattern.graph import from_entries
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.gain import time_range
from nidmap.rankmap.readers.entries import Entries

#: What all machines have: nothing but links.
PLAIN = "injection=1,latency=0,process=inf,memory=inf"

#: What all runs have: packets of 4 flits, and buffers that hold sixteen of them.
RUN = {
    "packet_size": 4, "num_vcs": 8, "vc_buf_size": 64, "injection_rate": 1.0,
    "injection_rate_uses_flits": 1, "sim_type": "throughput", "sample_period": 300,
    "warmup_periods": 3, "max_samples": 6, "wait_for_tail_credit": 0,
    "vc_allocator": "separable_input_first", "sw_allocator": "separable_input_first",
    "alloc_iters": 1, "internal_speedup": 2.0, "use_read_write": 0,
}  # fmt: skip

#: The seconds that one run may take.
PATIENCE = 240

#: What nodes have delivered of what they send where they keep up, in the mean and at least: few
#: packets are drawn by lot in the cycles of a sample.
MEAN, LEAST = 0.95, 0.8

#: How finely the highest load that nodes keep up with is looked for: halvings of 0 to 1.
HALVINGS = 6

Goals = Callable[[Ints], Ints]


class Network(NamedTuple):
    """A network as described to both."""

    title: str
    spec: str  # as ``-m`` takes it
    nodes: int
    config: dict[str, Any]  # of BookSim
    tiles: int = 0  # nodes a row, where BookSim counts them row by row over square routers


def butterfly(size: int) -> Network:
    """Return size x size routers of 4 nodes, each linked to all in its row and its column."""
    config = {
        "topology": "flatfly", "routing_function": "ugal_xyyx",
        "c": 4, "k": size, "n": 2, "x": size, "y": size, "xr": 2, "yr": 2,
    }  # fmt: skip
    spec = f"dragonfly:groups=1,chassis={size},blades={size},nodes=4,green=1,black=1,blue=1"
    words = f"{spec},{PLAIN},payload=1,routing=adaptive"
    return Network(f"{size} x {size} routers, UGAL", words, 4 * size**2, config, 2 * size)


#: A link between groups takes 100 cycles there, and its credits 100 back: with buffers of 64 flits
#: no more than 0.32 would pass a cycle.
FAR = {"topology": "dragonflynew", "num_vcs": 3, "k": 2, "n": 1, "vc_buf_size": 256}

DRAGONFLY = Network(
    "dragonfly of 9 groups, UGAL",
    f"dragonfly:groups=9,chassis=1,blades=4,nodes=2,global=1,green=1,black=1,blue=1,{PLAIN},"
    "payload=1,routing=adaptive",
    72,
    {**FAR, "routing_function": "ugal"},
)
TORUS = Network(
    "torus of 8 x 8, dimension order",
    f"torus:8x8,bw=1,{PLAIN}",
    64,
    {"topology": "torus", "routing_function": "dim_order", "k": 8, "n": 2},
)
TREE = Network(
    "fat tree of 8 x 8, up by any link",
    f"fattree:leaf=8,leaves=8,spines=8,bw=1,{PLAIN},routing=shortest",
    64,
    {"topology": "fattree", "routing_function": "nca", "k": 8, "n": 2},
)


def bits_of(nodes: int) -> int:
    """Return how many bits number the nodes of a power of two.

    Examples
    --------
    >>> bits_of(256)
    8
    """
    return nodes.bit_length() - 1


def _reverse_bits(node: Ints, bits: int) -> Ints:
    return np.asarray(sum((node >> k & 1) << (bits - 1 - k) for k in range(bits)))


def _shift_digits(node: Ints, by: int, base: int) -> Ints:
    """Return nodes with both of their digits shifted cyclically."""
    high, low = np.divmod(node, base)
    return (high + by) % base * base + (low + by) % base


def goals_of(network: Network, traffic: str) -> Ints | None:
    """Return each node's destination in a pattern of BookSim's; None: all others equally."""
    node, bits = np.arange(network.nodes), bits_of(network.nodes)
    base = round(network.nodes**0.5)
    by_name: dict[str, Goals] = {
        "bitcomp": lambda node: network.nodes - 1 - node,
        "bitrev": lambda node: _reverse_bits(node, bits),
        "shuffle": lambda node: (node << 1 | node >> (bits - 1)) & (network.nodes - 1),
        "transpose": lambda node: (node >> bits // 2 | node << bits // 2) & (network.nodes - 1),
        "tornado": lambda node: _shift_digits(node, (base + 1) // 2 - 1, base),
        "neighbor": lambda node: _shift_digits(node, 1, base),
    }
    return by_name[traffic](node) if traffic in by_name else None


#: What is run: several patterns a network.
CASES = [
    *((butterfly(4), name) for name in ("bitrev", "shuffle", "tornado")),
    *((butterfly(4), name) for name in ("neighbor", "transpose", "bitcomp")),
    *((butterfly(size), name) for size in (5, 6) for name in ("neighbor", "tornado")),
    *((butterfly(8), name) for name in ("bitrev", "shuffle", "tornado")),
    (DRAGONFLY, "uniform"), (DRAGONFLY, "bad_dragon"),
    *((TORUS, name) for name in ("uniform", "bitcomp", "tornado", "transpose")),
    *((TREE, name) for name in ("uniform", "bitcomp", "shuffle", "bitrev")),
]  # fmt: skip


def simulate(booksim: Path, network: Network, traffic: str, **more: float) -> tuple[float, float]:
    """Return the flits per cycle that nodes receive, on average and at least.

    `more`: settings of BookSim besides.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config")
        lines = {**RUN, **network.config, "traffic": traffic, **more}
        config.write_text("".join(f"{key} = {value};\n" for key, value in lines.items()))
        ran = subprocess.run(
            [booksim, config], cwd=folder, capture_output=True, text=True, timeout=PATIENCE
        )
    accepted = re.findall(
        r"Accepted flit rate average *= ([\d.]+).*\n\s*minimum *= ([\d.]+)", ran.stdout
    )
    if not accepted:
        sys.exit(f"BookSim says nothing of {network.title}, {traffic}: {ran.stdout[-300:]}")
    mean, least = map(float, accepted[-1])
    return mean, least


def find_kept(booksim: Path, network: Network, traffic: str) -> float:
    """Return the highest share of its rate that every node can send and have delivered."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        load = (low + high) / 2
        rate = {"injection_rate": load, "sample_period": 1000}
        mean, least = simulate(booksim, network, traffic, **rate)
        keeps_up = mean >= MEAN * load and least >= LEAST * load
        low, high = (load, high) if keeps_up else (low, load)
    return (low + high) / 2


def predict(network: Network, traffic: str) -> tuple[float, float, float]:
    """Return the low, likely and high predicted share of a node's rate."""
    machine = nidmap.load_machine(network.spec)
    size = 1e9
    rank = np.arange(network.nodes)
    if (goal := goals_of(network, traffic)) is not None:
        spot = _spots(network)
        sent = Traffic.of(spot[rank], spot[goal], 1.0)
    elif traffic == "bad_dragon":
        group = network.nodes // 9
        source = np.repeat(rank, group)
        there = (source // group + 1) % 9 * group + np.tile(np.arange(group), network.nodes)
        sent = Traffic.of(source, there, 1 / group)
    else:
        sent, size = Traffic.everyone(rank, 1, 1.0).listed(), size / (network.nodes - 1)
    graph = from_entries(Entries(network.nodes, sent), both=True, spec=traffic)
    job = Job(replace(graph, directed=sent.away()), 1, size)
    model = Predictor(machine, job)
    found = time_range(model, model.place(rank))
    low, likely, high = (size * _messages(sent, network.nodes) / s / 1e9 for s in found[2::-1])
    return low, likely, high


def _messages(sent: Traffic, nodes: int) -> float:
    """Return the bytes that the busiest node sends, including to itself."""
    return float(np.bincount(sent.source, sent.bytes, minlength=nodes).max())


def _spots(network: Network) -> Ints:
    """Return each BookSim node's index among ours, router by router."""
    node = np.arange(network.nodes)
    if not network.tiles:
        return node
    (row, low), (column, right) = (np.divmod(part, 2) for part in np.divmod(node, network.tiles))
    return (row * (network.tiles // 2) + column) * 4 + low * 2 + right


def main() -> None:
    """Simulate, predict, compare."""
    if len(sys.argv) != 2:
        sys.exit("which BookSim? python -m benchmarks.packets PATH/TO/booksim")
    lines, errors, inside = [], [], 0
    for network, traffic in CASES:
        booksim = Path(sys.argv[1]).resolve()
        full, reached = simulate(booksim, network, traffic)[0], find_kept(booksim, network, traffic)
        low, likely, high = predict(network, traffic)
        errors.append(abs(likely / reached - 1))
        inside += low * (1 - 5e-3) <= reached <= high * (1 + 5e-3)
        figures = [f"{value:.2f}" for value in (full, reached, low, likely, high)]
        lines.append([f"{network.title}: {traffic}", *figures, f"{likely / reached - 1:+.0%}"])
        print(lines[-1], file=sys.stderr, flush=True)
    head = ["network, pattern", "at full", "kept", "low", "likely", "high", "off"]
    table("packets", head, lines)
    near = sum(error <= 0.25 for error in errors)
    print(
        f"\n{len(errors)} patterns: likely off by {statistics.median(errors):.0%} in the median,"
        f" {max(errors):.0%} at worst; {near} within 25 %, {inside} in the range"
    )


if __name__ == "__main__":
    main()

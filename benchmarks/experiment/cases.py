# SPDX-License-Identifier: Apache-2.0
"""What is compared: workloads, machines, jobs; sizes are such that an exchange takes 0.1 to 1 s."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison, to be repeated over seeds.

    Attributes
    ----------
    name : str
    machine : str
        Machine spec.
    workload : str
        A program of `nidmap bench`.
    options : tuple of str
        ``name=value`` for its trial.
    pattern : str
        What it sends, for the predictor.
    size : float
        ``--bytes`` of the pattern.
    nodes, ppn : int
        Of the job.
    held : int
        Nodes that other jobs hold.
    others : tuple of str
        Planners whose choice is measured as well; ``NAME order``: Slurm's nodes
        in this order; ``random``: random nodes in a random order.
    strict : bool
        Whether it counts among the cases by which predictions are judged;
        those that show one effect by themselves do not.
    phase : str
        The part of a run that is predicted: all communication, but of a sort
        the exchange alone, as the search for splitters is no matter of bytes.
    """

    name: str
    machine: str
    workload: str
    options: tuple[str, ...]
    pattern: str
    size: float
    nodes: int
    ppn: int
    held: int
    others: tuple[str, ...] = ("random",)
    strict: bool = True
    phase: str = "communication"


_DRAGONFLY = "minicray:dragonfly"

#: Items of a sort that a rank brings, and the bytes of each: so many that all pairs of ranks
#: exchange about equally much, as the pattern says (4,000 a pair, 1.5 % more or less).
_ITEMS, _LONG = 32_000, 16

#: Cases by name, in the order in which they are shown.
CASES = {
    case.name: case
    for case in (
        Case(
            "all-to-all", _DRAGONFLY, "alltoall", ("bytes=50000", "inner=1"),
            "alltoall", 50e3, nodes=8, ppn=1, held=10,
        ),
        Case(
            "pencil FFT", _DRAGONFLY, "fft",
            ("shape=64x64x48", "grid=4x4", "transpose=alltoall"),
            "fft:4x4", 49152, nodes=8, ppn=2, held=10,
        ),
        Case(
            "stencil", _DRAGONFLY, "stencil",
            ("bytes=50000", "dims=4x3x2", "iterations=1"),
            "stencil:4x3x2", 50e3, nodes=12, ppn=2, held=8,
        ),
        Case(
            "sort", _DRAGONFLY, "sort",
            (f"items={_ITEMS}", f"payload={_LONG - 8}", "exchange=alltoallv"),
            "sort", _LONG * _ITEMS, nodes=8, ppn=1, held=10, phase="Exchange",
        ),
        Case(
            "default is best", "minicray:fattree,spines=1", "alltoall", ("bytes=50000", "inner=1"),
            "alltoall", 50e3, nodes=6, ppn=1, held=2, others=("spread", "random"),
            strict=False,
        ),
        Case(
            "Morton loses", "minicray:torus", "stencil",
            ("bytes=100000", "dims=2x3x3", "iterations=1"),
            "stencil:2x3x3", 100e3, nodes=18, ppn=1, held=0, others=("morton order",),
            strict=False,
        ),
        Case(
            "Morton in holes", "minicray:torus", "stencil",
            ("bytes=50000", "dims=2x4x2", "iterations=1"),
            "stencil:2x4x2", 50e3, nodes=8, ppn=2, held=6, others=("morton order",),
            strict=False,
        ),
    )
}  # fmt: skip

"""The FFT paper's experiments together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankmap.study.ordering import ordering
from rankmap.study.placing import main_table, sensitivity
from rankmap.study.result import Part
from rankmap.study.scaling import bandwidths, contiguous, regions

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["fft_order", "fft_placement", "fft_scaling", "fft_sensitivity"]


def _machine() -> Machine:
    import nidmap

    return nidmap.load_machine("shaheen2")


def fft_placement() -> Part:
    """Return Table IV beside the model."""
    table, checks, series = main_table(_machine())
    text = (
        "All eight sizes of Table IV are 12 times 1, 2, 3, 4, 6, 9, 12 and 18: 12 blades of one"
        " chassis in so many groups, one node of each, is taken for the directly connected set"
        " (the paper's own list is not published). The process grid is groups x 12, so that rows"
        " stay in a chassis. The default is what Slurm gives of a machine in use. The paper states"
        " no grid: the last column but one has the side of the grid that takes as long as the paper"
        " says, on direct blades.",
    )
    return Part(
        "fft", "Job placement (Table IV)", text, (table,), tuple(checks), {"placement": series}
    )


def fft_sensitivity() -> Part:
    """Return Table IV under other routings, wirings, backgrounds and constants."""
    found = sensitivity(_machine())
    text = (
        "Which term makes direct blades win? Sent all at once, as a fluid, they win nothing: at 2"
        " GB/s a rank no link is full. Pair by pair, as MPI does with long messages, the four"
        " nodes of a blade send to the four of another in the same step and meet on the one green"
        " link between the two blades, 8 GB/s on 5.25; a blade of which one node is used has its"
        " links for itself. That holds under every routing and both wirings as long as other jobs"
        " send 1 GB/s a node or nothing; with more, the direct set crosses groups on links that"
        " others fill, and loses. Wiring hardly matters: rows stay in a chassis, and columns find"
        " enough links either way. `minimal` was chosen because it is the predictor's default; it"
        " is not what makes the winner.",
        "The reason has to be taken with care: no routing of the model detours inside a chassis,"
        " Aries does. With green links twice as fast the gain is gone, and IV-B's 9 GB/s at 8"
        " nodes show that such detours are taken.",
    )
    return Part("fft", "What makes direct blades win", text, found, ())


def fft_order() -> Part:
    """Return Table III beside the model."""
    table, checks, series = ordering(_machine())
    text = (
        "Row-major order keeps a row of 32 ranks inside a node, Morton's order splits both rows and"
        " columns over nodes.",
    )
    return Part("fft", "Rank order (Table III)", text, (table,), tuple(checks), {"order": series})


def fft_scaling() -> Part:
    """Return sections III-C, IV-A and IV-B beside the model."""
    machine = _machine()
    one, first = contiguous(machine)
    two, second, bandwidth = bandwidths(machine)
    three, third, scaling = regions(machine)
    series = {"bandwidth": bandwidth, "scaling": scaling}
    checks = (*first, *second, *third)
    return Part(
        "fft", "Scaling and bandwidth (IV-A, IV-B, Figure 4)", (), (one, two, three), checks, series
    )

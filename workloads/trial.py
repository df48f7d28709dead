"""What every program of `nidmap bench` offers to the ones that measure it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Trial"]


class Trial(Protocol):
    """One program on one communicator, ready to be repeated.

    Made by ``workloads.<name>.trial.trial(comm, **options)``, which sets up
    the data (collective over `comm`, not timed). It talks on the communicator
    it was given and on none that holds other ranks, so that two orders of the
    same ranks can stand side by side.
    """

    def run(self) -> Mapping[str, float]:
        """Run one timed repetition and return this rank's seconds.

        Returns
        -------
        mapping of str to float
            ``total`` and ``communication``, and the program's own phases
            besides; the same names in the same order on every rank.
        """
        ...

    def verify(self) -> None:
        """Raise a NidmapError on all ranks where the last result is wrong; not timed."""
        ...

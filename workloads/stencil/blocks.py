"""A block on each unit, copied by loads and stores or by MPI: DASH's local copies.

As section 3.3 of "Effective use of the PGAS Paradigm" has it: what lies on this
unit or on its node is copied by loads and stores out of shared windows, without
MPI; what lies elsewhere in chunks of a size that is tuned, all on their way at once.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from placement.support.array_types import Floats
from placement.support.quantities import exact_size
from workloads.fft.local import chunks
from workloads.memory import NodeMemory, fits
from workloads.phases import seconds_of
from workloads.world import MPI, Comm

__all__ = ["Blocks"]

_ITEM = 8


class Blocks:
    """So many float64 on each unit. Collective to make and to close.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    count : int
        Numbers of a block.

    Attributes
    ----------
    local : float64 (count,)
        This unit's block.
    node : list of int
        The other units of this node.
    chunk : int
        Bytes of a transfer by MPI.

    Raises
    ------
    NidmapError
        On every unit alike: too little memory.
    """

    def __init__(self, comm: Comm, count: int) -> None:
        size = count * _ITEM
        fits(comm, size, f"a block of {exact_size(size)} a unit")
        self.comm, self.chunk = comm, 1 << 20
        self._memory = NodeMemory(comm, size)
        self.local: Floats = self._memory.mine.view(np.float64)
        self.node = list(self._memory.near)
        self._window = MPI.Win.Create(self._memory.mine, 1, comm=comm)
        self._window.Lock_all(MPI.MODE_NOCHECK)

    def sync(self) -> None:
        """Make what all units wrote into their blocks visible to all. Collective."""
        for barrier in (self.comm.Barrier, lambda: None):
            self._memory.sync()
            self._window.Sync()
            barrier()

    def load(self, unit: int, out: Floats) -> None:
        """Copy the first numbers of a block on this node by loads and stores."""
        near = self._memory.near.get(unit)
        block = self.local if near is None else near.view(np.float64)
        np.copyto(out, block[: len(out)])

    def get(self, unit: int, out: Floats) -> None:
        """Copy the first numbers of a block through MPI, chunk by chunk, all at once."""
        raw = out.view(np.uint8)
        parts = chunks(len(raw), 1, self.chunk)
        requests = [self._window.Rget(raw[part], unit, part.start) for part in parts]
        MPI.Request.Waitall(requests)

    def tune(self, unit: int, most: int = 1 << 23) -> None:
        """Find the size of chunks with which a block comes fastest, and keep it.

        Parameters
        ----------
        unit : int
        most : int
            Bytes that are copied, as far as a block has them.
        """
        out = np.empty(min(len(self.local), most // _ITEM))
        times: dict[int, float] = {}
        for power in range(14, 25, 2):
            self.chunk = 1 << power
            times[self.chunk] = min(seconds_of(partial(self.get, unit, out)) for _ in range(3))
        self.chunk = min(times, key=times.__getitem__)

    def close(self) -> None:
        """Free the windows. Collective."""
        self.comm.Barrier()
        self.local = np.empty(0)
        self._window.Unlock_all()
        self._window.Free()
        self._memory.close()

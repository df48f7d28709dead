"""An agreement of all ranks that nothing is wrong, reached while they already work."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from placement.errors import NidmapError
from workloads.world import together

if TYPE_CHECKING:
    from types import TracebackType

    from mpi4py import MPI

__all__ = ["Agreement"]


class Agreement:
    """What `workloads.world.together` is, without waiting at its end. Collective.

    The ranks say at the end of the block whether they have an error and go on
    with work of their own; `wait` then raises the same error on all of them.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        self._error: Exception | None = None
        self._mine, self._all = array("b", [0]), array("b", [0])
        self._request: MPI.Request | None = None

    @property
    def failed(self) -> bool:
        """Whether this rank has an error: it has nothing to do but `wait`."""
        return self._error is not None

    def __enter__(self) -> Agreement:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool:
        from mpi4py import MPI

        if isinstance(error, (NidmapError, MemoryError)):
            self._error = error
            self._mine[0] = 1
        elif error is not None:
            return False
        self._request = self._comm.Iallreduce(self._mine, self._all, op=MPI.MAX)
        return True

    def wait(self) -> None:
        """Raise on all ranks what one of them has found."""
        assert self._request is not None
        self._request.Wait()
        if self._all[0]:
            with together(self._comm):
                if self._error is not None:
                    raise self._error

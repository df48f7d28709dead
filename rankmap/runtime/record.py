"""Record who sends how much to whom in a running mpi4py program.

`record` gives a communicator that does what the one it is made of does and
counts the bytes of every message on the way. Nothing is sent for it while the
program runs: each rank counts its own, and one gather at the end writes the
matrix, which ``--pattern matrix:FILE`` reads.

A collective has no pairs of its own. It is counted as the messages of a usual
algorithm (`rankmap.runtime.collectives`), so that the matrix says which ranks
gain from being close.

Persistent sends and collectives are counted each time they are started (not
by ``Prequest.Startall``). Barriers carry no bytes. One-sided communication is
not seen, a window being no communicator, nor are partitioned sends and spawned
programs; what Open MPI's own monitoring writes holds one-sided traffic too.
Communicators made from a recorded one are recorded into the same matrix, by
the ranks of the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = ["record"]


def record(comm: MPI.Intracomm, path: str | None = None) -> MPI.Intracomm:
    """Return a communicator that does what `comm` does and counts what it sends.

    Collective. The matrix is written once: when the program ends, by the
    communicator's ``save``, or as a context manager at the end of the block.
    Messages of pickled objects (``send``, ``bcast`` …) are pickled once more
    to see their size, buffers (``Send``, ``Bcast`` …) only asked for it.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
    path : str or None
        File to write, ``.npz`` (a sparse matrix as scipy saves it) or
        ``.csv`` (from, to, bytes). None: ``nidmap-matrix-<job>.npz`` in the
        working directory, a new name each run.

    Returns
    -------
    mpi4py.MPI.Intracomm
        A communicator on the same context as `comm`, so that messages of one
        meet receives of the other. It has besides ``log`` (a `Log`) and
        ``save(path=None)``, collective, which returns the file's name on
        rank 0 and raises OutputError there where it cannot be written.

    Examples
    --------
    >>> from mpi4py import MPI  # doctest: +SKIP
    >>> comm = record(MPI.COMM_WORLD, "matrix.npz")  # doctest: +SKIP
    >>> comm.sendrecv("x", dest=1, source=1)  # doctest: +SKIP
    """
    from rankmap.runtime.recorder import Recording

    return cast("MPI.Intracomm", Recording(comm, path).communicator)

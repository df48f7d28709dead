"""Where a launch keeps its order file: new, private, and never a name that can be guessed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING

from placement.errors import LaunchError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["discard", "folders", "store"]

#: The file's name inside its own directory, by format.
_NAMES = {"mpich": "MPICH_RANK_ORDER", "slurm": "hosts"}


def folders(on_nodes: bool, chosen: str | None) -> list[str]:
    """Return the directories to try, the best first.

    Parameters
    ----------
    on_nodes : bool
        True where the compute nodes read the file: then only the working
        directory will do, which they share; otherwise the local temporary
        directory is a second choice.
    chosen : str or None
        The user's own choice, the only one where given.
    """
    if chosen:
        return [chosen]
    here = os.path.abspath(os.curdir)
    return [here] if on_nodes else [here, tempfile.gettempdir()]


def store(text: str, form: str, job: str, places: Sequence[str]) -> str:
    """Write an order file into a new directory of its own and return its path.

    The directory is made for this launch (mode 0700, a random name), the file
    in it is new (O_EXCL, mode 0600): what others put into a shared directory
    is neither followed nor overwritten.

    Raises
    ------
    LaunchError
        Where none of the places can be written; nothing is left behind.
    """
    why = "no directory to write to"
    for place in places:
        try:
            return _store(text, form, job, place)
        except OSError as error:
            why = f"cannot write the order file in {printable(place)}: {error.strerror or error}"
    raise LaunchError(why)


def discard(path: str) -> None:
    """Remove an order file, what is kept beside it, and its directory, as far as possible."""
    from rankmap.launch.kept import FILES

    folder = os.path.dirname(path)
    for one in (path, *(os.path.join(folder, name) for name in FILES)):
        with contextlib.suppress(OSError):
            os.unlink(one)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _store(text: str, form: str, job: str, place: str) -> str:
    folder = tempfile.mkdtemp(prefix=f"nidmap-{_plain(job)}", dir=place)
    path = os.path.join(folder, _NAMES.get(form, "order"))
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags, 0o600), "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        discard(path)
        raise
    return path


def _plain(job: str) -> str:
    """Return a job id as part of a directory's name, '' where it is none."""
    return f"{job}-" if job.isascii() and job.isalnum() else ""

"""Where states and jobs come from: Slurm's commands, a file, or the machine's own dump."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import NidmapError, ParseError, printable
from web.snapshot import Snapshot, of_dump, with_jobs, with_states

if TYPE_CHECKING:
    from placement.machine import Machine

__all__ = ["SLURM", "ask", "usual"]

#: The source that asks Slurm.
SLURM = "slurm"

#: Bytes of the largest file of states or jobs.
_MOST = 256 * 2**20


def usual(machine: Machine) -> tuple[str, ...]:
    """Return the sources where none is named: Slurm where it is here and may know the machine."""
    here = all(shutil.which(command) for command in ("sinfo", "squeue"))
    return (SLURM,) if here and machine.scheduler in ("", "slurm") else ()


def ask(machine: Machine, sources: tuple[str, ...], users: bool = False) -> Snapshot:
    """Ask all sources and return what they say together.

    Parameters
    ----------
    machine : Machine
    sources : tuple of str
        ``slurm`` or files: a dump with states (``sinfo -N -l``, xtprocadmin …), the
        output of ``squeue --json``, or a list of the free nodes. Empty: the
        machine's own states.
    users : bool
        Keep users' names.

    Raises
    ------
    LaunchError
        Slurm is missing, down or slow.
    ParseError
        A file cannot be read, or none of its nodes is the machine's.
    """
    found = of_dump(machine)
    for source in sources:
        found = _slurm(machine, users) if source == SLURM else _file(machine, found, source, users)
    return found


def _slurm(machine: Machine, users: bool) -> Snapshot:
    from placement.slurm import free_nodes, running_jobs

    nodes, jobs = free_nodes(), running_jobs()
    found = with_states(machine, of_dump(machine), nodes)
    if found.unknown == len(nodes):
        raise _stranger(machine, SLURM, "Slurm has", str(nodes.names[0]))
    found = replace(found, source=SLURM, notes=nodes.notes, taken=time.time())
    return with_jobs(machine, found, jobs, users)


def _stranger(machine: Machine, source: str, has: str, name: str) -> ParseError:
    """Return the error of a source that lists other nodes."""
    what = f"shares no node name with {printable(machine.name)}"
    return ParseError(source, 0, what, f"{has} {printable(name)}, the machine {machine.names[0]}")


def _file(machine: Machine, found: Snapshot, path: str, users: bool) -> Snapshot:
    """Return what a file says on top of what is known."""
    from placement.slurm import jobs_in

    text, taken = _text(path)
    found = replace(found, source="file", taken=taken)
    if text.lstrip().startswith("{"):
        try:
            jobs = jobs_in(text)
        except NidmapError as error:
            raise ParseError(path, 0, error.message, error.hint) from None
        if jobs is not None:
            found = with_jobs(machine, found, jobs, users)
            if jobs and not found.jobs:
                raise ParseError(path, 0, f"no job holds a node of {printable(machine.name)}")
            return found
    return _states(machine, found, text, path)


def _text(path: str) -> tuple[str, float]:
    try:
        with open(path, "rb") as stream:
            raw = stream.read(_MOST + 1)
            taken = os.fstat(stream.fileno()).st_mtime
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise ParseError(path, 0, f"cannot be read: {reason}") from None
    if len(raw) > _MOST:
        raise ParseError(path, 0, f"larger than {_MOST} bytes")
    return raw.decode("utf-8", errors="replace"), taken


def _states(machine: Machine, found: Snapshot, text: str, path: str) -> Snapshot:
    """Return the states of a dump, or of a list of free nodes."""
    from placement.assemble import assemble
    from placement.lookup import rows_of
    from placement.readers import read_text, recognise

    try:
        recognise(text, path)
    except ParseError:
        free = np.zeros(len(machine), dtype=bool)
        free[rows_of(machine, text, source=path, repeats=True)] = True
        words = np.where(free, "idle", np.where(machine.compute, "allocated", machine.state))
        return replace(found, state=words, planned=np.zeros(len(machine), dtype=bool))
    other = assemble([read_text(text, path)])
    found = with_states(machine, found, other)
    if found.unknown == len(other):
        raise _stranger(machine, path, "it has", str(other.names[0]))
    return found

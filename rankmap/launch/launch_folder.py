"""The directory of a launch: its order file, what was planned, what its ranks said.

``nidmap run`` becomes the launcher and cannot watch it. It leaves the order
file in a new, private directory whose name nobody can guess, and beside it
``launch.json`` with the command, the nodes in the launcher's order and the
pattern, so that ``nidmap score --job`` can look at it; with ``--verify``, also
where the ranks said that they are. When the job has ended, however it ends, the
directory goes, unless the user has named a place for it: a process of its own,
without files, terminal or parent in common with the job, waits for that.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import tempfile
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from placement.errors import LaunchError, NidmapError, ParseError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine
    from rankmap.launch import Launch
    from rankmap.order import Order

__all__ = [
    "FILES",
    "Prepared",
    "StoredLaunch",
    "discard_launch",
    "find_launches",
    "order_folders",
    "rank_nodes",
    "remove_at_end",
    "store_answers",
    "store_launch",
    "store_order",
]

SCHEMA = "nidmap.launch/1"

#: Files beside the order: the plan, and where ranks said that they are.
FILES = ("launch.json", "said.hosts")

#: The order file's own name, by format.
_NAMES = {"mpich": "MPICH_RANK_ORDER", "slurm": "hosts"}

#: What ``launch.json`` has to hold to be read.
_KINDS = {
    "time": float, "command": list, "machine": list, "pattern": str, "strategy": str,
    "format": str, "nodelist": str, "counts": list, "variables": list,
}  # fmt: skip

#: Directories of one job that are looked at.
_MOST_FOLDERS = 1000

#: Seconds between two looks, where the kernel cannot tell of a process's end (before Linux 5.3).
_LOOK = 2.0

#: What ends a job's processes together and is not meant for the one that tidies up.
_PASSED_OVER = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def order_folders(on_nodes: bool, chosen: str | None) -> list[str]:
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


def store_order(text: str, form: str, job: str, parents: Sequence[str]) -> str:
    """Write an order file into a new directory of its own and return its path.

    The directory is made for this launch (mode 0700, a random name), the file
    in it is new (O_EXCL, mode 0600): what others put into a shared directory
    is neither followed nor overwritten.

    Raises
    ------
    LaunchError
        Where none of the parent directories can be written; nothing is left behind.
    """
    why = "no directory to write to"
    for parent in parents:
        try:
            return _store_in(parent, text, form, job)
        except OSError as error:
            why = f"cannot write the order file in {printable(parent)}: {error.strerror or error}"
    raise LaunchError(why)


def _store_in(parent: str, text: str, form: str, job: str) -> str:
    mark = f"{job}-" if job.isascii() and job.isalnum() else ""
    path = os.path.join(
        tempfile.mkdtemp(prefix=f"nidmap-{mark}", dir=parent), _NAMES.get(form, "order")
    )
    try:
        with os.fdopen(os.open(path, _NEW, 0o600), "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        discard_launch(path)
        raise
    return path


def discard_launch(path: str) -> None:
    """Remove an order file, what lies beside it, and its directory, as far as possible.

    Parameters
    ----------
    path : str
        '' for none.
    """
    if not path:
        return
    folder = os.path.dirname(path)
    for one in (path, *(os.path.join(folder, name) for name in FILES)):
        with contextlib.suppress(OSError):
            os.unlink(one)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def remove_at_end(path: str, process: int | None = None) -> None:
    """Have a launch's directory removed when a process, whatever it becomes, has ended.

    That it cannot be watched costs nothing: then the directory stays.

    Parameters
    ----------
    path : str
        The order file.
    process : int or None
        Its id; None: this process.
    """
    job = os.getpid() if process is None else process
    began = _began(job)
    with contextlib.suppress(OSError):
        child = os.fork()
        if not child:
            _stand_alone(job, began, path)
        os.waitpid(child, 0)


def _stand_alone(job: int, began: str, path: str) -> NoReturn:
    """Leave the job's session and its files behind, wait for its end, and remove the directory."""
    try:
        for number in _PASSED_OVER:
            signal.signal(number, signal.SIG_IGN)
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        os.closerange(0, 1 << 16)
        _wait_for(job, began)
        discard_launch(path)
    finally:
        os._exit(0)


def _wait_for(job: int, began: str) -> None:
    try:
        ended = os.pidfd_open(job)
    except (AttributeError, OSError):
        while _began(job) == began:
            time.sleep(_LOOK)
        return
    if _began(job) == began:  # and not another process of the same number by now
        select.select([ended], [], [])


def _began(job: int) -> str:
    """Return when a process began, in the kernel's ticks; '' where there is none."""
    try:
        with open(f"/proc/{job}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A launch in order.

    Attributes
    ----------
    launch : Launch
    order : Order
    path : str
        The order file, already written.
    probe : Launch
        The same launch of a program that prints where each rank is
        (`rankmap.launch.queries`).
    rank_nodes : tuple of str
        Node that each rank of `probe` must say: the plan, by the launcher's own numbers.
    remarks : tuple of str
        What the user should know of it.
    laid : Order
        The same order on the nodes as the launcher takes them.
    form : str
        Format of the order file.
    variables : tuple of str
        Variables that hold a rank's number, the first that is set.
    """

    launch: Launch
    order: Order
    path: str
    probe: Launch
    rank_nodes: tuple[str, ...]
    remarks: tuple[str, ...]
    laid: Order
    form: str
    variables: tuple[str, ...]


def store_launch(
    prepared: Prepared, job: str, command: Sequence[str], specs: Sequence[str]
) -> None:
    """Write down a launch beside its order file; that it cannot be written costs nothing."""
    from placement.nodelist import NodeList

    on = prepared.laid.on
    document = {
        "schema": SCHEMA,
        "job": job,
        "time": time.time(),
        "folder": os.path.abspath(os.curdir),
        "command": list(command),
        "machine": list(specs),
        "pattern": prepared.order.pattern,
        "strategy": prepared.order.strategy,
        "format": prepared.form,
        "nodelist": NodeList(on.names.tolist()).fold(),
        "counts": on.counts.tolist(),
        "variables": list(prepared.variables),
    }
    _write_beside(prepared.path, FILES[0], json.dumps(document) + "\n")


def store_answers(path: str, hosts: Sequence[str]) -> None:
    """Write down where ranks said that they are, beside the order file."""
    _write_beside(path, FILES[1], "".join(f"{host}\n" for host in hosts))


def _write_beside(path: str, name: str, text: str) -> None:
    with contextlib.suppress(OSError):
        file = os.open(os.path.join(os.path.dirname(path), name), _NEW, 0o600)
        with os.fdopen(file, "w") as stream:
            stream.write(text)


@dataclass(frozen=True, slots=True)
class StoredLaunch:
    """A launch as it was planned.

    Attributes
    ----------
    path : str
        The order file.
    known : dict
        What stands in ``launch.json``.
    said : tuple of str or None
        The node that each rank named, by the launcher's numbers; None where
        none was asked.
    """

    path: str
    known: dict[str, Any]
    said: tuple[str, ...] | None

    def order(self, machine: Machine | None = None) -> Order:
        """Return the order, on the nodes as the launcher took them.

        Raises
        ------
        NidmapError
            An order file that is gone or broken, or nodes that the machine does not have.
        """
        from rankmap.order_file import read_order_file
        from rankmap.slots import slots_of

        known = self.known
        on = slots_of(machine, known["nodelist"], known["counts"], self.path)
        made = read_order_file(self.path, known["format"], on, "given")
        return replace(made, strategy=known["strategy"], pattern=known["pattern"])

    def rank_nodes(self) -> tuple[str, ...]:
        """Return the node that each rank was planned for, by the launcher's numbers."""
        return rank_nodes(self.known["format"], self.order())


def rank_nodes(form: str, laid: Order) -> tuple[str, ...]:
    """Return the node of each rank as the launcher numbers them.

    Cray MPICH renumbers ranks itself: to the launcher, slot s is rank s.

    Parameters
    ----------
    form : str
        Format of the order file.
    laid : Order
        On the nodes as the launcher takes them.
    """
    from rankmap.emit import find

    if getattr(find(form), "NODE_ORDER", "given") == "launcher":
        return tuple(laid.on.names[laid.on.node].tolist())
    return tuple(laid.hosts.tolist())


def find_launches(job: str, folders: Sequence[str]) -> list[StoredLaunch]:
    """Return the launches of a job whose orders lie in these directories, oldest first.

    Raises
    ------
    ParseError
        A file that is not what a launch leaves.
    """
    found = {}
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            mine = [e.path for e in entries if e.name.startswith(f"nidmap-{job}-")]
            for path in sorted(mine)[:_MOST_FOLDERS]:
                real = os.path.realpath(path)
                if os.path.isfile(os.path.join(real, FILES[0])):
                    found[real] = _read_launch(real)
    return sorted(found.values(), key=lambda launch: float(launch.known["time"]))


def _read_launch(folder: str) -> StoredLaunch:
    from rankmap.order_file import read_text

    source = os.path.join(folder, FILES[0])
    try:
        known = json.loads(read_text(source)[0])
        whole = known["schema"] == SCHEMA and all(
            isinstance(known[key], kind) for key, kind in _KINDS.items()
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise ParseError(source, 0, "not what `nidmap run` writes beside an order")
    order = [name for name in sorted(os.listdir(folder)) if name not in FILES]
    said = None
    with contextlib.suppress(NidmapError):
        said = tuple(read_text(os.path.join(folder, FILES[1]))[0].split("\n")[:-1])
    return StoredLaunch(os.path.join(folder, order[0] if order else "order"), known, said)

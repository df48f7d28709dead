"""What a launch leaves beside its order file, so that it can be looked at afterwards.

``nidmap run`` becomes the launcher and cannot watch it. It writes down what
it has planned: which job, which command, which nodes in the launcher's order.
With ``--verify``, also what the ranks said.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from placement.errors import NidmapError, ParseError, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from placement.machine import Machine
    from rankmap.launch.wrap import Prepared
    from rankmap.order import Order

__all__ = ["FILES", "Kept", "find_kept", "keep", "keep_said"]

SCHEMA = "nidmap.launch/1"

#: Files beside the order: the plan, and where ranks said that they are.
FILES = ("launch.json", "said.hosts")

#: Directories of one job that are looked at, and bytes of a file.
_MOST, _BYTES = 1000, 1 << 28


@dataclass(frozen=True, slots=True)
class Kept:
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
        from dataclasses import replace

        from rankmap.emit import read_order
        from rankmap.slots import slots_of

        on = slots_of(machine, self.known["nodelist"], self.known["counts"], self.path)
        made = read_order(_text(self.path), self.known["format"], on, self.path, "given")
        return replace(made, strategy=self.known["strategy"], pattern=self.known["pattern"])

    def places(self) -> tuple[str, ...]:
        """Return the node that each rank was planned for, by the launcher's numbers."""
        from rankmap.launch.wrap import places

        return places(self.known["format"], self.order())


def keep(prepared: Prepared, job: str, command: Sequence[str], specs: Sequence[str]) -> None:
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
    _write(prepared.path, FILES[0], json.dumps(document) + "\n")


def keep_said(path: str, said: Sequence[str]) -> None:
    """Write down where ranks said that they are, beside the order file."""
    _write(path, FILES[1], "".join(f"{host}\n" for host in said))


def find_kept(job: str, folders: Sequence[str]) -> list[Kept]:
    """Return the launches of a job whose orders lie in these directories, oldest first.

    Parameters
    ----------
    job : str
        Its id.
    folders : sequence of str

    Raises
    ------
    ParseError
        A file that is not what a launch leaves.
    """
    found = {}
    for folder in folders:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            mine = [e.path for e in entries if e.name.startswith(f"nidmap-{job}-")]
            for path in sorted(mine)[:_MOST]:
                real = os.path.realpath(path)
                if os.path.isfile(os.path.join(real, FILES[0])):
                    found[real] = _read(real)
    return sorted(found.values(), key=lambda kept: float(kept.known["time"]))


def _read(folder: str) -> Kept:
    source = os.path.join(folder, FILES[0])
    try:
        known = json.loads(_text(source))
        whole = known["schema"] == SCHEMA and all(
            isinstance(known[key], kind)
            for key, kind in (
                ("time", float), ("command", list), ("machine", list), ("pattern", str),
                ("strategy", str), ("format", str), ("nodelist", str), ("counts", list),
                ("variables", list),
            )
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise ParseError(source, 0, "not what `nidmap run` writes beside an order")
    order = [name for name in sorted(os.listdir(folder)) if name not in FILES]
    said = None
    with contextlib.suppress(NidmapError):
        said = tuple(_text(os.path.join(folder, FILES[1])).split("\n")[:-1])
    return Kept(os.path.join(folder, order[0] if order else "order"), known, said)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(_BYTES)
    except OSError as error:
        raise ParseError(printable(path), 0, error.strerror or str(error)) from None


def _write(path: str, name: str, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with contextlib.suppress(OSError):
        file = os.open(os.path.join(os.path.dirname(path), name), flags, 0o600)
        with os.fdopen(file, "w") as stream:
            stream.write(text)

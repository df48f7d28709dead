"""What one server serves: the machine's documents, the live state, the calculating processes."""

from __future__ import annotations

import os
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from web import layout
from web.asked import BODY, TEXT
from web.columns import document
from web.guard import Guard
from web.live import Body, Live, body
from web.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement.machine import Machine

__all__ = ["Served"]

#: Texts up to so many characters are looked up in the server itself.
QUICK = 20_000


class Served:
    """One machine, ready to be served.

    Parameters
    ----------
    machine : Machine
    sources : tuple of str
        Where states and jobs come from (`web.sources`).
    guard : Guard
    users : bool
        Show users' names.
    every : float
        Seconds between two questions to the sources.
    plans : int
        Calculations at once.
    waiting : int
        Calculations that may wait.
    seconds : float
        Longest calculation.
    """

    def __init__(
        self,
        machine: Machine,
        sources: tuple[str, ...] = (),
        guard: Guard | None = None,
        *,
        users: bool = False,
        every: float = 30.0,
        plans: int = 0,
        waiting: int = 8,
        seconds: float = 60.0,
    ) -> None:
        self.machine = machine
        self.guard = guard or Guard()
        self.users = users
        self.pool = Pool(machine, plans or max(1, min(4, _cores() // 2)), waiting, seconds)
        self.quick = Pool(machine, 1, 16, 20.0)
        self._asking = Pool(machine, 1, 0, 60.0)
        self.live = Live(machine, sources, self._ask, every)
        self._making = threading.Lock()
        self.streams: Callable[[], int] = lambda: 0

    def _ask(self) -> Any:
        return self._asking.call("ask", sources=self.live.sources, users=self.users)

    @property
    def machine_body(self) -> Body:
        """The machine's columns as they are sent."""
        with self._making:
            return self._machine_body

    @property
    def layout_body(self) -> Body:
        """The layout as it is sent, with all its views."""
        return self.layout_bodies[""]

    @property
    def layout_bodies(self) -> dict[str, Body]:
        """The layout's views as they are sent one by one (`web.layout.parts`), and all under ''."""
        with self._making:
            return self._layout_bodies

    @property
    def ready(self) -> bool:
        """Whether all documents are made."""
        return "_layout_bodies" in self.__dict__ and "_machine_body" in self.__dict__

    def prepare(self) -> None:
        """Begin to make in the background what the first viewer will ask for."""
        make = threading.Thread(target=lambda: (self.machine_body, self.layout_body), daemon=True)
        make.start()

    @cached_property
    def _machine_body(self) -> Body:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("nidmap")
        except PackageNotFoundError:
            number = ""
        said = document(self.machine)
        said |= {
            "show_users": self.users,
            "live": bool(self.live.sources),
            "refresh": self.live.every if self.live.sources else 0,
            "version": number,
            "limits": {"body": BODY, "text": TEXT, "marks": 32},
        }
        return _tagged("machine", said)

    @cached_property
    def _layout_bodies(self) -> dict[str, Body]:
        said = layout.document(self.machine)
        return {
            name: _tagged("layout", one) for name, one in {"": said, **layout.parts(said)}.items()
        }

    def free(self) -> bytes:
        """Return the mask of the nodes that a plan may use now, packed."""
        return np.packbits(self.live.snapshot.free(self.machine)).tobytes()

    def figure(self, name: str, asked: dict[str, Any]) -> bytes:
        """Return one of `web.figures` as JSON, from a process of its own."""
        found: bytes = self.pool.call(name, free=self.free(), asked=asked)
        return found

    def resolve(self, text: str) -> bytes:
        """Return what a pasted text names, as JSON; a long one from a process of its own."""
        if len(text) > QUICK:
            found: bytes = self.quick.call("resolve", text=text)
            return found
        import msgspec

        from web.resolve import resolve

        return msgspec.json.encode(resolve(self.machine, text))

    def close(self) -> None:
        """End everything that was started."""
        self.live.stop()
        for pool in (self.pool, self.quick, self._asking):
            pool.close()


def _tagged(name: str, said: dict[str, Any]) -> Body:
    import hashlib

    made = body(said, "")
    digest = hashlib.sha256(made.raw).hexdigest()[:16]
    return made._replace(tag=f"{name}-{digest}")


def _cores() -> int:
    return len(os.sched_getaffinity(0))

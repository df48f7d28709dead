"""Event streams: each viewer is told of a new state, by one task and no thread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from web.live import Live

__all__ = ["Streams"]

#: Seconds between two signs of life.
PING = 15.0


class Streams:
    """All open streams of one server.

    A stream that falls behind is told the newest state only, so that none
    holds more than one event.

    Parameters
    ----------
    live : Live
    most : int
        Streams at once.
    """

    def __init__(self, live: Live, most: int = 256) -> None:
        self.live = live
        self.most = most
        self._open: set[asyncio.Event] = set()
        self._closing = False
        live.listen(self._wake)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def full(self) -> bool:
        """Whether no more may be opened."""
        return len(self._open) >= self.most

    def close(self) -> None:
        """End all streams."""
        self._closing = True
        self._wake()

    def _wake(self) -> None:
        for event in self._open:
            event.set()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield what one viewer is told, until the server is stopped."""
        new = asyncio.Event()
        new.set()
        self._open.add(new)
        try:
            yield b"retry: 3000\n\n"
            while not self._closing:
                try:
                    await asyncio.wait_for(new.wait(), PING)
                except asyncio.TimeoutError:
                    yield b": ping\n\n"
                    continue
                new.clear()
                if not self._closing:
                    yield self.live.event
        finally:
            self._open.discard(new)

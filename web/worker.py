"""A process that calculates: one request at a time on its standard input, until that ends.

Long figures run here and not in the server: they cannot hold up its threads,
and one that takes too long is ended with its process. Frames are eight bytes
of length and a pickle; both ends are this program, on a pipe that no one
else holds.
"""

from __future__ import annotations

import os
import pickle
import resource
import struct
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["main", "receive", "send"]

_HEAD = struct.Struct("<Q")

#: Bytes of memory that one calculation may take.
_MEMORY = 8 * 2**30


def send(stream: IO[bytes], value: Any) -> None:
    """Write one frame."""
    raw = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(_HEAD.pack(len(raw)))
    stream.write(raw)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read one frame.

    Raises
    ------
    EOFError
        The other end is gone.
    """
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise EOFError
    size = _HEAD.unpack(head)[0]
    raw = stream.read(size)
    if len(raw) < size:
        raise EOFError
    return pickle.loads(raw)  # noqa: S301 - written by the other end of our own pipe


def main() -> None:
    """Serve requests ``(task, arguments)``; the first frame is the machine."""
    stdin, stdout = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what a library prints must not stand between frames
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, resource.RLIM_INFINITY))
    try:
        machine = receive(stdin)
        while True:
            task, arguments = receive(stdin)
            send(stdout, _answer(machine, task, arguments))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        os._exit(0)


def _answer(machine: Any, task: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    """Return ``("ok", value)``, or an error's name, message and hint."""
    from placement.errors import NidmapError

    try:
        return "ok", _task(task)(machine, **arguments)
    except NidmapError as error:
        message = getattr(error, "text", "") or error.message
        return type(error).__name__, (message, error.hint)
    except MemoryError:
        return "UsageError", ("this takes more memory than the server gives it", "ask for less")
    except RecursionError:
        return "UsageError", ("this is nested too deeply", "")
    except Exception as error:  # one request must not end the worker
        return "Defect", (f"{type(error).__name__}: {error}", "")


def _task(name: str) -> Callable[..., Any]:
    from web import tasks

    found: Callable[..., Any] = tasks.TASKS[name]
    return found


if __name__ == "__main__":
    main()

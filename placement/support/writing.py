# SPDX-License-Identifier: Apache-2.0
"""Writes results, all or nothing, to a file or to standard output."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import click

from nidmap.placement.errors import OutputError, os_reason

if TYPE_CHECKING:
    from collections.abc import Iterator


def to_json(value: Any) -> str:
    """Return `value` as indented JSON, converting numpy scalars and arrays."""
    return json.dumps(value, indent=2, default=methodcaller("tolist")) + "\n"


def write_output(data: str | bytes, path: str | None = None) -> None:
    """Write the result to `path`, or to stdout if it is None or ``-``.

    A file is written whole or not at all: into a temporary file next to it,
    flushed to disk, then renamed over it. Devices, pipes and the like are
    written in place.
    """
    write_outputs((data, path))


def make_folder(path: str) -> None:
    """Create a folder for results if it does not exist."""
    with _refuse_output(path):
        os.makedirs(path, exist_ok=True)


def write_outputs(*outputs: tuple[str | bytes, str | None]) -> None:
    """Write several results as `write_output` does: all of them, or none."""
    raws = [(data.encode() if isinstance(data, str) else data, path) for data, path in outputs]
    ready: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        for raw, path in raws:
            if path not in (None, "-") and (os.path.isfile(path) or not os.path.exists(path)):
                ready[path] = _write_temporary(raw, path, stack)
        for raw, path in raws:
            if path is None or path == "-":
                _to_stdout(raw)
            elif path not in ready:
                with _refuse_output(path), open(path, "wb") as stream:
                    stream.write(raw)
        for path, temporary in ready.items():
            with _refuse_output(path):
                os.replace(temporary, os.path.realpath(path))


@contextlib.contextmanager
def _refuse_output(path: str) -> Iterator[None]:
    """Report which output cannot be written."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"cannot write {path}: {os_reason(error)}") from None


def _to_stdout(raw: bytes) -> None:
    try:
        sys.stdout.flush()
        stream = getattr(sys.stdout, "buffer", None)
        if stream is None:  # replaced by a text stream, by a test or for a closed output
            sys.stdout.write(raw.decode("utf-8", "replace"))
        else:
            stream.write(raw)
            stream.flush()
    except BrokenPipeError:
        silence_stdout()
        raise click.exceptions.Exit(141) from None
    except (OSError, ValueError) as error:
        silence_stdout()
        raise OutputError(f"cannot write to standard output: {os_reason(error)}") from None


def silence_stdout() -> None:
    """Redirect stdout to nowhere, as Python's flush at exit would fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_temporary(raw: bytes, path: str, stack: contextlib.ExitStack) -> str:
    """Write a temporary file next to `path`, with its mode, removed unless it is renamed."""
    real = os.path.realpath(path)
    folder, name = os.path.split(real)
    temporary = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    stack.callback(_remove_quietly, temporary)
    with _refuse_output(path):
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, _file_mode(real))
    return temporary


def _remove_quietly(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _file_mode(path: str) -> int:
    """Return the mode of the existing file, or the one that a new file would get."""
    try:
        return os.stat(path).st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask

"""Documents that are ready: whole, packed, or as the asker has them already."""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from werkzeug.http import parse_accept_header, parse_etags

from web.live import Body

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Ready", "files", "ready", "unpacks"]

_KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


class Ready(NamedTuple):
    """An answer before it is sent."""

    status: int
    headers: dict[str, str]
    raw: bytes


def ready(
    found: Body, accept: str, known: str, age: int | None = None, kind: str = "application/json"
) -> Ready:
    """Return a document as an answer.

    Parameters
    ----------
    found : Body
    accept, known : str
        The request's Accept-Encoding and If-None-Match, '' where it has none.
    age : int or None
        Seconds since the data was taken; None where that is not known.
    kind : str
        Its media type.

    Examples
    --------
    >>> from web.live import body
    >>> found = body({"a": 1}, "a-1")
    >>> ready(found, "", "").raw, ready(found, "gzip", 'W/"a-1"').status
    (b'{"a":1}', 304)
    """
    headers = {"Cache-Control": "private, no-cache", "ETag": f'W/"{found.tag}"'}
    if age is not None:
        headers["Age"] = str(age)
    if known and parse_etags(known).contains_weak(found.tag):
        return Ready(304, headers, b"")
    headers["Content-Type"] = kind
    if not unpacks(accept):
        return Ready(200, headers, found.raw)
    headers["Content-Encoding"] = "gzip"
    return Ready(200, headers, found.packed)


def files(folder: Path, url: str) -> dict[str, tuple[Body, str]]:
    """Return a folder's files with their media types, by the path that they are asked for by.

    Parameters
    ----------
    folder : Path
    url : str
        What stands before their names.
    """
    found = {}
    for path in folder.iterdir():
        kind = _KINDS.get(path.suffix)
        if kind is not None:
            raw = path.read_bytes()
            packed = gzip.compress(raw, 9, mtime=0)
            body = Body(raw, packed, hashlib.sha256(raw).hexdigest()[:16])
            found[f"{url}/{path.name}"] = (body, kind)
    return found


@lru_cache(maxsize=256)
def unpacks(accept: str) -> bool:
    """Tell whether the other end takes gzip, by its Accept-Encoding.

    Examples
    --------
    >>> [unpacks(text) for text in ("", "gzip, br", "gzip;q=0", "*", "identity")]
    [False, True, False, True, False]
    """
    return parse_accept_header(accept).quality("gzip") > 0

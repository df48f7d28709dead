"""Documents that lie ready to be sent: plain, packed, and with the tag by which they are known."""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from werkzeug.http import parse_accept_header, parse_etags

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Document", "json_document", "page_files", "unpacks"]

_KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}


class Document(NamedTuple):
    """What one path is answered with.

    Attributes
    ----------
    raw, packed : bytes
        As it is, and compressed by gzip.
    tag : str
        Names this content (ETag).
    kind : str
        Media type.
    """

    raw: bytes
    packed: bytes
    tag: str
    kind: str = "application/json"

    def answer(self, accept: str, known: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for one reader.

        Parameters
        ----------
        accept, known : str
            The request's Accept-Encoding and If-None-Match, '' where it has none.

        Examples
        --------
        >>> found = json_document({"a": 1}, "a", "1")
        >>> found.answer("", "")[2], found.answer("gzip", 'W/"a-1"')[0]
        (b'{"a":1}', 304)
        """
        headers = {"Cache-Control": "private, no-cache", "ETag": f'W/"{self.tag}"'}
        if known and parse_etags(known).contains_weak(self.tag):
            return 304, headers, b""
        headers["Content-Type"] = self.kind
        if not unpacks(accept):
            return 200, headers, self.raw
        return 200, {**headers, "Content-Encoding": "gzip"}, self.packed


def json_document(value: object, name: str, mark: str = "") -> Document:
    """Return a value as JSON.

    Parameters
    ----------
    value : anything that msgspec encodes
    name, mark : str
        The tag's two parts; '' for a mark that follows from the content.
    """
    raw = msgspec.json.encode(value)
    return Document(raw, gzip.compress(raw, 6, mtime=0), f"{name}-{mark or _digest(raw)}")


def page_files(folder: Path) -> dict[str, Document]:
    """Return the scripts and styles of a folder by file name."""
    found = {}
    for path in folder.iterdir():
        if path.suffix in _KINDS:
            raw = path.read_bytes()
            packed = gzip.compress(raw, 9, mtime=0)
            found[path.name] = Document(raw, packed, _digest(raw), _KINDS[path.suffix])
    return found


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()[:16]


@lru_cache(maxsize=256)
def unpacks(accept: str) -> bool:
    """Tell whether the other end takes gzip, by its Accept-Encoding.

    Examples
    --------
    >>> [unpacks(text) for text in ("", "gzip, br", "gzip;q=0", "*", "identity")]
    [False, True, False, True, False]
    """
    return parse_accept_header(accept).quality("gzip") > 0

# SPDX-License-Identifier: Apache-2.0
"""Answers: prepared documents, and errors as ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import gzip
import hashlib
import http
from functools import lru_cache
from typing import NamedTuple

import msgspec
from werkzeug.http import parse_accept_header, parse_etags

from nidmap.placement.errors import LaunchError, NidmapError, printable
from nidmap.web.workers import BusyError, DefectError, TooSlowError

JSON = "application/json"

_KINDS = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}

#: The status of each kind of error; 409 for all others.
_STATUSES = {BusyError: 429, TooSlowError: 504, LaunchError: 503, DefectError: 500}

#: Seconds after which a client that was refused for overload may retry.
_AGAIN = "2"


class Answer(NamedTuple):
    """Status, headers and body."""

    status: int
    headers: dict[str, str]
    raw: bytes


class RenderedAnswer(NamedTuple):
    """The answer of one path."""

    # raw, packed: as it is, and compressed by gzip
    raw: bytes
    packed: bytes
    tag: str  # names this content (ETag)
    kind: str = JSON  # media type
    cache: str = "private, no-cache"  # how long it may be kept

    @classmethod
    def of(cls, raw: bytes, level: int = 0, kind: str = JSON, tag: str = "") -> RenderedAnswer:
        """Render a document; level 0 leaves it uncompressed, no tag derives one from it."""
        packed = gzip.compress(raw, level, mtime=0) if level else raw
        return cls(raw, packed, tag or hashlib.sha256(raw).hexdigest()[:16], kind)

    def answer(self, accept: str, known: str) -> Answer:
        """Return the answer for one reader.

        `accept`, `known`: the request's Accept-Encoding and If-None-Match, '' where it has none.
        """
        headers = {"Cache-Control": self.cache, "ETag": f'W/"{self.tag}"'}
        if known and parse_etags(known).contains_weak(self.tag):
            return Answer(304, headers, b"")
        headers["Content-Type"] = self.kind
        if not takes_gzip(accept):
            return Answer(200, headers, self.raw)
        return Answer(200, {**headers, "Content-Encoding": "gzip"}, self.packed)


def json_document(value: object, tag: str = "") -> RenderedAnswer:
    """Return a value as JSON, with a tag derived from it unless one is given."""
    return RenderedAnswer.of(msgspec.json.encode(value), 6, tag=tag)


def kept_document(name: str, text: str) -> RenderedAnswer:
    """Return a script or style whose name changes with its contents, cacheable for ever."""
    made = RenderedAnswer.of(text.encode(), 9, _KINDS[name.rpartition(".")[2]])
    return made._replace(cache="private, max-age=31536000, immutable")


@lru_cache(maxsize=256)
def takes_gzip(accept: str) -> bool:
    """Tell whether the client accepts gzip, by its Accept-Encoding."""
    return parse_accept_header(accept).quality("gzip") > 0


def error_answer(
    status: int, detail: str, hint: str = "", headers: dict[str, str] | None = None
) -> Answer:
    """Return an error: one line on the fault, and a hint."""
    body = {
        "type": "about:blank",
        "title": http.HTTPStatus(status).phrase,
        "status": status,
        "detail": printable(detail, 1000),
        "hint": printable(hint, 1000),
    }
    kind = {"Content-Type": "application/problem+json"}
    return Answer(status, kind | (headers or {}), msgspec.json.encode(body))


def problem_of(error: NidmapError) -> Answer:
    """Return the answer for one of nidmap's own errors."""
    statuses = (status for kind, status in _STATUSES.items() if isinstance(error, kind))
    status = next(statuses, 409)
    headers = {"Retry-After": _AGAIN} if status == 429 else None
    return error_answer(status, getattr(error, "text", "") or error.message, error.hint, headers)

"""Errors as they are sent: ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import http

import msgspec

from placement.errors import LaunchError, NidmapError, printable
from web.workers import BusyError, DefectError, TooSlowError

__all__ = ["KIND", "problem", "problem_of"]

#: The media type.
KIND = "application/problem+json"

#: Seconds after which one who was refused as one too many may come again.
_AGAIN = "2"


def problem(status: int, detail: str, hint: str = "") -> bytes:
    """Return an error in one line of what is wrong, and a hint."""
    return msgspec.json.encode(
        {
            "type": "about:blank",
            "title": http.HTTPStatus(status).phrase,
            "status": status,
            "detail": printable(detail, 1000),
            "hint": printable(hint, 1000),
        }
    )


def problem_of(error: NidmapError) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body for an error of nidmap's own."""
    status = 409
    headers = {"Content-Type": KIND}
    if isinstance(error, BusyError):
        status, headers["Retry-After"] = 429, _AGAIN
    elif isinstance(error, TooSlowError):
        status = 504
    elif isinstance(error, LaunchError):
        status = 503
    elif isinstance(error, DefectError):
        status = 500
    return status, headers, problem(status, getattr(error, "text", "") or error.message, error.hint)

# SPDX-License-Identifier: Apache-2.0
"""Who may access the server: the requested host, the token, and the request's origin."""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import re
import secrets
import shlex
import socket
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from werkzeug.http import parse_cookie

from nidmap.placement.errors import OutputError, UsageError, os_reason, printable
from nidmap.web.answers import Answer, error_answer

#: Headers of every answer.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Robots-Tag": "noindex",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Vary": "Accept-Encoding, Cookie, Authorization",
}

_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.\-]+)(?::\d{1,5})?", re.ASCII)
_TOKEN = re.compile(r"(?:^|&)token=([^&]*)")
_BEARER = re.compile(r"bearer[ ]+(\S+)[ ]*", re.IGNORECASE)


def own_names(host: str, more: Iterable[str] = ()) -> frozenset[str]:
    """Return the names under which a server bound to `host` may be addressed."""
    names = {"localhost", "127.0.0.1", "[::1]", *more}
    address = _host_address(host)
    if host.lower() not in ("", "localhost") and not (address and address.is_loopback):
        names |= {socket.gethostname(), socket.getfqdn(), f"[{host}]" if ":" in host else host}
    return frozenset(name.lower() for name in names if name)


def _host_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return a host's address; None if it is a name."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host.strip("[]"))
    return None


def token_in(path: str) -> str:
    """Return the token in a file, creating the file with a new token if it does not exist."""
    shown = f"--token {printable(path)}"
    try:
        if not os.path.exists(path):
            with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path) or ".") as stream:
                stream.write(secrets.token_urlsafe(24) + "\n")
                stream.flush()
                with contextlib.suppress(FileExistsError):  # another one was faster
                    os.link(stream.name, path)
        with open(path, "rb") as stream:
            others = stat.S_IMODE(os.fstat(stream.fileno()).st_mode) & 0o077
            token = stream.read(1000).decode("latin-1").strip()
    except (OSError, ValueError) as error:
        raise OutputError(f"{shown}: {os_reason(error)}") from None
    if others:
        raise UsageError(f"{shown}: others can read it", f"chmod 600 {shlex.quote(path)}")
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]{16,200}", token, re.ASCII):
        raise UsageError(
            f"{shown}: holds no token", "a token is one word of 16 to 200 letters, digits, - and _"
        )
    return token


@dataclass(frozen=True)
class Guard:
    """The rules of one server."""

    token: str = ""  # '' where anyone who reaches the server may ask
    # Hosts that may be asked for
    names: frozenset[str] = field(default_factory=lambda: own_names(""))
    # Hosts whose pages may ask though the request names another host: proxies that rewrite it
    portals: frozenset[str] = frozenset()
    # True where any plain address may be asked for too (a bind to all interfaces)
    addresses: bool = False
    cookie: str = "nidmap"  # name of the cookie; cookies do not know ports, so the port is in it

    def refusal(
        self, method: str, path: str, query: str, headers: Mapping[str, str]
    ) -> Answer | None:
        """Return how a request is refused; None if it is not.

        `query`: what is after the ``?``; a token there counts for the page only. `headers`:
        by lower-case name.
        """
        host = _HOST.fullmatch(headers.get("host", ""))
        name = host.group(1).lower().rstrip(".") if host else ""
        if name not in self.names and not (name and self.addresses and _host_address(name)):
            return error_answer(
                421, "the request names another host",
                "use the address that nidmap web serve printed; --allow-host NAME adds one",
            )  # fmt: skip
        if self._is_foreign(method, path, headers):
            return error_answer(403, "requests from another site's page are refused")
        if self.token and not self._has_token(headers, query if path == "/" else ""):
            return error_answer(
                401, "the token is missing or wrong",
                "open the URL that nidmap web serve printed, or send Authorization: Bearer",
                {"WWW-Authenticate": "Bearer"},
            )  # fmt: skip
        return None

    def _is_foreign(self, method: str, path: str, headers: Mapping[str, str]) -> bool:
        """Tell whether another site's page makes the request; it may only link to the page."""
        other = headers.get("sec-fetch-site", "") in ("cross-site", "same-site")
        opens = (method, path, headers.get("sec-fetch-mode", "")) == ("GET", "/", "navigate")
        origin = headers.get("origin", "")
        page = origin.partition("://")[2].lower()
        host = _HOST.fullmatch(page)
        ours = page == headers["host"].lower() or (host and host.group(1) in self.portals)
        return (origin != "" and not ours) or (other and not opens)

    def _has_token(self, headers: Mapping[str, str], query: str) -> bool:
        tokens = []
        if bearer := _BEARER.fullmatch(headers.get("authorization", "")):
            tokens.append(bearer.group(1))
        with contextlib.suppress(UnicodeError):  # a cookie that is no text is none
            tokens.append(parse_cookie(headers.get("cookie", "")).get(self.cookie, ""))
        if in_query := _TOKEN.search(query):
            tokens.append(unquote(in_query.group(1)))
        token = self.token.encode()
        return any(
            hmac.compare_digest(candidate.encode(errors="replace"), token) for candidate in tokens
        )

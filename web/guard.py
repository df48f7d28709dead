"""Who may ask: the host that is asked for, the token, and where a request comes from."""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from werkzeug.http import parse_cookie

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["HEADERS", "VARY", "Guard", "Refusal", "cookies_of", "own_names", "policy"]

#: What every answer carries.
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
}

#: What an answer depends on besides its path.
VARY = "Accept-Encoding, Cookie, Authorization"

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9_.\-]+)(?::\d{1,5})?", re.ASCII)
_TOKEN = re.compile(r"(?:^|&)token=([^&]*)")
_BEARER = re.compile(r"bearer[ ]+(\S+)[ ]*", re.IGNORECASE)


def policy(script: str, style: str) -> str:
    """Return the policy of a file that opens from disk: these two hashes and nothing else."""
    return (
        f"default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def own_names(host: str, more: Iterable[str] = ()) -> frozenset[str]:
    """Return the names under which a server that is bound to `host` may be asked for.

    Examples
    --------
    >>> sorted(own_names("127.0.0.1"))
    ['127.0.0.1', '[::1]', 'localhost']
    """
    names = {*_LOOPBACK, *(name.lower() for name in more)}
    if host and not _is_loopback(host):
        here = (socket.gethostname(), socket.getfqdn())
        names |= {name.lower() for name in here if name}
        names.add(f"[{host.lower()}]" if ":" in host else host.lower())
    return frozenset(names)


def cookies_of(text: str) -> dict[str, str]:
    """Return the cookies of a header; what is no text in UTF-8 has none.

    Examples
    --------
    >>> cookies_of("a=1; b=2"), cookies_of("a=\\xff")
    ({'a': '1', 'b': '2'}, {})
    """
    try:
        return dict(parse_cookie(text))
    except UnicodeError:
        return {}


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Refusal(NamedTuple):
    """Why a request is not answered."""

    status: int
    detail: str
    hint: str = ""


@dataclass(frozen=True)
class Guard:
    """The rules of one server.

    Attributes
    ----------
    token : str
        '' where anyone who reaches the server may ask.
    names : frozenset of str
        Hosts that may be asked for.
    addresses : bool
        True where any plain address may be asked for too (a bind to all interfaces).
    cookie : str
        Name of the cookie; cookies do not know ports, so the port is in it.
    """

    token: str = ""
    names: frozenset[str] = field(default_factory=lambda: own_names(""))
    addresses: bool = False
    cookie: str = "nidmap"

    def refusal(
        self,
        method: str,
        path: str,
        query: str,
        headers: Mapping[str, str],
        cookies: Mapping[str, str],
    ) -> Refusal | None:
        """Return why a request is refused, None where it is not.

        Parameters
        ----------
        method, path : str
        query : str
            What stands behind the ``?``; a token there counts for the page only.
        headers : mapping
            By lower-case name.
        cookies : mapping
        """
        return (
            self._host(headers.get("host", ""))
            or self._origin(method, path, headers)
            or self._token(headers, query if path == "/" else "", cookies)
        )

    def _host(self, host: str) -> Refusal | None:
        match = _HOST.fullmatch(host)
        name = match.group(1).lower().rstrip(".") if match else ""
        if name in self.names or (name and self.addresses and _is_address(name)):
            return None
        return Refusal(
            421, "this server is not the host that was asked for",
            "use the address that nidmap web serve printed; --allow-host NAME adds one",
        )  # fmt: skip

    def _origin(self, method: str, path: str, headers: Mapping[str, str]) -> Refusal | None:
        """Refuse what another site's page sends; a link there may open the page, no more."""
        other = headers.get("sec-fetch-site", "") in ("cross-site", "same-site")
        opens = (method, path, headers.get("sec-fetch-mode", "")) == ("GET", "/", "navigate")
        origin = headers.get("origin", "")
        foreign = origin != "" and origin.partition("://")[2].lower() != headers["host"].lower()
        if foreign or (other and not opens):
            return Refusal(403, "a page of another site may not ask")
        return None

    def _token(
        self, headers: Mapping[str, str], query: str, cookies: Mapping[str, str]
    ) -> Refusal | None:
        if not self.token:
            return None
        bearer = _BEARER.fullmatch(headers.get("authorization", ""))
        given = (
            bearer.group(1) if bearer else "",
            cookies.get(self.cookie, ""),
            self.in_query(query),
        )
        if any(self._is_token(one) for one in given):
            return None
        return Refusal(
            401, "the token is missing or wrong",
            "open the URL that nidmap web serve printed, or send Authorization: Bearer",
        )  # fmt: skip

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(errors="replace"), self.token.encode())

    def in_query(self, query: str) -> str:
        """Return the token that a query string brings, '' for none."""
        found = _TOKEN.search(query)
        return unquote(found.group(1)) if found else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True

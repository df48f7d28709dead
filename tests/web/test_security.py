# SPDX-License-Identifier: Apache-2.0
"""Who may ask, what every answer carries, and that what others wrote is text everywhere."""

import contextlib
import json
import random
import re
import socket
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from nidmap.web.app import make_app
from nidmap.web.guard import Guard, own_names
from nidmap.web.page import served_files
from tests.waiting import HANGS
from tests.web.serving import HOSTILE, Site, running, squeue, until

TOKEN = "a-token-of-this-test"  # nothing that is secret

#: The page's script.
SCRIPT = f"/static/{next(iter(served_files()))}"

MACHINE = "dragonfly:groups=4,chassis=2,blades=4,nodes=4"

NAMES = [
    HOSTILE,
    "</script><script>alert(1)</script>",
    "]]><svg onload=alert(1)>",
    "javascript:alert(1)",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}}${7*7}",
    "\u2028\u2029\x00\x07\ufffe",
    '=HYPERLINK("http://x")',
    "a" * 100_000,
]


@pytest.fixture(scope="module")
def locked(small):
    with running(small, token=TOKEN) as found:
        yield found


@pytest.fixture(scope="module")
def hostile(small, tmp_path_factory):
    """A server whose jobs and users have hostile names."""
    path = tmp_path_factory.mktemp("hostile") / "jobs.json"
    jobs = [(k, f"nid{k:05d}", name, f"user{k}<b>") for k, name in enumerate(NAMES)]
    jobs.append((99, "nid00099", "run-of-ALICE-7", "alice"))
    path.write_text(squeue(*jobs))
    with running(small, (str(path),)) as found:
        until(lambda: found.service.live.snapshot.jobs)
        yield found


def everything(site):
    """Yield (what, reply) for every path that answers with what others wrote."""
    for path in ("machine", "layout", "state", "jobs", "status", "nodes?nodes=0-9,99"):
        yield path, site.ask(f"/api/v1/{path}")
    yield "page", site.ask("/")
    yield "openapi", site.ask("/openapi.json")
    for form in ("svg", "html"):
        for colour in ("job", "state"):
            yield form, site.post("export", format=form, colour=colour, nodes="0-9,99")
    yield "describe", site.post("describe", nodes="0-9,99")


# --- headers ---------------------------------------------------------------------------


def test_every_answer_has_the_headers(site):
    replies = [reply for _, reply in everything(site)]
    replies += [
        site.ask("/nope"),
        site.ask("/api/v1/plan"),
        site.ask("/", headers={"Host": "evil.example"}),
        site.ask("/api/v1/plan", body=b"{", method="POST"),
        site.ask(SCRIPT),
        site.ask("/?token=x"),
        site.ask("/api/v1/plan", body={"count": 10**6}),
    ]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "*" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in reply.headers
        assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /api/v1/plan HTTP/1.1\r\nHost: localhost\r\nContent-Length: -4\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(site, raw):
    with socket.create_connection(("127.0.0.1", site.port), 10) as sock:
        sock.sendall(raw)
        answer = b""
        while b"\r\n\r\n" not in answer and (chunk := sock.recv(65536)):
            answer += chunk
    assert re.match(rb"HTTP/1.1 4\d\d ", answer)
    assert b"traceback" not in answer.lower()
    assert b"server:" not in answer.lower()
    assert site.ask("/api/v1/status").status == 200


METHODS = (b"GET", b"POST", b"HEAD", b"OPTIONS", b"FOO", b"\x00")
TARGETS = (
    b"/", b"/api/v1/state", b"/api/v1/nodes?nodes=1", b"/api/v1/hops?from=1",
    b"/api/v1/resolve", b"/api/v1/describe", b"/static/../app.py", b"/static/%2e%2e/app.py",
    SCRIPT.encode(), b"//evil", b"*", b"/%00", b"/%ff", b"/openapi.json", b"/static/",
)  # fmt: skip
HEADERS = (
    b"Cookie: \x80=\xff; a", b"Host: \xff", b"Host: localhost:99999999", b"Transfer-Encoding: gzip",
    b"Content-Length: 99999999999999999", b"Expect: 100-continue", b'If-None-Match: "',
    b"Accept-Encoding: gzip;q=x", b"Authorization: Bearer", b"Authorization: Basic \xff",
    b"Range: bytes=0-5", b"Range: bytes=5-1", b"Upgrade: websocket\r\nConnection: Upgrade",
    b"Origin: null", b"Sec-Fetch-Site: cross-site", b"Content-Type: application/json; charset=\xff",
)  # fmt: skip
BODIES = (
    b"", b"{}", b"[" * 2000, b"null", b"NaN", b'{"text": "\xff"}', b'{"text": "\\ud800"}',
    b'{"text": 1e400}', b'{"nodes": "1", "ppn": 1e99}', b'{"nodes": "1-4", "pattern": "\\udfff"}',
)  # fmt: skip


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A server in a process of its own, and its port: what ends it ends no other test."""
    said = tmp_path_factory.mktemp("alone") / "stderr"
    command = [sys.executable, "-X", "faulthandler", "-m", "nidmap", "web", "serve", "-m", MACHINE]
    with said.open("w") as stderr:
        process = subprocess.Popen(
            [*command, "--from", "dump", "--token", "none", "--port", "0"],
            stdout=subprocess.PIPE, stderr=stderr, text=True,
        )  # fmt: skip
        try:
            port = int(re.search(r":(\d+)/?$", process.stdout.readline().strip())[1])
            until(lambda: process.poll() is not None or _listens(port), "the server")
            yield process, Site(port, None, ""), said
        finally:
            process.kill()
            process.communicate()


def _listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), HANGS):
        return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_odd_requests_are_no_defect(alone, seed):
    process, site, said = alone
    lot = random.Random(seed)
    for _ in range(60):
        body = lot.choice(BODIES)
        head = [b"Host: localhost", b"Connection: close", *lot.sample(HEADERS, lot.randrange(4))]
        if lot.random() < 0.7:
            head += [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
        line = lot.choice(METHODS) + b" " + lot.choice(TARGETS) + b" HTTP/1.1"
        raw = b"\r\n".join([line, *head, b"", body])
        with socket.create_connection(("127.0.0.1", site.port), HANGS) as sock:
            sock.settimeout(5)
            answer = b""
            with contextlib.suppress(ConnectionError, TimeoutError):
                sock.sendall(raw)
                while b"\r\n\r\n" not in answer and (chunk := sock.recv(65536)):
                    answer += chunk
        found = re.match(rb"HTTP/1.1 (\d+)", answer)
        assert found is None or int(found.group(1)) < 500, (raw, answer)
        assert process.poll() is None, (process.returncode, raw, said.read_text())
    assert site.ask("/api/v1/status").status == 200


# --- host and origin -------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "localhost@evil.com",
     "10.0.0.1", "[::2]:80", "localhost:80:80", "evil.example:127.0.0.1", " ", "0.0.0.0",
     "127.0.0.1#", "localhost,evil.example"],
)  # fmt: skip
def test_other_hosts_are_refused(site, host):
    for path in ("/", "/api/v1/state", SCRIPT, "/nope"):
        assert site.ask(path, headers={"Host": host}).status == 421


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:9", "[::1]:8000", "LOCALHOST:8770", "localhost."]
)
def test_own_names_are_not(site, host):
    assert site.ask("/api/v1/state", headers={"Host": host}).status == 200


def test_a_bound_name_and_added_ones_are_own():
    names = own_names("login1.example.org", ["web.example.org"])
    assert {"login1.example.org", "web.example.org", "localhost"} <= names
    guard = Guard(names=own_names("0.0.0.0"), addresses=True)
    assert guard.refusal("GET", "/", "", {"host": "10.1.2.3:8770"}) is None
    assert guard.refusal("GET", "/", "", {"host": "rebound.example"}).status == 421


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
     {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://127.0.0.1:1"}],
)  # fmt: skip
def test_another_sites_page_may_not_ask(site, headers):
    for reply in (
        site.ask("/api/v1/plan", body={"count": 4}, headers=headers),
        site.ask("/api/v1/state", headers=headers),
    ):
        assert reply.status == 403


def test_a_page_that_a_proxy_serves_under_its_own_name_may_ask():
    """Open OnDemand names the node in Host, and the browser the portal in Origin."""
    guard = Guard(names=own_names("n1", ["portal.org"]), portals=frozenset(["portal.org"]))
    for origin, status in (
        ("https://portal.org", None), ("http://PORTAL.org:8443", None), ("https://n1:8770", None),
        ("https://n1:1", 403), ("https://portal.org.evil.example", 403), ("null", 403),
    ):  # fmt: skip
        found = guard.refusal("POST", "/api/v1/plan", "", {"host": "n1:8770", "origin": origin})
        assert (found and found.status) == status, origin
    same_site = {"host": "n1:8770", "origin": "https://portal.org:1", "sec-fetch-site": "same-site"}
    assert guard.refusal("POST", "/api/v1/plan", "", same_site).status == 403


def test_a_link_from_elsewhere_may_open_the_page(site):
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert site.ask("/", headers=followed).status == 200
    assert site.ask("/api/v1/nodes?nodes=1", headers=followed).status == 403
    assert site.ask("/api/v1/state", headers={"Origin": site.url}).status == 200


# --- token -----------------------------------------------------------------------------


def test_nothing_without_the_token(locked):
    rules = {rule.rule for rule in make_app(locked.service).url_map.iter_rules()}
    rules |= {SCRIPT, *(f"/api/v1/{name}" for name in ("machine", "layout", "state"))}
    assert len(rules) > 15
    for rule in rules:
        for headers in (
            {"Authorization": None},
            {"Authorization": "Bearer wrong"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": "Bearer "},
            {"Authorization": None, "Cookie": f"nidmap={TOKEN}"},
            {"Authorization": None, "Cookie": f"nidmap-{locked.port}=wrong"},
        ):
            reply = locked.ask(rule, headers=headers)
            assert reply.status == 401, rule
            assert reply.headers["www-authenticate"] == "Bearer"
            said = reply.body.decode() if rule == "/" else reply.json["detail"]
            assert said == "the token is missing or wrong" or "needs its token" in said
    reply = locked.ask("/api/v1/plan", body={"count": 1}, headers={"Authorization": None})
    assert reply.status == 401


def test_the_token_opens_everything(locked):
    assert locked.ask("/api/v1/state").status == 200
    lower = {"Authorization": f"bearer  {TOKEN}"}
    assert locked.ask("/api/v1/state", headers=lower).status == 200
    cookie = {"Authorization": None, "Cookie": f"b@d=1; x; nidmap-{locked.port}={TOKEN}"}
    assert locked.ask("/api/v1/state", headers=cookie).status == 200


def test_the_printed_url_sets_a_cookie(locked):
    reply = locked.ask(f"/?token={TOKEN}", headers={"Authorization": None})
    assert (reply.status, reply.headers["location"], reply.body) == (303, "./", b"")
    cookie = reply.headers["set-cookie"]
    assert cookie.startswith(f"nidmap-{locked.port}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    followed = {"Authorization": None, "Cookie": cookie.split(";")[0]}
    assert locked.ask("/", headers=followed).status == 200


def test_the_token_in_a_query_opens_the_page_only(locked):
    bare = {"Authorization": None}
    assert locked.ask(f"/api/v1/state?token={TOKEN}", headers=bare).status == 401
    assert locked.ask("/?token=wrong", headers=bare).status == 401
    assert locked.ask("/?" + "token=x&" * 50, headers=bare).status == 401
    assert locked.ask("/?" + "%00=%ff&" * 500, headers=bare).status == 401
    assert locked.ask("/?tok%65n=x&" + "a=1&" * 2000, headers=bare).status == 401


def test_the_token_is_in_no_answer(locked):
    for what, reply in everything(locked):
        assert TOKEN.encode() not in reply.body, what
        assert TOKEN not in str(reply.headers), what


# --- what others wrote -----------------------------------------------------------------


def test_hostile_names_are_text(hostile):
    for what, reply in everything(hostile):
        assert reply.status == 200, what
        text = reply.body.decode()
        assert "\x1b" not in text, what
        if what in ("svg", "html", "page"):
            assert "<script>alert" not in text, what
            escaped = r"&lt;.*?(?:&gt;|…)|\\u003c.*?\\u003e"
            assert "onload=alert" not in re.sub(escaped, "", text), what
            assert "<img" not in text, what
            assert "<b>" not in text, what
        if what == "svg":
            tree = ElementTree.fromstring(text)
            tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
            assert tags <= {"svg", "title", "desc", "rect", "path", "text"}
            known = {"width", "height", "viewBox", "role", "font-family", "fill", "stroke", "d",
                     "stroke-width", "stroke-dasharray", "x", "y", "font-size", "font-weight",
                     "stroke-opacity", "stroke-linejoin", "text-anchor"}  # fmt: skip
            assert {name for element in tree.iter() for name in element.attrib} <= known


def test_hostile_names_survive_as_data(hostile):
    jobs = {job["id"]: job["name"] for job in hostile.ask("/api/v1/jobs").json["jobs"]}
    assert jobs["1"] == NAMES[1]
    assert jobs["3"] == NAMES[3]
    assert len(jobs["8"]) <= 200


def test_the_exported_page_holds_data_as_data(hostile):
    text = hostile.post("export", format="html", colour="job").body.decode()
    found = re.search(
        r'<script type="application/json" id="nidmap-data">(.*?)</script>', text, re.S
    )
    data = json.loads(found.group(1))
    assert data["state"]["jobs"][1]["name"] == NAMES[1]
    assert "<" not in found.group(1)
    assert "\u2028" not in found.group(1)


def test_users_are_nowhere(hostile):
    for what, reply in everything(hostile):
        text = reply.body.decode().lower()
        assert "alice" not in text, what
        assert what in ("html", "openapi") or '"user"' not in text, what
        assert "user3" not in text, what
        assert "alice" not in str(reply.headers).lower()
    assert hostile.ask("/api/v1/machine").json["show_users"] is False
    found = {j["id"]: j["name"] for j in hostile.ask("/api/v1/jobs").json["jobs"]}
    assert found["99"] == "run-of-…-7"


def test_users_are_shown_where_that_is_asked_for(small, tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(squeue((1, "nid00001", "run-of-alice", "alice")))
    with running(small, (str(path),), users=True) as site:
        until(lambda: site.service.live.snapshot.jobs)
        (job,) = site.ask("/api/v1/jobs").json["jobs"]
        assert (job["user"], job["name"]) == ("alice", "run-of-alice")
        assert site.ask("/api/v1/state").json["jobs"][0]["user"] == "alice"
        assert site.ask("/api/v1/machine").json["show_users"] is True


# --- limits ----------------------------------------------------------------------------


def test_too_large_a_body_is_refused_before_it_is_read(site):
    with socket.create_connection(("127.0.0.1", site.port), 10) as sock:
        sock.sendall(
            b"POST /api/v1/resolve HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 999999999\r\n\r\n"
        )
        assert sock.recv(1000).startswith(b"HTTP/1.1 413 ")


def test_too_large_a_body_in_chunks_is_refused(site):
    with socket.create_connection(("127.0.0.1", site.port), 10) as sock:
        sock.sendall(
            b"POST /api/v1/resolve HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
        answer = b""
        try:
            for _ in range(8):
                sock.sendall(chunk)
            answer = sock.recv(1000)
        except OSError:
            answer = answer or b"HTTP/1.1 413 (cut off)"
    assert answer.startswith(b"HTTP/1.1 413 ")


def test_too_long_a_text_is_refused(site):
    found = site.post("resolve", text="a" * (2 * 2**20 + 1))
    assert found.status == 400


def test_a_slow_body_holds_no_thread(small, monkeypatch):
    monkeypatch.setattr("nidmap.web.app.PATIENCE", 0.3)
    head = (
        b"POST /api/v1/resolve HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    with running(small) as site:
        slow = [socket.create_connection(("127.0.0.1", site.port), 10) for _ in range(80)]
        try:
            for sock in slow:
                sock.sendall(head)
            assert site.ask("/api/v1/state").status == 200
            assert slow[0].recv(100).startswith(b"HTTP/1.1 408 ")
        finally:
            for sock in slow:
                sock.close()


def test_connections_that_send_nothing_are_closed(small, monkeypatch):
    monkeypatch.setattr("nidmap.web.server.PATIENCE", 0.3)
    with running(small) as site, socket.create_connection(("127.0.0.1", site.port), 10) as sock:
        sock.sendall(b"GET / HT")
        assert sock.recv(100) == b""


def raw_answer(site, request):
    """Return what a connection answers until it is closed, or for two seconds."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=2) as sock:
        sock.sendall(request)
        parts = []
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            while part := sock.recv(65536):
                parts.append(part)
    return b"".join(parts)


@pytest.mark.parametrize("path", ["/api/v1/status", "/api/v1/machine", "/nowhere"])
@pytest.mark.parametrize(
    "line", ["P HTTP/1.1\r\nX: LONG", "P?x=LONG HTTP/1.1", "P HTTP/1.1\r\nX:WIDEa"]
)
def test_a_head_of_any_shape_is_limited(site, path, line):
    wide, long = " " * 100_000, "a" * 100_000
    head = line.replace("P", path, 1).replace("WIDE", wide).replace("LONG", long).encode()
    answer = raw_answer(site, b"GET " + head + b"\r\nHost: localhost\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
    assert answer.count(b"HTTP/1.1 ") == 1


def test_two_lengths_of_a_body_end_the_connection(site):
    smuggled = b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = raw_answer(
        site,
        b"POST /api/v1/resolve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in answer.lower()

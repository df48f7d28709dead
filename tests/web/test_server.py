"""The server under load and misuse: streams, queues, slow calculations, sockets, the command."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest

from placement.errors import UsageError
from tests.web.serving import running, squeue, until
from web.pool import BusyError, DefectError, Pool, TooSlowError
from web.server import bound, bound_socket


class Stream:
    """One open event stream."""

    def __init__(self, site):
        self.sock = socket.create_connection(("127.0.0.1", site.port), 10)
        self.sock.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.got = b""

    def until(self, word):
        while word not in self.got:
            chunk = self.sock.recv(65536)
            if not chunk:
                break
            self.got += chunk
        return self.got

    def versions(self):
        return [
            json.loads(line)["version"] for line in re.findall(rb"^data: (.*)$", self.got, re.M)
        ]

    def close(self):
        self.sock.close()


# --- streams -----------------------------------------------------------------------------


def test_a_stream_is_told_of_a_new_state(small, tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(squeue((1, "nid00001", "a", "u")))
    with running(small, (str(path),), every=1.0) as site:
        until(lambda: site.served.live.snapshot.jobs)
        stream = Stream(site)
        try:
            head = stream.until(b"}\n\n")
            assert b"200 OK" in head
            assert b"text/event-stream" in head
            assert b"content-security-policy" in head
            path.write_text(squeue((1, "nid00001", "a", "u"), (2, "nid00002", "b", "u")))
            before = site.served.live.snapshot.version
            until(lambda: site.served.live.snapshot.version > before)
            word = f'"version":{site.served.live.snapshot.version},'.encode()
            stream.until(word)
            stream.until(b"}\n\n")
            assert stream.versions() == sorted(stream.versions())
            assert stream.versions()[-1] == before + 1
        finally:
            stream.close()
        until(lambda: site.ask("/api/v1/status").json["streams"] == 0)


def test_many_streams_do_not_keep_readers_waiting(small, tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(squeue((1, "nid00001", "a", "u")))
    with running(small, (str(path),), every=1.0, streams=250) as site:
        until(lambda: site.served.live.snapshot.jobs)
        threads = threading.active_count()
        streams = [Stream(site) for _ in range(250)]
        try:
            for stream in streams:
                stream.until(b"\ndata: ")
            assert site.ask("/api/v1/status").json["streams"] == 250
            assert threading.active_count() <= threads + 32, "a stream takes no thread"
            one_more = site.ask("/api/v1/events")
            assert one_more.status == 503
            assert int(one_more.headers["retry-after"]) > 0
            for path_ in ("state", "machine", "layout", "jobs") * 10:
                assert site.ask(f"/api/v1/{path_}").status == 200
            before = site.served.live.snapshot.version
            path.write_text(squeue((2, "nid00002", "b", "u")))
            until(lambda: site.served.live.snapshot.version > before)
            word = f'"version":{site.served.live.snapshot.version},'.encode()
            assert all(word in stream.until(word) for stream in streams)
        finally:
            for stream in streams:
                stream.close()
        until(lambda: site.ask("/api/v1/status").json["streams"] == 0)
        assert site.application.streams._open == set()


def test_descriptors_come_back(small):
    with running(small) as site:
        site.ask("/api/v1/status")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            streams = [Stream(site) for _ in range(30)]
            for stream in streams:
                stream.until(b"\ndata: ")
                stream.close()
            for _ in range(20):
                site.ask("/api/v1/status")
        until(lambda: len(site.application.streams) == 0)
        until(lambda: len(os.listdir("/proc/self/fd")) <= before + 1)


# --- calculations ------------------------------------------------------------------------


def test_two_hundred_plans_at_once_are_bounded(small):
    with running(small, plans=2, waiting=4) as site:
        replies = []

        def ask():
            replies.append(site.post("compare", count=32, pattern="sort"))

        threads = [threading.Thread(target=ask) for _ in range(200)]
        for thread in threads:
            thread.start()
        seen = [site.ask("/api/v1/state").status for _ in range(5)]
        for thread in threads:
            thread.join(60)
        statuses = [reply.status for reply in replies]
        assert len(statuses) == 200
        assert set(statuses) == {200, 429}
        assert statuses.count(200) >= 6
        assert seen == [200] * 5
        refused = next(reply for reply in replies if reply.status == 429)
        assert int(refused.headers["retry-after"]) > 0
        assert "under way" in refused.json["detail"]
        assert site.post("plan", count=4).status == 200


def test_what_takes_too_long_is_ended(small):
    pool = Pool(small, 1, 0, 0.3)
    try:
        with pytest.raises(TooSlowError, match="took longer than"):
            pool.call("resolve", text=SLOW)
        pool._seconds = 30
        assert json.loads(pool.call("resolve", text="5"))["rows"] == [5]
        assert len(pool._all) == 1
    finally:
        pool.close()


SLOW = "\n".join(f"nid{k:05d}" for k in range(400_000))


def test_a_calculation_that_dies_is_one_error(small):
    with running(small, plans=1) as site:
        assert site.post("plan", count=4).status == 200
        (process,) = site.served.pool._all
        os.kill(process._process.pid, signal.SIGKILL)
        process._process.wait()
        assert site.post("plan", count=4).status == 200, "a dead one is replaced"


def test_a_calculation_that_dies_half_way_is_a_500(small):
    pool = Pool(small, 1, 1, 30)
    try:
        pool.call("resolve", text="1")
        (process,) = pool._all
        timer = threading.Timer(0.3, os.kill, (process._process.pid, signal.SIGKILL))
        timer.start()
        with pytest.raises(DefectError, match="process ended"):
            pool.call("resolve", text=SLOW)
        timer.join()
        assert json.loads(pool.call("resolve", text="1"))["count"] == 1
    finally:
        pool.close()
    with pytest.raises(BusyError, match="stopped"):
        pool.call("resolve", text="1")


def test_a_defect_of_ours_is_a_500_without_a_traceback(small, capsys):
    with running(small) as site:
        site.served.figure = lambda name, asked: 1 / 0
        found = site.post("plan", count=4)
        assert found.status == 500
        assert found.json["detail"].startswith("a defect of nidmap")
        assert "division" not in found.body.decode()
        assert site.ask("/api/v1/state").status == 200
    assert "division by zero" in capsys.readouterr().err


# --- sockets -----------------------------------------------------------------------------


def test_a_port_that_is_taken_is_said():
    first = bound("127.0.0.1", 0)
    try:
        with pytest.raises(UsageError, match="cannot listen"):
            bound("127.0.0.1", first.getsockname()[1])
        with pytest.raises(UsageError, match=r"no\.such\.host\.invalid"):
            bound("no.such.host.invalid", 0)
    finally:
        first.close()


def test_a_unix_socket_is_its_owners(tmp_path):
    path = tmp_path / "s"
    with bound_socket(str(path)):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with pytest.raises(UsageError, match="is using"), bound_socket(str(path)):
            pass
    assert not path.exists()


def test_a_socket_left_behind_is_replaced(tmp_path):
    path = tmp_path / "s"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    with bound_socket(str(path)):
        pass
    assert not path.exists()


def test_something_else_is_not_removed(tmp_path):
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(UsageError, match="no socket"), bound_socket(str(path)):
        pass
    assert path.read_text() == "mine"


# --- the command -------------------------------------------------------------------------


@pytest.fixture
def serve(tmp_path):
    """Start ``nidmap web serve`` and end it, and whatever it started."""
    started = []

    def start(*argv):
        process = subprocess.Popen(
            [sys.executable, "-m", "nidmap", "web", "serve", "-m", "torus:4x4", *argv],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process, process.stdout.readline().strip()

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def get(url, token=None):
    import urllib.request

    request = urllib.request.Request(url)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=10) as reply:
        return reply.status, reply.read()


def test_serve_prints_a_url_that_works_and_ends_on_ctrl_c(serve):
    process, url = serve("--port", "0", "--from", "dump")
    base, token = url.split("/?token=")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", base)
    assert len(token) >= 32
    until(lambda: _answers(base))
    assert get(f"{base}/api/v1/status", token)[0] == 200
    assert json.loads(get(f"{base}/api/v1/nodes?nodes=3", token)[1])["nodes"][0]["nid"] == 3
    begun = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - begun < 60
    assert "Traceback" not in said


def _answers(base):
    try:
        get(f"{base}/api/v1/status")
    except Exception as error:
        return "401" in str(error)
    return True


def test_serve_on_a_socket(serve, tmp_path):
    path = tmp_path / "nidmap.sock"
    process, url = serve("--socket", str(path), "--from", "dump")
    token = url.split("token=")[1]
    until(path.exists)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        head = f"Host: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close"
        sock.sendall(f"GET /api/v1/status HTTP/1.1\r\n{head}\r\n\r\n".encode())
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 200")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert not path.exists()


def test_serve_says_what_becomes_visible(serve):
    process, url = serve("--port", "0", "--from", "dump", "--no-token", "--host", "0.0.0.0",
                         "--show-users")  # fmt: skip
    assert "token" not in url
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert "visible on the network to EVERYONE" in said
    assert "their users" in said


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (["--from", "/no/such/file"], 3, "/no/such/file"),
        (["--from", "dump", "--from", "slurm"], 2, "goes alone"),
        (["--host", "no.such.host.invalid", "--from", "dump"], 2, "no.such.host.invalid"),
    ],
)
def test_serve_refuses(serve, argv, code, word):
    process, url = serve("--port", "0", *argv)
    _, said = process.communicate(timeout=20)
    assert (process.returncode, url) == (code, "")
    assert word in said
    assert said.count("\n") == 1


def test_processes_end_with_a_killed_server(serve):
    process, url = serve("--port", "0", "--from", "dump", "--no-token")
    until(lambda: _answers(url))
    import urllib.request

    request = urllib.request.Request(
        f"{url}api/v1/plan", b'{"count": 4}', {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=20).close()
    children = _children(process.pid)
    assert children
    process.kill()
    process.wait()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") and _alive(pid) for pid in children))


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as stream:
        found = stream.read().split()
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as stream:
            found += stream.read().split()
    return set(found)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

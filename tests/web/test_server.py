# SPDX-License-Identifier: Apache-2.0
"""The server under load and misuse: queues, slow calculations, sockets, the command."""

import asyncio
import itertools
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

import numpy as np
import pytest

from nidmap.placement.errors import ParseError, PlanError, UsageError
from nidmap.web.server import bind_socket, bound_socket
from nidmap.web.workers import MEMORY, BusyError, DefectError, Lane, TooSlowError, report_progress
from tests.waiting import HANGS
from tests.web.serving import run_async, running, until


def test_descriptors_come_back(small):
    with running(small) as site:
        site.ask("/api/v1/status")
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            socks = [socket.create_connection(("127.0.0.1", site.port), HANGS) for _ in range(30)]
            for sock in socks:
                sock.sendall(b"GET /api/v1/state HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert b"200 OK" in sock.recv(65536)
                sock.close()
            for _ in range(20):
                site.ask("/api/v1/status")
        until(lambda: len(os.listdir("/proc/self/fd")) <= before + 1)


# --- calculations ------------------------------------------------------------------------


def test_two_hundred_plans_at_once_are_bounded(small):
    with running(small, plans=2, waiting=4, seconds=HANGS) as site:
        replies, all_here = [], threading.Barrier(200)

        def ask():
            all_here.wait(HANGS)
            replies.append(site.post("compare", count=8, pattern="sort"))

        threads = [threading.Thread(target=ask) for _ in range(200)]
        for thread in threads:
            thread.start()
        seen = [site.ask("/api/v1/state").status for _ in range(5)]
        for thread in threads:
            thread.join(HANGS)
        statuses = [reply.status for reply in replies]
        assert len(statuses) == 200
        assert set(statuses) == {200, 429}
        assert statuses.count(200) >= 6
        assert seen == [200] * 5
        refused = next(reply for reply in replies if reply.status == 429)
        assert int(refused.headers["retry-after"]) > 0
        assert "already running" in refused.json["detail"]
        assert site.post("plan", count=4).status == 200


def rest(machine, seconds):
    """Calculate for ever, as far as anyone can tell."""
    time.sleep(seconds)
    return len(machine)


def swallow(machine):
    return len(np.ones(MEMORY // 4))


def die(machine):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(machine, error):
    raise error


def processes_of(lane):
    """Return the ids of a lane's processes."""
    return [worker.process for worker in lane._all]


def in_lane(machine, scenario, **options):
    """Run a scenario with a lane of its own."""

    async def run():
        lane = Lane(machine, **{"processes": 1, "waiting": 1, "seconds": 60.0, **options})
        try:
            return await scenario(lane)
        finally:
            lane.close()

    return run_async(run())


def test_what_takes_too_long_is_ended(small):
    async def scenario(lane):
        assert await lane.call(rest, 0) == 128
        (first,) = processes_of(lane)
        lane.seconds = 0.3
        with pytest.raises(TooSlowError, match="took longer than"):
            await lane.call(rest, 600)
        lane.seconds = 60
        assert await lane.call(rest, 0) == 128
        assert len(processes_of(lane)) == 1
        assert first not in processes_of(lane)
        return first

    gone = in_lane(small, scenario)
    until(lambda: not _alive(gone))


def test_what_takes_too_much_memory_is_refused(small):
    async def scenario(lane):
        with pytest.raises(UsageError, match="more memory than"):
            await lane.call(swallow)
        assert await lane.call(rest, 0) == 128

    in_lane(small, scenario)


def test_a_calculation_whose_client_has_gone_is_ended(small, monkeypatch):
    monkeypatch.setattr("nidmap.web.workers.GRACE", 0.0)

    async def scenario(lane):
        await lane.call(rest, 0)
        (first,) = processes_of(lane)
        jobs = [asyncio.ensure_future(lane.call(rest, 600)) for _ in range(2)]
        await asyncio.sleep(0)
        assert lane.inside == 2
        with pytest.raises(BusyError, match="2 calculations are already running"):
            await lane.call(rest, 0)
        for job in jobs:
            job.cancel()
        while lane.inside:
            await asyncio.sleep(0.01)
        assert await lane.call(rest, 0) == 128
        assert first not in processes_of(lane)

    in_lane(small, scenario)


def test_a_short_one_whose_client_has_gone_keeps_its_process(small, monkeypatch):
    monkeypatch.setattr("nidmap.web.workers.GRACE", float(HANGS))

    async def scenario(lane):
        await lane.call(rest, 0)
        before = processes_of(lane)
        job = asyncio.ensure_future(lane.call(rest, 0.05))
        await asyncio.sleep(0)
        job.cancel()
        while lane.inside:
            await asyncio.sleep(0.01)
        assert processes_of(lane) == before

    in_lane(small, scenario)


def test_a_calculation_that_dies_is_one_error(small):
    async def scenario(lane):
        with pytest.raises(DefectError, match="process died"):
            await lane.call(die)
        assert await lane.call(rest, 0) == 128

    in_lane(small, scenario)


def test_errors_come_back_as_they_were(small):
    async def scenario(lane):
        for error in (
            ParseError("hosts", 3, "'x' is not a node", "hint"), PlanError("no"), KeyError("k"),
        ):  # fmt: skip
            with pytest.raises(type(error)) as caught:
                await lane.call(fail, error)
            assert str(caught.value) == str(error)
        assert len(processes_of(lane)) == 1

    in_lane(small, scenario)


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("turns", range(5))
def test_a_closed_lane_refuses(small, begun, turns):
    """Whatever the calculation has come to when the lane is closed: each turn is a step of it."""

    async def scenario(lane):
        if begun:
            await lane.call(rest, 0)
        job = asyncio.ensure_future(lane.call(rest, 600))
        for _ in range(turns):
            await asyncio.sleep(0)
        lane.close()
        with pytest.raises((BusyError, DefectError)):
            await job
        with pytest.raises(BusyError, match="shutting down"):
            await lane.call(rest, 0)
        return processes_of(lane)

    assert in_lane(small, scenario) == []


def test_a_process_that_was_killed_meanwhile_is_replaced(small):
    with running(small, plans=1) as site:
        assert site.post("plan", count=4).status == 200
        for process in processes_of(site.service.short):
            os.kill(process, signal.SIGKILL)
            until(lambda process=process: not _alive(process))
        until(lambda: site.post("plan", count=4).status == 200)


def test_bodies_do_not_wait_for_the_acknowledgement_of_their_heads():
    """What is accepted has what the listening socket has been set to."""
    with bind_socket("127.0.0.1", 0) as listening:
        listening.setblocking(True)
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_short_questions_do_not_wait_for_long_ones(small, monkeypatch):
    """Both long processes are busy for good, and everything else goes on; hanging up ends them."""
    monkeypatch.setattr("nidmap.web.figures.compare", long_compare)
    with running(small, plans=2) as site:
        long = [socket.create_connection(("127.0.0.1", site.port), HANGS) for _ in range(2)]
        body = b'{"count": 4}'
        for sock in long:
            sock.sendall(
                b"POST /api/v1/compare HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                b"application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
            )
        until(lambda: site.service.long.inside == 2)
        for _ in range(3):
            assert site.post("describe", nodes="0-7").status == 200
            assert site.post("resolve", text="0-7").status == 200
            assert site.post("plan", count=4).status == 200
            assert site.ask("/api/v1/nodes?nodes=3").status == 200
        assert site.service.long.inside == 2
        for sock in long:
            sock.close()
        until(lambda: site.service.long.inside == 0)


def long_compare(machine, free, wanted):
    time.sleep(600)


def search(machine):
    """Report until told to end, as a search does."""
    said = itertools.count(1)
    while not report_progress(lambda: {"steps": next(said)}):
        time.sleep(0.01)
    return next(said)


def test_a_search_is_heard_and_told_to_end(small):
    async def scenario(lane):
        heard = []
        job = asyncio.ensure_future(lane.call(search, question="mine", told=heard.append))
        while len(heard) < 2:
            await asyncio.sleep(0.01)
        assert not lane.finish("another's")
        assert lane.finish("mine")
        assert await job >= heard[-1]["steps"] > 0
        assert not lane.finish("mine")
        assert await lane.call(rest, 0) == 128
        lane.seconds = 1.0
        await lane.call(search)  # ends by itself, before it takes too long
        assert len(processes_of(lane)) == 1

    in_lane(small, scenario)


def test_a_new_question_takes_the_place_of_an_old_one(small):
    async def scenario(lane):
        for _ in range(3):
            old = asyncio.ensure_future(lane.call(rest, 600, question="mine"))
            other = asyncio.ensure_future(lane.call(rest, 0, question="another's"))
            await asyncio.sleep(0.05)
            assert await lane.call(rest, 0, question="mine") == 128
            with pytest.raises(UsageError, match="newer request"):
                await old
            assert await other == 128
        assert (lane.inside, lane._asked) == (0, {})

    in_lane(small, scenario)


def test_a_long_answer_comes_in_lines(small):
    with running(small) as site:
        body = {"count": 8, "strategies": ["auto"], "pattern": "ring"}
        reply = site.ask("/api/v1/compare", body=body, headers={"Accept": "application/x-ndjson"})
        *progress, last = (json.loads(line) for line in reply.body.splitlines())
        assert progress
        assert all(one["progress"]["text"] for one in progress)
        assert last["answer"] == site.post("compare", **body).json
        body["pattern"] = "nope"
        reply = site.ask("/api/v1/compare", body=body, headers={"Accept": "application/x-ndjson"})
        problem = json.loads(reply.body.splitlines()[-1])["problem"]
        assert (problem["status"], "nope" in problem["detail"]) == (409, True)
        assert site.post("finish", question="none").json == {"told": False}


def test_a_list_of_millions_is_refused_at_once(small):
    with running(small) as site:
        assert site.ask("/api/v1/nodes?nodes=0").status == 200
        (process,) = processes_of(site.service.short)
        before = _resident(process)
        for text in ("n[0-3999999]", "nid[00000-00127]*30000", "0-127," * 300 + "1"):
            found = site.ask(f"/api/v1/nodes?nodes={text}")
            assert found.status == 409, text
            assert re.search(r"makes 4000000 names|at most 1000 are", found.json["detail"])
        assert site.post("describe", nodes="n[0-3999999]").status == 409
        found = site.post("resolve", text="n[0-3999999] nid00003").json
        assert (found["ok"], found["rows"]) == (False, [3])
        assert "makes 4000000 names" in found["errors"][0]["message"]
        assert [process] == processes_of(site.service.short)
        assert _resident(process) < before + 100_000


def _resident(pid):
    with open(f"/proc/{pid}/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmRSS"))


def test_a_defect_of_ours_is_a_500_without_a_traceback(small, capsys):
    async def figure(name, wanted):
        return 1 / 0

    with running(small) as site:
        site.service.figure = figure
        found = site.post("plan", count=4)
        assert found.status == 500
        assert found.json["detail"].startswith("a bug in nidmap")
        assert "division" not in found.body.decode()
        assert site.ask("/api/v1/state").status == 200
    assert "division by zero" in capsys.readouterr().err


# --- sockets -----------------------------------------------------------------------------


def test_a_port_that_is_taken_is_said():
    first = bind_socket("127.0.0.1", 0)
    try:
        with pytest.raises(UsageError, match="cannot listen"):
            bind_socket("127.0.0.1", first.getsockname()[1])
        with pytest.raises(UsageError, match=r"no\.such\.host\.invalid"):
            bind_socket("no.such.host.invalid", 0)
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
    with pytest.raises(UsageError, match="not a socket"), bound_socket(str(path)):
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
    with urllib.request.urlopen(request, timeout=600) as reply:
        return reply.status, reply.read()


def test_serve_prints_a_url_that_works_and_ends_on_ctrl_c(serve):
    process, url = serve("--port", "0", "--from", "dump")
    base, token = url.split("/?token=")
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", base)
    assert len(token) >= 32
    until(lambda: _answers(base))
    assert get(f"{base}/api/v1/status", token)[0] == 200
    assert json.loads(get(f"{base}/api/v1/nodes?nodes=3", token)[1])["nodes"][0]["nid"] == 3
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert process.returncode == 130
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
    process.communicate(timeout=600)
    assert not path.exists()


def test_serve_says_what_becomes_visible(serve):
    process, url = serve("--port", "0", "--from", "dump", "--token", "none", "--host", "0.0.0.0",
                         "--show-users")  # fmt: skip
    assert "token" not in url
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=600)
    assert "visible on the network to EVERYONE" in said
    assert "their users" in said


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (["--from", "/no/such/file"], 3, "/no/such/file"),
        (["--from", "dump", "--from", "slurm"], 2, "cannot be combined with another --from"),
        (["--host", "no.such.host.invalid", "--from", "dump"], 2, "no.such.host.invalid"),
    ],
)
def test_serve_refuses(serve, argv, code, word):
    process, url = serve("--port", "0", *argv)
    _, said = process.communicate(timeout=600)
    assert (process.returncode, url) == (code, "")
    assert word in said
    assert said.count("\n") == 1


def test_processes_end_with_a_killed_server(serve):
    process, url = serve("--port", "0", "--from", "dump", "--token", "none")
    until(lambda: _answers(url))
    import urllib.request

    request = urllib.request.Request(
        f"{url}api/v1/plan", b'{"count": 4}', {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=600).close()
    children = _children(process.pid)
    assert children
    children |= {grandchild for child in children for grandchild in _children(child)}
    process.kill()
    process.wait()
    until(lambda: not any(os.path.exists(f"/proc/{pid}") and _alive(pid) for pid in children))


def test_a_signal_ends_it_whatever_goes_on(serve, tmp_path):
    """An open connection, a long plan and a slow client are no reason to stay."""
    process, url = serve("--port", "0", "--from", "dump", "--token", "none")
    until(lambda: _answers(url))
    port = int(url.rstrip("/").rpartition(":")[2])
    hello = b"HTTP/1.1\r\nHost: localhost\r\n"
    body = b'{"count": 9, "pattern": "stencil:3x3", "strategy": "auto"}'
    plan = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    opened = []
    for raw in (
        b"GET /api/v1/state " + hello + b"\r\n", b"POST /api/v1/plan " + hello + plan,
        b"GET /", b"POST /api/v1/plan " + hello + plan[:-5],
    ):  # fmt: skip
        opened.append(socket.create_connection(("127.0.0.1", port), HANGS))
        opened[-1].sendall(raw)
    opened[0].recv(1000)
    children = _children(process.pid)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=HANGS)
    assert process.returncode == 143
    assert "Traceback" not in said
    until(lambda: not any(_alive(pid) for pid in children))
    for sock in opened:
        sock.close()


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


def test_a_worker_that_was_killed_is_replaced_before_anyone_asks(small, monkeypatch):
    with running(small, seconds=600.0) as site:
        asked = {"nodes": "0-7"}, {"nodes": "0-7", "order": "morton"}  # a lane each
        for body in asked:
            assert site.post("describe", **body).status == 200
        killed = [
            worker for lane in (site.service.short, site.service.long) for worker in lane._all
        ]
        assert len(killed) >= 2
        for worker in killed:
            os.kill(worker.process, signal.SIGKILL)
        until(lambda: not any(worker.lives() for worker in killed))
        gone, kill, again = [worker.process for worker in killed], os.kill, []
        with monkeypatch.context() as patch:
            patch.setattr(os, "kill", lambda *sent: again.append(sent) or kill(*sent))
            for body in asked:
                assert site.post("describe", **body).status == 200
        # It may be another's by now. An executor that finds its process gone sends SIGTERM itself.
        assert not [sent for sent in again if sent[0] in gone and sent[1] == signal.SIGKILL]


def test_a_pipe_whose_writer_is_gone_is_stale_at_once(small, tmp_path):
    path = tmp_path / "states"
    os.mkfifo(path)
    states = "NODELIST STATE\n" + "".join(f"{name} idle\n" for name in small.names)
    writer = threading.Thread(target=path.write_text, args=(f"NODELIST STATE\n{states}\n",))
    writer.start()
    with running(small, (str(path),), every=1.0) as site:
        until(lambda: site.ask("/api/v1/state").json["stale"])
        assert "nobody writes" in site.ask("/api/v1/state").json["error"]
    writer.join()

# SPDX-License-Identifier: Apache-2.0
"""The page's server under load: readers, memory, and bytes on the wire.

The server runs in a process of its own, the readers here in one event loop.
``closed`` readers ask again as soon as they have an answer; ``paced`` ones
five times a second, as a page would at most.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.timing import table

READERS = 50
REQUESTS = 10_000

#: Who ask for ``auto`` at the same time.
PLANNERS = 10

#: What readers ask for, in turn: mostly whether the state is new.
PATHS = (
    "state",
    "state",
    "state",
    "state",
    "state",
    "jobs",
    "machine",
    "layout",
    "status",
    "state",
)

#: The least that any server of this Python does: what it takes is the machine's own doing.
BARE = """
import asyncio, sys
async def serve(source, sink):
    try:
        while await source.readuntil(b"\\r\\n\\r\\n"):
            sink.write(b"HTTP/1.1 304 Not Modified\\r\\n\\r\\n")
    except asyncio.IncompleteReadError:
        sink.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[2]))
    await server.serve_forever()
asyncio.run(main())
"""


def main() -> None:
    """Print sizes, latencies, memory."""
    sizes()
    rows = []
    for pace in (0.0, 0.2):
        with other("", BARE) as (port, pid):
            rows.append(measure_server("(a bare loop)", port, pid, False, pace))
    for machine in ("shaheen2", "bluewaters"):
        for busy, pace in ((False, 0.0), (False, 0.2), (True, 0.2)):
            with server(machine) as (port, pid):
                rows.append(measure_server(machine, port, pid, busy, pace))
    header = ["machine", "plans", "readers", "requests/s", "p50", "p99", "longest",
              "memory", "files"]  # fmt: skip
    table(f"{READERS} readers, {REQUESTS} requests each row", header, rows)


def sizes() -> None:
    """Print the sizes of the documents."""
    import nidmap
    from nidmap.web.service import Service

    rows = []
    for name in ("shaheen2", "bluewaters"):
        begun = time.perf_counter()
        service = Service(nidmap.load_machine(name))
        bodies = {what: asyncio.run(service.document(f"/api/v1/{what}"))
                  for what in ("machine", "layout", "state")}  # fmt: skip
        spent = time.perf_counter() - begun
        for what, body in bodies.items():
            rows.append([name, what, f"{len(body.raw):,}", f"{len(body.packed):,}"])
        rows.append([name, "all made in", f"{1e3 * spent:.0f} ms", ""])
    table("Documents", ["machine", "document", "bytes", "compressed"], rows)


@contextmanager
def server(machine: str) -> Iterator[tuple[int, int]]:
    """Run ``nidmap web serve`` with jobs from a file that changes."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as jobs:
        jobs.write('{"jobs": []}')
        jobs.flush()
        argv = [sys.executable, "-m", "nidmap", "web", "serve", "-m", machine, "--port", "0",
                "--token", "none", "--from", jobs.name, "--refresh", "1"]  # fmt: skip
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdout is not None
        port = int(process.stdout.readline().rstrip().rstrip("/").rpartition(":")[2])
        try:
            yield listening(port), process.pid
        finally:
            process.terminate()
            process.wait()


@contextmanager
def other(machine: str, program: str) -> Iterator[tuple[int, int]]:
    """Run another server: a program that gets the machine and its port as arguments."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", program, machine, str(port)])
    try:
        yield listening(port), process.pid
    finally:
        process.terminate()
        process.wait()


def listening(port: int) -> int:
    """Wait until a server answers."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return port
    raise RuntimeError("the server does not answer")


def measure_server(name: str, port: int, pid: int, busy: bool, pace: float) -> list[str]:
    """Return a row of the table."""
    seconds, spent, memory, files = asyncio.run(load_server(port, pid, busy, pace))
    p50, p99, longest = 1e3 * np.quantile(seconds, [0.5, 0.99, 1.0])
    return [
        name, f"{PLANNERS} autos" if busy else "none", "paced" if pace else "closed",
        f"{len(seconds) / spent:.0f}", f"{p50:.1f} ms", f"{p99:.1f} ms", f"{longest:.0f} ms",
        f"{memory[0] / 1024:.0f} -> {memory[1] / 1024:.0f} MB", f"{files[0]} -> {files[1]}",
    ]  # fmt: skip


async def load_server(
    port: int, pid: int, busy: bool, pace: float
) -> tuple[list[float], float, tuple[int, int], tuple[int, int]]:
    """Load a server; return seconds per request and in total, memory, and open files."""
    await readers(port, 0.0, REQUESTS // 10)  # warm
    files = descriptors(pid)
    planners = [asyncio.create_task(planner(port, k)) for k in range(PLANNERS if busy else 0)]
    await asyncio.sleep(3.0 if busy else 1.0)
    memory = resident(pid)
    begun = time.perf_counter()
    seconds = await readers(port, pace, REQUESTS)
    spent = time.perf_counter() - begun
    after = resident(pid)
    for task in planners:
        task.cancel()
    await asyncio.gather(*planners, return_exceptions=True)
    await asyncio.sleep(0.5)
    return seconds, spent, (memory, after), (files, descriptors(pid))


async def readers(port: int, pace: float, requests: int) -> list[float]:
    """Let all readers request; return the seconds of each request."""
    found = await asyncio.gather(
        *(reader(port, k, pace, requests // READERS) for k in range(READERS))
    )
    return [second for some in found for second in some]


async def reader(port: int, number: int, pace: float, requests: int) -> list[float]:
    """Request repeatedly over one connection, with the tags of known documents."""
    source, sink = await asyncio.open_connection("127.0.0.1", port)
    tags: dict[str, str] = {}
    seconds = []
    if pace:
        await asyncio.sleep(pace * number / READERS)
    for turn in range(requests):
        path = PATHS[(turn + number) % len(PATHS)]
        known = f"If-None-Match: {tags[path]}\r\n" if path in tags and path != "jobs" else ""
        begun = time.perf_counter()
        sink.write(
            f"GET /api/v1/{path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n"
            f"{known}\r\n".encode()
        )
        head = (await source.readuntil(b"\r\n\r\n")).decode().lower()
        length = head.partition("content-length: ")[2].partition("\r\n")[0]
        if length:
            await source.readexactly(int(length))
        seconds.append(time.perf_counter() - begun)
        tag = head.partition("etag: ")[2].partition("\r\n")[0]
        if tag:
            tags[path] = tag.replace("w/", "W/")
        if pace:
            await asyncio.sleep(max(0.0, pace - seconds[-1]))
    sink.close()
    return seconds


async def planner(port: int, seed: int) -> None:
    """Request ``auto`` repeatedly, coming back later when there are too many requests."""
    body = b'{"count": 216, "pattern": "fft:12x18", "strategies": ["auto"], "seed": %d}' % seed
    while True:
        source, sink = await asyncio.open_connection("127.0.0.1", port)
        try:
            sink.write(
                b"POST /api/v1/compare HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                b"Content-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            if b" 429 " in (await source.read())[:20]:
                await asyncio.sleep(2.0)
        finally:
            sink.close()


def resident(pid: int) -> int:
    """Return the kB of memory that a process holds."""
    with open(f"/proc/{pid}/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith("VmRSS"))


def descriptors(pid: int) -> int:
    """Return how many files a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))

# SPDX-License-Identifier: Apache-2.0
"""A server of its own for a test, in a thread, and the requests to it."""

import asyncio
import contextlib
import http.client
import json
import threading
from concurrent.futures import ThreadPoolExecutor

from nidmap.web.guard import Guard, own_names
from nidmap.web.server import bind_socket, make_server, serve
from nidmap.web.service import Service, Settings
from tests.waiting import HANGS
from tests.waiting import wait_until as until

#: Five jobs as ``squeue --json`` prints them; a hostile name, users and a job that waits.
HOSTILE = "=cmd|' /C calc'!A0<script>alert(1)</script>\x1b[31m\n\u202e\"'&"


def run_async(coroutine):
    """Return what a coroutine returns, on a thread: a browser's test has a loop on this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


class Reply:
    """What a request brought."""

    def __init__(self, response, body):
        self.status = response.status
        self.headers = {k.lower(): v for k, v in response.getheaders()}
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Site:
    """A running server."""

    def __init__(self, port, service, token):
        self.port = port
        self.service = service
        self.token = token

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def connection(self, timeout=600):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, path, method="GET", body=None, headers=None, timeout=600):
        head = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            method = "POST"
        if body is not None:
            head["Content-Type"] = "application/json"
        head |= headers or {}
        connection = self.connection(timeout)
        try:
            connection.request(method, path, body, {k: v for k, v in head.items() if v is not None})
            response = connection.getresponse()
            return Reply(response, response.read())
        finally:
            connection.close()

    def post(self, name, **body):
        return self.ask(f"/api/v1/{name}", body=body)


@contextlib.contextmanager
def running(machine, sources=(), token="", **options):
    """Serve a machine in this process until the block ends."""
    sock = bind_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]
    guard = Guard(token=token, names=own_names("127.0.0.1"), cookie=f"nidmap-{port}")
    service = Service(machine, sources, guard, Settings(**options))
    server = make_server(service)
    thread = threading.Thread(target=lambda: asyncio.run(serve(service, server, sock)))
    thread.start()
    try:
        until(lambda: server.started)
        yield Site(port, service, token)
    finally:
        server.should_exit = True
        thread.join(HANGS)
        sock.close()
        assert not thread.is_alive()


def squeue(*jobs, ppn=0):
    """Return what ``squeue --json`` prints for (id, nodes, name, user), all of so many ranks."""
    return json.dumps(
        {
            "jobs": [
                {
                    "job_id": number,
                    "job_state": ["RUNNING"],
                    "nodes": nodes,
                    "name": name,
                    "user_name": user,
                    "partition": "workq",
                    "tasks_per_node": {"set": ppn > 0, "infinite": False, "number": ppn},
                }
                for number, nodes, name, user in jobs
            ]
        }
    )

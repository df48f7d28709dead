# SPDX-License-Identifier: Apache-2.0
"""Starting a mini-Cray and talking to it: a socket in the abstract namespace.

An abstract socket is not a file: it is gone when the daemon is. Both ends look at
who the other is, so another user of the same machine neither answers nor asks.
Commands that run inside find the daemon by a socket in its own /run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nidmap.placement.errors import LaunchError, UsageError, printable
from nidmap.placement.support.child import start_child
from nidmap.rankmap.launch.process import job_environment
from nidmap.workloads.launched import handle_signals
from nidmap.workloads.minicray.daemon import CONTROL, Daemon
from nidmap.workloads.minicray.kernel import receive, same_user, send

DEFAULT_NAME = "minicray"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)

#: Commands that create namespaces.
_UNSHARE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            "--uts", "--ipc"]  # fmt: skip

#: The daemon, from wherever this package is: no site-packages, no user's modules.
_DAEMON = "import sys; sys.path.insert(0, sys.argv.pop(1)); from {module} import main; main()"

#: Number of the capability that makes namespaces.
_CAP_SYS_ADMIN = 21

#: Signals that reach the program that is run inside.
_PASSED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)

#: Seconds that a failing mini-Cray has to report why.
_LAST_WORDS = 60.0

#: Seconds that a mini-Cray has to end after it was asked to.
_GONE = 120.0


class Standing:
    """A mini-Cray that this process has started.

    `lifeline`: descriptor whose end takes the mini-Cray down, until `let_go`.
    """

    def __init__(self, process: subprocess.Popen[bytes], lifeline: int) -> None:
        self.process = process
        self.lifeline = lifeline

    def let_go(self) -> None:
        """Let it outlive this process."""
        os.write(self.lifeline, b"k")
        os.close(self.lifeline)

    def down(self) -> None:
        """Take it down and wait until all of it is gone."""
        with contextlib.suppress(OSError):
            os.close(self.lifeline)
        with handle_signals([signal.SIGINT], signal.SIG_IGN):  # must complete once it has begun
            self.process.wait()


def socket_address(name: str) -> str:
    """Return the abstract socket address of the mini-Cray of that name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{printable(repr(name))} is not a name for a mini-Cray", "use letters, digits, . _ -"
        )
    return f"\0nidmap-minicray-{os.getuid()}-{name}"


def start_minicray(plan: dict[str, Any], map_all: bool = False) -> Standing:
    """Build a mini-Cray; it is taken down when this process ends, unless let go.

    `plan`: of `nidmap.workloads.minicray.blueprint`. `map_all`: without root: map the user's
    subordinate ids as well, as slurmd needs it.
    """
    listener = _make_listener(plan["about"]["name"])
    blueprint, lifeline, ready = os.pipe(), os.pipe(), os.pipe()
    passed = (blueprint[0], lifeline[0], listener.fileno(), ready[1])
    as_user = [] if may_administer() else ["--map-root-user", *(["--map-auto"] if map_all else [])]
    module = Daemon.__module__
    root = Path(str(sys.modules[module].__file__)).parents[module.count(".")]
    daemon = [sys.executable, "-I", "-S", "-c", _DAEMON.format(module=module), str(root)]
    command = [*_UNSHARE, *as_user, *daemon, *map(str, passed)]
    process = start_child(
        command, hint="install util-linux", pass_fds=passed, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, cwd="/",
    )  # fmt: skip
    for fd in passed[:2] + passed[3:]:
        os.close(fd)
    listener.close()
    threading.Thread(target=_feed_plan, args=(blueprint[1], plan), daemon=True).start()
    return _await_ready(process, lifeline[1], ready[0])


def _make_listener(name: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(socket_address(name))
    except OSError:
        listener.close()
        raise UsageError(
            f"a mini-Cray called {name} is already running",
            "take it down first (nidmap minicray down) or give another --name",
        ) from None
    return listener


def _feed_plan(fd: int, plan: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(fd, "wb") as pipe:
        pipe.write(json.dumps(plan).encode() + b"\n")  # else the daemon reports its failure


def _await_ready(process: subprocess.Popen[bytes], lifeline: int, ready: int) -> Standing:
    """Wait until it is up; take it down again if interrupted."""
    standing, answer = Standing(process, lifeline), dict[str, Any]()
    try:
        with os.fdopen(ready) as pipe, contextlib.suppress(ValueError):  # it ended while sending
            answer = json.loads(pipe.readline())
    except BaseException:
        standing.down()
        raise
    if answer.get("ready"):
        return standing
    # Its end is near: what it still has to say would be lost with its lifeline.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_LAST_WORDS)
    standing.down()
    why = answer.get("error") or _last_words(process)
    raise LaunchError(f"the mini-Cray cannot be built: {printable(why, 400)}", _hint_for(why))


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """Return the last line on stderr of a process that has ended, or how it ended."""
    lines = process.stderr.read().decode(errors="replace").split("\n") if process.stderr else []
    code = process.returncode
    if last := next((line for line in reversed(lines) if line.strip()), ""):
        return last
    if code >= 0:
        return f"it ended with code {code} and said nothing"
    return f"it was ended by signal {-code}{' (out of memory?)' if code == -signal.SIGKILL else ''}"


#: Explanations of errors by words in them; the first match counts.
_HINTS = (
    ("sch_tbf", "modprobe sch_tbf, as root, where the kernel has it as a module"),
    ("unrecognized option", "util-linux 2.38 or newer is needed"),
    ("unshare: ", "user namespaces are switched off here, by /proc/sys/user/max_user_namespaces, "
                  "kernel.unprivileged_userns_clone (Debian) or "
                  "kernel.apparmor_restrict_unprivileged_userns (Ubuntu)"),
    ("Slurm", "nidmap minicray up --topology=off runs without it"),
)  # fmt: skip


def _hint_for(why: str) -> str:
    return next((hint for sign, hint in _HINTS if sign in why), "")


def may_administer() -> bool:
    """Tell whether this process may create namespaces without a user namespace around them."""
    try:
        with open("/proc/self/status", encoding="ascii") as stream:
            words = dict(line.split(":", 1) for line in stream)
        return bool(int(words["CapEff"], 16) >> _CAP_SYS_ADMIN & 1)
    except (OSError, KeyError, ValueError):
        return os.getuid() == 0


def connect(name: str) -> socket.socket:
    """Connect to a mini-Cray."""
    inside = [str(CONTROL)] if os.environ.get("NIDMAP_MINICRAY") == name else []
    for where in (socket_address(name), *inside):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(where)
        except OSError:
            connection.close()
            continue
        if same_user(connection):
            return connection
        connection.close()
        raise LaunchError(f"the socket of mini-Cray {name} belongs to another user")
    raise LaunchError(
        f"no mini-Cray called {name} is running here", "nidmap minicray up -m minicray:dragonfly"
    )


def ask_daemon(name: str, message: dict[str, Any]) -> dict[str, Any]:
    """Send one request and return the answer."""
    with connect(name) as connection:
        return _exchange_request(
            connection, message, [], f"mini-Cray {name} went down before it answered"
        )


def link_bytes(name: str) -> dict[str, int]:
    """Return the bytes that each link of a mini-Cray has carried since the last reset."""
    links = ask_daemon(name, {"do": "links"})["links"]
    return {link: row["bytes"] for link, row in links.items()}


def _exchange_request(
    connection: socket.socket, message: dict[str, Any], files: list[int], lost: str
) -> dict[str, Any]:
    """Send a request with open files and return the answer; `lost` is the error for none."""
    try:
        send(connection, message, files)
        answer, _ = receive(connection)
    except (EOFError, OSError):
        raise LaunchError(lost) from None
    if "error" in answer:
        raise LaunchError(printable(str(answer["error"]), 400))
    return answer


def take_down(name: str) -> None:
    """Take a mini-Cray down and wait until all of it is gone."""
    ask_daemon(name, {"do": "down"})
    deadline = time.monotonic() + _GONE
    while time.monotonic() < deadline:
        try:
            _make_listener(name).close()  # its address is free once its last process has ended
        except UsageError:
            time.sleep(0.02)
        else:
            return
    raise LaunchError(f"mini-Cray {name} was asked to stop and is still running")


def run(
    name: str,
    argv: Sequence[str],
    env: dict[str, str] | None = None,
    output: int | None = None,
) -> int:
    """Run a program on the login host with this process's files and signals; return its exit code.

    `env`: added to this process's environment. `output`: descriptor for its stdout and stderr;
    None means this process's own.
    """
    message = {
        "do": "run", "argv": list(argv), "cwd": os.getcwd(),
        "env": {**job_environment(os.environ), **(env or {})},
    }  # fmt: skip
    files = [0, 1, 2] if output is None else [0, output, output]
    with connect(name) as connection:

        def pass_on(number: int, _: object) -> None:
            with contextlib.suppress(OSError):
                send(connection, {"signal": number})

        with handle_signals(_PASSED, pass_on):
            lost = f"mini-Cray {name} went down while {argv[0]} ran"
            return int(_exchange_request(connection, message, files, lost)["exit"])

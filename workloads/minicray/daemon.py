# SPDX-License-Identifier: Apache-2.0
"""The process that is a mini-Cray: builds the namespaces and answers; all ends with it.

Started by `client.start_minicray` inside fresh network, mount, pid, ipc and uts (and,
without root, user) namespaces, it knows nothing of machines: a blueprint of
ready batch lines comes to it on a pipe. A second pipe is its lifeline: when
the starter dies before it has let go, so does the daemon, and with it, as
its parent is process 1 of the pid namespace, every process, namespace and
mount. Only the standard library is imported, and what of ours needs no more, so that it
is up in a moment.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from nidmap.placement.errors import LaunchError, NidmapError
from nidmap.placement.support.child import Deadline, run_child, start_child
from nidmap.workloads.minicray.kernel import (
    daemon_path,
    enter_namespace,
    mount,
    receive,
    require_tools,
    run_batch,
    same_user,
    send,
    set_host_name,
    set_knob,
)

#: Where all files are: a tmpfs that only this mount namespace sees.
HOME = Path("/run/minicray")

#: Where commands that run inside find the daemon.
CONTROL = HOME / "control"

#: What an older MPICH on UCX needs in order to end: see its source, ``finalize.c``.
FINALIZE = HOME / "finalize.so"
_COMPILE = ["cc", "-O2", "-shared", "-fPIC", "-o", str(FINALIZE), str(HOME / "finalize.c"), "-ldl"]

#: Variable by which the processes of one command are known.
JOB = "NIDMAP_MINICRAY_JOB"

#: Variable by which a client says which MPI its programs have, as ``-m …,mpi=`` does.
MPI = "NIDMAP_MINICRAY_MPI"

#: Variables of an outer launch that must not reach ranks inside.
_FOREIGN = ("SLURM_", "SBATCH_", "SALLOC_", "SRUN_", "SINFO_", "SQUEUE_", "SCONTROL_", "PMI_",
            "PMIX_", "PMI2_", "OMPI_COMM_", "PRTE_", "HYDRA_")  # fmt: skip

#: The kernel's counters of sent data, in its order.
_COUNTED = ("bytes", "packets", "errors", "dropped")

#: Seconds that a command has to end by itself once its client is gone.
_PATIENCE = 3.0


class Daemon:
    """A mini-Cray that is running or being built.

    `blueprint`: of `nidmap.workloads.minicray.blueprint`.
    """

    def __init__(self, blueprint: dict[str, Any]) -> None:
        self.blueprint = blueprint
        self.own_net = os.open("/proc/self/ns/net", os.O_RDONLY)
        self.started = time.time()
        self.slurm_daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.jobs: dict[int, list[str]] = {}
        self.zero: dict[str, dict[str, int]] = {}

    def build(self) -> None:
        """Create namespaces, links, limits and routes; start Slurm if requested."""
        require_tools("ip", "tc", "nsenter", "unshare")
        self._private_files()
        run_batch("ip", self.blueprint["creation"])
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self._furnish, self.blueprint["spaces"]))
        if self.blueprint.get("slurm"):
            self._start_slurm()

    def _private_files(self) -> None:
        """Hide /run and /dev/shm behind private memory, and /etc/hosts behind our names."""
        mount("", "/")
        below = os.open("/run", os.O_RDONLY | os.O_DIRECTORY)  # keeps its contents accessible
        mount("minicray", "/run", "tmpfs", data="mode=755")
        _mirror_directory(f"/proc/self/fd/{below}", Path("/run"), without=("netns", "minicray"))
        os.close(below)
        HOME.mkdir(mode=0o755)
        Path("/run/netns").mkdir()
        for folder in self.blueprint["folders"]:
            (HOME / folder).mkdir(parents=True, exist_ok=True)
        if os.path.isdir("/dev/shm"):  # noqa: S108  # MPI keeps shared memory there
            mount("minicray", "/dev/shm", "tmpfs", data="mode=1777")  # noqa: S108
        for name, (text, mode) in self.blueprint["files"].items():
            (HOME / name).write_text(text)
            (HOME / name).chmod(mode)
        for folder, name, target in self.blueprint["symlinks"]:
            _add_link(Path(folder), name, target)
        mount(str(HOME / "hosts"), "/etc/hosts", bind=True)
        run_child([str(HOME / "sys")], os.environ, Deadline(60))
        if shutil.which("cc"):
            run_child(_COMPILE, os.environ, Deadline(60))
        set_host_name(self.blueprint["login"])

    def _furnish(self, space: dict[str, Any]) -> None:
        """Set up one namespace from the inside."""
        with self._inside(space["name"]):
            for key, value in space["sysctl"].items():
                set_knob(key, value)
            run_batch("ip", space["ip"])
            run_batch("tc", space["tc"])

    @contextlib.contextmanager
    def _inside(self, name: str) -> Iterator[None]:
        """Move this thread, and what it starts, into the namespace of that name."""
        there = os.open(f"/run/netns/{name}", os.O_RDONLY)
        try:
            enter_namespace(there)
            yield
        finally:
            enter_namespace(self.own_net)
            os.close(there)

    def _start_slurm(self) -> None:
        slurm = self.blueprint["slurm"]
        self._start_daemon("slurmctld", slurm["controller"])
        with ThreadPoolExecutor(4) as pool:
            names = [f"slurmd.{node}" for node in slurm["nodes"]]
            list(pool.map(self._start_daemon, names, slurm["nodes"].values()))
        self._await_idle(slurm["wait"], set(slurm["up"]))

    def _start_daemon(self, name: str, command: list[str]) -> None:
        with (HOME / f"{name}.out").open("ab") as out:
            self.slurm_daemons[name] = start_child(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=self._environment({}), start_new_session=True, cwd=HOME,
            )  # fmt: skip

    def _await_idle(self, timeout: float, nodes: set[str]) -> None:
        """Wait until all nodes that should be up are idle."""
        deadline, env, complaint = Deadline(timeout), self._environment({}), "no word"
        while deadline.left():
            time.sleep(0.05)
            try:
                answer = run_child(["sinfo", "-h", "-N", "-o", "%N %T"], env, Deadline(15))
            except NidmapError as error:
                complaint = str(error)
                continue
            pairs = [line.split() for line in answer.output.splitlines()]
            idle = {pair[0] for pair in pairs if pair[1:] == ["idle"]}
            if nodes <= idle:
                return
            progress = f"{len(idle & nodes)} of {len(nodes)} nodes are idle"
            complaint = answer.messages.strip() or progress
            if dead := self._ended_daemons():
                raise LaunchError(f"Slurm: {dead[0]} ended: {_find_error(dead[0])}")
        last = _find_error("slurmctld")
        raise LaunchError(f"Slurm is not ready after {timeout:g} s: {complaint}; {last}")

    def _ended_daemons(self) -> list[str]:
        return [name for name, daemon in self.slurm_daemons.items() if daemon.poll() is not None]

    def _environment(self, given: dict[str, str]) -> dict[str, str]:
        """Return a program's environment: defaults, the client's, then our overrides."""
        if given.get("NIDMAP_MINICRAY") != self.blueprint["about"]["name"]:
            given = {k: v for k, v in given.items() if not k.startswith(_FOREIGN)}
        usual, ours = self.blueprint["usual"], self.blueprint["environment"]
        mpi = given.get(MPI, "")
        machine = ours["NIDMAP_MACHINE"]
        machine += f",mpi={mpi}" if mpi and ",mpi=" not in machine else ""
        return {**usual, **given, **ours, "NIDMAP_MACHINE": machine, "PATH": daemon_path(given)}

    def serve(self, listener: socket.socket) -> None:
        """Answer commands for ever."""
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, EOFError):
            if not same_user(connection):
                return
            message, fds = receive(connection)
            try:
                self._do(message, fds, connection)
            except NidmapError as error:
                send(connection, {"error": str(error)})
            except (KeyError, TypeError, ValueError) as error:
                send(connection, {"error": f"invalid request: {error!r}"})
            finally:
                for fd in fds:
                    with contextlib.suppress(OSError):
                        os.close(fd)

    def _do(self, message: dict[str, Any], fds: list[int], connection: socket.socket) -> None:
        what = message.get("do")
        if what == "down":
            send(connection, {"down": True})
            os._exit(0)
        elif what == "status":
            send(connection, self.status())
        elif what == "links":
            send(connection, {"links": self.links(zero=bool(message.get("zero")))})
        elif what == "run":
            self._run(message, fds, connection)
        else:
            raise LaunchError(f"unknown command {what!r}")

    def status(self) -> dict[str, Any]:
        """Return the state of this mini-Cray."""
        built = FINALIZE.exists()
        more = {"since": self.started, "jobs": list(self.jobs.values()), "finalize": built}
        return {**self.blueprint["about"], **more, "ended": self._ended_daemons()}

    def links(self, zero: bool = False) -> dict[str, dict[str, int]]:
        """Return the bytes that each rate-limited device has sent since its last reset."""
        now: dict[str, dict[str, int]] = {}
        for space in self.blueprint["spaces"]:
            with self._inside(space["name"]):
                lines = Path("/proc/thread-self/net/dev").read_text().splitlines()[2:]
            for line in lines:
                device, _, rest = line.partition(":")
                if link := space["counts"].get(device.strip()):
                    counters = map(int, rest.split()[8:12])
                    now[link] = dict(zip(_COUNTED, counters, strict=True))
        before = self.zero
        if zero:
            self.zero = now
        return {
            link: {word: count - before.get(link, {}).get(word, 0) for word, count in row.items()}
            for link, row in now.items()
        }

    def _run(self, message: dict[str, Any], fds: list[int], connection: socket.socket) -> None:
        """Run a program for a client, ending it if the client disappears."""
        if len(fds) != 3:
            raise LaunchError("a program needs stdin, stdout and stderr")
        mark = f"{os.getpid()}.{time.monotonic_ns()}"
        process = self._start(message, fds, mark)
        self.jobs[process.pid] = message["argv"]
        for fd in fds:
            os.close(fd)
        fds.clear()
        threading.Thread(target=_obey_client, args=(connection, process, mark), daemon=True).start()
        code = process.wait()
        self.jobs.pop(process.pid, None)
        send(connection, {"exit": code if code >= 0 else 128 - code})

    def _start(self, message: dict[str, Any], fds: list[int], mark: str) -> subprocess.Popen[bytes]:
        command, folder = message["argv"], message["cwd"]
        if not os.path.isdir(folder):
            raise LaunchError(f"the directory {folder} does not exist inside")
        env = {**self._environment(message["env"]), JOB: mark}
        where = os.pathsep.join(os.path.join(folder, d) for d in env["PATH"].split(":") if d)
        name = os.path.join(folder, command[0]) if "/" in command[0] else command[0]
        program = shutil.which(name, path=where)
        if program is None:
            raise LaunchError(f"{command[0]}: no such program")
        return start_child(
            command, executable=program, stdin=fds[0], stdout=fds[1], stderr=fds[2], env=env,
            cwd=folder, start_new_session=True,
        )  # fmt: skip


def _add_link(folder: Path, name: str, target: str) -> None:
    """Add a symbolic link to a directory, visible inside only."""
    copy = HOME / "lib" / str(folder).strip("/").replace("/", "-")
    copy.mkdir()
    _mirror_directory(str(folder), copy)
    (copy / name).symlink_to(target)
    mount(str(copy), str(folder), bind=True)


def _mirror_directory(source: str, target: Path, without: tuple[str, ...] = ()) -> None:
    """Make the entries of one directory appear in another as well."""
    for entry in os.scandir(source):
        here = target / entry.name
        if entry.name in without:
            continue
        if entry.is_symlink():
            here.symlink_to(os.readlink(entry.path))
        elif entry.is_dir() or entry.is_file():
            here.mkdir() if entry.is_dir() else here.touch()
            with contextlib.suppress(LaunchError):  # entries that cannot be bound are left out
                mount(entry.path, str(here), bind=True)


def _obey_client(connection: socket.socket, process: subprocess.Popen[bytes], mark: str) -> None:
    """Forward a client's signals; when the client is gone, end all that its command started."""
    while True:
        try:
            message, _ = receive(connection)
        except (OSError, EOFError):
            break
        _signal_group(process, int(message.get("signal", 0)))
    if process.poll() is not None:
        return
    for word in (signal.SIGINT, signal.SIGTERM):
        _signal_group(process, word)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE / 2)
    _sweep_processes(mark)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _sweep_processes(mark: str) -> None:
    """End every process that carries a command's mark in its environment."""
    wanted = f"{JOB}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)


def _find_error(daemon: str) -> str:
    """Return the last line of a log that looks like an error, from a daemon's or any log."""
    for log in sorted(HOME.glob(f"{daemon}.*")) + sorted(HOME.glob("slurm*.log")):
        for line in reversed(log.read_text(errors="replace").splitlines()):
            if "error" in line.lower() or "fatal" in line.lower():
                return line
    return "its logs say nothing"


def _reap_for(worker: int) -> int:
    """Act as process 1: reap every orphan; end when the worker ends."""
    while True:
        pid, status = os.wait()
        if pid == worker:
            code = os.waitstatus_to_exitcode(status)
            if code < 0:
                names = {s.value: s.name for s in signal.Signals}
                names[signal.SIGKILL] += " (out of memory?)"  # mostly it is the kernel
                _last_word(f"the daemon was ended by {names.get(-code, f'signal {-code}')}")
            return code


def _last_word(text: str) -> None:
    """Report on stderr why this ends, if anybody still listens."""
    with contextlib.suppress(OSError):
        os.write(2, f"{text}\n".encode(errors="replace"))


def _watch_starter(lifeline: int) -> None:
    """End everything if the starter disappears before it has let go."""
    if os.read(lifeline, 1) != b"k":
        _last_word("the command that was building it has ended")
        os._exit(3)


def main() -> None:
    """Build and serve; the descriptors are given on the command line."""
    blueprint, lifeline, listener, ready = (int(word) for word in sys.argv[1:5])
    worker = os.fork()
    if worker:
        for fd in (blueprint, lifeline, listener, ready):
            os.close(fd)
        sys.exit(_reap_for(worker) & 0xFF)
    threading.Thread(target=_watch_starter, args=(lifeline,), daemon=True).start()
    with os.fdopen(blueprint, "rb") as pipe:
        text = pipe.read()
    if not text.endswith(b"\n"):
        _last_word("the command that was building it ended before it had said what to build")
        os._exit(3)
    outer = socket.socket(fileno=listener)
    outer.listen(64)  # here, so that the other side sees this process as its peer
    daemon = Daemon(json.loads(text))
    inner = _stand_up(daemon, ready)
    threading.Thread(target=daemon.serve, args=(inner,), daemon=True).start()
    daemon.serve(outer)


def _stand_up(daemon: Daemon, ready: int) -> socket.socket:
    """Build, report on a pipe when it is up, and return the socket for commands inside."""
    listener = socket.socket(socket.AF_UNIX)
    with os.fdopen(ready, "w") as pipe:
        try:
            daemon.build()
            listener.bind(str(CONTROL))
            CONTROL.chmod(0o600)
            listener.listen(64)
        except BaseException as error:  # whatever the error, report it to the starter
            foreseen = isinstance(error, (NidmapError, OSError)) and str(error)
            pipe.write(json.dumps({"error": str(error) if foreseen else repr(error)}) + "\n")
            pipe.flush()
            os._exit(1)
        pipe.write(json.dumps({"ready": True}) + "\n")
    return listener

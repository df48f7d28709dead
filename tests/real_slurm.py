# SPDX-License-Identifier: Apache-2.0
"""A real Slurm for tests: slurmctld and a few slurmds, private, gone when the test ends.

No systemd, no munge, nothing outside one temporary directory and a few ports::

    from tests.real_slurm import needs_slurm, real_slurm

    @needs_slurm
    def test_list_is_accepted() -> None:
        names = [f"nid{i:05d}" for i in range(6174)]
        with real_slurm(names, plugin="none", real=4) as slurm:
            slurm.run(["sbatch", "--test-only", "-N2", "-w", "nid00007,nid00009", "--wrap=true"])
            monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])  # for our own code

Thousands of nodes may be configured; those in `real` have a slurmd of their
own and run jobs, the others say they are idle and share the port of a real
one. A job whose first node is fake stays RUNNING or COMPLETING, which is a
handy way to occupy nodes; `RealSlurm.free` makes nodes idle again. Some slurmd
always answers for all: nodes of which none does are "idle*" after 25 seconds,
and no job is put there.

Safe under pytest-xdist: directories are private, a port is held by an
abstract Unix socket of its number for as long as the cluster lives, and only
processes of this cluster are ever ended, by their ids.
"""

from __future__ import annotations

import contextlib
import functools
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from nidmap.workloads.minicray.slurm import CONF, cgroup_conf, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

F = TypeVar("F", bound="Callable[..., Any]")

_PREFIXES = ("SLURM", "SBATCH_", "SALLOC_", "SINFO_", "SQUEUE_", "SCANCEL_", "PMI", "PMIX")


def why_no_slurm() -> str:
    """Return why no Slurm can be started here, '' where it can."""
    missing = [
        name for name in ("slurmctld", "slurmd", "sinfo", "sbatch") if not find_program(name)
    ]
    return f"{', '.join(missing)} not installed" if missing else ""


@functools.cache
def find_program(name: str) -> str | None:
    """Find a daemon also where a plain user's PATH does not look."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def needs_slurm(function: F) -> F:
    """Mark a test that needs a real Slurm; it is skipped, with the reason, where there is none."""
    reason = why_no_slurm()
    skipping = pytest.mark.skipif(bool(reason), reason=reason)
    return cast("F", pytest.mark.slurm(skipping(function)))


def scrubbed_environment() -> dict[str, str]:
    """Return this process's environment without what would steer Slurm or MPI."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_PREFIXES)}
    kept["PATH"] = kept.get("PATH", "") + ":/usr/sbin:/sbin"
    return kept


@dataclass
class RealSlurm:
    """A running cluster.

    Attributes
    ----------
    folder : Path
        Its private directory: slurm.conf, logs, state.
    env : dict of str to str
        A clean environment with SLURM_CONF set, for `subprocess`.
    nodes : tuple of str
    real : tuple of str
        The nodes with a slurmd of their own, which run jobs.
    """

    folder: Path
    env: dict[str, str]
    nodes: tuple[str, ...]
    real: tuple[str, ...]
    port: int
    controller: subprocess.Popen[bytes] | None = None
    slurmds: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        """The slurm.conf of this cluster."""
        return self.folder / "slurm.conf"

    def run(
        self,
        argv: Sequence[str],
        *,
        check: bool = True,
        timeout: float = 600.0,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a Slurm command (or any other) against this cluster and return what it said.

        A non-zero exit fails the test with the command's own words unless `check` is False.
        """
        done = subprocess.run(
            list(argv),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            env={**self.env, **(env or {})},
            cwd=self.folder,
        )
        if check and done.returncode:
            raise AssertionError(f"{list(argv)[:6]}: rc {done.returncode}: {done.stderr.strip()}")
        return done

    def scontrol(self, lines: Iterable[str]) -> str:
        """Feed many lines to one scontrol; much quicker than one process a line."""
        text = "".join(f"{line}\n" for line in lines)
        done = self.run(["scontrol"], stdin=text)
        if done.stderr.strip():
            raise AssertionError(f"scontrol: {done.stderr.strip()[:500]}")
        return done.stdout

    def drain(self, names: Iterable[str]) -> None:
        """Take nodes out of service."""
        listed = ",".join(names)
        if listed:
            self.scontrol([f"update nodename={listed} state=drain reason=test"])

    def resume(self, names: Iterable[str]) -> None:
        """Take drained nodes into service again."""
        self.scontrol([f"update nodename={','.join(names)} state=resume"])

    def occupy(self, names: Iterable[str], job_name: str = "occupied") -> int:
        """Start a job on exactly these nodes, at once, that lasts until `free`; return its id."""
        listed = list(names)
        command = ["salloc", "--no-shell", "--exclusive", f"-N{len(listed)}", "-J", job_name]
        done = self.run([*command, "-w", ",".join(listed)])
        return int(done.stderr.split("Granted job allocation ")[1].split()[0])

    def free(self) -> None:
        """Make every node idle again: end all jobs, drop states and leftovers of jobs.

        What is idle is left alone: thousands of changes take seconds.
        """
        self.run(["scancel", "-u", getpass.getuser()], check=False)
        rows = self.run(["sinfo", "-h", "-N", "-o", "%N %T"]).stdout.split("\n")
        self.release({row.split()[0] for row in rows if row and row.split()[1] != "idle"})

    def release(self, names: Iterable[str], timeout: float = 60.0) -> None:
        """Take nodes from jobs that have ended, whatever is left there; the next may have them."""
        wanted, ends = set(names), time.monotonic() + timeout
        left = wanted
        while left:
            if time.monotonic() > ends:
                raise AssertionError(f"down or completing: {sorted(left)[:5]}")
            update = ["scontrol", "update", f"nodename={','.join(sorted(left))}"]
            self.run([*update, "state=down", "reason=test"])
            # Refused where a slurmd has registered in between, which makes the node idle too.
            self.run([*update, "state=idle"], check=False)
            rows = self.run(["sinfo", "-h", "-N", "-o", "%N %T"]).stdout.splitlines()
            kept = {row.split()[0] for row in rows if row.split()[1].startswith(("down", "comp"))}
            left = wanted & kept

    def wait_idle(self, names: Iterable[str], timeout: float = 600.0) -> None:
        """Wait until these nodes are idle."""
        listed, last = ",".join(names), ""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            query = ["sinfo", "-h", "-n", listed, "-o", "%T"]
            last = self.run(query, check=False, timeout=timeout).stdout
            if set(last.split()) == {"idle"}:
                return
            time.sleep(0.05)
        raise AssertionError(f"nodes not idle after {timeout} s: {last.split()}\n{self.logs()}")

    def logs(self) -> str:
        """Return the ends of the daemons' logs."""
        files = sorted([*self.folder.glob("*.out"), *self.folder.glob("*.log")])
        ends = [f"== {p.name}\n{p.read_text(errors='replace')[-1500:]}" for p in files]
        return "\n".join(ends)

    def start_controller(self) -> None:
        """Start slurmctld (again)."""
        command = [find_program("slurmctld") or "slurmctld", "-D", "-f", str(self.conf)]
        self.controller = self._daemon(command, "slurmctld")

    def wait_for_answer(self, timeout: float = 600.0) -> None:
        """Wait until slurmctld answers; one that has died fails the test with its log."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self.controller and self.controller.poll() is not None:
                raise AssertionError(f"slurmctld ended\n{self.logs()}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.02)
        ping = self.run(["scontrol", "ping"], timeout=timeout, check=False)
        if " is UP" not in ping.stdout:
            with contextlib.suppress(subprocess.TimeoutExpired):  # newer ones listen, then end
                if self.controller:
                    self.controller.wait(10)
                    raise AssertionError(f"slurmctld ended\n{self.logs()}")
            raise AssertionError(f"slurmctld does not answer: {ping.stdout}\n{self.logs()}")

    def stop_controller(self) -> None:
        """End slurmctld at once, as a crash would: commands find nobody listening."""
        if self.controller:
            _end(self.controller)
            self.controller = None

    def freeze_controller(self) -> None:
        """Stop slurmctld from answering: commands connect and hang."""
        if self.controller:
            self.controller.send_signal(signal.SIGSTOP)

    def thaw_controller(self) -> None:
        """Let a frozen slurmctld go on."""
        if self.controller:
            self.controller.send_signal(signal.SIGCONT)

    def start_slurmd(self, name: str) -> None:
        """Start the slurmd of a real node."""
        command = [find_program("slurmd") or "slurmd", "-D", "-N", name, "-f", str(self.conf)]
        self.slurmds[name] = self._daemon(command, f"slurmd.{name}")

    def stop(self) -> None:
        """End every process of this cluster, and no other."""
        self.thaw_controller()
        if self.controller and self.controller.poll() is None and self.real:
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                self.run(["scancel", "-u", getpass.getuser()], check=False, timeout=30)
        for daemon in (self.controller, *self.slurmds.values()):
            if daemon:
                _end(daemon)
        self.controller = None
        self.slurmds.clear()
        _sweep(self.folder)

    def _daemon(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        """Start a daemon in the foreground; the kernel ends it should this process be killed."""
        setpriv = shutil.which("setpriv")
        prefix = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
        with (self.folder / f"{name}.out").open("ab") as out:
            return subprocess.Popen(
                prefix + command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=self.env,
                cwd=self.folder,
                start_new_session=True,
            )


@contextlib.contextmanager
def real_slurm(
    nodes: Sequence[str],
    *,
    plugin: str = "none",
    topology_conf: str | None = None,
    weights: Mapping[str, int] | None = None,
    features: Mapping[str, str] | None = None,
    real: int | Sequence[str] = 4,
    cores: int | Mapping[str, int] = 16,
    memory: int = 1000,
    partitions: Mapping[str, Sequence[str]] | None = None,
    scheduler: str = "sched/builtin",
    scheduling: str = "",
    extra: str = "",
) -> Iterator[RealSlurm]:
    """Run a cluster of the named nodes for the length of a ``with`` block.

    Parameters
    ----------
    nodes : sequence of str
        Names of all configured nodes, in the order they stand in slurm.conf
        (Slurm itself sorts its node table by name).
    plugin : str
        ``none``, ``tree``, ``block`` (not before 23.11) or ``dragonfly``
        (``topology/tree`` with ``TopologyParam=Dragonfly``).
    topology_conf : str or None
        Text of topology.conf; needed by all but ``none``.
    weights : mapping of name to int, or None
        Node weights; 1 where a node has none.
    features : mapping of name to str, or None
        Comma-separated features.
    real : int or sequence of str
        How many of the first nodes, or which nodes, have a slurmd of their own
        and run jobs. 0 is fine where nothing has to run.
    cores : int or mapping of name to int
        Cores of every node (pretended), or of each.
    memory : int
        MB of every node (pretended).
    partitions : mapping of name to node names, or None
        The first is the default one; None: one partition ``debug`` of all.
    scheduler : str
        ``sched/backfill`` where planned nodes are wanted.
    scheduling : str
        Further ``SchedulerParameters``, comma-separated.
    extra : str
        Further lines of slurm.conf.

    Yields
    ------
    RealSlurm
        All real nodes idle.
    """
    served = tuple(nodes[:real]) if isinstance(real, int) else tuple(real)
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="nidmap-slurm-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        ports = [stack.enter_context(_port()) for _ in range(1 + max(1, len(served)))]
        env = {**scrubbed_environment(), "SLURM_CONF": str(folder / "slurm.conf")}
        slurm = RealSlurm(folder, env, tuple(nodes), served, ports[0])
        dragonfly = "TopologyParam=Dragonfly\n" if plugin == "dragonfly" else ""
        topology = f"topology/{'tree' if plugin == 'dragonfly' else plugin}"
        slurm.conf.write_text(
            CONF.format(
                cluster="nidmaptest",
                host="localhost(127.0.0.1)",
                user=getpass.getuser(),
                folder=folder,
                scheduler=scheduler,
                scheduling=f",{scheduling}" if scheduling else "",
                age=2,
                more=f"SlurmctldPort={ports[0]}\nTopologyPlugin={topology}\n{dragonfly}{extra}",
            )
            + _node_lines(nodes, served, ports[1:], weights or {}, features or {}, cores, memory)
            + _partition_lines(partitions or {"debug": nodes})
        )
        version = version_of(find_program("slurmctld") or "slurmctld")
        (folder / "cgroup.conf").write_text(cgroup_conf(version))
        if topology_conf is not None:
            (folder / "topology.conf").write_text(topology_conf)
        (folder / "state").mkdir()
        stack.callback(slurm.stop)
        slurm.start_controller()
        for name in served or nodes[:1]:
            slurm.start_slurmd(name)
        slurm.wait_for_answer()
        if served:
            slurm.wait_idle(served)
        yield slurm


def _node_lines(
    nodes: Sequence[str],
    served: Sequence[str],
    ports: Sequence[int],
    weights: Mapping[str, int],
    features: Mapping[str, str],
    cores: int | Mapping[str, int],
    memory: int,
) -> str:
    """Return the NodeName lines; neighbours that are alike share one, up to 100 names."""
    own = dict(zip(served, ports, strict=False))
    lines = [f"NodeName=DEFAULT Sockets=1 ThreadsPerCore=1 RealMemory={memory}"]
    waiting: list[str] = []
    shared = ""
    for name in nodes:
        about = "NodeAddr=127.0.0.1 NodeHostname=localhost"
        about += f" Port={own.get(name, ports[0])} Weight={weights.get(name, 1)}"
        many = cores if isinstance(cores, int) else cores[name]
        about += f" CPUs={many} CoresPerSocket={many}"
        if name in features:
            about += f" Feature={features[name]}"
        about += "" if name in own else " State=IDLE"
        if name in own or about != shared or len(waiting) == 100:
            lines += [f"NodeName={','.join(waiting)} {shared}"] if waiting else []
            waiting = []
        waiting.append(name)
        shared = about
    return "\n".join([*lines, f"NodeName={','.join(waiting)} {shared}"]) + "\n"


def _partition_lines(partitions: Mapping[str, Sequence[str]]) -> str:
    """Return the PartitionName lines."""
    return "".join(
        f"PartitionName={name} Nodes={','.join(members)} MaxTime=INFINITE State=UP "
        f"Default={'NO' if i else 'YES'}\n"
        for i, (name, members) in enumerate(partitions.items())
    )


@contextlib.contextmanager
def _port() -> Iterator[int]:
    """Hold a free port number below the ephemeral range, against other test processes too."""
    for number in _port_numbers():
        held = socket.socket(socket.AF_UNIX)
        try:
            held.bind(f"\0nidmap-test-port-{number}")
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("", number))
        except OSError:
            held.close()
            continue
        try:
            yield number
        finally:
            held.close()
        return
    raise AssertionError("no free port for a test's Slurm")


def _port_numbers() -> Iterator[int]:
    """Count through the ports, each process from its own start."""
    low, many = 20000, 12000
    start = os.getpid() * 97 % many
    return (low + (start + i) % many for i in range(many))


def _end(daemon: subprocess.Popen[bytes]) -> None:
    """Kill one of our daemons and the helpers it forked (they share its session)."""
    if daemon.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGKILL)
    daemon.wait()


def _sweep(folder: Path) -> None:
    """End job steps left behind: processes that stand in our folder or use its slurm.conf."""
    for _ in range(20):
        left = [int(p.name) for p in Path("/proc").glob("[0-9]*") if _is_ours(p, folder)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.05)


def _is_ours(process: Path, folder: Path) -> bool:
    """Tell whether a process was started by this cluster's daemons."""
    if int(process.name) == os.getpid():
        return False
    try:
        place = os.readlink(process / "cwd")
        if place == str(folder) or place.startswith(f"{folder}/"):
            return True
        # Python's own helpers of this process outlive the cluster under which they were started.
        if b"from multiprocessing." in (process / "cmdline").read_bytes():
            return False
        return f"SLURM_CONF={folder}/".encode() in (process / "environ").read_bytes()
    except OSError:
        return False  # gone, a zombie, or another user's

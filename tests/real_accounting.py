# SPDX-License-Identifier: Apache-2.0
"""Slurm's accounting for tests: a MariaDB and a slurmdbd of our own, gone when the test ends.

The database has no grant tables and no network, only a socket in a private folder::

    with accounting() as accounts, real_slurm(names, extra=accounts) as slurm:
        ...
"""

from __future__ import annotations

import contextlib
import getpass
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.real_slurm import (
    _end,
    _port,
    find_program,
    needs_slurm,
    scrubbed_environment,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CLUSTER = """\
ClusterName=nidmaptest
SlurmctldHost=localhost(127.0.0.1)
AuthType=auth/none
NodeName=n0
"""

_DATABASE = """\
AuthType=auth/none
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StorageLoc=accounts
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
"""


def needs_accounting(function: Callable[..., object]) -> Callable[..., object]:
    """Mark a test that needs a real Slurm with accounting; skipped, with the reason, elsewhere."""
    missing = [name for name in ("mariadbd", "slurmdbd", "sacctmgr") if not find_program(name)]
    reason = f"{', '.join(missing)} not installed"
    return needs_slurm(pytest.mark.skipif(bool(missing), reason=reason)(function))


@contextlib.contextmanager
def accounting() -> Iterator[str]:
    """Run a database and slurmdbd; yield the lines of slurm.conf that make a Slurm use them."""
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="nidmap-accounts-", dir="/tmp"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        port = stack.enter_context(_port())
        lines = (
            "AccountingStorageType=accounting_storage/slurmdbd\n"
            f"AccountingStorageHost=127.0.0.1\nAccountingStoragePort={port}\n"
        )
        (folder / "slurm.conf").write_text(_CLUSTER + lines)
        store = folder / "slurmdbd.conf"
        store.write_text(_DATABASE.format(port=port, user=getpass.getuser(), folder=folder))
        store.chmod(0o600)
        (folder / "db").mkdir()
        env = {
            **scrubbed_environment(),
            "SLURM_CONF": str(folder / "slurm.conf"),
            "MYSQL_UNIX_PORT": str(folder / "socket"),
        }
        database = [
            *(find_program("mariadbd") or "mariadbd", "--no-defaults", "--skip-grant-tables"),
            *(f"--user={getpass.getuser()}", "--skip-networking", f"--datadir={folder}/db"),
            *(f"--socket={folder}/socket", f"--pid-file={folder}/pid"),
            *("--innodb-buffer-pool-size=16M", "--innodb-flush-log-at-trx-commit=0"),
        ]
        _start(stack, database, folder, env, (folder / "socket").exists)
        slurmdbd = [find_program("slurmdbd") or "slurmdbd", "-D"]
        _start(stack, slurmdbd, folder, env, lambda: _listens(port))
        add = ["sacctmgr", "-i", "add", "cluster", "nidmaptest"]
        subprocess.run(add, env=env, check=True, capture_output=True, timeout=600)
        yield lines


def _start(
    stack: contextlib.ExitStack,
    command: list[str],
    folder: Path,
    env: dict[str, str],
    ready: Callable[[], bool],
    timeout: float = 600.0,
) -> None:
    """Start a daemon that the kernel ends with us, and wait until it is ready."""
    setpriv = shutil.which("setpriv")
    prefix = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
    log = stack.enter_context((folder / f"{Path(command[0]).name}.out").open("ab"))
    daemon = subprocess.Popen(
        prefix + command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=env,
        cwd=folder,
        start_new_session=True,
    )
    stack.callback(_end, daemon)
    deadline = time.monotonic() + timeout
    while not ready():
        if daemon.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{command[0]}: {Path(log.name).read_text()[-1500:]}")
        time.sleep(0.02)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0

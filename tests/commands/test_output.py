# SPDX-License-Identifier: Apache-2.0
"""Output: stdout carries the result, files are whole or untouched, faults have code 5."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios

import pytest

from tests.waiting import wait_until

MACHINE = "dragonfly:groups=4,chassis=2,blades=4,nodes=4"
PLAN = ("plan", "-m", MACHINE, "-N", "8", "--strategy", "compact")

COMMANDS = {
    "plan": PLAN,
    "plan json": (*PLAN, "--json"),
    "order": ("order", "-m", MACHINE, "--nodes", "#0-3", "--ppn", "4", "--pattern", "fft:4x4"),
    "machine export": ("machine", "export", "-m", MACHINE, "--format", "topology-conf"),
    "site list": ("site", "list"),
}
#: One that writes text, JSON, an export and a table.
EACH_KIND = ["plan", "plan json", "machine export", "site list"]
WITH_FILE = [name for name in COMMANDS if name.split()[0] in ("plan", "order")]


@pytest.mark.parametrize("name", COMMANDS)
def test_full_disk_on_stdout(nidmap, name):
    with open("/dev/full", "wb") as full:
        done = nidmap(*COMMANDS[name], stdout=full)
    assert done.code == 5, done.err
    assert "Traceback" not in done.err
    assert "No space left" in done.err


@pytest.mark.parametrize("name", EACH_KIND)
def test_closed_stdout(name):
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -m nidmap "$@" >&-', sys.executable, *COMMANDS[name]],
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("name", EACH_KIND)
def test_a_broken_pipe_is_quiet(name):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "nidmap", *COMMANDS[name]],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=600,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN),
    )
    os.close(writer)
    assert b"Traceback" not in done.stderr
    assert b"roken pipe" not in done.stderr
    assert done.returncode in (0, 141)


@pytest.mark.parametrize("name", WITH_FILE)
def test_a_full_disk_leaves_the_old_file(nidmap, name, small_disk):
    path = small_disk / "out.txt"
    path.write_text("old")
    fill(small_disk)
    done = nidmap(*COMMANDS[name], "-o", str(path))
    assert done.code == 5, done.err
    assert "No space left" in done.err
    assert path.read_text() == "old"
    assert sorted(p.name for p in small_disk.iterdir()) == ["filler", "out.txt"]


@pytest.mark.parametrize("name", WITH_FILE)
def test_dev_full_as_the_file(inside, name):
    done = inside(*COMMANDS[name], "-o", "/dev/full")
    assert done.code == 5
    assert "/dev/full" in done.err


@pytest.mark.parametrize("name", WITH_FILE)
def test_no_such_folder(inside, refused, name, tmp_path):
    refused(inside(*COMMANDS[name], "-o", str(tmp_path / "no" / "out.txt")), 5, "out.txt")


@pytest.mark.parametrize("name", WITH_FILE)
def test_the_file_holds_what_stdout_would(inside, name, tmp_path):
    path = tmp_path / "out.txt"
    done = inside(*COMMANDS[name], "-o", str(path))
    assert (done.code, done.out) == (0, "")
    assert path.read_text() == inside(*COMMANDS[name]).out


def test_the_mode_of_an_old_file_stays(inside, tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    path.chmod(0o640)
    assert inside(*PLAN, "-o", str(path)).code == 0
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_is_followed_not_replaced(inside, tmp_path):
    target = tmp_path / "target.txt"
    target.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    assert inside(*PLAN, "-o", str(link)).code == 0
    assert link.is_symlink()
    assert target.read_text().startswith("nid")


def test_json_is_json(inside):
    document = json.loads(inside(*PLAN, "--json").out)
    assert document["schema"] == "nidmap.plan/1"
    assert len(document["nodes"]) == document["count"] == 8
    assert document["wiring"].startswith("consecutive, ")


def unread(pipe):
    """Return how many bytes in a pipe nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_interrupt(tmp_path):
    fifo = tmp_path / "never"
    os.mkfifo(fifo)
    child = subprocess.Popen(
        [sys.executable, "-m", "nidmap", "plan", "-m", "-", "-N", "4"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        child.stdin.write(b"   NID    (HEX)    NODENAME     TYPE    STATUS        MODE\n")
        child.stdin.flush()
        wait_until(lambda: unread(child.stdin) == 0)  # it has read that, and waits for more
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=600)
    finally:
        child.kill()
    assert child.returncode == 130
    assert b"Traceback" not in err


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB, in a mount namespace's stead: a tmpfs, root only."""
    if os.getuid() != 0:
        pytest.skip("mounting a small disk needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"mount is not allowed here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder):
    """Fill a disk to its last byte."""
    with open(folder / "filler", "wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"x" * 4096)
        except OSError:
            pass


#: Stands between Python and the disk: ends or fails the process at one step of the writing.
SABOTAGE = """
import os, signal, sys
step, how = sys.argv.pop(1), sys.argv.pop(1)
real = getattr(os, step)
def broken(*words, **more):
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    raise OSError(28, "No space left on device")
setattr(os, step, broken)
import nidmap
nidmap.main()
"""


@pytest.mark.parametrize("how", ["kill", "fail"])
@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_write_that_ends_half_way_keeps_the_old_file(tmp_path, step, how):
    path = tmp_path / "out.txt"
    path.write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", SABOTAGE, step, how, *PLAN, "-o", str(path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    left = [p for p in tmp_path.iterdir() if p != path]
    assert path.read_text() == "old"
    assert done.returncode == (-signal.SIGKILL if how == "kill" else 5)
    if how == "fail":
        assert left == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_second_run_says_the_same(nidmap, inside, name):
    assert nidmap(*COMMANDS[name]).out == inside(*COMMANDS[name]).out

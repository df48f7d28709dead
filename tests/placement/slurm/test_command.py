# SPDX-License-Identifier: Apache-2.0
"""Commands that hang, flood, fail, lie or are not there: an error in time, nothing left behind."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from nidmap.placement.errors import LaunchError
from nidmap.placement.slurm.command import ask_slurm, clean_environment, version_numbers
from nidmap.placement.support import child
from nidmap.placement.support.child import Deadline
from tests.waiting import wait_until


def test_the_answer(fake):
    fake('echo "out $1"; echo err >&2; exit 3')
    answer = ask_slurm(["sinfo", "a b"], fails=True)
    assert (answer.output, answer.messages, answer.code) == ("out a b\n", "err\n", 3)
    assert answer.complaint == "err"


def test_no_shell_sees_the_arguments(fake, tmp_path):
    fake('printf %s "$1"')
    assert ask_slurm(["sinfo", f"$(touch {tmp_path}/x); `id`"]).output.startswith("$(touch")
    assert not (tmp_path / "x").exists()


def test_the_script_is_its_input(fake):
    fake("cat")
    assert ask_slurm(["sinfo"], script="#SBATCH -N1\n" * 20_000).output == "#SBATCH -N1\n" * 20_000


def test_missing(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(LaunchError, match="sinfo is not on PATH; load Slurm's module"):
        ask_slurm(["sinfo"])


def test_not_a_program(fake):
    fake("").write_bytes(b"\x7fELF junk")
    with pytest.raises(LaunchError, match="cannot start sinfo"):
        ask_slurm(["sinfo"])


def test_a_failure_says_what_the_command_said(fake):
    fake("echo 'sinfo: error: \033[31mbad\033[0m' >&2; exit 1")
    with pytest.raises(LaunchError) as caught:
        ask_slurm(["sinfo"])
    assert "sinfo failed (exit code 1): sinfo: error: \\x1b[31mbad" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("slurm_load_partitions: Unable to contact slurm controller (connect failure)", "is down"),
        ("sinfo: error: resolve_ctls_from_dns_srv: res_nsearch error", "no Slurm configuration"),
        ("fatal: Could not establish a configuration source", "no Slurm configuration"),
    ],
)
def test_a_slurm_that_cannot_be_reached(fake, words, expected):
    fake(f"echo '{words}' >&2; exit 1")
    with pytest.raises(LaunchError, match=expected):
        ask_slurm(["sinfo"], fails=True)


@pytest.mark.parametrize(
    "body",
    ["sleep 9999", "trap '' TERM INT HUP; while :; do sleep 1; done", "echo half a li; sleep 9999"],
)
def test_a_command_that_hangs_is_ended(fake, body):
    fake(f'echo $$ > "$0.pid"; {body}')
    with pytest.raises(LaunchError, match=r"sinfo did not answer in 2 s; Slurm is down or busy"):
        ask_slurm(["sinfo"], deadline=Deadline(2))
    pid = int((fake("").with_suffix(".pid")).read_text())
    wait_until(lambda: _gone(pid))


def _gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_children_of_a_command_that_hangs_are_ended(fake, tmp_path):
    fake(f"sleep 9999 & echo $! > {tmp_path}/child; wait")
    with pytest.raises(LaunchError):
        ask_slurm(["sinfo"], deadline=Deadline(2))
    wait_until(lambda: _gone(int((tmp_path / "child").read_text())))


def test_a_child_that_keeps_the_pipe_open_does_not_keep_the_answer(fake, tmp_path):
    fake(f"echo answer; sleep 9999 & echo $! > {tmp_path}/child; exit 0")
    answer = ask_slurm(["sinfo"], deadline=Deadline(3))
    assert (answer.output, answer.code) == ("answer\n", 0)
    wait_until(lambda: _gone(int((tmp_path / "child").read_text())))


def test_a_flood_is_cut(fake, monkeypatch):
    monkeypatch.setattr(child, "MAX_BYTES", 2**20)
    fake("yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
    with pytest.raises(LaunchError, match="sinfo printed more than 1 MiB"):
        ask_slurm(["sinfo"])


def test_ten_megabytes_are_read(fake):
    fake("head -c 10000000 /dev/zero | tr '\\0' x")
    assert len(ask_slurm(["sinfo"]).output) == 10_000_000


def test_of_the_messages_the_beginning_is_kept(fake):
    fake("yes message | head -c 10000000 >&2")
    assert 2**16 <= len(ask_slurm(["sinfo"]).messages) < 2**18


def test_bytes_that_are_no_text(fake):
    fake("printf 'a\\377\\376b\\n'")
    assert ask_slurm(["sinfo"]).output == "a\ufffd\ufffdb\n"


def test_a_signal_is_a_failure(fake):
    fake("kill -9 $$")
    with pytest.raises(LaunchError, match=r"exit code -9"):
        ask_slurm(["sinfo"])


def test_the_environment_is_clean(fake, monkeypatch):
    hostile = {
        "SINFO_FORMAT": "x", "SQUEUE_PARTITION": "nope", "SLURM_TIME_FORMAT": "relative",
        "SBATCH_PARTITION": "nope", "SALLOC_ACCOUNT": "x", "SLURM_JOB_ID": "7",
        "SLURM_TOPO_LEN": "10", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo",
    }  # fmt: skip
    for name, value in hostile.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_CONF", "/etc/ours.conf")
    monkeypatch.setenv("SLURM_CLUSTERS", "daint")
    fake("env")
    seen = dict(
        line.split("=", 1) for line in ask_slurm(["sinfo"]).output.splitlines() if "=" in line
    )
    assert seen["SLURM_CONF"] == "/etc/ours.conf"
    assert seen["SLURM_CLUSTERS"] == "daint"
    assert (seen["LC_ALL"], seen["TZ"]) == ("C", "UTC0")
    assert not set(seen) & (set(hostile) - {"LC_ALL", "TZ"})


def test_no_descriptor_is_left_open(fake):
    fake("echo x")
    ask_slurm(["sinfo"])
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        ask_slurm(["sinfo"])
    assert len(os.listdir("/proc/self/fd")) == before


def test_one_deadline_covers_several_commands(fake, monkeypatch):
    skipped = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + skipped[0])
    monkeypatch.setattr(child, "time", clock)
    deadline = Deadline(500)
    fake("true")
    ask_slurm(["sinfo"], deadline=deadline)
    skipped[0] = 500.0
    fake("sleep 9999")
    with pytest.raises(LaunchError, match=r"did not answer in 500 s"):
        ask_slurm(["sinfo"], deadline=deadline)


def test_clean_environment():
    env = clean_environment()
    assert env["LC_ALL"] == "C"
    assert "SQUEUE_FORMAT" not in env


def test_version_numbers():
    assert version_numbers("slurm-wlm 22.05.8") == (22, 5, 8)
    assert version_numbers("25.05") == (25, 5)
    assert version_numbers("") == ()

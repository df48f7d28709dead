# SPDX-License-Identifier: Apache-2.0
"""Order files: private, new, and gone again where something fails."""

import os
import stat
import subprocess

import pytest

from nidmap.placement.errors import LaunchError
from nidmap.rankmap.launch import process
from nidmap.rankmap.launch.process import discard_launch, order_folders, remove_at_end, store_order
from tests.waiting import wait_until


def test_the_file_is_private_and_its_name_cannot_be_guessed(tmp_path):
    paths = [store_order("0,1\n", "MPICH_RANK_ORDER", "4711", [str(tmp_path)]) for _ in range(3)]
    assert len(set(paths)) == 3
    for path in paths:
        folder = os.path.dirname(path)
        assert os.path.basename(folder).startswith("nidmap-4711-")
        assert os.path.basename(path) == "MPICH_RANK_ORDER"
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with open(path) as stream:
            assert stream.read() == "0,1\n"
        discard_launch(path)
    assert list(tmp_path.iterdir()) == []


def test_a_job_id_from_elsewhere_does_not_lead_out_of_the_directory(tmp_path):
    path = store_order("x", "ranks.hosts", "../../etc/", [str(tmp_path)])
    assert os.path.dirname(os.path.dirname(path)) == str(tmp_path)


def test_the_second_place_is_taken_where_the_first_fails(tmp_path):
    path = store_order("x", "ranks.hosts", "", ["/dev/null/missing", str(tmp_path)])
    assert os.path.dirname(os.path.dirname(path)) == str(tmp_path)
    with pytest.raises(
        LaunchError, match=r"cannot write the order file in /dev/null/missing: Not a directory"
    ):
        store_order("x", "ranks.hosts", "", ["/dev/null/missing"])


def test_nothing_is_left_when_the_disk_is_full(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(process.os, "fsync", full)
    with pytest.raises(LaunchError, match="No space left on device"):
        store_order("x", "MPICH_RANK_ORDER", "", [str(tmp_path)])
    assert list(tmp_path.iterdir()) == []


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    target = tmp_path / "precious"
    target.write_text("precious")

    def guessed(prefix, dir):  # noqa: A002  # mkdtemp's own word
        folder = tmp_path / "guessed"
        folder.mkdir(exist_ok=True)
        (folder / "ranks.hosts").symlink_to(target)
        return str(folder)

    monkeypatch.setattr(process.tempfile, "mkdtemp", guessed)
    with pytest.raises(LaunchError, match="File exists"):
        store_order("x", "ranks.hosts", "", [str(tmp_path)])
    assert target.read_text() == "precious"


def test_what_compute_nodes_read_stays_out_of_the_local_tmp(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert order_folders(True, None) == [str(tmp_path)]
    assert order_folders(False, None)[0] == str(tmp_path)
    assert len(order_folders(False, None)) == 2
    assert order_folders(True, "/scratch") == ["/scratch"]


def test_the_directory_goes_when_its_process_has_ended(tmp_path):
    path = store_order("x", "ranks.hosts", "", [str(tmp_path)])
    with subprocess.Popen(["sleep", "600"]) as job:
        remove_at_end(path, job.pid)
        assert os.path.exists(path)
        job.kill()
    wait_until(lambda: not os.listdir(tmp_path), "the directory gone")


def test_a_process_that_is_not_there_leaves_the_file(tmp_path):
    path = store_order("x", "ranks.hosts", "", [str(tmp_path)])
    with subprocess.Popen(["true"]) as job:
        pass
    remove_at_end(path, job.pid)
    assert os.path.exists(path)

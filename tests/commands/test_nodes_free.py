# SPDX-License-Identifier: Apache-2.0
"""``nidmap nodes free``: what Slurm, a dump or a list says, as a user runs it."""

import json
import stat

import pytest

from tests.real_slurm import needs_slurm, real_slurm

MACHINE = "dragonfly:groups=2,chassis=2,blades=4,nodes=4"
NAMES = [f"nid{i:05d}" for i in range(64)]
SINFO = (
    "NODELIST STATE\nnid[00000-00003] idle\nnid00004 alloc\nnid[00005-00006] idle-\nnid00070 idle\n"
)


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster with busy and drained nodes and two partitions."""
    with real_slurm(
        NAMES,
        real=0,
        partitions={"main": NAMES, "sub": NAMES[:8]},
        features=dict.fromkeys(NAMES[::2], "gpu"),
    ) as slurm:
        slurm.occupy(NAMES[2:4])
        slurm.drain(NAMES[4:5])
        yield slurm


@pytest.fixture
def hostile(cluster):
    """Return the environment of a user with habits."""
    return {
        "SLURM_CONF": cluster.env["SLURM_CONF"], "SINFO_FORMAT": "x", "SINFO_PARTITION": "nope",
        "SLURM_TIME_FORMAT": "relative", "LC_ALL": "de_DE.UTF-8",
    }  # fmt: skip


@needs_slurm
@pytest.mark.parametrize(
    ("argv", "out"),
    [
        ((), "nid[00000-00001,00005-00063]\n"),
        (("--from", "idle", "-p", "sub"), "nid[00000-00001,00005-00007]\n"),
        (("-p", "sub", "-C", "gpu"), "nid[00000,00006]\n"),
        (("-m", "tree:4x2", "--from", "idle"), "nid[00000-00001,00005-00007]\n"),
        (("-m", "tree:4x2", "-p", "sub"), "nid[00000-00001,00005-00007]\n"),
        (("-m", "tree:4x2"), "nid[00000-00007]\n"),
    ],
)
def test_of_a_real_slurm(inside, hostile, argv, out):
    done = inside("nodes", "free", *argv, env=hostile)
    assert (done.code, done.out) == (0, out), done.err
    assert "free of" in done.err


@needs_slurm
def test_json(inside, hostile):
    done = inside("nodes", "free", "-p", "sub", "--json", env=hostile)
    document = json.loads(done.out)
    assert document["schema"] == "nidmap.free/1"
    assert document["source"] == "slurm"
    assert document["partition"] == "sub"
    assert document["states"] == {"allocated": 2, "drained": 1, "idle": 5}
    assert document["count"] == len(document["nodes"]) == 5
    assert document["nodelist"] == "nid[00000-00001,00005-00007]"


@needs_slurm
def test_the_machine_of_the_environment_does_not_keep_slurm_from_being_asked(inside, hostile):
    done = inside("nodes", "free", env={**hostile, "NIDMAP_MACHINE": "tree:4x2"})
    assert done.out == "nid[00000-00001,00005-00007]\n"
    assert "56 nodes of slurm not in tree:4x2, the first is nid00008" in done.err


@needs_slurm
def test_none_free(inside, cluster):
    with real_slurm(["n1", "n2"], real=0) as slurm:
        slurm.occupy(["n1", "n2"])
        done = inside("nodes", "free", env={"SLURM_CONF": slurm.env["SLURM_CONF"]})
    assert (done.code, done.out) == (1, "")
    assert "0 free of 2 nodes (2 allocated)" in done.err


@needs_slurm
@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("-p", "nope"), 3, "no partition 'nope'; choose from main, sub"),
        (("--reservation", "nope"), 3, "no reservation 'nope'; it has none"),
        (("-C", "gpu*2"), 2, "not features joined by & and |"),
        (("-m", "fattree:leaf=2,leaves=2,spines=1", "--from", "nope"), 3, "has no node 'nope'"),
        (("-p", "main", "--from", __file__), 2, "use them with --from idle"),
    ],
)
def test_refused(inside, refused, hostile, argv, code, words):
    refused(inside("nodes", "free", *argv, env=hostile), code, words)


@needs_slurm
def test_a_slurm_that_is_down(inside, refused):
    with real_slurm(["n1"], real=0) as slurm:
        slurm.stop_controller()
        done = inside("nodes", "free", env={"SLURM_CONF": slurm.env["SLURM_CONF"]})
    refused(done, 4, "Slurm is down")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "sinfo is not on PATH"),
        ("echo junk", "sinfo printed unreadable output"),
        ("printf 'nid00001 id'", "sinfo printed unreadable output"),
        ("echo '\033[31mno\033[0m' >&2; exit 1", "sinfo failed (exit code 1): \\x1b[31mno"),
    ],
)
def test_a_sinfo_that_misbehaves(inside, refused, tmp_path, body, words):
    if body is not None:
        script = tmp_path / "sinfo"
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    path = str(tmp_path) if body is None else f"{tmp_path}:/bin"
    refused(inside("nodes", "free", env={"PATH": path}), 4, words)


def test_a_sinfo_that_hangs(nidmap, refused, tmp_path):
    script = tmp_path / "sinfo"
    script.write_text("#!/bin/sh\nsleep 60\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    done = nidmap("nodes", "free", env={"PATH": f"{tmp_path}:/bin"})
    refused(done, 4, "sinfo did not answer in 4.5 s")


def test_of_a_dump(inside, tmp_path):
    dump = tmp_path / "sinfo.txt"
    dump.write_text(SINFO)
    done = inside("nodes", "free", "--from", str(dump))
    assert (done.code, done.out) == (0, "nid[00000-00003,00070]\n")
    assert "5 free of 8 nodes (1 allocated, 5 idle, 2 planned)" in done.err
    done = inside("nodes", "free", "-m", MACHINE, "--from", "-", stdin=SINFO.encode())
    assert (done.code, done.out) == (0, "nid[00000-00003]\n")


def test_of_a_list_the_machine_says_what_is_free(inside, tmp_path):
    done = inside("nodes", "free", "-m", MACHINE, "--from", "-", stdin=b"nid[00012-00010,00003]")
    assert done.code == 3  # a range that runs backwards
    done = inside("nodes", "free", "-m", MACHINE, "--from", "-", stdin=b"nid00012,nid00003\n")
    assert (done.code, done.out) == (0, "nid[00012,00003]\n")


def test_a_list_alone_says_nothing_of_states(inside, refused):
    done = inside("nodes", "free", "--from", "-", stdin=b"nid00012,nid00003\n")
    refused(done, 3, "does not state which nodes are free; sinfo -N -l prints it; or name the")


def test_standard_input_is_read_once(inside, refused):
    refused(inside("nodes", "free", "-m", "-", "--from", "-", stdin=b""), 2, "only once")


@pytest.mark.parametrize("stdin", [b"", b"\n", b"\x00\xff\x7fELF", b"nid[00001"])
def test_bad_input(inside, refused, stdin):
    done = inside("nodes", "free", "-m", MACHINE, "--from", "-", stdin=stdin)
    assert done.code == 3, done.err
    assert "Traceback" not in done.err


def test_a_full_disk(nidmap):
    with open("/dev/full", "wb") as full:
        done = nidmap("nodes", "free", "-m", MACHINE, stdout=full)
    assert done.code == 5
    assert "No space left" in done.err

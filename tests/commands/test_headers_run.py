# SPDX-License-Identifier: Apache-2.0
"""Headers that nidmap writes, submitted to a real slurmctld: the job gets the planned nodes."""

import contextlib
import io
import json
import os
import pwd

import pytest
from hypothesis import HealthCheck, given, note
from hypothesis import strategies as st

from nidmap.placement.commands import run
from nidmap.placement.nodelist import NodeList
from nidmap.placement.slurm import command
from tests.effort import examples
from tests.real_slurm import needs_slurm, real_slurm
from tests.waiting import HANGS, wait_until

NAMES = [f"nid{i:05d}" for i in range(16)]
PARTITIONS = {"main": NAMES[:12], "gpu": NAMES[8:]}
FEATURES = {name: "big,fast" if i % 4 == 0 else "big" for i, name in enumerate(NAMES) if i % 2 == 0}
RESERVED = NAMES[2:7]


@pytest.fixture(scope="module")
def slurm():
    """Return 16 nodes in two partitions, some with features, five of them reserved."""
    with real_slurm(NAMES, real=2, partitions=PARTITIONS, features=FEATURES, cores=4) as cluster:
        whose = f"Users={pwd.getpwuid(os.getuid()).pw_name} Nodes={','.join(RESERVED)}"
        cluster.scontrol(
            [f"create reservation ReservationName=r1 StartTime=now Duration=infinite {whose}"]
        )
        yield cluster


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Give Slurm time to answer, however busy the machine is."""
    monkeypatch.delenv("NIDMAP_MACHINE", raising=False)
    monkeypatch.setattr(command, "TIMEOUT", HANGS)


@pytest.fixture
def asked(slurm, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
    return slurm


def submitted(slurm, script):
    """Submit a script and return the nodes that its job was given, once it has them.

    The job sleeps before its first command: what it would start is not here.
    On a busy machine a node that does not answer in time ends its job: then once more.
    """
    lines = script.read_text().splitlines(keepends=True)
    first = next((k for k, line in enumerate(lines) if line[0] not in "#\n"), len(lines))
    script.write_text("".join([*lines[:first], "sleep 9999\n", *lines[first:]]))
    said = []
    for _ in range(4):
        number = slurm.run(["sbatch", "--parsable", str(script)]).stdout.strip()
        asked = ["squeue", "-h", "-j", number, "-o", "%T|%r|%N"]

        def no_longer_pending(asked=asked):
            found = slurm.run(asked, check=False).stdout.strip().partition("|")
            return None if found[0] == "PENDING" else found

        state, _, rest = wait_until(no_longer_pending, f"job {number}")
        if state in ("RUNNING", "CONFIGURING"):
            return set(NodeList.parse(rest.partition("|")[2]))
        said.append(f"{state} {rest}")
    raise AssertionError(f"the job does not start: {said}\n{script.read_text()}")


def with_constraint(constraint):
    """Return the nodes that have the features, by plain set algebra."""
    words = {name: set(FEATURES.get(name, "").split(",")) for name in NAMES}
    return {
        None: set(NAMES),
        "big": {n for n in NAMES if "big" in words[n]},
        "big&fast": {n for n in NAMES if {"big", "fast"} <= words[n]},
    }[constraint]


def may_run_on(options):
    """Return the sets of nodes that a job with these options may have, one a partition."""
    allowed = with_constraint(options["constraint"]) - set(options["drained"])
    allowed &= set(RESERVED) if options["reservation"] else set(NAMES) - set(RESERVED)
    allowed -= set(options["exclude"])
    return [allowed & set(PARTITIONS[p]) for p in (options["partition"] or "main").split(",")]


OPTIONS = st.fixed_dictionaries(
    {
        "count": st.integers(1, 4),
        "ppn": st.sampled_from([None, 1, 4]),
        "partition": st.sampled_from([None, "main", "gpu", "gpu,main"]),
        "constraint": st.sampled_from([None, "big", "big&fast"]),
        "reservation": st.sampled_from([None, "r1"]),
        "drained": st.lists(st.sampled_from(NAMES), max_size=4, unique=True),
        "exclude": st.lists(st.sampled_from(NAMES), max_size=3, unique=True),
        "strategy": st.sampled_from(["compact", "random", "hilbert", "slurm-none"]),
        "format": st.sampled_from(["sbatch", "exclude"]),
    }
)


@needs_slurm
@examples(25, suppress_health_check=list(HealthCheck))
@given(options=OPTIONS)
def test_the_job_runs_on_the_planned_nodes(asked, tmp_path, options):
    asked.free()
    asked.drain(options["drained"])
    script = tmp_path / "job.sh"
    words = ["plan", "-m", "torus:4x4", "-N", str(options["count"]), "--from", "idle"]
    words += [
        f"--{name}={options[name]}"
        for name in ("ppn", "partition", "constraint", "reservation", "strategy")
        if options[name] is not None
    ]
    words += [f"--exclude={','.join(options['exclude'])}"] if options["exclude"] else []
    fits = max(map(len, may_run_on(options))) >= options["count"]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = run([*words, "--format", options["format"], "-o", str(script)])
    note(said.getvalue())
    assert code == (0 if fits else 1)
    if not fits:
        return
    note(script.read_text())
    plan = tmp_path / "plan.json"
    assert run([*words, "-o", str(plan)]) == 0
    planned = set(json.loads(plan.read_text())["nodes"])
    got = submitted(asked, script)
    assert len(got) == options["count"]
    assert any(got <= allowed for allowed in may_run_on(options))
    if options["format"] == "sbatch":
        assert got == planned


@needs_slurm
def test_a_softer_header_has_the_nodes_that_are_included(asked, tmp_path):
    asked.free()
    script = tmp_path / "job.sh"
    words = "plan -m torus:4x4 -N 3 --from idle --include nid00009 --format exclude -o"
    assert run([*words.split(), str(script)]) == 0
    got = submitted(asked, script)
    assert "nid00009" in got
    assert len(got) == 3


@needs_slurm
@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ("-N 2 --from nid[00000-00003]", 0, "would start at once"),
        ("-N 2 --from nid[00012-00013]", 1, "would never start: Slurm refuses it"),
        ("-N 2 --from nid[00012-00013] --format sbatch", 1, "would never start"),
        ("-N 2 --ppn 5 --from nid[00000-00001]", 1, "would never start"),
        ("-N 1 --from nid00008 --json", 1, "may never end"),
        ("-N 2 --from nid[00002-00004]", 1, "a reservation, which may never end"),
    ],
)
def test_check_answers_no_where_the_job_would_never_start(asked, capfd, options, code, words):
    asked.free()
    asked.occupy(["nid00008"])
    assert run(["plan", "-m", "torus:4x4", "--check", *options.split()]) == code
    assert words in capfd.readouterr().err


TREES = "SwitchName=a Nodes=nid[00000-00003]\nSwitchName=b Nodes=nid[00004-00011]\n"


@needs_slurm
def test_a_plan_lies_in_one_of_several_trees(monkeypatch, tmp_path, capfd):
    conf = tmp_path / "topology.conf"
    conf.write_text(TREES)
    names = NAMES[:12]
    with real_slurm(names, plugin="tree", topology_conf=TREES, real=2) as cluster:
        monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
        cluster.drain(["nid00004"])
        for strategy in ("compact", "random", "spread", "slurm-none"):
            script = tmp_path / f"{strategy}.sh"
            words = ["plan", "-m", str(conf), "-N", "5", "--from", "idle", "--strategy", strategy]
            assert run([*words, "--check", "--format", "sbatch", "-o", str(script)]) == 0
            got = submitted(cluster, script)
            assert len(got & set(names[5:])) == 5
            cluster.run(["scancel", "-u", "root"], check=False)
            cluster.free()
            cluster.drain(["nid00004"])
        capfd.readouterr()
        assert run(["plan", "-m", str(conf), "-N", "8", "--from", "idle"]) == 1
        assert "at most 7 are free under one top switch" in capfd.readouterr().err
        refused = cluster.run(["sbatch", "--test-only", "-N8", "--wrap=true"], check=False)
        assert refused.returncode == 1 or "2027" in refused.stderr
        across = ["plan", "-m", str(conf), "-N", "4", "--include", "nid00000,nid00005"]
        assert run(across) == 1
        refused = cluster.run(
            [
                "sbatch",
                "--test-only",
                "-N4",
                "-w",
                "nid00000,nid00005,nid00006,nid00007",
                "--wrap=true",
            ],
            check=False,
        )
        assert refused.returncode == 1

# SPDX-License-Identifier: Apache-2.0
"""Which jobs run where: names that forge rows, two shapes of JSON, and no JSON at all."""

import getpass
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.accounting import _queued_job, jobs_in, running_jobs
from nidmap.placement.errors import LaunchError, NidmapError
from nidmap.placement.records import JobRecord
from tests.placement.slurm.test_nodes import says
from tests.real_slurm import needs_slurm, real_slurm

HOSTILE = ("ev|il\n999|nid00001", "\x1b[31m<script>", "=1+1", "a\tb", "'; rm -rf /")


@needs_slurm
def test_job_names_cannot_forge_jobs(monkeypatch):
    names = [f"nid{i:05d}" for i in range(16)]
    with real_slurm(names, real=0) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        monkeypatch.setenv("SQUEUE_PARTITION", "nope")
        ids = [slurm.occupy(names[2 * k : 2 * k + 2], job_name=n) for k, n in enumerate(HOSTILE)]
        slurm.run(["sbatch", "-N16", "--exclusive", "--wrap=true"])  # this one waits
        jobs = {job.id: job for job in running_jobs()}
    assert list(jobs) == [str(i) for i in ids]
    for k, (number, name) in enumerate(zip(ids, HOSTILE, strict=True)):
        job = jobs[str(number)]
        assert (job.name, job.user, job.partition) == (name, getpass.getuser(), "debug")
        assert list(job.nodes) == names[2 * k : 2 * k + 2]


@needs_slurm
def test_without_json_ids_and_nodes_remain(monkeypatch, tmp_path):
    """An old squeue without --json: the real one behind a script that refuses the option."""
    import shutil

    real = shutil.which("squeue")
    script = tmp_path / "squeue"
    script.write_text(f'#!/bin/sh\n[ "$1" = --json ] && exit 1\nexec {real} "$@"\n')
    script.chmod(0o755)
    names = [f"nid{i:05d}" for i in range(8)]
    with real_slurm(names, real=0) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        number = slurm.occupy(names[1:4], job_name=HOSTILE[0])
        found = running_jobs()
    assert [(job.id, list(job.nodes), job.name) for job in found] == [(str(number), names[1:4], "")]


NEW = {  # the shape of Slurm 23.11 and later
    "job_id": 41,
    "job_state": ["RUNNING"],
    "nodes": "n[1-2]",
    "name": "x",
    "user_name": "alice",
    "partition": "main",
    "job_resources": {"nodes": {"list": "n[1-2]", "count": 2}},
}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (NEW, "41"),
        ({**NEW, "job_id": {"set": True, "infinite": False, "number": 42}}, "42"),
        ({**NEW, "job_state": "RUNNING"}, "41"),
        ({**NEW, "job_state": ["COMPLETING", "CANCELLED"]}, "41"),
        ({**NEW, "name": None, "user_name": 7}, "41"),
        ({**NEW, "job_state": ["PENDING"]}, None),
        ({**NEW, "nodes": ""}, None),
        ({**NEW, "nodes": None}, None),
        ({}, None),
    ],
)
def test_both_shapes_of_json(row, expected):
    found = _queued_job(row)
    assert (None if found is None else found.id) == expected


@pytest.mark.parametrize("row", [{**NEW, "nodes": "n[1-"}, {**NEW, "job_id": "x"}])
def test_rows_that_are_none(row):
    with pytest.raises(LaunchError):
        _queued_job(row)


def test_json_that_is_none_falls_back(fake):
    for text in ("", "[]", '{"jobs": 7}', '{"jobs": [7]}', "[" * 200_000, '{"jobs": [{"job'):
        assert jobs_in(text) is None
    fake('[ "$1" = --json ] && echo "[[[" || echo "7|n[1-2]"', "squeue")
    assert running_jobs() == (JobRecord("7", running_jobs()[0].nodes),)


@pytest.mark.parametrize(
    "text", ["junk\n", "7|n[1-\n", "7\n", "\x1b[31m7|n1\n", "7|n1|x\n", "x|n1\n", "7|n1 n2\n"]
)
def test_text_that_is_none(fake, text):
    says(fake, text, "squeue")
    with pytest.raises(LaunchError) as caught:
        running_jobs()
    assert str(caught.value).isprintable()


def test_text_of_arrays_and_pending_jobs(fake):
    says(fake, "7_3|n1\n8+1|n[2-3]\n9|\n\n", "squeue")
    assert [(job.id, len(job.nodes)) for job in running_jobs()] == [("7_3", 1), ("8+1", 2)]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(list(NEW)), VALUES))
def test_any_row_is_a_job_none_or_an_error(changes):
    row = json.loads(json.dumps({**NEW, **changes}))
    try:
        found = _queued_job(row)
    except NidmapError as error:
        assert str(error).isprintable()  # noqa: PT017  # the other way is an answer too
    else:
        assert found is None or found.nodes

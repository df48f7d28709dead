# SPDX-License-Identifier: Apache-2.0
"""How well jobs sit: the ranking, and the same as metrics."""

import json

import pytest

from nidmap.placement.commands import run
from nidmap.placement.specs import parse_spec
from nidmap.web import replies
from nidmap.web.slowdowns import metrics
from nidmap.web.snapshot import of_dump
from tests.web.serving import running, squeue, until

#: The machine of the fixture `small`.
SPEC = "dragonfly:groups=4,chassis=2,blades=4,nodes=4"

JOBS = (
    (1, "nid[00000-00007]", "near", "ada"),
    (2, "nid[00030-00032,00062-00064,00094-00096]", 'far"\\', "bob"),
    (3, "nid00127", "one", "ada"),
)


@pytest.fixture(scope="module")
def torn(small, tmp_path_factory):
    """A server with a job that is scattered, one that stands together, and one of one node."""
    path = tmp_path_factory.mktemp("jobs") / "squeue.json"
    path.write_text(squeue(*JOBS))
    with running(small, (str(path),)) as found:
        until(lambda: found.service.live.snapshot.jobs)
        yield found


def test_jobs_are_ranked_by_what_a_better_placement_would_save(torn):
    reply = torn.ask("/api/v1/slowdowns")
    assert reply.status == 200
    jobs = reply.json["jobs"]
    assert [job["slowdown"] for job in jobs] == sorted((j["slowdown"] for j in jobs), reverse=True)
    far, near, one = sorted(jobs, key=lambda job: -job["count"])
    assert far["touches"]["group"] == 4
    assert near["touches"] == {"group": 1, "chassis": 1, "blade": 2}
    assert min(far["slowdown"], near["slowdown"]) >= one["slowdown"] == 1
    assert far["spread"] > near["spread"] == 0
    assert all(1 <= j["slowdown_low"] <= j["slowdown"] <= j["slowdown_high"] for j in jobs)
    assert all("user" not in job for job in jobs)


def test_the_page_says_what_the_command_says(torn, tmp_path):
    (tmp_path / "squeue.json").write_text(squeue(*JOBS))
    words = ["jobs", str(tmp_path / "squeue.json"), "-m", SPEC, "-o", str(tmp_path / "out.json")]
    assert run(words) == 0
    command = json.loads((tmp_path / "out.json").read_text())["jobs"]
    page = {job["id"]: job for job in torn.ask("/api/v1/slowdowns").json["jobs"]}
    for job in command:
        shown = page[job["id"]]
        ends = [shown[key] for key in ("slowdown_low", "slowdown", "slowdown_high")]
        assert list(job["slowdown"].values()) == ends
        assert [job[key] for key in ("touches", "spread", "best")] == [
            shown[key] for key in ("touches", "spread", "best")
        ]


@pytest.fixture
def queue(small, tmp_path):
    """A server whose list of jobs a test writes, `queue(*jobs)`, with 16 ranks per node."""
    path = tmp_path / "squeue.json"
    path.write_text(squeue(JOBS[0], ppn=16))
    with running(small, (str(path),), every=0.2) as site:

        def write(*jobs):
            path.write_text(squeue(*jobs, ppn=16))
            ids = [str(job[0]) for job in jobs]
            until(lambda: [job.id for job in site.service.live.snapshot.jobs] == ids)

        site.write, site.path = write, path
        until(lambda: site.service.live.snapshot.jobs)
        yield site


def figures_of(command):
    return {job["id"]: [*job["slowdown"].values(), job["ppn"], job["patterns"]] for job in command}


def test_jobs_are_judged_with_their_own_ranks_as_by_the_command(queue, tmp_path):
    queue.write(*JOBS)
    assert run(["jobs", str(queue.path), "-m", SPEC, "-o", str(tmp_path / "out.json")]) == 0
    command = figures_of(json.loads((tmp_path / "out.json").read_text())["jobs"])
    names = ("slowdown_low", "slowdown", "slowdown_high", "ppn", "patterns")
    jobs = queue.ask("/api/v1/slowdowns").json["jobs"]
    assert {job["id"]: [job[name] for name in names] for job in jobs} == command
    assert {job["ppn"] for job in jobs} == {16}


def test_jobs_are_held_against_the_forms_pattern(queue):
    def asked(words):
        return queue.ask(f"/api/v1/slowdowns?{words}").json["jobs"][0]

    assert asked("pattern=ring&ppn=4")["patterns"] == ["ring"]
    assert asked("pattern=ring&ppn=4")["ppn"] == 16, "the job's own"
    assert asked("pattern=fft:3x3")["patterns"] == ["stencil:auto", "alltoall"], "it does not fit"
    refused = queue.ask("/api/v1/slowdowns?pattern=nope")
    assert (refused.status, "nope" in refused.json["detail"]) == (409, True)


def test_a_new_job_is_there_at_once_and_only_it_is_judged(queue, monkeypatch):
    wanted, call = [], queue.service.long.call

    async def judging(function, now, question, ids):
        wanted.append(sorted(ids))
        return await call(function, now, question, ids)

    monkeypatch.setattr(queue.service.long, "call", judging)
    queue.write(*JOBS[:2])
    first = {job["id"]: job for job in queue.ask("/api/v1/slowdowns").json["jobs"]}
    queue.write(*JOBS[1:])
    second = {job["id"]: job for job in queue.ask("/api/v1/slowdowns").json["jobs"]}
    assert (first.keys(), second.keys()) == ({"1", "2"}, {"2", "3"})
    assert second["2"]["judged"] == first["2"]["judged"]
    assert wanted == [["1", "2"], ["3"]]


def test_metrics_are_open_metrics(torn):
    reply = torn.ask("/metrics")
    assert reply.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    lines = reply.body.decode().splitlines()
    assert lines[-1] == "# EOF"
    values = dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")
    free = [float(v) for k, v in values.items() if k.startswith("nidmap_free_nodes")]
    assert sum(free) == torn.ask("/api/v1/state").json["free"] == 128 - 18
    assert values['nidmap_job_touches{job="2",level="group"}'] == "4.0"
    assert 0 <= float(values["nidmap_free_fragmentation_ratio"]) <= 1
    slow = {k.split("{")[0]: float(v) for k, v in values.items() if '"2"' in k and "slowdown" in k}
    shown = next(job for job in torn.ask("/api/v1/slowdowns").json["jobs"] if job["id"] == "2")
    assert slow == {
        f"nidmap_job_{name}_ratio": shown[name]
        for name in ("slowdown", "slowdown_low", "slowdown_high")
    }
    assert any('pattern="stencil:auto alltoall",ppn="1"' in name for name in values)
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    assert all(name.split("{")[0] in families for name in values)


def test_metrics():
    torus = parse_spec("torus:2x2")
    job = replies.JudgedJob(
        id='7"',
        rows="0-7",
        count=8,
        name="",
        partition="",
        ppn=4,
        touches={"x": 2},
        patterns=["ring"],
        spread=0.5,
        best="",
        slowdown=1.2,
        slowdown_low=1.1,
        slowdown_high=1.5,
        judged=None,
    )
    lines = metrics(torus, of_dump(torus), [job]).decode().splitlines()
    assert [line for line in lines if line[0] != "#"] == [
        'nidmap_free_nodes{level="x",unit="0"} 2.0',
        'nidmap_free_nodes{level="x",unit="1"} 2.0',
        "nidmap_free_fragmentation_ratio 0.0",
        r'nidmap_job_nodes{job="7\""} 8.0',
        r'nidmap_job_spread_ratio{job="7\""} 0.5',
        r'nidmap_job_slowdown_ratio{job="7\"",pattern="ring",ppn="4"} 1.2',
        r'nidmap_job_slowdown_low_ratio{job="7\"",pattern="ring",ppn="4"} 1.1',
        r'nidmap_job_slowdown_high_ratio{job="7\"",pattern="ring",ppn="4"} 1.5',
        r'nidmap_job_touches{job="7\"",level="x"} 2.0',
        "nidmap_states_assumed 1.0",
        "nidmap_states_stale 0.0",
    ]

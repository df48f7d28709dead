"""How well jobs sit: the ranking, and the same as metrics."""

import json

import pytest

from nidmap.placement.commands import run
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


def test_metrics_are_open_metrics(torn):
    reply = torn.ask("/metrics")
    assert reply.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    lines = reply.body.decode().splitlines()
    assert lines[-1] == "# EOF"
    values = dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")
    free = [int(v) for k, v in values.items() if k.startswith("nidmap_free_nodes")]
    assert sum(free) == torn.ask("/api/v1/state").json["free"] == 128 - 18
    assert values['nidmap_job_touches{job="2",level="group"}'] == "4"
    assert 0 <= float(values["nidmap_free_fragmentation_ratio"]) <= 1
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    assert all(name.split("{")[0] in families for name in values)

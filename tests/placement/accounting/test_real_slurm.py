# SPDX-License-Identifier: Apache-2.0
"""Jobs that really ran: what Slurm's accounting says of them, read back."""

import json
import time
from collections import Counter

from nidmap.placement.accounting import accounted_jobs, read_jobs
from nidmap.placement.commands import run
from tests.real_accounting import accounting, needs_accounting
from tests.real_slurm import needs_slurm, real_slurm
from tests.waiting import wait_until

NAMES = ("lammps", "a|b|c", "new\nline", "<script>,=1+1", "7|n1|x")


def submit(slurm, number):
    """Start a job of one to four nodes; of some steps run too, some are arrays."""
    more = ["--array=0-1"] if number % 20 == 7 else []
    steps = "srun true" if number % 5 == 0 else "true"
    name = NAMES[number % len(NAMES)]
    nodes = f"-N{1 + number % 4}"
    slurm.run(["sbatch", nodes, "-J", name, "--exclusive", *more, f"--wrap={steps}"])


def table_of(slurm, columns):
    command = ["sacct", "-a", "-X", "-P", "-n", "-S", "now-1days", "-o", columns]
    return slurm.run(command).stdout.splitlines()


@needs_accounting
def test_forty_jobs_have_the_nodes_that_slurm_says(monkeypatch, tmp_path):
    names = [f"nid{i:05d}" for i in range(6)]
    with accounting() as accounts, real_slurm(names, real=6, extra=accounts) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        monkeypatch.setenv("SACCT_FORMAT", "jobid")
        for number in range(40):
            submit(slurm, number)
        for size in (6, 7):  # cancelled before they had a node
            held = slurm.run(["sbatch", "--parsable", f"-N{size}", "--hold", "--wrap=true"])
            slurm.run(["scancel", held.stdout.strip()])
        wait_until(lambda: not slurm.run(["squeue", "-h"]).stdout.strip(), pause=0.3)
        slurm.run(["salloc", "--no-shell", "-N3", "-J", "running"])
        ended = Counter(COMPLETED=42, RUNNING=1)
        wait_until(lambda: ended <= Counter(table_of(slurm, "State")), pause=0.3)
        rows = [row.split("|") for row in table_of(slurm, "JobID,NodeList,State")]
        expected = {
            number: slurm.run(["scontrol", "show", "hostnames", listed]).stdout.split()
            for number, listed, _ in rows
            if listed != "None assigned"
        }
        live = {job.id: job for job in accounted_jobs("now-1days")}
        machine = "fattree:leaf=3,leaves=2,spines=1,bw=1"
        words = [
            "-m",
            machine,
            "--since",
            "now-1days",
            "--last",
            "0",
            "-o",
            f"{tmp_path}/jobs.json",
        ]
        assert run(["jobs", *words]) == 0
        judged = json.loads((tmp_path / "jobs.json").read_text())["jobs"]
        columns = "JobID,User,State,Start,End,NodeList,JobName"
        piped = slurm.run(
            ["sacct", "-a", "-P", "-S", "now-1days", "-o", columns.removesuffix(",JobName")]
        ).stdout
    assert len(expected) >= 42
    assert {number: list(job.nodes) for number, job in live.items()} == expected
    assert {job.id: list(job.nodes) for job in read_jobs(piped, "-")} == expected
    assert {job["id"]: job["nodes"] for job in judged} == {k: len(v) for k, v in expected.items()}
    assert all(job["nodes"] <= job["free"] <= 6 for job in judged)
    assert {job.state for job in live.values()} == {"COMPLETED", "RUNNING"}
    assert [job.name for job in live.values() if job.end == float("inf")] == ["running"]
    assert {job.name for job in live.values()} >= {name.split("\n")[0] for name in NAMES}
    now = time.time()
    assert all(now - 86400 < job.start <= min(job.end, now + 1) for job in live.values())


@needs_slurm
def test_without_accounting_the_running_jobs_can_be_judged(monkeypatch, capfd, tmp_path):
    names = [f"nid{i:05d}" for i in range(6)]
    machine = "fattree:leaf=3,leaves=2,spines=1,bw=1"
    with real_slurm(names, real=1) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        slurm.occupy(names[1:4], job_name="a|b")
        assert run(["jobs", "-m", machine]) == 4
        refusal = capfd.readouterr().err
        path = tmp_path / "squeue.json"
        path.write_text(slurm.run(["squeue", "--json"]).stdout)
    assert refusal.count("\n") == 1
    assert "squeue --json" in refusal
    (job,) = read_jobs(path.read_text(), "squeue.json")
    assert (list(job.nodes), job.name) == (names[1:4], "a|b")
    assert time.time() - 600 < job.start <= time.time()
    assert run(["jobs", "-m", machine, str(path)]) == 0

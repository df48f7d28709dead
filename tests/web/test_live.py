# SPDX-License-Identifier: Apache-2.0
"""What changes: asked in the background, kept when the source is gone, marked with its age."""

import json
import subprocess
import threading
from multiprocessing import get_context

import pytest

from nidmap.placement.errors import LaunchError, ParseError
from nidmap.placement.scheduler.baseline import live_baseline
from nidmap.placement.specs import parse_spec
from nidmap.web.service import LiveSnapshot
from nidmap.web.snapshot import ask_sources, of_dump
from tests.real_slurm import needs_slurm, real_slurm
from tests.web.machines import in_states
from tests.web.serving import HOSTILE, run_async, running, squeue, until

MACHINE = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=4")


class Source:
    """Stands for a source that can fail."""

    def __init__(self):
        self.found = of_dump(MACHINE)
        self.error = None
        self.asked = 0

    async def __call__(self):
        self.asked += 1
        if self.error:
            raise self.error
        return self.found


def test_a_source_that_fails_leaves_the_last_answer():
    source = Source()
    live = LiveSnapshot(MACHINE, ("slurm",), source)
    first = live.snapshot
    run_async(live.renew())
    good = live.snapshot
    assert not good.stale
    source.error = LaunchError("Slurm is down", "wait")
    run_async(live.renew())
    assert live.snapshot.stale
    assert live.snapshot.error == "Slurm is down; wait"
    assert live.snapshot.state.tolist() == good.state.tolist()
    assert live.snapshot.taken == good.taken
    assert b'"stale":true' in live.state.raw
    source.error = None
    run_async(live.renew())
    assert not live.snapshot.stale
    assert live.snapshot.error == ""
    assert live.snapshot.version == good.version + 2 == first.version + 3


def test_an_unforeseen_error_is_survived_too():
    source = Source()
    live = LiveSnapshot(MACHINE, ("slurm",), source)
    source.error = ZeroDivisionError("x\x1b[0m")
    run_async(live.renew())
    assert live.snapshot.error == "ZeroDivisionError: x\\x1b[0m"


def test_the_version_stays_where_nothing_changes():
    from dataclasses import replace

    source = Source()
    live = LiveSnapshot(MACHINE, ("slurm",), source)
    run_async(live.renew())
    version, tag = live.snapshot.version, live.state.tag
    source.found = replace(source.found, taken=123.0)
    run_async(live.renew())
    assert live.snapshot.version == version
    assert live.snapshot.taken == 123.0
    assert live.state.tag != tag
    source.found = replace(of_dump(in_states(MACHINE, down=[1])), taken=124.0)
    run_async(live.renew())
    assert live.snapshot.version == version + 1


def test_one_asker_for_all_viewers(small, tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(squeue((1, "nid00001", "a", "u")))
    with running(small, (str(path),), every=60) as site:
        until(lambda: site.service.live.snapshot.jobs)
        asked = []
        site.service.live._ask = lambda: asked.append(1)
        threads = [threading.Thread(target=site.ask, args=("/api/v1/state",)) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert asked == []


def test_a_file_is_read_again_when_it_changes(tmp_path):
    path = tmp_path / "free"
    path.write_text("nid00001\nnid00002\n")

    async def read():
        return ask_sources(MACHINE, (str(path),))

    live = LiveSnapshot(MACHINE, (str(path),), read)
    run_async(live.renew())
    assert live.snapshot.document(MACHINE).free == 2
    first = live.snapshot
    run_async(live.renew())
    assert live.snapshot is first
    path.write_text("nid00003\n")
    run_async(live.renew())
    assert live.snapshot.document(MACHINE).free == 1
    path.unlink()
    run_async(live.renew())
    assert live.snapshot.stale
    assert "free" in live.snapshot.error


def test_a_hidden_users_name_is_masked_in_jobs_and_in_no_partition(tmp_path):
    path = tmp_path / "jobs.json"
    path.write_text(squeue((1, "nid00001", "work-7", "work"), (2, "nid00002", "job q", "q")))
    found = ask_sources(MACHINE, (str(path),))
    assert [(job.name, job.partition, job.user) for job in found.jobs] == [
        ("…-7", "workq", ""), ("job …", "workq", ""),
    ]  # fmt: skip


def test_a_dump_of_states(tmp_path):
    path = tmp_path / "sinfo"
    path.write_text(
        "NODELIST STATE\nnid00000 idle\nnid00001 alloc\nnid00002 down*\nnid00003 idle\n"
        "other1 idle\n"
    )
    found = ask_sources(MACHINE, (str(path),))
    assert found.state[:4].tolist() == ["idle", "allocated", "down", "idle"]
    assert found.unknown == 1


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("other1\n", "other1"),
        (squeue((1, "other[1-3]", "x", "u")), "no job has nodes of"),
        ('{"jobs": [{"job_id": null, "job_state": "RUNNING", "nodes": "n1"}]}', "without an ID"),
        ("{not json", "not"),
    ],
)
def test_files_that_do_not_fit_are_refused(tmp_path, text, word):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(ParseError, match=word) as caught:
        ask_sources(MACHINE, (str(path),))
    assert str(path) in str(caught.value)


def test_a_machine_without_source_is_its_dump(site):
    found = site.ask("/api/v1/state").json
    assert (found["source"], found["taken"], found["stale"]) == ("dump", None, False)
    assert site.ask("/api/v1/machine").json["live"] is False


# --- a real Slurm ------------------------------------------------------------------------


@needs_slurm
def test_a_real_slurm_that_dies_and_returns(monkeypatch):
    machine = parse_spec("dragonfly:groups=2,chassis=1,blades=2,nodes=4")
    names = machine.names.tolist()
    partitions = {"batch": names, "half": names[8:]}
    with real_slurm(names, real=2, partitions=partitions) as slurm:
        for key, value in slurm.env.items():
            monkeypatch.setenv(key, value)
        slurm.drain([names[9]])
        slurm.occupy(names[:2], job_name=HOSTILE.replace("\n", " ").replace("\x1b", ""))
        with running(machine, ("slurm",), every=1.0) as site:
            until(lambda: site.service.live.snapshot.source == "slurm")
            usual = site.post("describe", nodes=names[2], pattern="ring").json["default"]
            assert usual["words"] == live_baseline(machine).words
            found = site.ask("/api/v1/state").json
            states = dict(zip(names, found["state"]["codes"], strict=True))
            words = found["state"]["values"]
            assert words[states[names[5]]] == "idle"
            assert words[states[names[9]]] in ("drained", "drain")
            assert words[states[names[0]]] == "allocated"
            (job,) = found["jobs"]
            assert job["rows"] == "0-1"
            assert "<script>" in job["name"]
            assert "user" not in job
            assert found["free"] == 16 - 3
            assert not found["stale"]
            plan = site.post("plan", count=13).json
            assert not {names[0], names[1], names[9]} & set(plan["nodes"])

            said = [(p["name"], p["count"], p["free"], p["default"]) for p in found["partitions"]]
            assert said == [("batch", 16, 13, True), ("half", 8, 7, False)]
            half = {"count": 6, "partition": "half"}
            assert set(site.post("plan", **half).json["nodes"]) <= set(names[8:])
            reply = site.post("plan", count=1, partition="nope")
            assert (reply.status, reply.json["detail"]) == (409, "Slurm has no partition 'nope'")
            waiting = ["-N2", "-w", f"{names[0]},{names[8]}", "--wrap=true"]
            job = slurm.run(["sbatch", "--parsable", *waiting]).stdout.strip()
            until(lambda: site.service.live.snapshot.promised)
            note = f"1 idle node left out, requested by pending jobs ({job})"
            plan = site.post("plan", **half).json
            assert set(plan["nodes"]) == set(names[10:])
            assert note in plan["warnings"]
            found = site.post("compare", **half, strategies=["nid-order"]).json
            (row,) = (row for row in found["rows"] if row["strategy"] == "nid-order")
            assert row["nodelist"] == plan["nodelist"]
            assert note in found["notes"]
            slurm.run(["scancel", job])

            slurm.freeze_controller()  # slow: reads go on at once, with dated data
            for _ in range(20):
                assert site.ask("/api/v1/state").status == 200
            slurm.thaw_controller()

            slurm.stop_controller()
            until(lambda: site.service.live.snapshot.stale)
            reply = site.ask("/api/v1/state")
            assert reply.json["error"]
            assert reply.json["jobs"][0]["rows"] == "0-1", "the last good answer stays"
            assert int(reply.headers["age"]) >= 0
            assert json.dumps(reply.json["taken"]) != "null"

            slurm.start_controller()
            until(lambda: not site.service.live.snapshot.stale)
            assert site.ask("/api/v1/state").json["error"] == ""


def test_the_command_that_answers_garbage(monkeypatch, tmp_path, small):
    for name in ("sinfo", "squeue", "scontrol"):
        script = tmp_path / name
        script.write_text("#!/bin/sh\nprintf 'garbage \\033[31m %s\\n' \"$*\"\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert subprocess.run(["sinfo"], capture_output=True, check=True).stdout
    with running(small, ("slurm",), every=1.0) as site:
        until(lambda: site.service.live.snapshot.stale)
        found = site.ask("/api/v1/state")
        assert found.json["stale"]
        assert "sinfo" in found.json["error"]
        assert b"\x1b" not in found.body
        assert found.json["source"] == "dump"


@needs_slurm
def test_the_end_of_a_test_cluster_leaves_pythons_own_helpers_alone(monkeypatch):
    started = get_context("forkserver")

    def run():
        process = started.Process(target=int)
        process.start()
        process.join()
        assert process.exitcode == 0

    with real_slurm(["n0"], real=0) as slurm:
        monkeypatch.setenv("SLURM_CONF", slurm.env["SLURM_CONF"])
        run()
    run()  # with a warning, an error here, where they have been ended

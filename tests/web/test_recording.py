"""A day of states and jobs: sampled to a small file, read back, replayed on the page."""

import gzip

import numpy as np
import pytest

from placement.errors import NidmapError, OutputError, ParseError
from tests.web.browser import Opened
from tests.web.serving import running
from web.recording import read, record
from web.snapshot import Job, Snapshot, of_dump

pytest_plugins = ("tests.web.browser",)


def moments(machine):
    """Three snapshots: nothing runs, a job runs, and it has grown beside a node that is down."""
    state = machine.state.astype("U9")
    state[7] = "down"
    first = of_dump(machine, 1000.0)
    job = Job("7", np.arange(4, dtype=np.int64), "fft", "workq", "ada")
    wider = Job("7", np.r_[0:4, 60:64].astype(np.int64), "fft", "workq", "ada")
    return [
        first,
        Snapshot("slurm", machine.state, machine.planned, (job,), taken=1060.0),
        Snapshot("slurm", state, machine.planned, (wider,), taken=1120.0),
    ]


def sampled(machine, found, path):
    """Record what comes, an error among it."""
    left = iter(found)

    def ask():
        now = next(left)
        if isinstance(now, NidmapError):
            raise now
        return now

    lines = record(machine, ask, str(path), 0.0, float("inf"))
    return [next(lines) for _ in found]


@pytest.fixture
def path(small, tmp_path):
    first, second, third = moments(small)
    found = [first, second, NidmapError("Slurm does not answer"), second, third]
    said = sampled(small, found, tmp_path / "day")
    assert said == ["0 jobs", "1 jobs", "Slurm does not answer", "1 jobs as before", "1 jobs"]
    return tmp_path / "day"


def test_what_is_read_is_what_was_sampled(small, path):
    found = read(small, str(path), users=True)
    assert [sample.taken for sample in found.samples] == [1000.0, 1060.0, 1120.0]
    for number, wanted in enumerate(moments(small)):
        now = found.snapshot(number)
        assert now.state.tolist() == wanted.state.tolist()
        assert [job.document() for job in now.jobs] == [job.document() for job in wanted.jobs]
    assert all(not job.user for job in read(small, str(path)).snapshot(2).jobs)
    assert path.stat().st_size < 1000


def test_what_was_cut_off_is_left_out(small, path):
    path.write_bytes(path.read_bytes()[:-20])
    samples = read(small, str(path)).samples
    assert [sample.taken for sample in samples] == [1000.0, 1060.0]


def test_what_is_no_recording_of_this_machine_is_refused(small, shaheen2, path, tmp_path):
    with pytest.raises(ParseError, match="recorded on"):
        read(shaheen2, str(path))
    with pytest.raises(OutputError, match="exists"):
        sampled(small, moments(small), path)
    other = tmp_path / "other"
    for raw in (b"", b"text", gzip.compress(b"{}\n"), gzip.compress(b"\xff\n" * 9)):
        other.write_bytes(raw)
        with pytest.raises(ParseError):
            read(small, str(other))
    with pytest.raises(ParseError, match="No such file"):
        read(small, str(tmp_path / "none"))
    lines = gzip.decompress(path.read_bytes())
    other.write_bytes(gzip.compress(lines.replace(b"0-3,60-63", b"0-3,60-6300")))
    with pytest.raises(ParseError, match="a row that the machine does not have"):
        read(small, str(other))


def test_the_page_plays_it(small, path, browser):
    recording = read(small, str(path))
    with running(small, recording=recording) as site, browser.new_context() as context:
        assert site.ask("/api/v1/recorded?at=0").json["jobs"] == []
        assert site.ask("/api/v1/recorded?at=3").status == 409
        assert site.ask("/api/v1/recorded?at=x").status == 400
        context.set_default_timeout(300_000)
        page = Opened(context, site.url).go()
        page.sentence("by 1 job")
        page.page.focus("#replay-at")
        page.page.keyboard.press("Home")
        page.sentence("128 free")
        page.page.click("#replay-play")
        page.sentence("1 down")
        assert page.page.input_value("#replay-at") == "2"
        assert page.text("#live") == "a recording, not live"
        assert page.faults == []
        page.leave()

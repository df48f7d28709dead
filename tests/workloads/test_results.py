# SPDX-License-Identifier: Apache-2.0
"""Samples on disk: what is written is read again, and a kill loses nothing finished."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import OutputError, UsageError
from nidmap.workloads import results
from nidmap.workloads.results import Journal, _slowest_seconds, check_name, save
from tests.effort import examples
from tests.workloads.samples import load

NAMES = st.text("abcdefgh_", min_size=1, max_size=6)
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**53), 2**53),
)
HEADERS = st.dictionaries(NAMES, st.one_of(st.text(max_size=20), VALUES, st.none()), max_size=4)


@examples(50)
@given(header=HEADERS, rows=st.lists(st.fixed_dictionaries({"max": VALUES, "n": VALUES})))
def test_samples_come_back_as_they_were(tmp_path_factory, header, rows):
    path = str(tmp_path_factory.mktemp("r") / "run.csv")
    save(path, header, rows)
    read, frame = load(path)
    assert {name: read[name] for name in header} == header
    got, want = (
        [(float(row["max"]), float(row["n"])) for row in found]
        for found in (frame.to_dict("records"), rows)
    )
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert one == pytest.approx(other, rel=1e-15)


def test_columns_may_differ_by_sample(tmp_path):
    path = str(tmp_path / "run.csv")
    save(path, {}, [{"a": 1, "name": 'x,"y'}, {"a": 2, "b": 0.5}])
    _, frame = load(path)
    assert frame["name"].tolist()[0] == 'x,"y'
    assert frame["b"].tolist()[1] == 0.5


def test_a_journal_is_on_disk_while_samples_come(tmp_path, monkeypatch):
    path = tmp_path / "run.csv"
    monkeypatch.setattr(results, "EVERY", 0.0)
    journal = Journal(str(path), {"workload": "sort"})
    assert load(str(path))[0]["ended"] == "running"
    journal.describe({"arms": 2})
    journal.add([{"phase": "total", "max": 0.5}])
    header, frame = load(str(path))
    assert (header["ended"], header["arms"], frame["max"].tolist()) == ("running", 2, [0.5])
    monkeypatch.setattr(results, "EVERY", 60.0)
    journal.add([{"phase": "total", "max": 0.25}])
    assert len(load(str(path))[1]) == 1
    journal.close("time limit")
    header, frame = load(str(path))
    assert (header["ended"], frame["max"].tolist()) == ("time limit", [0.5, 0.25])
    assert os.listdir(tmp_path) == ["run.csv"]


def test_a_journal_says_what_it_cannot_write(tmp_path):
    with pytest.raises(OutputError, match="nowhere"):
        Journal(str(tmp_path / "nowhere" / "run.csv"), {})


def test_a_wrong_suffix_is_refused():
    with pytest.raises(UsageError, match="samples are written as"):
        check_name("run.xls")
    check_name("run.csv")
    check_name(None)


def test_slowest_seconds():
    assert _slowest_seconds(
        [{"arm": "plan", "warmup": 0, "phase": "total", "max": 0.25, "block": 3}]
    ) == {"total": {"plan": [0.25]}}

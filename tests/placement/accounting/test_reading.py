# SPDX-License-Identifier: Apache-2.0
"""Lists of jobs in every form: what is written is read back, and what is broken is named."""

import csv
import io
import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.accounting import read_jobs
from nidmap.placement.errors import ParseError
from nidmap.placement.nodelist import NodeList
from nidmap.placement.readers import MAX_LINES
from nidmap.placement.records import JobRecord

TEXT = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1, max_size=12
).filter(lambda text: not set(text) & set("\x85\x1c\x1d\x1e\"'"))
IDS = st.integers(1, 10**7).map(str) | st.tuples(
    st.integers(1, 999), st.sampled_from("_+"), st.integers(0, 99)
).map(lambda parts: "".join(map(str, parts)))
MOMENTS = st.integers(1, 2**32)
NODES = st.sets(st.integers(0, 200), min_size=1, max_size=12).map(
    lambda numbers: NodeList(f"nid{k:05d}" for k in sorted(numbers))
)


@st.composite
def records(draw):
    start = draw(MOMENTS)
    end = start + draw(st.integers(0, 10**6)) if draw(st.booleans()) else float("inf")
    words = [draw(TEXT) for _ in range(3)]
    return JobRecord(draw(IDS), draw(NODES), *words, float(start), float(end), "COMPLETED")


def moment(seconds, zone=None):
    if seconds == float("inf"):
        return "Unknown"
    at = datetime.fromtimestamp(seconds, timezone.utc)
    if zone is None:
        return at.strftime("%Y-%m-%dT%H:%M:%S")
    return at.astimezone(timezone(timedelta(minutes=zone))).strftime("%Y-%m-%dT%H:%M:%S%z")


def sacct(jobs, zone=None):
    """Return what sacct -P prints, with the steps and the waiting jobs that it lists as well."""
    rows = ["JobID|User|Partition|JobName|State|Start|End|NNodes|NodeList"]
    for job in jobs:
        times = f"{moment(job.start, zone)}|{moment(job.end, zone)}"
        nodes = f"{len(job.nodes)}|{job.nodes.fold()}"
        rows.append(
            f"{job.id}|{job.user}|{job.partition}|{job.name}|COMPLETED by 0|{times}|{nodes}"
        )
        rows += [
            f"{job.id}.{step}|||{step}|COMPLETED|{times}|1|{job.nodes[0]}" for step in ("batch", 0)
        ]
    rows.append("9[1-4]|x|y|z|PENDING|Unknown|Unknown|4|None assigned")
    rows.append("8|x|y|z|CANCELLED by 1000|None|2024-05-01T00:00:00|4|None assigned")
    return "\n".join(rows) + "\n"


PLAIN = st.lists(records(), max_size=5).map(
    lambda jobs: [
        job for job in jobs if not set(job.user + job.partition) & set("|") and job.name.strip()
    ]
)


@given(PLAIN, st.none() | st.integers(-12 * 60, 14 * 60))
def test_sacct_is_read_back(jobs, zone):
    assert list(read_jobs(sacct(jobs, zone), "sacct")) == jobs


@given(st.lists(records(), min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_csv_is_read_back(jobs, mark):
    out = io.StringIO()
    table = csv.writer(out, delimiter=mark)
    table.writerow(["End Time", "user", "Queue", "job_name", "Job ID", "hosts", "start", "State"])
    for job in jobs:
        row = [moment(job.end, 0), job.user, job.partition, job.name, job.id, job.nodes.fold()]
        table.writerow([*row, str(job.start), job.state])
    assert list(read_jobs(out.getvalue(), "jobs.csv")) == jobs


@given(st.lists(records(), max_size=5))
def test_pbs_is_read_back(jobs):
    lines = ["05/01/2024 12:00:00;L;license;floating license hour:3"]
    done = [job for job in jobs if job.end < 1e12]
    for job in done:
        hosts = "+".join(f"{name}/0*24" for name in job.nodes)
        about = f"user={job.user} jobname={job.name} queue={job.partition} start={job.start:.0f} "
        message = f"{about}exec_host={hosts} exec_vnode=({job.nodes[0]}:ncpus=1) end={job.end:.0f}"
        lines += [f"05/01/2024 12:00:00;{kind};{job.id};{message}" for kind in "SE"]
    lines.append("05/01/2024 12:00:00;E;77.pbs;user=a start=0 exec_host=n1/0 end=7")
    assert list(read_jobs("\n".join(lines), "20240501")) == done


@pytest.mark.parametrize("shape", [int, lambda n: {"set": True, "infinite": False, "number": n}])
@given(jobs=st.lists(records(), max_size=4))
def test_squeue_is_read_back(shape, jobs):
    rows = [
        {
            "job_id": shape(k),
            "job_state": "RUNNING" if shape is int else ["RUNNING"],
            "nodes": job.nodes.fold(),
            "name": job.name,
            "user_name": job.user,
            "partition": job.partition,
            "start_time": shape(int(job.start)),
            "end_time": shape(int(job.start) + 3600),  # when its limit is up: it runs still
        }
        for k, job in enumerate(jobs)
    ]
    rows.append({"job_id": 99, "job_state": ["PENDING"], "nodes": "", "start_time": shape(0)})
    found = list(read_jobs(json.dumps({"jobs": rows}), "squeue.json"))
    assert [(f.nodes, f.name, f.user, f.partition, f.start, f.end) for f in found] == [
        (j.nodes, j.name, j.user, j.partition, j.start, float("inf")) for j in jobs
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 0, "lists no jobs"),
        ("hello\n", 1, "is not the start of a job list"),
        ("JobID NodeList Start End\n", 1, "cut off"),
        ("JobID|NodeList|End\n", 1, "no column start"),
        ("JobID|NodeList|Start\n", 1, "no column end"),
        ("JobID|NodeList|Start|End\n1|n[1-|10|20\n", 2, "bad node list"),
        ("JobID|NodeList|Start|End\n\n1|n1|soon|20\n", 3, "start 'soon' is not a time"),
        ("JobID|NodeList|Start|End\n1|n1|20|10\n", 2, "ends before it starts"),
        ("JobID|NodeList|Start|End\n1|n1|20\n", 2, "3 columns"),
        ("JobID|NodeList|Start|End\n1|a|b|n1|20|30\n", 2, "6 columns"),
        ("JobID|NodeList|Start|End\n|n1|20|30\n", 2, "this row has no job ID"),
        ("job,hosts,start,end\na\rb,n1,2,3\n", 2, "is not valid CSV"),
        ('{"jobs": 7}', 0, "not from squeue"),
        ('{"jobs": [{"job_id": 1, "job_state": "RUNNING", "nodes": "n["}]}', 0, "bad node list"),
        ("05/01/2024 12:00:00;S;7;a=b\nx\n", 2, "not a PBS accounting record"),
        ("05/01/2024 12:00:00;E;7;exec_host=n1/0 start=5\n", 1, "no start= and end="),
        ("05/01/2024 12:00:00;E;7;exec_host=n1/0 start=5 end=4\n", 1, "ends before"),
        ("05/01/2024 12:00:00;E;7;exec_host=n1 start=5 end=6\n", 1, "PBS host list"),
    ],
)
def test_what_is_broken_is_named(text, line, words):
    with pytest.raises(ParseError) as caught:
        list(read_jobs(text, "jobs"))
    assert caught.value.line == line
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("elapsed", ["1-00:00:10", "86410", "1440:10"])
def test_an_end_is_the_start_and_what_it_took(elapsed):
    text = f"JobID|NodeList|Start|Elapsed\n1|n1|10|{elapsed}\n2|n1|10|\n"
    assert [job.end for job in read_jobs(text, "x")] == [86420.0, float("inf")]


@pytest.mark.parametrize(
    ("head", "row"),
    [
        ("JobID|NodeList|Start|End", "1|n1|10|20"),
        ("", "05/01/2024 12:00:00;E;1;exec_host=n1/0*4 start=10 end=20"),
    ],
)
def test_accounting_may_be_longer_than_any_dump(head, row):
    first = head or row
    text = first + "\r\n" + "\n" * (MAX_LINES + 1) + row + "\r\n"
    jobs = list(read_jobs(text, "x"))
    assert [job.end for job in jobs] == [20.0] * (1 + (not head))


@given(
    st.text(max_size=80),
    st.sampled_from(["JobID|NodeList|Start|End\n", "a,job,hosts,start,end\n", ""]),
)
def test_any_text_is_read_or_refused_in_one_line(text, head):
    try:
        list(read_jobs(head + text, "jobs"))
    except ParseError as error:
        assert str(error).isprintable()  # noqa: PT017  # the other way is an answer too

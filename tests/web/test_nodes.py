# SPDX-License-Identifier: Apache-2.0
"""Pasted text: what is known is found, what is not is named where it stands."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nidmap.placement.errors import ParseError
from nidmap.placement.lookup import rows_of
from nidmap.placement.specs import parse_spec
from nidmap.web.nodes import MOST_ERRORS, _table_jobs, _unwrap_words, resolve

MACHINE = parse_spec("dragonfly:groups=3,chassis=2,blades=4,nodes=4")
NAMES = MACHINE.names.tolist()


@given(st.lists(st.integers(0, len(NAMES) - 1), min_size=1, max_size=60), st.sampled_from(", \n"))
def test_good_lists_are_what_the_lookup_says(rows, mark):
    text = mark.join(NAMES[r] for r in rows)
    found = resolve(MACHINE, text)
    assert found.ok
    assert found.rows == list(dict.fromkeys(rows))
    assert found.repeated == len(rows) - len(set(rows))
    assert rows_of(MACHINE, found.nodelist).tolist() == found.rows


@given(st.lists(st.sampled_from([*NAMES[:9], "nope", "nid99999", "b[ad", "<x>", "7"]), max_size=12))
def test_bad_words_do_not_hide_good_ones(words):
    found = resolve(MACHINE, "\n".join(words))
    good = [w for w in words if w in NAMES or w == "7"]
    expected = dict.fromkeys(7 if w == "7" else NAMES.index(w) for w in good)
    assert found.rows == list(expected)
    for error in found.errors:
        if error.line and error.token:
            line = "\n".join(words).split("\n")[error.line - 1]
            assert line[error.column - 1 :].startswith(error.token)
    bad = set(words) - set(good)
    assert len({e.token for e in found.errors} - {""}) == len(bad)


@given(st.text(max_size=300))
def test_no_text_breaks_it(text):
    found = resolve(MACHINE, text)
    assert found.ok == (not found.errors)
    assert found.ok or len(found.errors) <= MOST_ERRORS
    try:
        rows = rows_of(MACHINE, text, repeats=True)
    except ParseError:
        assert not found.ok or set(text) & set("\"'`;#({")
    else:
        assert found.rows == list(dict.fromkeys(rows.tolist()))


WRAPPED = {
    "a batch script": "#!/bin/sh\n#SBATCH -N 3\n#SBATCH -w nid[00004-00006]\n",
    "our own line": "#SBATCH -N 3 --nodelist=nid[00004-00006]",
    "quoted": "#SBATCH --nodelist='nid[00004-00006]'",
    "JSON": '["nid00004", "nid00005", "nid00006"]',
    "Python": "['nid00004', 'nid00005', 'nid00006']",
    "CSV": '"nid00004","nid00005","nid00006"',
    "semicolons": "nid00004;nid00005;nid00006",
    "vnodes": "(nid00004:ncpus=64)+(nid00005:ncpus=64:mpiprocs=4)+(nid00006:ncpus=1)",
    "squeue --json": json.dumps(
        {"jobs": [{"job_id": 9, "job_state": "RUNNING", "nodes": "nid[00004-00006]"}]}
    ),
}


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED)
def test_what_stands_around_a_list_is_left_out(text):
    found = resolve(MACHINE, text)
    assert (found.ok, found.rows) == (True, [4, 5, 6])


def test_bad_words_are_named_where_they_stand_in_what_is_wrapped():
    found = resolve(MACHINE, "#SBATCH -N 2\n#SBATCH -w nid00004,nowhere")
    assert found.rows == [4]
    assert [(e.token, e.line, e.column) for e in found.errors] == [("nowhere", 2, 21)]


def test_capital_letters_are_the_same_name():
    found = resolve(MACHINE, "NID00004 nid00005")
    assert (found.ok, found.rows) == (True, [4, 5])


def test_what_squeue_prints():
    text = (
        "  JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
        "   4711 workq my job ann R 1:00 3 nid[00004-00006]\n"
        "   4712 workq other bob PD 0:00 3 (Priority)\n"
    )
    assert resolve(MACHINE, text).rows == [4, 5, 6]


def test_a_forged_row_of_squeue_is_named():
    text = (
        "  JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n"
        "   4711 workq job ann R 1:00 1 nid00004\n"
        "   evil row\n"
    )
    found = resolve(MACHINE, text)
    assert found.errors[0].line == 3


@pytest.mark.parametrize("kind", ["words", "bytes", "brackets", "lines", "names"])
def test_a_quarter_of_a_megabyte_of_junk_is_answered(kind):
    """The page is given a whole one (`test_a_megabyte_of_junk_leaves_the_page_usable`)."""
    rng = random.Random(7)
    junk = {
        "words": lambda: " ".join(f"{rng.getrandbits(24):x}z" for _ in range(35_000)),
        "bytes": lambda: "".join(map(chr, rng.choices(range(1, 300), k=1 << 18))),
        "brackets": lambda: "[" * (1 << 18),
        "lines": lambda: "\n".join("".join(rng.choices("[]-,x1*#", k=9)) for _ in range(25_000)),
        "names": lambda: "nid" + "9" * (1 << 18),
    }[kind]()
    found = resolve(MACHINE, junk)
    assert not found.ok
    assert 0 < len(found.errors) <= MOST_ERRORS
    assert all(len(str(error)) < 1000 for error in found.errors)


def test_another_machines_names_are_all_counted():
    words = [f"frontier{n:05d}" for n in range(300)]
    found = resolve(MACHINE, "\n".join(words))
    assert len(found.errors) == MOST_ERRORS
    assert found.more_errors == 300 - MOST_ERRORS
    fourth = found.errors[3]
    assert (fourth.token, fourth.line, fourth.column) == ("frontier00003", 4, 1)
    assert np.array_equal(found.rows, [])


def test_table_jobs():
    rows = "JOBID NAME ST NODES NODELIST(REASON)\n7 wrf R 2 n[1-2]\n8 a PD 1 (Priority)\n"
    assert list(_table_jobs(rows)) == [("7", "n[1-2]")]


def test_unwrap_words():
    assert [other.split() for other in _unwrap_words("#SBATCH -N 2 -w nid[00001-00002]")] == [
        ["nid[00001-00002]"]
    ]
    assert [other.split() for other in _unwrap_words('["n1", "n2"]')] == [["n1", ",", "n2"]]
    assert [other.split() for other in _unwrap_words("(n1:ncpus=4)+(n2:ncpus=4)")] == [["n1", "n2"]]
    assert list(_unwrap_words("n1,n2")) == []
    job = '{"job_id": 7, "job_state": "RUNNING", "nodes": "n[1-2]"}'
    assert list(_unwrap_words(f'{{"jobs": [{job}]}}'))[-1] == "n[1-2]"

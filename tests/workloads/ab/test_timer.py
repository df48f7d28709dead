# SPDX-License-Identifier: Apache-2.0
"""The figure that a program states."""

import os

import pytest

from nidmap.placement.errors import ParseError
from nidmap.workloads.ab.timer import timer_of


@pytest.mark.parametrize(
    ("regex", "text", "figure"),
    [
        ("Loop time of ([0-9.]+)", "Loop time of 3\nLoop time of 1.25 on 4 procs\n", 1.25),
        ("^Time = +(\\S+)", "Time = no\nTime =  2.5E-3\n", 2.5e-3),
        ("took (\\S+)", "took 1.5D+01\n", 15.0),
    ],
)
def test_the_last_match_wins(tmp_path, regex, text, figure):
    (tmp_path / "out").write_text(text)
    assert timer_of(regex, None).read([str(tmp_path / "out")]) == figure


def test_standard_error_is_read_where_standard_output_says_nothing(tmp_path):
    paths = [str(tmp_path / "out"), str(tmp_path / "err")]
    (tmp_path / "out").write_text("nothing\n")
    (tmp_path / "err").write_text("Performance: 12.5 ns/day\n")
    rate = timer_of("Performance: +([0-9.]+)", "ns/day")
    assert rate.read(paths) == 12.5
    assert rate.cost(12.5) == pytest.approx(0.08)


@pytest.mark.parametrize("text", ["t=abc\n", "t=0\n", "t=-1\n", "t=nan\n", "t=inf\n", "t=\n"])
def test_what_is_no_number_above_0_is_refused(tmp_path, text):
    (tmp_path / "out").write_text(text)
    with pytest.raises(ParseError, match="not a number above 0"):
        timer_of("t=(.*)", None).read([str(tmp_path / "out")])


def test_only_what_a_launch_wrote_to_its_file_counts(tmp_path):
    path = tmp_path / "hpccoutf.txt"
    timer = timer_of("time=([0-9.]+)", None, str(path))
    assert timer.written() == ("", 0)
    path.write_text("time=3\n")
    assert timer.read([]) == 3
    before = timer.written()
    with pytest.raises(ParseError, match="nothing that the program wrote to it"):
        timer.read([], before)
    path.write_text("time=3\ntime=2\n")
    assert timer.read([], before) == 2
    path.write_text("time=1\n")
    assert timer.read([], before) == 1
    path.write_text("time=3\n")
    os.utime(path, ns=(1, before[1] + 1))
    assert timer.read([], before) == 3

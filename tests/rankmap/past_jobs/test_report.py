# SPDX-License-Identifier: Apache-2.0
"""What became of many jobs: who sat how much worse than they could, in words and as a picture."""

from nidmap.rankmap.past_jobs.quick_cost import Span
from nidmap.rankmap.past_jobs.report import hours_text, ratio_text, stem_of


def test_stem_of():
    assert stem_of("lammps-7") == "lammps"
    assert stem_of("cp2k_run12") == "cp2k_run"
    assert stem_of("12") == "12"
    assert stem_of("") == "(no name)"


def test_hours_text():
    assert hours_text(1243.7) == "1,244"
    assert hours_text(4.26) == "4.3"
    assert hours_text(0.0312) == "0.03"


def test_ratio_text():
    assert ratio_text(Span(1.0, 1.25, 2.0)) == "1.25 (1 to 2)"
    assert ratio_text(Span(1.0, 1.0, 1.0)) == "1"

# SPDX-License-Identifier: Apache-2.0
"""Past jobs: each compared with the best placement among the nodes free at its start."""

import numpy as np

import nidmap
from nidmap.placement.job_nodes import find_job_nodes
from nidmap.placement.nodelist import NodeList
from nidmap.placement.records import JobRecord
from nidmap.rankmap.past_jobs import Application, Judge, _spread_share, application_of


def test_judge():
    m = nidmap.load_machine("fattree:leaf=4,leaves=4,spines=1,bw=1")
    apart = JobRecord("7", NodeList.parse("nid[00000-00001,00004-00005]"), start=1.0)
    found = Judge(m).verdict(find_job_nodes(m, [apart]), 0, m.compute)
    assert round(found.slowdown.high, 2) == 1.33
    assert found.best == "level-spread"


def test_spread_share():
    assert _spread_share(nidmap.load_machine("tree:4x4,dist=1:2"), np.array([0, 1, 4])) == 0.6667


def test_application_of():
    known = (Application("lammps*", pattern="stencil:auto"),)
    names = ("lammps-7", "fft")
    assert [application_of(JobRecord("7", NodeList(), name), known).pattern for name in names] == [
        "stencil:auto",
        "",
    ]

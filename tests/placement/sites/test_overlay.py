# SPDX-License-Identifier: Apache-2.0
"""Figures without a machine: read, checked, laid over a machine, and used."""

import json
from dataclasses import replace

import numpy as np
import pytest

from nidmap.placement.commands import run
from nidmap.placement.errors import SiteError
from nidmap.placement.load import load_machine
from nidmap.placement.network import channels, routings
from nidmap.placement.network.channel_loads import injection_bandwidth
from nidmap.placement.sites import load_configuration, load_site
from nidmap.placement.sites.overlay import Overlay
from nidmap.placement.topologies import links
from nidmap.rankmap.predict import Job, Predictor
from nidmap.rankmap.predict.constants import machine_constants
from nidmap.rankmap.predict.gain import time_range

MEASURED = 'mark = "measured", source = "nidmap calibrate, 2026-11-22, 16 nodes"'
TEXT = f"""
overlay = true
machine = "shaheen2"

[bandwidth]
injection = {{ value = 8, {MEASURED}, interval = [7.9, 8.1] }}
blue = {{ value = 3, {MEASURED} }}

[latency]
mpi_us = {{ value = 1.75, {MEASURED} }}

[sending]
process = {{ value = 2.5, {MEASURED} }}
payload = {{ value = 0.9, {MEASURED} }}
memory = {{ value = 30, {MEASURED} }}
message_us = {{ value = 0.25, {MEASURED} }}
gap_us = {{ value = 4, {MEASURED} }}
routing = {{ value = ["valiant"], {MEASURED} }}
"""


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file of figures and returns its path."""

    def call(text=TEXT, name="calibrated.toml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return call


def blue(machine):
    found = channels(machine, "minimal")
    return set(found.bandwidth[found.kind == found.kinds.index("blue")].tolist())


def test_figures_take_the_place_of_a_sites_own(write):
    path = write()
    machine = load_machine("shaheen2", path)
    assert set(injection_bandwidth(machine).tolist()) == {8.0}
    assert blue(machine) == {6.0}  # two links each
    assert machine.topology.bandwidth["green"] == 5.25
    known = machine_constants(machine)
    assert (known.mpi_us, known.hop_ns, known.source) == (1.75, 100.0, path)
    assert (known.process_gbs, known.payload, known.memory_gbs) == (2.5, 0.9, 30)
    assert (known.message_us, known.nic_us, known.gap_us) == (0.25, 0.05, 4)
    assert routings(machine)[0] == "valiant"
    assert path in machine.sources
    assert "bandwidth.blue" in machine.notes[-1]
    assert machine.notes[-1].endswith("measured")


def test_the_site_alone_is_as_it_was(write):
    load_machine("shaheen2", write())
    assert blue(load_machine("shaheen2")) == {9.375}


def test_the_last_file_wins(write):
    second = write(f"[bandwidth]\nblue = {{ value = 1, {MEASURED} }}\n", "later.toml")
    assert blue(load_machine("shaheen2", write(), second)) == {2.0}
    assert blue(load_machine("shaheen2", second, write())) == {6.0}


def test_listed_links_get_the_figures_too(write):
    site = load_machine("edison")
    before = replace(site, links=links(site), _cache={})
    figures = f"[bandwidth]\nblue = {{ value = 2.34375, {MEASURED} }}\n"
    after = load_configuration(write(figures)).over(before)
    kind = before.links.kind == before.links.kinds.index("blue")
    ratio = after.links.bandwidth / before.links.bandwidth
    assert np.allclose(ratio[kind], 0.5)
    assert np.allclose(ratio[~kind], 1)


def test_synthetic_machines_take_figures(write):
    figures = f"overlay = true\n[bandwidth]\nup1 = {{ value = 2, {MEASURED} }}\n"
    machine = load_machine("fattree:leaf=4,leaves=2,spines=2", write(figures))
    assert set(channels(machine).bandwidth.tolist()) == {2.0}


def unknowns(machine, pattern, ppn, **stated):
    asked = Predictor(machine, Job(pattern, ppn, 1e6, **stated))
    return {one.name for one in time_range(asked, asked.place(np.arange(12))).unknowns}


def test_what_was_measured_is_no_unknown(write):
    stated, measured = load_machine("shaheen2"), load_machine("shaheen2", write())
    assert unknowns(stated, "alltoall", 2, algorithm="pairwise") >= {"routing", "overlap"}
    known = unknowns(measured, "alltoall", 2, algorithm="pairwise")
    assert known <= {"overlap"}  # nothing measures how far ranks run ahead of each other
    assert "memory" in unknowns(stated, "ring", 32)
    assert "memory" not in unknowns(measured, "ring", 32)


def test_routings_that_were_not_told_apart_stay_unknown(write):
    figures = TEXT.replace('["valiant"]', '["single", "adaptive"]')
    machine = load_machine("shaheen2", write(figures))
    assert routings(machine)[:2] == ("single", "minimal")
    assert "routing" in unknowns(machine, "alltoall", 2, algorithm="pairwise")


def test_a_gap_between_steps_lengthens_all_but_the_first(write):
    times = []
    for gap in (0.5, 4.0):
        figures = f"[sending]\ngap_us = {{ value = {gap}, {MEASURED} }}\n"
        machine = load_machine("torus:4x4,bw=1", write(figures))
        asked = Predictor(machine, Job("alltoall", 1, 8, algorithm="ring"))
        times.append(asked.time(asked.place(np.arange(4))))
    hops = 105e-9 * np.mean([1, 2, 1])
    assert times[1] - times[0] == pytest.approx(2 * (4e-6 - 1.5e-6 - hops), rel=0.05)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[bandwidth]\nx = { value = 2, %s }\n", ":2: bandwidth.x: not a link class of shaheen2"),
        (
            "[sending]\nrouting = { value = ['ring'], %s }\n",
            ":2: sending.routing: unknown routing 'ring'",
        ),
        ("overlay = true\n[network]\nfabric = 'aries'\n", "network: no such key here"),
        ("[bandwidth]\nblue = { value = -1, %s }\n", ":2: bandwidth.blue.value: "),
        ("overlay = false\n", "overlay: "),
    ],
)
def test_what_does_not_fit_is_named_by_file_line_and_key(write, text, told):
    path = write(text % MEASURED if "%s" in text else text)
    with pytest.raises(SiteError) as raised:
        load_machine("shaheen2", path)
    assert str(raised.value).startswith(path)
    assert told in str(raised.value)


def test_figures_alone_are_no_machine(write, capfd):
    path = write()
    assert run(["machine", "show", "-m", path]) == 3
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "not a machine itself" in said
    with pytest.raises(SiteError, match="not a machine itself"):
        load_site(path)


def test_site_show_and_check_take_them(write, capfd):
    path = write()
    assert run(["site", "check", path]) == 0
    assert "9 figures (9 measured, 0 published, 0 assumed)" in capfd.readouterr().out
    assert run(["site", "show", path]) == 0
    assert "7.9, 8.1" in capfd.readouterr().out
    assert run(["site", "show", path, "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert shown["overlay"] is True
    assert shown["figures"]["bandwidth.injection"]["interval"] == [7.9, 8.1]


def test_a_machine_names_what_was_measured(write, capfd):
    assert run(["machine", "show", "-m", "shaheen2", "-m", write()]) == 0
    assert "bandwidth.injection, bandwidth.blue measured" in capfd.readouterr().out


def test_a_sites_file_stays_one(write):
    assert isinstance(load_configuration(write()), Overlay)
    assert not isinstance(load_configuration("edison"), Overlay)

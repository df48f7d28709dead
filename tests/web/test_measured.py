# SPDX-License-Identifier: Apache-2.0
"""Link counters beside what is predicted: read by the names of links, drawn in the same picture."""

import json
import re

import numpy as np
import pytest

import nidmap
from nidmap.placement.errors import ParseError
from nidmap.placement.network import channels
from nidmap.placement.topologies import router_names
from nidmap.web.measured import measured
from tests.web.serving import running

pytest_plugins = ("tests.web.browser",)


@pytest.fixture(scope="module")
def carried(small):
    """What an all-to-all of 40 nodes puts on each link, by the predictor's names."""
    loads = nidmap.predict(small, np.arange(40), nidmap.Job("alltoall")).loads
    return dict(zip(channels(small, "").names().tolist(), loads.load.tolist(), strict=True))


def test_counters_of_a_mini_cray_are_those_of_its_links(small, carried, tmp_path):
    path = tmp_path / "links.json"
    links = {name: {"bytes": size, "packets": 1} for name, size in carried.items()}
    links["nid00003 injection"] = {"bytes": 7e9, "packets": 1}  # a node's own link
    links["elsewhere"] = {"bytes": 1, "packets": 1}
    path.write_text(json.dumps({"schema": "nidmap.minicray.links/1", "links": links}))
    found = measured(small, (str(path),), 5000)
    assert dict(zip(found.links.name, found.links.load, strict=True)) == {
        name: size for name, size in carried.items() if size
    }
    assert found.links.load == sorted(found.links.load, reverse=True)
    assert found.bytes == pytest.approx(sum(carried.values()))
    assert found.unknown == 1
    assert not any(found.links.seconds), "bytes are measured, not time"


def test_a_csv_names_links_by_their_ends(small, carried, tmp_path):
    known, names = channels(small, ""), router_names(small)
    sums = {}
    for row, size in enumerate(carried.values()):
        ends = str(names[known.source[row]]), str(names[known.target[row]])
        sums[ends] = sums.get(ends, 0) + size
    path = tmp_path / "links.csv"
    lines = [f"{a},{b},{size!r}\n" for (a, b), size in sums.items()]
    path.write_text("From, To, Bytes\n" + "".join(lines))
    found = measured(small, (str(path),), 5000)
    said = {}
    for row in range(len(found.links.load)):
        ends = str(names[found.links.source[row]]), str(names[found.links.target[row]])
        said[ends] = said.get(ends, 0) + found.links.load[row]
    assert said == pytest.approx({ends: size for ends, size in sums.items() if size})


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("link,octets\nx,1\n", 1, "bytes"),
        ("link,bytes\ng0c0b0->g0c0b1 green,many\n", 2, "many"),
        ("link,bytes\ng0c0b0->g0c0b1 green,-1\n", 2, "-1"),
        ("link,bytes\nnowhere,12\n", 0, "carried any bytes"),
        ('{"links": []}', 0, "links"),
        ('{"links": {"g0c0b0->g0c0b1 green": {"bytes": -3}}}', 0, "bytes"),
        ("link,bytes\ng0c0b0->g0c0b1 green,1e300\n", 2, "1e300"),
        ("link,bytes\n\ra,1\n", 0, "is not CSV"),
        ("", 1, "bytes"),
    ],
)
def test_what_is_no_list_of_counters_is_refused(small, tmp_path, text, line, word):
    path = tmp_path / "links"
    path.write_text(text)
    with pytest.raises(ParseError, match=word) as caught:
        measured(small, (str(path),), 10)
    assert caught.value.line == line


def both_pictures(opened, site):
    """Open the traffic of 40 nodes, and what was measured next to it."""
    page = opened(site).go("#t=traffic&m=A:0:0-39")
    page.page.wait_for_selector("#traffic-picture svg")
    page.page.keyboard.press("u")
    page.until("() => document.querySelectorAll('#traffic-picture svg').length === 2")
    return page


def test_measured_links_are_drawn_beside_the_predicted_ones(opened, small, carried, tmp_path):
    path = tmp_path / "links.csv"
    path.write_text("link,bytes\n" + "".join(f"{name},{size}\n" for name, size in carried.items()))
    with running(small, link_loads=(str(path),)) as site:
        page = both_pictures(opened, site)
        left, right = page.page.locator("#traffic-picture svg").all_text_contents()
        assert "Predicted" in left
        assert "Measured" in right
        chords = [
            sorted(
                path.get_attribute("d") for path in picture.locator("path[d*='Q'][stroke]").all()
            )
            for picture in page.page.locator("#traffic-picture svg").all()
        ]
        assert chords[0] == chords[1], "what was measured is what is predicted here"
        page.page.uncheck("#traffic-counters")
        assert page.page.locator("#traffic-picture svg").count() == 1
        page.leave()


def test_a_run_of_many_rounds_is_compared_with_as_many_of_the_prediction(
    opened, small, carried, tmp_path
):
    path = tmp_path / "links.csv"
    busiest = max(carried.values())
    loads = {name: 7.25 * size for name, size in carried.items()}
    changed = next(name for name, size in carried.items() if size == busiest)
    silent = next(name for name, size in carried.items() if not size)
    loads[silent] = 0.25 * sum(loads.values())  # another job's
    total = sum(size for name, size in loads.items() if name != silent)
    loads[changed] *= 1.5
    rounds = (total + loads[changed] / 3) / sum(carried.values())
    path.write_text("link,bytes\n" + "".join(f"{name},{size!r}\n" for name, size in loads.items()))
    with running(small, link_loads=(str(path),)) as site:
        page = both_pictures(opened, site)
        pictures = page.page.locator("#traffic-picture svg").all()
        left, right = (picture.get_attribute("aria-label") for picture in pictures)
        assert f"{rounds:.3g} rounds" in left
        off = 100 * (1.5 * 7.25 / rounds - 1)
        said = re.search(r"; ([\d.]+) rounds .* each link within ([\d.]+) % .*, ([\d.]+) %", right)
        assert [float(word) for word in said.groups()] == [
            pytest.approx(rounds, rel=5e-3),
            pytest.approx(off, abs=1),
            pytest.approx(100 * loads[silent] / sum(loads.values()), abs=0.1),
        ]
        page.leave()


def test_without_counters_there_is_nothing_to_ask(opened, site):
    assert site.ask("/api/v1/measured").status == 409
    page = opened(site).go("#t=traffic&m=A:0:0-39")
    page.page.wait_for_selector("#traffic-picture svg")
    assert not page.page.is_visible("#traffic-measured")

# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: every tab saves what it shows as a slide, with what it holds for."""

import re
import xml.etree.ElementTree as ET

import pytest

from nidmap.placement import __version__
from tests.web.serving import running, squeue, until

pytest_plugins = ("tests.web.browser",)

TABS = {
    "map": ("#m=A:0:0-40&p=ring&n=2&b=4096", "#figures .figure .whisker"),
    "plans": ("#t=plans&m=A:0:0-40&plan=80;2;row-major;free;compact,spread;ring&n=2&p=ring&b=4096",
              ".plan"),
    "traffic": ("#t=traffic&m=A:0:0-40&p=ring&n=2&b=4096", "#traffic-picture svg"),
    "jobs": ("#t=jobs&m=A:0:0-40&p=ring&n=2&b=4096", "#jobs-body .slow-bar"),
    "table": ("#t=table&m=A:0:0-40&p=ring&n=2&b=4096", "#table td"),
}  # fmt: skip


@pytest.fixture(scope="module")
def crowded(small, tmp_path_factory):
    path = tmp_path_factory.mktemp("slides") / "squeue.json"
    jobs = ((n, f"nid[{8 * n:05}-{8 * n + 7:05}]", "wrf", "ada") for n in range(1, 5))
    path.write_text(squeue(*jobs, ppn=4))
    with running(small, (str(path),), users=True, seconds=600.0) as site:
        until(lambda: site.service.live.snapshot.jobs)
        yield site


def saved(page, kind):
    page.page.click("#save-open")
    page.page.check(f"#save input[value={kind}]")
    with page.page.expect_download() as caught:
        page.page.click("#save-body button.main")
    page.page.keyboard.press("Escape")
    return caught.value.suggested_filename, caught.value.path().read_bytes()


def texts(raw):
    return [text.strip() for text in ET.fromstring(raw).itertext() if text.strip()]


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_is_a_slide_with_its_conditions(opened, crowded, tab, small):
    state, shown = TABS[tab]
    page = opened(crowded).go(state)
    page.page.wait_for_selector(shown, state="attached")
    name, raw = saved(page, "svg")
    machine = re.sub("[^A-Za-z0-9._-]+", "-", small.name)[:60]
    assert name == (f"{machine}.svg" if tab == "map" else f"{machine}-{tab}.svg")
    root = ET.fromstring(raw)
    assert (root.get("width"), root.get("height")) == ("1920", "1080")
    said = texts(raw)
    (foot,) = (text for text in said if "drawn" in text)
    job = "ring of 4.1 kB, 2 ranks per node"
    assert all(word in foot for word in (small.name, "A: 41 nodes", job, __version__, "from file"))
    assert len(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", foot)) == 2
    letters = [float(size) for size in re.findall(r'font-size="([\d.]+)"', raw.decode())]
    assert max(letters) >= 34, "a title for the back row"


def test_plans_and_jobs_on_slides_have_the_figures_of_their_tabs(opened, crowded):
    for tab, cells in (("plans", ".plan .time"), ("jobs", "#jobs-body td.slow .num")):
        state, shown = TABS[tab]
        page = opened(crowded).go(state)
        page.page.wait_for_selector(shown, state="attached")
        _, raw = saved(page, "svg")
        said = texts(raw)
        wanted = page.page.locator(cells).all_inner_texts()
        assert wanted
        assert set(wanted) <= set(said)


def test_a_slide_in_pixels(opened, crowded):
    page = opened(crowded).go(TABS["jobs"][0])
    page.page.wait_for_selector(TABS["jobs"][1], state="attached")
    name, raw = saved(page, "png")
    assert name.endswith("-jobs.png")
    assert raw[:4] == b"\x89PNG"
    assert [int.from_bytes(raw[at : at + 4], "big") for at in (16, 20)] == [1920, 1080]

# SPDX-License-Identifier: Apache-2.0
"""The guide's own search, in a browser: what newcomers type leads to the right page first."""

import functools
import http.server
import os
import subprocess
import sys
import threading
from urllib.parse import quote

import pytest

pytest.importorskip("sphinx", reason="sphinx is not installed")

from tests.guide.blocks import ROOT
from tests.web.browser import PATIENCE, launched

pytestmark = pytest.mark.slow

#: What somebody types -> the pages of which one has to be the first found.
PHRASES = {
    "hostfile": ("howto/switch-order",),
    "rankfile": ("howto/rank-order",),
    "slow": ("howto/slow",),
    "rails": ("howto/rails",),
    "storage network": ("howto/rails",),
    "WRF": ("howto/applications",),
    "LAMMPS": ("howto/applications",),
    "mpirun order": ("howto/switch-order",),
    "why is rank 0 on the wrong node": ("howto/wrong-node",),
    "torchrun": ("howto/switch-order",),
    "NCCL": ("howto/switch-order",),
    "MPICH_RANK_ORDER": ("howto/cray-mpich",),
    "SLURM_HOSTFILE": ("howto/switch-order",),
    "grid_order": ("howto/cray-mpich",),
    "Megatron": ("howto/training",),
    "NVLink": ("howto/training",),
    "partition": ("howto/partitions",),
    "reservation": ("howto/partitions",),
    "gpu binding": ("howto/binding",),
    "container": ("howto/container",),
    "apptainer": ("howto/container",),
    "no internet": ("howto/offline",),
    "PBS": ("howto/schedulers",),
    "jupyter": ("howto/proxy",),
    "my cluster": ("howto/new-site",),
    "ibnetdiscover": ("howto/new-site", "reference/machines"),
    "job script": ("howto/job-script",),
    "past jobs": ("howto/past-jobs",),
    "is it faster": ("howto/ab",),
    "Fortran": ("howto/record",),
    "exit code": ("reference/formats",),
    "pattern": ("reference/patterns",),
    "install": ("start/install",),
    "tutorial": ("start/tutorial",),
    "accuracy": ("trust/checked",),
    "jsrun": ("howto/schedulers", "howto/inside"),
}


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """Serve the guide, as ``make docs`` or this has built it, and open its search in a browser."""
    folder = os.environ.get("NIDMAP_TEST_GUIDE", "")
    if not folder:
        folder = tmp_path_factory.mktemp("guide")
        words = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", ROOT / "docs", folder]
        subprocess.run(words, check=True)
    handler = functools.partial(Quiet, directory=folder)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        launched() as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        yield page, f"http://127.0.0.1:{server.server_port}"
        page.close()
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server that says nothing of its requests."""

    def log_message(self, *words):
        """Say nothing."""


def found(guide, phrase):
    """Return the pages that the search finds, the first first."""
    page, url = guide
    page.goto(f"{url}/search.html?q={quote(phrase)}")
    page.wait_for_function(
        "() => document.querySelector('#search-results .search-summary')"
        "?.textContent.match(/found|match/i)"
    )
    links = page.locator("#search-results li a").evaluate_all("all => all.map(a => a.pathname)")
    return [link.strip("/").removesuffix(".html") for link in links]


def test_there_are_thirty_phrases():
    assert len(PHRASES) >= 30


def test_a_newcomers_words_lead_to_the_right_page(guide):
    """In one test: each process with a part of the phrases would build a guide of its own."""
    seen = {phrase: found(guide, phrase)[:4] for phrase in PHRASES}
    wrong = {phrase: pages for phrase, pages in seen.items() if pages[:1] not in right(phrase)}
    assert wrong == {}


def right(phrase):
    return [[page] for page in PHRASES[phrase]]

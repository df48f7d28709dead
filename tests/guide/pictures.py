# SPDX-License-Identifier: Apache-2.0
"""``make pictures``: the guide's pictures, made by the product as it is.

SVG comes from ``nidmap web export``; the page is seen by a real browser of 1440 x 900, in light
and dark. Jobs and states are the same each time, so that a picture changes only with the page.
"""

from __future__ import annotations

import io
import random
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

import nidmap
from nidmap.placement.commands import run
from nidmap.placement.nodelist import NodeList
from tests.guide.blocks import ROOT
from tests.waiting import wait_until
from tests.web.browser import PATIENCE, launched
from tests.web.serving import running, squeue

IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1440, "height": 900}

#: Pictures of the page: what its address says, the colours, and what is waited for.
SHOTS = {
    "page-map-light": ("#MARK&p=stencil:8x8x8&n=8&by=state", "light"),
    "page-traffic-light": ("#t=traffic&MARK&p=stencil:8x8x8&n=8", "light"),
    "page-plans-light": (
        "#t=plans&plan=64;8;row-major;free;auto,compact;stencil:8x8x8",
        "light",
    ),
    "page-jobs-dark": ("#by=job", "dark"),
}

#: Part of an address -> what is true once the page shows what that asks for.
READY = {
    "m=": "() => document.querySelector('.figure strong')"
    " && [...document.querySelectorAll('.figure strong')].every(f => !f.textContent.includes('…'))",
    "t=traffic": "() => document.querySelector('#traffic-picture svg')",
    "t=plans": "() => document.querySelectorAll('.plan').length >= 3"
    " && !document.body.innerText.includes('Take the best so far')",
}

#: The views of the animation, in turn, each for a while.
TOUR = ("page-map-light", "page-traffic-light", "page-plans-light", "page-jobs-light")
TOUR_SIZE, TOUR_SECONDS, TOUR_COLOURS = (960, 600), 2.2, 256

NAMES = ("lammps", "gromacs", "cp2k", "icon", "vasp", "wrf", "nekrs", "qe")


def draw_jobs(machine: Any) -> tuple[str, list[str]]:
    """Return what squeue would print of a busy LUMI, and the first free nodes, for a mark."""
    lots = random.Random(4)
    names = machine.names.tolist()
    gpu_nodes = [name for name in names if name >= "nid005000"]
    begin, jobs = 0, []
    while begin < len(gpu_nodes) - 200:
        count = lots.choice((4, 8, 16, 16, 32, 64, 128))
        gap = lots.choice((0, 0, 4, 24))
        nodes = gpu_nodes[begin : begin + count]
        jobs.append((1000 + len(jobs), NodeList(nodes).fold(), lots.choice(NAMES), "user"))
        begin += count + gap
    taken = {name for _, nodes, *_ in jobs for name in NodeList.parse(nodes)}
    free = [name for name in gpu_nodes if name not in taken]
    return squeue(*jobs, ppn=8), free[:64]


@contextmanager
def served() -> Iterator[tuple[Any, str]]:
    """Serve a busy LUMI; yield the server and the nodes to mark."""
    machine = nidmap.load_machine("lumi")
    listed, mark = draw_jobs(machine)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "squeue.json"
        path.write_text(listed)
        with running(machine, (str(path),)) as site:
            wait_until(lambda: site.ask("/api/v1/state").json["jobs"])
            yield site, NodeList(mark).fold()


def address_of(browser: Any, url: str, nodes: str) -> str:
    """Mark nodes by the page's own box, and return how its address holds the mark."""
    page = browser.new_page()
    try:
        page.goto(url)
        page.wait_for_selector("#map[data-settled=true]", state="attached")
        page.fill("#paste-text", nodes)
        page.click("#paste button[type=submit]")
        page.wait_for_function("() => location.hash.includes('m=')")
        (mark,) = re.findall(r"\bm=[^&]*", page.evaluate("() => location.hash"))
        return str(mark)
    finally:
        page.close()


def shot(browser: Any, url: str, address: str, scheme: str) -> Image.Image:
    """Return the page at an address, in one colour scheme, once it rests."""
    context = browser.new_context(
        viewport=SIZE, color_scheme=scheme, reduced_motion="reduce", device_scale_factor=1
    )
    try:
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.goto(f"{url}/{address}")
        page.wait_for_selector("#map[data-settled=true]", state="attached")
        for awaited in READY:
            if awaited in address:
                page.wait_for_function(READY[awaited])
        page.wait_for_timeout(3000)
        return Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    finally:
        context.close()


def page_pictures() -> Iterator[tuple[str, Image.Image]]:
    """Yield the name and the picture of each view of the page."""
    views = {**SHOTS, "page-jobs-light": (SHOTS["page-jobs-dark"][0], "light")}
    with served() as (site, nodes), launched() as browser:
        mark = address_of(browser, site.url, nodes)
        for name, (address, scheme) in views.items():
            yield name, shot(browser, site.url, address.replace("MARK", mark), scheme)


def write_animation(path: Path, frames: list[Image.Image]) -> None:
    """Write frames as one GIF that begins again."""
    small = [
        frame.resize(TOUR_SIZE, Image.Resampling.LANCZOS).quantize(TOUR_COLOURS) for frame in frames
    ]
    small[0].save(
        path, save_all=True, append_images=small[1:], duration=int(TOUR_SECONDS * 1000), loop=0,
        optimize=True,
    )  # fmt: skip


def drawn_plan(folder: Path) -> str:
    """Return the SVG of a plan of 256 nodes on LUMI."""
    nodes, out = folder / "nodes.txt", folder / "plan.svg"
    assert run(["plan", "-m", "lumi", "-N", "256", "-q", "-o", str(nodes)]) == 0
    assert run(["web", "export", "-m", "lumi", "--nodes", f"@{nodes}", "-o", str(out)]) == 0
    return out.read_text()


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        (IMAGES / "plan-lumi.svg").write_text(drawn_plan(Path(folder)))
    seen = dict(page_pictures())
    for name in SHOTS:
        seen[name].quantize(128).save(IMAGES / f"{name}.png", optimize=True)
    write_animation(IMAGES / "page-tour.gif", [seen[name] for name in TOUR])
    print(f"pictures are in {IMAGES.relative_to(ROOT)}", file=sys.stderr)


if __name__ == "__main__":
    main()

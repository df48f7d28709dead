# SPDX-License-Identifier: Apache-2.0
"""All tabs of the page on busy machines of every kind, as tests and pictures look at them."""

import contextlib
import random
import tempfile
from pathlib import Path

import numpy as np

import nidmap
from nidmap.placement.nodelist import NodeList
from tests.web.serving import running, squeue, until

#: Dragonflies with equal and with unequal groups, fat trees, tori; few nodes and many.
MACHINES = ("shaheen2", "frontier", "perlmutter", "theta", "leonardo", "tara", "bluewaters",
            "tree:8x8x8,bw=10", "torus:8x8x8,bw=10")  # fmt: skip

#: Width -> height of a large window, a laptop's, a tablet and a phone.
SIZES = {1440: 900, 1280: 800, 820: 1180, 390: 844}

THEMES = ("light", "dark")

#: Name -> what the address says; MARK is a job's nodes, COUNT how many these are.
VIEWS = {
    "map": "#MARK",
    "jobs-on-map": "",
    "plans": "#t=plans&MARK&plan=COUNT;1;row-major;free;compact,spread;alltoall",
    "traffic": "#t=traffic&MARK",
    "beside": "#t=traffic&MARK",
    "jobs": "#t=jobs",
    "table": "#t=table&MARK",
}

#: Name -> what is there once a view shows what it is about.
SHOWN = {
    "map": "#figures .time-bars, #figures strong",
    "jobs-on-map": "#figures strong",
    "plans": ".plan .small-map",
    "traffic": "#traffic-picture svg",
    "beside": "#traffic-picture svg",
    "jobs": "#jobs-body td",
    "table": "#table td",
}

#: Whose job is the most spread one, and whose the others are.
OWNER, OTHERS = "ada", ("bob", "carl")

NAMES = ("lammps", "gromacs", "cp2k-liquid-water-equilibration", "icon", "vasp", "wrf")


def drawn_jobs(machine, seed=1):
    """Return what squeue prints of jobs on half of a machine, and the rows of the most spread."""
    lots = random.Random(seed)
    rows = np.flatnonzero(machine.compute).tolist()
    parts, at = [], 0
    while at < len(rows):
        size = min(lots.choice((1, 2, 4, 8, 16, 32, 64)), max(len(rows) // 24, 1))
        parts.append(rows[at : at + size])
        at += size
    lots.shuffle(parts)
    spread = sorted(row for part in parts[:5] for row in part)
    held = [spread, *parts[5 : 5 + len(parts) // 2]][:60]
    names = machine.names
    jobs = [
        (
            1000 + i,
            NodeList(names[part].tolist()).fold(),
            lots.choice(NAMES),
            lots.choice(OTHERS) if i else OWNER,
        )
        for i, part in enumerate(held)
    ]
    return squeue(*jobs, ppn=4), spread


@contextlib.contextmanager
def busy_site(spec, seed=1):
    """Serve a machine with drawn jobs; yield the server and the rows of its most spread job."""
    machine = nidmap.load_machine(spec)
    printed, spread = drawn_jobs(machine, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "squeue.json"
        path.write_text(printed)
        with running(machine, (str(path),), users=True, seconds=600.0) as site:
            until(lambda: site.ask("/api/v1/state").json["jobs"])
            yield site, spread


def address_of(view, rows):
    """Return the address of a view, in which these rows are marked."""
    listed = ",".join(map(str, rows))
    return VIEWS[view].replace("MARK", f"m=A:0:@{listed}").replace("COUNT", str(len(rows)))


def show(page, url, view, rows):
    """Open a view at a server, and wait until it shows what it is about."""
    page.goto("about:blank")
    page.goto(f"{url}/{address_of(view, rows)}")
    page.wait_for_selector("#map[data-settled=true]", state="attached")
    wait_for(page, view)
    if view == "beside":
        page.keyboard.press("v")


def turn_to(page, view):
    """Show another view of a page that is open, by its tab."""
    page.click(f"#tab-{'traffic' if view == 'beside' else view}")
    wait_for(page, view)
    if view == "beside":
        page.check("#traffic-both")


def wait_for(page, view):
    """Wait until a view shows what it is about."""
    page.wait_for_selector(SHOWN[view], state="attached")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.figure strong')].every(f => f.textContent !== '…')"
    )

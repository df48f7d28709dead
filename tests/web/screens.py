# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.web.screens OUT``: pictures of every tab on nine machines, at four sizes.

In light and dark, for a person to look at: ``OUT/MACHINE/VIEW-WIDTH-THEME.png``, whole pages.
What a program can tell (texts that overlap or are too small) is held by ``test_page_overlap.py``.
"""

import argparse
import re
import sys
from pathlib import Path

from tests.web.browser import PATIENCE, launched
from tests.web.views import MACHINES, SIZES, THEMES, VIEWS, busy_site, show


def arguments(words):
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.web.screens", description=__doc__)
    parser.add_argument("out", type=Path, help="folder that the pictures are written to")
    parser.add_argument("--machines", nargs="+", default=MACHINES, metavar="MACHINE")
    parser.add_argument("--views", nargs="+", default=list(VIEWS), choices=VIEWS)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES), choices=SIZES)
    parser.add_argument("--themes", nargs="+", default=THEMES, choices=THEMES)
    return parser.parse_args(words)


def pictures(page, site, rows, asked, folder):
    """Write all pictures of one machine."""
    for view in asked.views:
        page.set_viewport_size({"width": 1280, "height": 800})
        show(page, site.url, view, rows)
        for width in asked.sizes:
            page.set_viewport_size({"width": width, "height": SIZES[width]})
            for theme in asked.themes:
                page.emulate_media(color_scheme=theme, reduced_motion="reduce")
                page.wait_for_timeout(250)  # the map draws behind its frame's change of size
                page.wait_for_selector("#map[data-settled=true]", state="attached")
                page.screenshot(path=folder / f"{view}-{width}-{theme}.png", full_page=True)


def main(words=None):
    """Write the pictures that are asked for."""
    asked = arguments(words)
    with launched() as browser:
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        for spec in asked.machines:
            folder = asked.out / re.sub(r"\W+", "-", spec)
            folder.mkdir(parents=True, exist_ok=True)
            with busy_site(spec) as (site, rows):
                pictures(page, site, rows, asked, folder)
                page.goto("about:blank")
            print(folder, file=sys.stderr)


if __name__ == "__main__":
    main()

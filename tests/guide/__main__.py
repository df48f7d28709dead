# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.guide [--made] [PAGE…]``: make tables and outputs of the guide anew.

``--made`` runs the benchmarks of ``<!-- made: COMMAND -->`` too, which take minutes.
"""

import datetime
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.guide import blocks, tables

MADE = re.compile(r"(<!-- made: python -m ([^\n]*) -->\n)(.*?)(<!-- end -->)", re.S)


def main(words: list[str]) -> None:
    """Write each page with what its commands print now, and the tables of the registries."""
    chosen = [Path(word).resolve() for word in words if word != "--made"] or blocks.PAGES
    for path in chosen:
        page = tables.rewritten(path.read_text())
        if "--made" in words:
            page = MADE.sub(lambda m: f"{m[1]}{_made(m[2])}{m[4]}", page)
        if blocks.commands(page):
            with tempfile.TemporaryDirectory() as folder:
                page = blocks.rewritten(page, blocks.run_page(page, Path(folder)))
        if page != path.read_text():
            path.write_text(page)
            print(f"made anew: {path.relative_to(blocks.ROOT)}", flush=True)


def _made(command: str) -> str:
    """Return what a benchmark prints, from its last table on, with its commit and date."""
    words = [sys.executable, "-m", *shlex.split(command)]
    out = subprocess.run(words, capture_output=True, text=True, check=True, cwd=blocks.ROOT).stdout
    lines = out.rstrip().splitlines()
    begin = max((i for i, line in enumerate(lines) if line.startswith("### ")), default=-1)
    shown = "\n".join(lines[begin + 1 :]).strip()
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"],
        capture_output=True, text=True, check=True, cwd=blocks.ROOT,
    ).stdout.strip()  # fmt: skip
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    return f"\n`python -m {command}`, {commit}, {today}:\n\n{shown}\n\n"


if __name__ == "__main__":
    main(sys.argv[1:])

# SPDX-License-Identifier: Apache-2.0
"""The page of the guide that explains each command; the command's help links to it."""

from __future__ import annotations

import click

#: Words after ``nidmap`` -> page; commands not listed have the page of their parent group.
PAGES = {
    "": "docs/index.md",
    "site": "docs/howto/new-site.md",
    "machine": "docs/reference/machines.md",
    "nodes": "docs/howto/partitions.md",
    "nodes sort": "docs/howto/switch-order.md",
    "plan": "docs/start/tutorial.md",
    "order": "docs/howto/rank-order.md",
    "score": "docs/reference/orders.md",
    "predict": "docs/trust/time.md",
    "compare": "docs/trust/ranges.md",
    "run": "docs/howto/rank-order.md",
    "jobs": "docs/howto/past-jobs.md",
    "replay": "docs/howto/replay.md",
    "record": "docs/howto/record.md",
    "ab": "docs/howto/ab.md",
    "bench": "docs/reference/measuring.md",
    "calibrate": "docs/howto/calibrate.md",
    "slurm": "docs/howto/job-script.md",
    "minicray": "docs/reference/minicray.md",
    "web": "docs/reference/page.md",
    "web export": "docs/howto/figures.md",
    "doctor": "docs/start/install.md",
}


def page_of(path: str) -> str:
    """Return the page of a command, given the words after ``nidmap``."""
    while path not in PAGES:
        path = path.rpartition(" ")[0]
    return PAGES[path]


def name_page(command: click.Command, path: str) -> click.Command:
    """End the help of a command, and of its subcommands, with a link to its page."""
    command.epilog = f"Guide: {page_of(path)}"
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            name_page(below, f"{path} {name}".strip())
    return command

# SPDX-License-Identifier: Apache-2.0
"""Reading a dump: from text to machine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.dumps import xtprocadmin
from benchmarks.timing import interleave, ms, ratio, table

if TYPE_CHECKING:
    from nidmap.placement.machine import Machine


def main() -> None:
    """Print the time to read dumps next to that of merely splitting their lines."""
    from nidmap.placement.dumps.assemble import assemble
    from nidmap.placement.readers import read_text

    def split(text: str) -> list[list[str]]:
        return [line.split() for line in text.splitlines()]

    def machine_of(text: str) -> Machine:
        return assemble([read_text(text, "dump")])

    rows = []
    for columns, lines in ((10, 4), (40, 4), (130, 4)):
        text = xtprocadmin(columns, lines)
        times = interleave(
            {
                "split": partial(split, text),
                "records": partial(read_text, text, "dump"),
                "machine": partial(machine_of, text),
            }
        )
        count = f"{text.count(chr(10)):,}"
        rows += [
            [count, name, ms(t), f"{ratio(t, times['split']):.2f}"] for name, t in times.items()
        ]
    table("Reading xtprocadmin", ["lines", "up to", "median", "ratio to a plain split"], rows)

"""Reading a dump: text in, machine out."""

from __future__ import annotations

from benchmarks.dumps import xtprocadmin
from benchmarks.timing import interleave, ms, ratio, table


def main() -> None:
    """Print the time to read dumps beside a plain split of their lines."""
    from placement.dumps.assemble import assemble
    from placement.readers import read_text

    rows = []
    for columns, lines in ((10, 4), (40, 4), (130, 4)):
        text = xtprocadmin(columns, lines)
        times = interleave(
            {
                "split": lambda t=text: [line.split() for line in t.splitlines()],
                "records": lambda t=text: read_text(t, "dump"),
                "machine": lambda t=text: assemble([read_text(t, "dump")]),
            }
        )
        count = f"{text.count(chr(10)):,}"
        rows += [
            [count, name, ms(t), f"{ratio(t, times['split']):.2f}"] for name, t in times.items()
        ]
    table("Reading xtprocadmin", ["lines", "up to", "median", "ratio to a plain split"], rows)

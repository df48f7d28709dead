# SPDX-License-Identifier: Apache-2.0
"""Complete processes: a cold plan against a bare import of numpy."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks.dumps import xtprocadmin
from benchmarks.timing import interleave, ms, process, ratio, table


def main() -> None:
    """Print the ratio of each cold command to ``python -c 'import numpy'``."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "shaped.xtprocadmin"
        dump.write_text(xtprocadmin(columns=12, rows=3, keep=6174))
        run = ("-m", "nidmap", "plan", "-N", "216", "--strategy", "blades")
        times = interleave(
            {
                "python -c 'import numpy'": process("-c", "import numpy"),
                "nidmap --help": process("-m", "nidmap", "--help"),
                "nidmap plan -m DUMP (6,174 nodes)": process(*run, "-m", str(dump)),
                "nidmap plan -m shaheen2": process(*run, "-m", "shaheen2"),
            },
            rounds=15,
        )
    bare = times["python -c 'import numpy'"]
    rows = [[name, ms(t), f"{ratio(t, bare):.2f}"] for name, t in times.items()]
    table("Cold start, whole process", ["command", "median", "ratio"], rows)

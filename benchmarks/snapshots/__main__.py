# SPDX-License-Identifier: Apache-2.0
"""Run as ``python -m benchmarks.snapshots``."""

from benchmarks.snapshots.command import snapshots
from nidmap import main
from nidmap.placement.commands import cli

if __name__ == "__main__":
    cli.add_command(snapshots)  # for this process alone: its errors and exit codes are nidmap's
    main("snapshots")

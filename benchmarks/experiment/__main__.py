# SPDX-License-Identifier: Apache-2.0
"""Run as ``python -m benchmarks.experiment``."""

from benchmarks.experiment.command import experiment
from nidmap import main
from nidmap.placement.commands import cli

if __name__ == "__main__":
    cli.add_command(experiment)  # for this process alone: its errors and exit codes are nidmap's
    main("experiment")

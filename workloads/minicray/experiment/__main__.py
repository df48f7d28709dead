"""Run as ``python -m workloads.minicray.experiment``."""

import sys

from placement.commands import run

if __name__ == "__main__":
    sys.exit(run(["minicray", "experiment", *sys.argv[1:]]))

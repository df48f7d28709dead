"""Run as ``python -m workloads.report``."""

from nidmap import main

if __name__ == "__main__":
    main("bench", "report")

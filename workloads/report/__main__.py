"""Run as ``python -m workloads.report``."""

from workloads.launched import program

if __name__ == "__main__":
    program("report")

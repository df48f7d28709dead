"""Run as ``python -m workloads.report``."""

from workloads.commands import program

if __name__ == "__main__":
    program("report")

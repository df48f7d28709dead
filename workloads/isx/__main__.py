"""Run as ``mpiexec -n P python -m workloads.isx``."""

from workloads.launched import program

if __name__ == "__main__":
    program("isx")

"""Run as ``mpiexec -n P python -m workloads.alltoall``."""

from workloads.commands import program

if __name__ == "__main__":
    program("alltoall")

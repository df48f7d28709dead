"""Run as ``mpiexec -n P python -m workloads.alltoall``."""

from nidmap import main

if __name__ == "__main__":
    main("bench", "alltoall")

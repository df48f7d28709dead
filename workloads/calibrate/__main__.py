"""Run as ``mpiexec -n P python -m workloads.calibrate``."""

from nidmap import main

if __name__ == "__main__":
    main("calibrate")

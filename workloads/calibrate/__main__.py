"""Run as ``mpiexec -n P python -m workloads.calibrate``."""

import sys

from nidmap import main

if __name__ == "__main__":
    sys.argv[1:1] = ["calibrate"]
    main()

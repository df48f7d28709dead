"""Run as ``mpiexec -n P python -m workloads.sort``."""

import sys

from nidmap import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "sort"]
    main()

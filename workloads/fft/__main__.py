"""``mpiexec -n 4 python -m workloads.fft``: the same as ``nidmap bench fft``."""

import sys

from nidmap import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "fft"]
    main()

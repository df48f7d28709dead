"""``mpiexec -n 4 python -m workloads.stencil``: the same as ``nidmap bench stencil``."""

import sys

from nidmap import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "stencil"]
    main()

"""Run as ``python -m workloads.report``."""

import sys

from nidmap import main

if __name__ == "__main__":
    sys.argv[1:1] = ["bench", "report"]
    main()

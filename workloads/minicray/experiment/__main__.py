"""Run as ``python -m workloads.minicray.experiment``."""

import sys

from nidmap import main

if __name__ == "__main__":
    sys.argv[1:1] = ["minicray", "experiment"]
    main()

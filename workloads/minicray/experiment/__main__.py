"""Run as ``python -m workloads.minicray.experiment``."""

from nidmap import main

if __name__ == "__main__":
    main("minicray", "experiment")

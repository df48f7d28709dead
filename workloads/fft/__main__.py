"""``mpiexec -n 4 python -m workloads.fft``: the same as ``nidmap bench fft``."""

from nidmap import main

if __name__ == "__main__":
    main("bench", "fft")

"""``mpiexec -n 4 python -m workloads.fft``: the same as ``nidmap bench fft``."""

from workloads.launched import program

if __name__ == "__main__":
    program("fft")
